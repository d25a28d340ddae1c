"""Searches and reads side by side: several providers for one sub-query, what they cost, and one fixed order of sources."""

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from temporalio.exceptions import ApplicationError

from contracts import failures
from contracts.addresses import digest, source_id
from contracts.call_sizes import CallSizes
from contracts.defects import Defect
from contracts.evidence import DocumentRef, QueryRecord, SearchHit
from contracts.messages import ReadRecord, ReadRequest, SearchRequest, SearchResponse
from contracts.outcome import Usage
from contracts.request import Constraints, SearchPolicy, SourceType
from contracts.resolved import EffectiveSearch, ProviderChoice
from contracts.roles import ANALYZER
from contracts.state import ResearchState
from contracts.vocabulary import NodeStatus, Phase, SourceStatus, StopReason
from tests.fakes import states
from tests.fakes.host import InProcessHost
from workflows.phases.gathering import Gathering
from workflows.phases.searching import Searching
from workflows.rules.duplicates import Identities, register_sources
from workflows.rules.sub_queries import find_asked, query_record, same_query, unread_candidates
from workflows.run.inbox import Inbox, Interrupted
from workflows.run.research_run import ResearchRun

FIRST = states.sub_query("first question of the plan", status=NodeStatus.PENDING)
SECOND = states.sub_query("second question of the plan", status=NodeStatus.PENDING)


class Shelf:
    """Hits by question; searches that fail, and pages that are broken or never come."""

    def __init__(self, hits: dict[str, list[str]], **faults: str) -> None:
        self.hits, self.faults = hits, faults
        self.searched: list[str] = []
        self.read: list[str] = []

    async def search(self, request: SearchRequest) -> SearchResponse:
        self.searched.append(request.text)
        if request.text == self.faults.get("failing"):
            raise ApplicationError("down", type=failures.RATE_LIMITED, non_retryable=True)
        found = [states.hit(url, rank) for rank, url in enumerate(self.hits[request.text], start=1)]
        return SearchResponse(provider="corpus", hits=found, documents_searched=7, term_documents={"plan": 3})

    async def read_source(self, request: ReadRequest) -> ReadRecord:
        self.read.append(request.url)
        if request.url == self.faults.get("slow"):
            await asyncio.Event().wait()
        if request.url == self.faults.get("broken"):
            raise ApplicationError("bad", {"kind": "encrypted"}, type=failures.SOURCE_UNREADABLE, non_retryable=True)
        return states.record(request)


def run_with(shelf: Shelf, **limits: Any) -> ResearchRun:
    base = states.resolved().limits.model_copy(update={"max_new_sources": 4, "max_sources_per_query": 2, **limits})
    state = states.state(resolved=states.resolved(limits=base), plan=states.plan(FIRST, SECOND), phase=Phase.GATHERING)
    state.clock.deadline_at = 4e9
    return ResearchRun(state, Inbox(), InProcessHost({"search": shelf.search, "read_source": shelf.read_source}))


async def gather(run: ResearchRun) -> ResearchState:
    await Gathering(run, run.state.work.pending_sub_queries()).carry_out()
    return run.state


async def test_sources_are_linked_counted_and_reconciled() -> None:
    """Ids, owners, duplicates and the four figures fit the state (S0-050, S0-052, S0-055, S0-058, S0-059)."""
    shelf = Shelf({FIRST.text: ["corpus:m/a", "corpus:m/b"], SECOND.text: ["corpus:m/b", "corpus:m/c"]})
    state = await gather(run_with(shelf))
    assert [source.url for source in state.evidence.sources.values()] == ["corpus:m/a", "corpus:m/b", "corpus:m/c"]
    shared = state.evidence.sources[source_id("corpus:m/b")]
    assert shared.sub_query_ids == [FIRST.id, SECOND.id]
    first, second = state.work.plan.sub_queries
    assert (first.status, second.status) == (NodeStatus.COMPLETED, NodeStatus.COMPLETED)
    assert (first.new_source_count, second.new_source_count, state.evidence.duplicates) == (2, 1, 1)
    assert (state.accounts.usage.searches, state.accounts.usage.reads) == (2, 3)
    assert (state.evidence.documents_searched, state.evidence.term_documents) == (7, {"plan": 3})
    assert sorted(shelf.read) == ["corpus:m/a", "corpus:m/b", "corpus:m/c"]


