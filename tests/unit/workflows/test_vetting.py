"""Vetting: searches for one need, candidates read and examined one by one, and what does not come back."""

import asyncio
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from contracts import failures
from contracts.addresses import source_id
from contracts.messages import ReadRecord, ReadRequest, SearchRequest, SearchResponse
from contracts.outcome import CallAccount
from contracts.recursive_roles import (
    MAX_SEARCHES,
    LibrarianAnswer,
    LibrarianInput,
    MentionedWork,
    ScanInput,
    ScannerAnswer,
)
from contracts.state import ResearchState
from contracts.vetting import Vetted, need_id
from contracts.vocabulary import EngineKind, NodeStatus, Quality, StopReason
from tests.fakes import states
from tests.fakes.host import InProcessHost
from workflows.phases.vetting import WITHOUT_SCAN, Vetting
from workflows.rules.sub_queries import queries_to_analyze
from workflows.run.inbox import Inbox, Interrupted
from workflows.run.research_run import ResearchRun

NEED = "how wraparound is prevented"
SITE = "https://e.org/"


def page(name: str) -> str:
    return SITE + name


class Library:
    """Hits by search, qualities by page, and what is thought of each page; the rest is usual."""

    def __init__(self, hits: dict[str, list[str]], **pages: Any) -> None:
        self.hits = hits
        self.qualities: dict[str, Quality] = pages.get("qualities", {})
        self.scans: dict[str, Any] = pages.get("scans", {})
        self.broken: tuple[str, ...] = pages.get("broken", ())
        self.asked: list[LibrarianInput] = []
        self.searched: list[str] = []
        self.read: list[str] = []
        self.scanned: list[ScanInput] = []
        self.at_once = self.most_at_once = 0

    async def propose_searches(self, request: LibrarianInput) -> LibrarianAnswer:
        self.asked.append(request)
        fresh = [text for text in self.hits if text not in request.asked]
        return LibrarianAnswer(searches=fresh[:MAX_SEARCHES], account=self.account(request))

    async def search(self, request: SearchRequest) -> SearchResponse:
        self.searched.append(request.text)
        found = enumerate(self.hits[request.text], start=1)
        hits = [states.hit(page(name), rank).model_copy(update={"title": name}) for rank, name in found]
        return SearchResponse(provider="corpus", hits=hits)

    async def read_source(self, request: ReadRequest) -> ReadRecord:
        name = request.url.removeprefix(SITE)
        self.read.append(name)
        if name in self.broken:
            raise ApplicationError("bad", {"kind": "encrypted"}, type=failures.SOURCE_UNREADABLE, non_retryable=True)
        return states.record(request, title=name, quality=self.qualities.get(name, Quality.MEDIUM))

    async def scan_source(self, request: ScanInput) -> ScannerAnswer:
        self.scanned.append(request)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0.001 * (5 - len(self.scanned) % 5))
        self.at_once -= 1
        made = []
        for source in request.sources:
            opinion = self.scans.get(source.title, {})
            if isinstance(opinion, BaseException):
                raise opinion
            usual = {"credibility": "medium", "relevance": "high", "reason": f"about {source.title}", "decision": "use"}
            made += [{"source_id": source.id, **usual, **opinion}] if opinion is not None else []
        return ScannerAnswer.model_validate({"assessments": made, "account": self.account(request)})

    def account(self, request: Any) -> CallAccount:
        return CallAccount(engine=request.engine)

    def names(self, vetted: Vetted) -> list[str]:
        """Return the names of the vetted pages."""
        known = {source_id(page(name)): name for names in self.hits.values() for name in names}
        return [known[one.source_id] for one in vetted.accepted]


def run_over(library: Library, engine: EngineKind = EngineKind.MODEL, state: Any = None, **limits: Any) -> ResearchRun:
    resolved = states.resolved(engine=engine)
    limits = {"max_new_sources": 60, "max_sources": 60, "max_sources_per_query": 60, **limits}
    resolved = resolved.model_copy(update={"limits": resolved.limits.model_copy(update=limits)})
    state = state or states.state(resolved=resolved, plan=states.plan())
    state.clock.deadline_at = 4e9
    names = ("propose_searches", "search", "read_source", "scan_source")
    return ResearchRun(state, Inbox(), InProcessHost({name: getattr(library, name) for name in names}))