async def test_a_defect_in_a_search_is_listed_though_the_run_goes_on() -> None:
    """Its place is what the author of a search provider needs; the type alone names no line."""
    shelf = Shelf({SECOND.text: ["corpus:m/a"]})
    defect = Defect(error="KeyError", place="finders/search.py:3 in read", frames=["finders/search.py:3 in read"])

    async def search(request: SearchRequest) -> SearchResponse:
        if request.text == FIRST.text:
            details = {"defect": defect.model_dump(mode="json")}
            raise ApplicationError(defect.text, details, type="KeyError", non_retryable=True)
        return await shelf.search(request)

    run = run_with(shelf)
    run.host.implementations["search"] = search  # type: ignore[attr-defined]
    state = await gather(run)
    assert state.work.defects == [defect]
    assert [source.url for source in state.evidence.sources.values()] == ["corpus:m/a"]


def with_money_for(run: ResearchRun, pages: float, *, findings: int = 1) -> ResearchRun:
    """The run, after an analysis of four pages for 0.4 dollars, with so many times the price of a page left."""
    run.state.accounts.call_sizes = {ANALYZER.name: CallSizes(calls=1, pages=4, usd=0.4, tokens=8_000)}
    run.state.accounts.usage = Usage(cost_usd=1 - pages / 10)
    run.state.evidence.findings = [states.finding(f"finding {number}") for number in range(findings)]
    return run


FULL = Shelf({FIRST.text: ["corpus:m/a", "corpus:m/b"], SECOND.text: ["corpus:m/c", "corpus:m/d"]})


@pytest.mark.parametrize(("pages", "read"), [(9, "abcd"), (2, "ac"), (1.2, "ac"), (0.4, "a")])
async def test_no_more_is_read_than_can_be_analyzed_with_what_is_left(pages: float, read: str) -> None:
    """Each sub-query has its first page before any has its second; of the last page a part may be paid for."""
    run = with_money_for(run_with(FULL, max_cost_usd=1.0), pages)
    state = await gather(run)
    assert [source.url for source in state.evidence.sources.values()] == [f"corpus:m/{name}" for name in read]


async def test_pages_that_wait_for_their_analysis_are_paid_for_first() -> None:
    """A gathering that is repeated before the analysis reads no more than the money for all of them."""
    run = with_money_for(run_with(FULL, max_cost_usd=1.0), 3)
    await Gathering(run, run.state.work.pending_sub_queries(), cap=2).carry_out()
    await Gathering(run, run.state.work.plan.sub_queries).carry_out()
    assert len(run.state.evidence.sources) == 3


async def test_nothing_is_searched_for_where_no_page_could_be_analyzed() -> None:
    """The run ends there, with what is left for its report."""
    shelf = Shelf(FULL.hits)
    run = with_money_for(run_with(shelf, max_cost_usd=1.0), 0.2)
    with pytest.raises(Interrupted) as ended:
        await gather(run)
    assert ended.value.reason is StopReason.BUDGET_COST
    assert shelf.searched == []


async def test_without_a_finding_pages_are_read_for_rules() -> None:
    """Rules analyze what no model can any more."""
    run = with_money_for(run_with(FULL, max_cost_usd=1.0), 0.2, findings=0)
    assert len((await gather(run)).evidence.sources) == 4


SITES = [f"https://e.org/{number}" for number in range(5)]
FOUND = st.lists(
    st.tuples(st.sampled_from(SITES), st.sampled_from([None, "10.1000/a", "10.1000/b"])), max_size=5, unique=True
)


@given(
    st.lists(FOUND, min_size=3, max_size=3),
    st.permutations(range(3)),
    st.permutations(SITES),
    st.integers(0, 6),
    st.integers(1, 3),
)
async def test_the_order_of_arrival_decides_nothing(
    found: list[list[tuple[str, str | None]]], searches: list[int], reads: list[str], budget: int, room: int
) -> None:
    """Whichever search or page comes first, the same sources are read for the same hits; never over budget, never one
    twice, each owned by the lowest sub-query that found it (X-5, S0-050, S0-051).
    """
    first = await _gather_in_order(found, list(range(3)), SITES, budget, room)
    second = await _gather_in_order(found, searches, reads, budget, room)
    assert first.evidence.sources == second.evidence.sources
    assert list(first.evidence.sources) == list(second.evidence.sources)
    assert first.work.plan == second.work.plan
    assert first.evidence.duplicates == second.evidence.duplicates
    assert len(first.evidence.sources) <= budget
    for source in first.evidence.sources.values():
        finders = [place for place, hits in enumerate(found) if source.url in [url for url, _ in hits]]
        assert not finders or source.sub_query_ids[0] <= f"sq-{finders[0]}"
    for place in range(3):
        owned = [source for source in first.evidence.sources.values() if source.sub_query_ids[0] == f"sq-{place}"]
        assert len(owned) <= 3 * room


async def _gather_in_order(
    found: list[list[tuple[str, str | None]]], searches: list[int], reads: list[str], budget: int, room: int
) -> ResearchState:
    """Gather for three sub-queries whose searches return in this order, and pages in that one."""
    queries = [states.sub_query(f"question {n}", id=f"sq-{n}", status=NodeStatus.PENDING) for n in range(3)]
    shelf = Shelf({query.text: [] for query in queries})

    async def search(request: SearchRequest) -> SearchResponse:
        place = int(request.text[-1])
        for _ in range(3 * searches.index(place)):
            await asyncio.sleep(0)
        hits = [
            states.hit(url, rank).model_copy(update={"doi": doi}) for rank, (url, doi) in enumerate(found[place], 1)
        ]
        return SearchResponse(provider="corpus", hits=hits)

    async def read_source(request: ReadRequest) -> ReadRecord:
        for _ in range(3 * reads.index(request.url)):
            await asyncio.sleep(0)
        return await shelf.read_source(request)

    run = run_with(shelf, max_new_sources=budget, max_sources_per_query=room, max_parallel=3, max_parallel_reads=3)
    run.state.work.plan = states.plan(*queries)
    run.host.implementations |= {"search": search, "read_source": read_source}
    return await gather(run)


async def test_one_work_at_two_addresses_is_read_once() -> None:
    """The DOI of a hit tells before reading, the content afterwards; the second address is an alias (S0-050, S0-052)."""
    shelf = Shelf({FIRST.text: ["https://a.org/1", "https://b.org/same"], SECOND.text: ["https://c.org/1"]})
    run = run_with(shelf)

    async def search(request: SearchRequest) -> SearchResponse:
        response = await shelf.search(request)
        hits = [hit.model_copy(update={"doi": "10.1000/x" if hit.url.endswith("1") else None}) for hit in response.hits]
        return response.model_copy(update={"hits": hits})

    async def read_source(request: ReadRequest) -> ReadRecord:
        record = await shelf.read_source(request)
        return record.model_copy(update={"text": DocumentRef(hash=digest("the same text"), size=1_000)})

    run.host.implementations |= {"search": search, "read_source": read_source}
    state = await gather(run)
    (source,) = state.evidence.sources.values()
    assert sorted(shelf.read) == ["https://a.org/1", "https://b.org/same"]
    assert (source.sub_query_ids, source.aliases) == ([FIRST.id, SECOND.id], ["https://b.org/same"])
    assert state.evidence.duplicates == 2