async def vet(run: ResearchRun, need: str, *, most: int, known: dict[str, Vetted], caller: str, **more: Any) -> Vetted:
    """Find sources for one need; the record of its newest round."""
    return (await Vetting(run, known, caller, most, **more).carry_out([need]))[0]


async def vetted(run: ResearchRun, known: dict[str, Vetted] | None = None, **more: Any) -> Vetted:
    given: dict[str, Any] = {"most": 12, "known": {} if known is None else known, "caller": "planner", **more}
    return await vet(run, NEED, **given)


async def test_a_need_becomes_a_list_of_vetted_sources() -> None:
    """Searches in different words, candidates read and scanned together, both lists with reasons (S4-016 to S4-018)."""
    library = Library(
        {"one": ["a", "b", "c"], "two": ["b", "d", "e"]},
        qualities={"a": Quality.LOW, "c": Quality.HIGH, "d": Quality.UNKNOWN},
        scans={
            "a": {"credibility": "low"},
            "c": {"credibility": "high"},
            "e": {"relevance": "low", "reason": "about something else", "decision": "reject"},
        },
        broken=("b",),
    )
    run = run_over(library)
    found = await vetted(run)
    assert library.names(found) == ["c", "d"]
    rejected = {run.state.evidence.sources[one.source_id].title: one.reason for one in found.rejected}
    assert rejected == {"a": "about a", "b": "it could not be read: encrypted", "e": "about something else"}
    assert [len(request.sources) for request in library.scanned] == [4]
    assert all(request.sub_query.text == NEED for request in library.scanned)
    assert sorted(library.read) == ["a", "b", "c", "d", "e"]
    assert found.accepted[0].reason == "about c"
    assert run.state.accounts.usage.reads == 5
    assert queries_to_analyze(run.state) == [], "no analysis of a search is left"


async def test_scans_for_several_needs_move_a_label_by_one_step_in_all() -> None:
    """Whatever a page makes a scanner say, and however many needs it is scanned for (S4-018, C4-5)."""
    library = Library({"one": ["a"]}, qualities={"a": Quality.HIGH}, scans={"a": {"credibility": "low"}})
    run, known = run_over(library), dict[str, Vetted]()
    for need in (NEED, "another need", "a third need"):
        found = await vet(run, need, most=12, known=known, caller="executor")
        assert [one.accepted for one in found.examined] == [True]
        assert run.state.evidence.sources[source_id(page("a"))].quality is Quality.MEDIUM
    assert library.read == ["a"]


async def test_candidates_are_bounded_and_by_rank() -> None:
    """At most so many are read and scanned, rank by rank of the searches, within the sources of the run (S4-016)."""
    hits = {"one": [f"a{n}" for n in range(9)], "two": [f"b{n}" for n in range(9)]}
    library = Library(hits)
    found = await vetted(run_over(library), most=5)
    assert library.names(found) == ["a0", "b0", "a1", "b1", "a2"]
    assert sorted(library.read) == ["a0", "a1", "a2", "b0", "b1"]
    many = Library({"one": [f"a{n}" for n in range(18)]})
    await vetted(run_over(many, max_parallel=3), most=18)
    assert (many.most_at_once, [len(request.sources) for request in many.scanned]) == (3, [5, 5, 5, 3])
    few = Library(hits)
    assert few.names(await vetted(run_over(few, max_sources=3), most=5)) == ["a0", "b0", "a1"]
    assert [len(request.sources) for request in few.scanned] == [3]


async def test_what_was_examined_does_not_come_back_for_the_same_need() -> None:
    """Neither used nor rejected sources; another need may have them, without a second read (S4-044)."""
    library = Library({"one": ["a", "b", "c", "d"]}, scans={"b": {"relevance": "low"}})
    run, known = run_over(library), dict[str, Vetted]()
    first = await vetted(run, known, most=2)
    second = await vet(run, f"  {NEED.upper()} ", most=2, known=known, caller="executor")
    third = await vetted(run, known, most=2)
    assert [library.names(each) for each in (first, second, third)] == [["a"], ["c", "d"], []]
    assert [one.source_id for one in second.rejected] == []
    assert library.asked[1].asked == ["one"]
    other = await vet(run, "another need", most=4, known=known, caller="executor")
    assert library.names(other) == ["a", "c", "d"]
    assert sorted(library.read) == ["a", "b", "c", "d"]
    assert library.searched == ["one"]


async def test_an_empty_list_is_an_answer() -> None:
    """No hit, or none that is of use: no source is invented, and the searches are done (C4-11)."""
    nothing = Library({"one": []})
    run, known = run_over(nothing), dict[str, Vetted]()
    assert (await vetted(run, known)).accepted == []
    assert known[need_id(NEED)].complete
    assert [node.status for node in run.state.work.plan.nodes] == [NodeStatus.COMPLETED]
    await vetted(run, known)
    assert nothing.searched == ["one"]
    useless = Library({"one": ["a"]}, scans={"a": {"relevance": "low"}})
    found = await vetted(run_over(useless))
    assert (found.accepted, len(found.rejected)) == ([], 1)


async def test_mentioned_works_are_words_and_come_first_if_found() -> None:
    """They are handed to the librarian as words, and a hit for one is examined first; none is opened by itself (C4-7)."""
    works = [
        MentionedWork(words="The Storage Handbook"),
        MentionedWork(address=page("c")),
        MentionedWork(address=page("elsewhere")),
    ]
    library = Library({"one": ["a", "b", "c", "the storage handbook"]})
    found = await vetted(run_over(library), most=2, works=works)
    assert library.asked[0].works == ["The Storage Handbook", "e.org/c", "e.org/elsewhere"]
    assert library.names(found) == ["c", "the storage handbook"]
    assert "elsewhere" not in library.read


async def test_a_source_without_an_assessment_is_assessed_by_rules() -> None:
    """The others of its call keep theirs, and the run says so (S4-017)."""
    library = Library({"one": ["a", "b"]}, scans={"a": None})
    run = run_over(library)
    found = await vetted(run)
    assert [one.reason for one in found.accepted] == ["by the rules its quality is medium", "about b"]
    assert WITHOUT_SCAN in run.state.work.degraded


async def test_a_scan_that_fails_costs_itself() -> None:
    """The rules assess the sources of that call, the others are scanned, and the run says so (S4-017)."""
    refused = ApplicationError("no", {"problem": "no JSON"}, type=failures.INVALID_MODEL_OUTPUT, non_retryable=True)
    names = [f"a{n}" for n in range(6)]
    library = Library({"one": names}, scans={"a0": refused})
    run = run_over(library)
    found = await vetted(run)
    assert [one.reason for one in found.accepted] == ["by the rules its quality is medium"] * 5 + ["about a5"]
    assert WITHOUT_SCAN in run.state.work.degraded


@pytest.mark.parametrize("at", ["propose_searches", "search", "read_source", "scan_source"])
async def test_an_interrupted_round_is_finished_and_nothing_is_done_twice(at: str) -> None:
    """Stopped at any call, stored and started again: the same sources, no search, read or finished scan again (S0-131)."""
    names = ["a", "b", *(f"d{n}" for n in range(4))]
    library = Library({"one": names, "two": ["c"]})
    run, known = run_over(library, max_parallel=1), dict[str, Vetted]()
    going = run.host.implementations[at]
    calls = 0

    async def stop_at_second(request: Any) -> Any:
        nonlocal calls
        calls += 1
        if at == "propose_searches" or calls == 2:
            run.inbox.interrupt(StopReason.USER_STOPPED)
            await asyncio.Event().wait()
        return await going(request)

    run.host.implementations[at] = stop_at_second
    with pytest.raises(Interrupted):
        await vetted(run, known)
    assert known[need_id(NEED)].complete is False
    state = ResearchState.model_validate(run.state.model_dump(mode="json"))
    stored = {key: Vetted.model_validate_json(one.model_dump_json()) for key, one in known.items()}
    again = run_over(library, state=state, max_parallel=1)
    found = await vetted(again, stored)
    every = sorted([*names, "c"])
    assert sorted(library.names(found)) == every
    assert (len(library.asked), sorted(library.searched), sorted(library.read)) == (1, ["one", "two"], every)
    assert sorted(source.title for request in library.scanned for source in request.sources) == every
    assert found.before == []