async def test_a_repeated_gathering_reads_the_next_ranks() -> None:
    """No search is asked again; the next rank window fills the room that unreadable pages left (C0-2, C0-27)."""
    pages = [f"corpus:m/{number}" for number in range(4)]
    shelf = Shelf({FIRST.text: pages, SECOND.text: []}, broken=pages[0])
    run = run_with(shelf)
    await gather(run)
    assert shelf.read == pages[:2]
    for _ in range(2):
        await Gathering(run, [query for query in run.state.work.plan.sub_queries if query.id == FIRST.id]).carry_out()
    assert sorted(shelf.read) == pages[:3]
    assert shelf.searched == [FIRST.text, SECOND.text]
    assert run.state.work.plan.sub_queries[0].new_source_count == 2
    assert run.state.evidence.duplicates == 0
    lost = run.state.evidence.sources[source_id(pages[0])]
    assert (lost.status, lost.status_reason) == (SourceStatus.FAILED, "encrypted")
    assert unread_candidates(run.state, run.resolved.limits) == []


async def test_work_that_ended_before_an_interruption_counts() -> None:
    """The deadline drops the straggler alone; a resumed run neither searches nor reads again (S0-100, S0-128, S0-133)."""
    shelf = Shelf({FIRST.text: ["corpus:m/a"], SECOND.text: ["corpus:m/b"]}, slow="corpus:m/b")
    run = run_with(shelf)
    work = asyncio.ensure_future(gather(run))
    while all(event.type != "source.added" for event in run.state.people.events) or "corpus:m/b" not in shelf.read:
        await asyncio.sleep(0)
    run.inbox.interrupt(StopReason.BUDGET_TIME)
    with pytest.raises(Interrupted):
        await work
    assert list(run.state.evidence.sources) == [source_id("corpus:m/a")]
    assert [query.status for query in run.state.work.plan.sub_queries] == [NodeStatus.EXECUTING] * 2

    shelf.faults.clear()
    again = ResearchRun(ResearchState.model_validate_json(run.state.model_dump_json()), Inbox(), run.host)
    state = await gather(again)
    assert sorted(state.evidence.sources) == sorted([source_id("corpus:m/a"), source_id("corpus:m/b")])
    assert len(shelf.searched) == 2
    assert shelf.read.count("corpus:m/a") == 1


def test_a_redirect_to_a_known_source_is_a_duplicate() -> None:
    """Its sub-query becomes a co-owner and its address an alias, and every spelling of one leads to it (S0-050, S0-052)."""
    known = states.source("https://e.org/final", sub_query_ids=["sq-a"], aliases=["https://e.org/short"])
    # Pages that change from one visit to the next have other bytes each time.
    changed = {"text": DocumentRef(hash=digest("later"), size=1_000), "content_hash": digest("raw, later")}
    found = states.source(known.url, id=source_id("https://e.org/go"), sub_query_ids=["sq-b"], **changed)
    sources, aliases, dropped = register_sources(
        states.sources(known), {}, [(states.hit("https://e.org/go", 1), found)]
    )
    assert (list(sources), dropped) == ([known.id], {found.id: known.id})
    assert sources[known.id].sub_query_ids == ["sq-a", "sq-b"]
    assert sources[known.id].aliases == ["https://e.org/go", "https://e.org/short"]
    identities = Identities(sources, aliases | {"https://e.org/older": known.id})
    for url in ("https://E.org/final#x", "https://e.org/short?utm_source=x", "https://e.org/go", "https://e.org/older"):
        assert identities.identity_of(states.hit(url, 1)) == known.id
    assert identities.identity_of(states.hit("https://e.org/new", 1)) == source_id("https://e.org/new")


# --- several providers -----------------------------------------------------------------------------------------------
QUESTION = states.sub_query("how do widgets decay over time", status=NodeStatus.PENDING)
OTHER = states.sub_query("who measured the decay of widgets first", status=NodeStatus.PENDING)
WEB = [SourceType.WEB]


def choice(name: str, types: list[SourceType] = WEB, **changes: Any) -> ProviderChoice:
    return ProviderChoice(name=name, available=True, host=f"{name}.example", source_types=types, **changes)


def page(name: str, rank: int, url: str | None = None, **details: Any) -> SearchHit:
    return SearchHit(
        url=url or f"https://{name}.example/{rank}", title=f"{name} {rank}", rank=rank, provider=name, **details
    )


class Services:
    """Answers or failures by provider, and a record of what was asked."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.asked: list[SearchRequest] = []

    async def search(self, request: SearchRequest) -> SearchResponse:
        self.asked.append(request)
        answer = self.answers[request.provider]
        if isinstance(answer, ApplicationError):
            raise answer
        if answer is SILENT:
            await asyncio.Event().wait()
        if isinstance(answer, SearchResponse):
            return answer
        return SearchResponse(provider=request.provider, hits=answer, cost_usd=0.02)

    async def read_source(self, request: Any) -> Any:
        kind = {"kind": "not_found"}
        raise ApplicationError(request.url, kind, type=failures.SOURCE_UNREADABLE, non_retryable=True)


SILENT = object()
"""The answer of a provider that never answers."""
SPENT = Usage(cost_usd=0.03)


def searching_run(services: Services, *choices: ProviderChoice, constraints: Any = None, **search: Any) -> ResearchRun:
    """A run over these providers, by default one for the web for each service."""
    resolved = states.resolved(
        providers=list(choices) or [choice(name) for name in services.answers],
        web=True,
        search=EffectiveSearch(**search),
        constraints=constraints or Constraints(),
        corpus=None,
    )
    state = states.state(resolved=resolved, plan=states.plan(QUESTION, OTHER), phase=Phase.GATHERING)
    state.clock.deadline_at = 4e9
    return ResearchRun(state, Inbox(), InProcessHost({"search": services.search, "read_source": services.read_source}))


def misconfigured(spent: Usage | None = None) -> ApplicationError:
    """A provider that refuses, perhaps after attempts that cost something."""
    details = [{"usage": spent.model_dump(mode="json")}] if spent else []
    return ApplicationError("the key is refused", *details, type=failures.SEARCH_NOT_CONFIGURED, non_retryable=True)


async def test_fan_out_asks_everybody_and_takes_turns() -> None:
    """Hits come rank by rank in the order of the providers, whoever answered first; duplicates are one (X-16)."""
    same = page("two", 1, "https://one.example/1?utm_source=x")
    services = Services(one=[page("one", 1), page("one", 2)], two=[same, page("two", 2)])
    run = searching_run(services)
    searching = Searching(run)
    found = searching.response(await searching.search(QUESTION))
    assert [hit.url for hit in found.hits] == [
        "https://one.example/1", "https://one.example/2", "https://two.example/2"
    ]  # fmt: skip
    assert [hit.rank for hit in found.hits] == [1, 2, 3]
    assert found.provider == "one+two"


async def test_first_success_stops_at_the_first_who_finds_something() -> None:
    """An empty answer and a failure lead to the next; nobody is asked after a success (X-16)."""
    services = Services(one=[], two=misconfigured(), three=[page("three", 1)], four=[page("four", 1)])
    run = searching_run(services, policy=SearchPolicy.FIRST_SUCCESS)
    answers = await Searching(run).search(QUESTION)
    assert [request.provider for request in services.asked] == ["one", "two", "three"]
    assert answers.failed is None
    assert answers.errors == {"two": failures.SEARCH_NOT_CONFIGURED}


async def test_when_everybody_is_lost_everybody_is_asked_once_more() -> None:
    """An outage can end; a sub-query that nobody answers is failed, not empty (S0-053)."""
    services = Services(one=misconfigured(), two=misconfigured())
    run = searching_run(services)
    await Gathering(run, [QUESTION, OTHER]).carry_out()
    assert [query.status for query in run.state.work.plan.sub_queries] == [NodeStatus.FAILED] * 2
    words = "the search service takes no query with the settings of this installation"
    assert all(f"one: {words}; two: {words}" in branch for branch in run.state.work.failed_branches)
    assert len(services.asked) == 4
    assert all(record.outcome == "failed" for record in run.state.evidence.query_ledger)


@pytest.mark.parametrize(("spent", "total"), [(SPENT, 0.07), (Usage(cost_usd=None), None)])
async def test_searches_are_counted_paid_and_entered_in_the_ledger(spent: Usage, total: float | None) -> None:
    """Each answer is a search with its cost, a failure costs what its attempts cost, the ledger holds both (X-14)."""
    run = searching_run(Services(one=[page("one", 1)], two=[page("two", 1)], three=misconfigured(spent)))
    state: ResearchState = run.state
    await Gathering(run, [QUESTION]).carry_out()
    assert state.accounts.usage.searches == 2
    assert state.accounts.usage.cost_usd == total
    assert state.accounts.usage.known_cost_usd == (total or 0.04)
    assert state.accounts.usage_by_role["gatherer"] == state.accounts.usage
    assert [(record.provider, record.found, record.outcome) for record in state.evidence.query_ledger] == [
        ("one", 1, "answered"), ("two", 1, "answered"), ("three", 0, "failed")
    ]  # fmt: skip
    assert state.work.plan.sub_queries[0].error == f"three: {failures.SEARCH_NOT_CONFIGURED}"


async def test_an_interrupted_sub_query_was_paid_as_far_as_it_came() -> None:
    """One provider answered before the time was over, after an attempt that cost something; another did not."""
    quick = SearchResponse(provider="quick", cost_usd=0.02, spent_before=SPENT)
    services = Services(quick=quick, slow=SILENT)
    run = searching_run(services)
    work = asyncio.ensure_future(Gathering(run, [QUESTION]).carry_out())
    while len(services.asked) < 2:
        await asyncio.sleep(0)
    for _ in range(5):
        await asyncio.sleep(0)
    run.inbox.interrupt(StopReason.BUDGET_TIME)
    with pytest.raises(Interrupted):
        await work
    assert run.state.accounts.usage == Usage(searches=1, cost_usd=0.05)


async def test_each_provider_is_asked_for_the_types_that_it_has() -> None:
    """Types of sources are matched with providers; domains, language and dates go along (S0-056)."""
    services = Services(papers=[], news=[])
    run = searching_run(
        services,
        choice("papers", [SourceType.ACADEMIC]),
        choice("news", [SourceType.WEB, SourceType.NEWS]),
        source_types=[SourceType.ACADEMIC, SourceType.NEWS],
        domains_deny=["spam.example"],
        constraints=Constraints(language="de", timeframe="2024..2025"),
    )
    await Searching(run).search(QUESTION)
    assert [(request.provider, request.source_type) for request in services.asked] == [
        ("papers", SourceType.ACADEMIC), ("news", SourceType.NEWS)
    ]  # fmt: skip
    asked = services.asked[0]
    assert (asked.domains_deny, asked.language, asked.published_from, asked.published_to) == (
        ["spam.example"], "de", "2024-01-01", "2025-12-31"
    )  # fmt: skip


LONG = "what the prompt says word for word " * 12


@pytest.mark.parametrize(
    ("query", "sent"),
    [
        ("widgets https://user:key@evil.example:81/steal?text=secret decay", ["widgets evil.example decay"]),
        ("(HTTPS://evil.example\\@good.example/x)", ["evil.example"]),
        ("www.evil.example/steal", ["www.evil.example"]),
        (LONG, [LONG[:195]]),
        (
            "site:example.org decay of widgets and/or gadgets: why?",
            ["site:example.org decay of widgets and/or gadgets: why?"],
        ),
        ("https:///steal", []),
    ],
)
async def test_a_query_takes_no_address_and_no_prompt_to_a_service(query: str, sent: list[str]) -> None:
    """A page may make the model search for them; of an address the host is sent, of a long text the beginning."""
    services = Services(web=[])
    await Searching(searching_run(services)).search(states.sub_query(query))
    assert [request.text for request in services.asked] == sent
    for text in sent:
        assert len(text) <= 200


async def test_a_long_question_is_searched_for_whole() -> None:
    """What the person wrote is sent as the person wrote it; a corpus of this machine gets every query whole."""
    services = Services(web=[], corpus=[])
    run = searching_run(services)
    run.state.work.resolved = run.resolved.model_copy(update={"query": LONG})
    await Searching(run).search(states.sub_query(LONG))
    assert [request.text for request in services.asked] == [LONG.strip(), LONG]


@pytest.mark.parametrize(("names", "patient"), [(["one"], True), (["one", "two"], False)])
async def test_a_single_provider_is_waited_for(names: list[str], patient: bool) -> None:
    """Two types of sources at one provider are no two providers: an outage of it costs no search (S0-053)."""
    services = Services(**{name: [] for name in names})
    both = [SourceType.WEB, SourceType.ACADEMIC]
    await Searching(searching_run(services, *(choice(name, both) for name in names), source_types=both)).search(
        QUESTION
    )
    assert {request.patience_seconds is None for request in services.asked} == {patient}


async def test_a_type_of_source_is_no_stand_in_for_another() -> None:
    """Asked one after the other, providers are asked for each type until one of them finds something (S0-056, X-16)."""
    services = Services(one=[page("one", 1)], two=[page("two", 1)], three=[])
    run = searching_run(
        services,
        choice("one", [SourceType.WEB, SourceType.NEWS]),
        choice("three", [SourceType.ACADEMIC]),
        choice("two", [SourceType.WEB, SourceType.ACADEMIC]),
        policy=SearchPolicy.FIRST_SUCCESS,
        source_types=[SourceType.WEB, SourceType.ACADEMIC, SourceType.NEWS],
    )
    answers = await Searching(run).search(QUESTION)
    asked = [(one.provider, one.source_type, one.found) for one in answers.asked]
    assert asked == [("one", "web", 1), ("one", "news", 1), ("three", "academic", 0), ("two", "academic", 1)]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("What is  VACUUM?", "what is vacuum", True),
        ("“deep” research – methods", "deep research: methods", True),
        ("ｆｕｌｌ width query", "full width query", True),
        ("что такое вакуум", "Что такое вакуум?", True),
        ("Python vs Rust speed comparison 2023", "Python vs Rust speed comparison 2024", False),
        ("how to migrate data from MySQL to Postgres", "how to migrate data from Postgres to MySQL", False),
        ("memory safety of C++ code bases", "memory safety of C# code bases", False),
        ("safe limits of caffeine", "safe limits of caffeine without sugar", False),
        ("jaguar car -animal speed test", "jaguar car animal speed test", False),
        ("कि", "का", False),
        ("真空是什么", "真空有什么用", False),
    ],
)
def test_the_same_question_is_asked_once(one: str, other: str, same: bool) -> None:
    """Case and punctuation make no new query; another word, another order or another sign does (C0-1)."""
    assert same_query(one, other) is same


def test_a_failed_query_may_be_repeated() -> None:
    """Only an answer counts, and only of the provider and kind in question (C0-1)."""
    query = states.sub_query("What are autovacuum settings for large tables?", iteration=2)
    failed = query_record(query, "tavily", found=None)
    answered = query_record(query, "brave", found=3, source_type="news")
    assert (failed.outcome, answered.outcome) == ("failed", "answered")
    assert (answered.found, answered.iteration) == (3, 2)
    assert QueryRecord.model_validate_json(answered.model_dump_json()) == answered
    text = "what are AUTOVACUUM settings for large tables"
    assert find_asked([failed], text) is None
    assert find_asked([failed, answered], text) == answered
    assert find_asked([failed, answered], text, provider="tavily") is None
    assert find_asked([failed, answered], text, provider="brave", source_type="web") is None
