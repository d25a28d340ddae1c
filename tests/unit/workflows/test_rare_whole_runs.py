"""Everything that leaves runs that go an uncommon way, against recorded files, one each.

`python -m tests.unit.workflows.test_rare_whole_runs [NAME ...]` records. Read the difference before you record.
"""

import asyncio
import json
import re
import sys
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from temporalio.exceptions import ActivityError, ApplicationError

from activities.configuration import ResearchConfiguration, WebSearchConfiguration
from contracts import failures
from contracts.agents import AgentRequest
from contracts.messages import SearchRequest, SearchResponse
from contracts.request import SourceType
from contracts.resolved import Hook, ModelPrice, ProviderChoice
from contracts.sources import SearchHit
from contracts.state import ResearchState
from contracts.vocabulary import EngineKind, StopReason, Tier
from contracts.waiting import APPROVAL_PHRASE
from providers.domains import ANYWHERE, Domains
from providers.errors import InvalidCall, SourceUnreadable
from providers.interfaces import ExtractedDocument
from tests.fakes import reflective_work
from tests.fakes.corpus import MANUAL
from tests.fakes.messages_api import MessagesApi
from tests.fakes.model_engine import engine_over
from tests.fakes.tool_work import TOOL_WORK
from tests.fakes.wordy_work import TAIL, WORD
from tests.fakes.world import World
from tests.unit.workflows.test_supervisor_strategy import begin
from tests.unit.workflows.test_whole_runs import CANARY, MOMENT, DescribedCorpus, NotingHost, requests_as_text
from workflows.agent_driver import AgentDriver
from workflows.driver import Driver
from workflows.rules.guidance_reading import read_guidance
from workflows.rules.replies import read_approval, read_revision
from workflows.run.guidance import PERSON
from workflows.run.inbox import Answered, Inbox, RejectedPlan, Revised, Said
from workflows.run.research_run import ResearchRun
from workflows.run.resumption import resume_state
from workflows.run.web_ui_details import details_markdown
from workflows.run_status import status_of
from workflows.strategies import strategy_of

Work = Callable[[Mapping[str, Any]], list[dict[str, Any]]]
FOLDER = Path(__file__).parent / "rare_whole_runs"
HASH = re.compile(r"\b[0-9a-f]{64}\b|(?<=\")[0-9a-f]{32}(?=\")")
WORDS = re.compile(rf"(?:{WORD}){{3,}}")
PORT = re.compile(r"(?<=127\.0\.0\.1:)\d+")
UNTIL_ABANDONED = 20.0
"""Seconds that nobody waits for: the call is cancelled before."""
ELSEWHERE = {"report", "report_ref", "files", "usage", "citations"}
"""Of the result: what is recorded with the report, and in the state."""
ONE_BY_ONE = {"max_parallel": 1, "max_parallel_reads": 1, "max_iterations": 2, "max_sub_queries": 2}
"""So that events and decisions have an order."""
ASKED: dict[str, Any] = {
    "constraints": {"language": "de", "audience": "people who run databases", "region": "Europe", "timeframe": "year"},
    "output": {"language": "fr", "target_words": 700, "sections": ["Why", "How"]},
    "system_prompt": "Be blunt.",
    "context": [{"question": "What is a transaction?", "answer": "All or nothing."}],
}
RULES = {"gates": {"think": "rules"}}
"""Where calls are repeated, reflections beside them would come when they like."""
FULL: dict[str, Any] = {"verify": "full"}
REVIEWED: dict[str, Any] = {"checks": {"review": "model"}}
LONG: dict[str, Any] = {"output": {"target_words": 6_000}, "limits": {"max_iterations": 1, "max_sub_queries": 4}}
EMBROIDERS = {"synthesizer": "embroiders"}
"""A report that says more than its passages."""
HOOK = Hook(name="house-rules", activity="house_rules", task_queue="house-rules")


class SmallWeb:
    """Two services that find the same few pages in other words, and the pages."""

    def __init__(self, wordy: bool = False) -> None:
        self._more = TAIL if wordy else ""
        """Behind everything that is said of a page."""
        self._texts = {f"https://{name.removesuffix('.md')}.example.org/docs": text for name, text in MANUAL.items()}
        self._texts["https://mirror.example.net/vacuum"] = MANUAL["vacuum.md"]

    def trust(self) -> None:
        """The same is said by two sites of high standing that have nothing to do with each other."""
        said = MANUAL["vacuum.md"].partition("\n")[2]
        self._texts["https://www.nist.gov/databases"] = f"# Old rows\n{said}"
        self._texts["https://cs.stanford.edu/lectures"] = f"# Lecture nine\n{said}\nNext week: locks.\n"

    def service(self, name: str, *, rejects: str = "") -> "SmallService":
        """One that finds them all, and does not take queries with this word."""
        return SmallService(name, list(self._texts), rejects, self._more)

    async def read(self, url: str, *, tenant: str = "default", domains: Domains = ANYWHERE) -> ExtractedDocument:
        """A page, dated and signed where there is one."""
        if url not in self._texts:
            raise SourceUnreadable("not_found", "no such page")
        text = self._texts[url]
        return ExtractedDocument(
            url=url,
            title=text.splitlines()[0].lstrip("# ") + self._more,
            text=text,
            raw=text.encode(),
            media_type="text/html",
            authors=self._signed("Ida Marrow") if "vacuum." in url else [],
            publisher=f"The Society{self._more}" if "locks" in url else None,
            published_at="2024-05-17" if "backup" not in url else None,
            language="en",
            cached="autovacuum" in url,
            warnings=self._signed("a part could not be read") if self._more else [],
        )

    def _signed(self, words: str) -> list[str]:
        return [f"{number} {words}{self._more}" for number in range(40)] if self._more else [words]


@dataclass
class SmallService:
    """A search service that gives what only its hits know: dates, places, identifiers."""

    name: str
    urls: list[str]
    rejects: str
    more: str = ""

    async def search(self, request: SearchRequest) -> SearchResponse:
        """All pages in this service's order, and one that is gone."""
        if self.rejects and self.rejects in request.text:
            raise InvalidCall(f"the query is too long{self.more}")
        urls = self.urls if self.name == "searxng" else [*self.urls[::-1], "https://gone.example.org/"]
        return SearchResponse(
            provider=self.name,
            hits=[self._hit(url, rank) for rank, url in enumerate(urls[: request.max_results], 1)],
            warnings=[f"{self.name} was slow{self.more}"] * (30 if self.more else 1),
            cost_usd=0.001 if self.name == "tavily" else 0.0,
            cached=self.name == "searxng" and "engine" in request.text,
        )

    def _hit(self, url: str, rank: int) -> SearchHit:
        return SearchHit(
            url=f"{url}?utm_source=x" if self.name == "tavily" else url,
            title=f"{url.split('/')[2]} by {self.name}{self.more}",
            snippet=f"Wraparound, as {self.name} says of {url}: vacuum every table.{self.more}",
            rank=rank,
            provider=self.name,
            published_at="2020-02-02" if "backup" in url else None,
            authors=[f"Teo Quill{self.more}"] * (40 if self.more else 1) if "locks" in url else [],
            venue="Annals" if "locks" in url else None,
            doi="10.1000/182" if "mirror" in url else None,
        )


@dataclass
class Run:
    """What a way may disturb."""

    world: World
    state: ResearchState
    host: NotingHost
    inbox: Inbox = field(default_factory=Inbox)
    task: "asyncio.Task[Any] | None" = None
    person: "asyncio.Task[Any] | None" = None

    def before(self, activity: str, act: Callable[[int, Any], Awaitable[None]]) -> None:
        """Do this before each call of an activity; it is told the number of the call and the argument."""
        whole, count = self.host.implementations[activity], 0

        async def disturbed(*arguments: Any) -> Any:
            nonlocal count
            count += 1
            await act(count, arguments[0])
            return await whole(*arguments)

        self.host.implementations[activity] = disturbed

    def failing(self, activity: str, failure: str, *calls: int, words: str = "", **details: Any) -> None:
        """Have some calls of an activity fail for good, all of them where none is named."""

        async def fail(number: int, _: Any) -> None:
            if not calls or number in calls:
                told = [details] if details else []
                raise ApplicationError(f"{activity} failed{words}", *told, type=failure, non_retryable=True)

        self.before(activity, fail)

    def at(self, activity: str, call: int, act: Callable[[], object]) -> None:
        """Do this before one call of an activity."""

        async def once(number: int, _: Any) -> None:
            if number == call:
                act()
                await asyncio.sleep(0)

        self.before(activity, once)

    def stop_at(self, activity: str, call: int, reason: StopReason) -> None:
        """Interrupt the run when one call of an activity begins; how long that call takes decides nothing then."""

        async def stop(number: int, _: Any) -> None:
            if number == call:
                self.inbox.interrupt(reason)
                await asyncio.sleep(UNTIL_ABANDONED)

        self.before(activity, stop)


@dataclass
class Way:
    """A request, a model's behaviour (none: without a model) and what happens meanwhile."""

    disturb: Callable[[Run], object] = lambda _: None
    scenario: str | None = None
    plan: tuple[str, ...] = ()
    by_role: dict[str, str] = field(default_factory=dict)
    strategy: str = "supervisor"
    wishes: dict[str, Any] = field(default_factory=dict)
    web: bool = False
    trusted: bool = False
    wordy: bool = False
    """Whether services and pages say everything at great length."""
    requests: bool = False
    ordered: bool = True
    """Whether what happens has one order: sections are written side by side."""
    works: dict[str, Work] = field(default_factory=dict)
    """What the model does with its tools, by role."""
    answers: dict[str, Callable[[str], Any]] = field(default_factory=dict)
    """What the model answers in the roles of the strategy `reflective`, by the name of the work."""
    again: dict[str, Any] | None = None
    """Resumed with these wishes once it has ended."""


def hook(run: Run) -> None:
    """Guidance, silence, nonsense, an answer that cannot be read, a failure: one after the other."""
    answers = iter(["Look at how it fails, too.", None, {"a": 1}, ValueError("no JSON"), "Be brief."])

    async def answer(view: Any, prompt: str) -> Any:
        said = next(answers, None)
        run.host.note_entry.append(f"hook: {json.dumps([view, prompt], default=str, sort_keys=True)}")
        if isinstance(said, Exception):
            raise said
        return said

    assert run.state.resolved is not None
    run.state.resolved = run.state.resolved.model_copy(update={"hook": HOOK})
    run.host.implementations[HOOK.activity] = answer
    run.failing(HOOK.activity, "HookBroken", 6)


def broken_texts(run: Run) -> None:
    """One analysis and the first rendering end those who work on them."""
    run.failing("analyze_sources", failures.INPUT_UNPROCESSABLE, 1)
    run.failing("render_report", failures.WORKER_LOST, 1)


def answering(*says: Callable[[ResearchState], Said]) -> Callable[[Run], object]:
    """A person who says one thing after the other, each when the run waits and has taken up what was said before."""

    async def answer(run: Run) -> None:
        for say in says:
            while run.state.waiting is None or run.inbox.said:
                await asyncio.sleep(0.005)
            version = run.state.plan.version
            run.inbox.said.append(say(run.state))
            while run.inbox.said or (run.state.plan.version == version and run.state.waiting is not None):
                await asyncio.sleep(0.005)

    def begin_answering(run: Run) -> None:
        run.person = asyncio.ensure_future(answer(run))

    return begin_answering


ANSWER = Answered(["The second kind, please."])
EDITED = {"brief": "both parts", "sub_queries": ["What does a vacuum freeze?", "Which locks does it take?"]}


def agree(state: ResearchState) -> Said:
    """Yes, in the words that are wanted."""
    return read_approval(state, [], state.plan.version, APPROVAL_PHRASE)


def sent(run: Run) -> None:
    """Words to go by, at three moments."""
    for activity, call, words in (
        ("search", 1, "Leave locks out"),
        ("analyze_sources", 1, "What about autovacuum workers?"),
        ("write_report", 1, "Say it for beginners"),
    ):
        run.at(activity, call, lambda words=words: run.inbox.steering.append(read_guidance(PERSON, words, run.state)))


WAYS: dict[str, Way] = {
    "web": Way(web=True),
    "web_model": Way(web=True, scenario="gaps", wishes=ASKED, requests=True),
    "trusted": Way(web=True, trusted=True, scenario="gaps", requests=True),
    "trusted_sources": Way(web=True, trusted=True, wishes={"verify": "light"}),
    "web_types": Way(
        web=True,
        wishes={
            "search": {
                "source_types": ["web", "academic"],
                "policy": "first_success",
                "domains_deny": ["mirror.example.net"],
                "max_results_per_query": 3,
            },
            "constraints": {"timeframe": "2020-01-01..2024-12-31", "language": "en"},
        },
    ),
    "both": Way(web=True, wishes={"corpus": "manual", "web": True}),
    "hopeless": Way(scenario="hopeless", wishes=RULES),
    "repaired": Way(plan=("cut", "good", "wrong_type"), scenario="good", wishes=RULES),
    "refusing": Way(plan=("good", "refusal", "good", "status:500"), scenario="refusal", wishes=RULES),
    "gullible": Way(scenario="gullible"),
    "declining": Way(scenario="declining", disturb=sent),
    "steered": Way(disturb=sent),
    "hooked": Way(disturb=hook, scenario="gaps", requests=True),
    "capped": Way(scenario="gaps", wishes={"limits": {"max_cost_usd": 0.45}}),
    "few_calls": Way(scenario="gaps", wishes={"limits": {"max_model_calls": 5}}),
    "few_tokens": Way(scenario="gaps", wishes={"limits": {"max_tokens": 30_000}}),
    "stopped": Way(
        scenario="gaps",
        disturb=lambda run: run.stop_at("analyze_sources", 2, StopReason.USER_STOPPED),
    ),
    "stopped_again": Way(
        scenario="gaps",
        disturb=lambda run: run.stop_at("search", 3, StopReason.USER_STOPPED),
    ),
    "out_of_time": Way(disturb=lambda run: run.stop_at("read_source", 2, StopReason.BUDGET_TIME)),
    "aborted": Way(
        wishes={"on_deadline": "abort"},
        disturb=lambda run: run.stop_at("analyze_sources", 1, StopReason.BUDGET_TIME),
    ),
    "outage": Way(scenario="gaps", disturb=lambda run: run.failing("search", failures.SEARCH_REJECTED)),
    "unreadable": Way(disturb=lambda run: run.failing("read_source", failures.SOURCE_UNREADABLE, kind="not_found")),
    "full_disk": Way(disturb=lambda run: run.failing("analyze_sources", failures.STORAGE_FULL, 2)),
    "broken_texts": Way(scenario="gaps", disturb=broken_texts),
    "broken_writer": Way(disturb=lambda run: run.failing("write_report", failures.WORKER_LOST)),
    "unsaved": Way(disturb=lambda run: run.failing("save_session", failures.STORAGE_FULL)),
    "unrendered": Way(disturb=lambda run: run.failing("render_report", failures.STORAGE_FULL)),
    "cancelled": Way(
        scenario="gaps",
        disturb=lambda run: run.at("write_report", 1, lambda: run.task and run.task.cancel()),
    ),
    "checked": Way(scenario="good", by_role=EMBROIDERS, wishes=FULL, requests=True),
    "weighing_lost": Way(
        scenario="good", wishes=FULL, disturb=lambda run: run.failing("weigh_claims", "Unavailable", words=": full")
    ),
    "checked_in_vain": Way(
        scenario="good",
        by_role=EMBROIDERS,
        wishes=FULL,
        disturb=lambda run: run.failing("search", "Unavailable", *range(3, 30), words=": no answer"),
    ),
    "checked_too_late": Way(
        scenario="good",
        by_role=EMBROIDERS,
        wishes=FULL,
        disturb=lambda run: run.stop_at("search", 3, StopReason.USER_STOPPED),
    ),
    "checked_in_parts": Way(scenario="good", by_role=EMBROIDERS, wishes=LONG | FULL, requests=True, ordered=False),
    "reworded": Way(scenario="gaps", by_role={"synthesizer": "rewords"}, wishes=FULL | REVIEWED, requests=True),
    "ill_checked": Way(
        scenario="good",
        by_role={"synthesizer": "rewords", "checker": "lying", "corrector": "worsening"},
        wishes=FULL | {"checks": {"strict": True}},
    ),
    "ill_corrected": Way(
        scenario="good",
        by_role=EMBROIDERS | {"corrector": "worsening"},
        wishes=FULL | {"checks": {"strict": True, "review": "rules"}, "output": {"uncited": "remove"}},
    ),
    "ill_corrected_once": Way(scenario="good", by_role=EMBROIDERS | {"corrector": "worsening"}, wishes=FULL),
    "unchecked": Way(
        scenario="good",
        by_role=EMBROIDERS | {"checker": "hopeless", "corrector": "hopeless", "reviewer": "hopeless"},
        wishes=FULL | REVIEWED | RULES,
    ),
    "check_lost": Way(
        scenario="good",
        by_role={"synthesizer": "rewords"},
        wishes=FULL,
        disturb=lambda run: run.failing("check_claims", failures.WORKER_LOST, 1),
    ),
    "stopped_at_check": Way(
        scenario="good",
        by_role={"synthesizer": "rewords"},
        wishes=FULL,
        disturb=lambda run: run.stop_at("check_claims", 1, StopReason.USER_STOPPED),
    ),
    "parts": Way(
        scenario="thorough",
        wishes=LONG | {"output": {"target_words": 4_000, "citation_style": "key", "sections": ["Why", "How"]}},
        requests=True,
        ordered=False,
    ),
    "parts_not_joined": Way(
        scenario="good",
        wishes=LONG,
        disturb=lambda run: run.failing("join_report", failures.WORKER_LOST),
        ordered=False,
    ),
    "part_lost": Way(
        scenario="good",
        wishes=LONG,
        disturb=lambda run: run.failing("write_report", failures.WORKER_LOST, 2),
        ordered=False,
    ),
    "passages_lost": Way(
        scenario="good",
        wishes=LONG,
        disturb=lambda run: run.failing("select_evidence", failures.WORKER_LOST),
        ordered=False,
    ),
    "keyed": Way(scenario="good", wishes={"output": {"citation_style": "key", "uncited": "remove"}}),
    "linked": Way(web=True, scenario="good", wishes={"output": {"citation_style": "link"}}),
    "named": Way(wishes={"output": {"citation_style": "source_id"}}),
    "wrong_words": Way(scenario="wrong_enum", wishes=FULL | REVIEWED | RULES),
    "chatter": Way(scenario="prose_json", wishes=FULL | REVIEWED | RULES),
    "said_twice": Way(scenario="duplicate_keys", wishes=FULL | RULES),
    "half_letters": Way(scenario="surrogates", wishes=FULL | RULES),
    "steps_in_wrong_words": Way(strategy="reflective", scenario="wrong_enum", wishes={"verify": "light"}),
    "steps_half_letters": Way(strategy="reflective", scenario="surrogates", wishes={"depth": "light"}),
    "approved": Way(wishes={"gates": {"approve": "plan"}}, disturb=answering(agree)),
    "agreed_in_words": Way(
        scenario="good",
        wishes={"gates": {"approve": "phrase", "clarify": "required"}},
        disturb=answering(lambda _: ANSWER, lambda _: Revised("look at autovacuum settings"), agree),
        requests=True,
    ),
    "edited": Way(
        wishes={"gates": {"approve": "plan"}},
        disturb=answering(lambda state: read_revision(state, [], EDITED), agree),
    ),
    "rejected": Way(
        scenario="good",
        by_role={"planner": "hopeless"},
        wishes={"gates": {"approve": "plan"}, "metadata": {"team": "storage"}},
        disturb=answering(lambda _: RejectedPlan("too broad")),
    ),
    "steps": Way(strategy="reflective"),
    "steps_model": Way(strategy="reflective", scenario="good", requests=True, disturb=sent),
    "steps_web": Way(strategy="reflective", web=True, scenario="good", wishes={"depth": "light"}),
    "quick": Way(strategy="reflective", scenario="good", wishes={"mode": "quick"}),
    "direct": Way(strategy="reflective", scenario="good", wishes={"mode": "direct"}, requests=True),
    "steps_broken": Way(
        strategy="reflective",
        scenario="good",
        by_role={"step_planner": "hopeless", "coordinator": "hopeless", "researcher": "hopeless"},
    ),
    "steps_lost": Way(
        strategy="reflective", disturb=lambda run: run.failing("search", failures.SEARCH_REJECTED, 2, 3, 4)
    ),
    "steps_stopped": Way(
        strategy="reflective",
        scenario="good",
        disturb=lambda run: run.stop_at("read_source", 3, StopReason.USER_STOPPED),
    ),
}


def configured(api: MessagesApi | None) -> ResearchConfiguration:
    """Two search services, and a model with a price where there is one."""
    types = [SourceType.WEB, SourceType.ACADEMIC]
    services = [
        ProviderChoice(name="searxng", available=True, reason="configured", host="s.example.org", source_types=types),
        ProviderChoice(name="tavily", available=True, reason="configured", host="t.example.org"),
        ProviderChoice(name="brave", available=False, reason="no key", host="b.example.org"),
    ]
    return ResearchConfiguration(
        models={tier.value: "test-model" for tier in Tier} if api else {},
        model_host=lambda _: "127.0.0.1",
        model_price=lambda _: ModelPrice(input=3.75, output=15.0),
        web_search=WebSearchConfiguration(choose=lambda _, __: services),
        product_version="0.1.0",
    )


async def conduct(way: Way, folder: Path, api: MessagesApi | None) -> str:
    """A run to its end, resumed if it is to be, and everything that left it, as one text."""
    web = SmallWeb(way.wordy)
    if way.trusted:
        web.trust()
    services = {"searxng": web.service("searxng", rejects="settings"), "tavily": web.service("tavily")}
    engines = {EngineKind.MODEL: engine_over({"default": api.base_url})} if api else {}
    world = World(folder, DescribedCorpus(), engines, configured(api), services, web)
    given = {
        "corpus": way.wishes.get("corpus", None if way.web else "manual"),
        "limits": ONE_BY_ONE | way.wishes.get("limits", {}),
    }
    wishes = way.wishes | given
    run = Run(world, await begun(world, way, wishes), NotingHost(world.host().implementations))
    way.disturb(run)
    ended = await to_its_end(run, way)
    if way.again is not None:
        limits = wishes["limits"] | way.again.get("limits", {})
        fresh = await begun(world, way, wishes | way.again | {"limits": limits})
        stored = ResearchState.unpack(run.state.pack())
        assert fresh.resolved is not None
        resumed = resume_state(stored, fresh.resolved, fresh.started_at, strategy_of(way.strategy).resumed)
        resumed.clock_started_at, resumed.deadline_at = fresh.clock_started_at, fresh.deadline_at
        run = Run(world, resumed, NotingHost(world.host().implementations))
        ended += f", then {await to_its_end(run, way)}"
    state, now = run.state, run.host.now().timestamp()
    parts = {
        "ended": ended,
        "details": details_markdown(state, now),
        # How many saves become one depends on the time that they take.
        "calls": "\n".join(sorted({*run.host.note_entry})),
        "events": events_of(state),
        "status": status_of(state, now).model_dump_json(indent=1, exclude={"egress", "limits"}),
    }
    if state.result is not None and state.result.files is not None:
        parts["report.md"] = await world.content.get_text(state.result.files.markdown)
        parts["report.json"] = lines_of(json.loads(await world.content.get_text(state.result.files.json_document)))
    if api is not None and way.requests:
        parts["requests"] = requests_as_text(api.requests)
    left = state.model_dump(mode="json", exclude={"resolved", "notebook", "events", "result"})
    if state.result is not None:
        left["result"] = state.result.model_dump(mode="json", exclude=ELSEWHERE, exclude_defaults=True)
    # What overlaps may end in any order.
    left["operations"] = dict(sorted(left["operations"].items()))
    parts["state"] = lines_of(left)
    agents = dict(map(told_of_agent, run.host.agents, run.host.agent_drivers))
    parts |= dict(sorted(agents.items()))
    if not way.ordered:
        parts |= {name: "\n".join(sorted(parts[name].splitlines())) for name in ("events", "state", *agents)}
    await world.close()
    return settled("\n".join(f"=== {name}\n{text}" for name, text in parts.items()) + "\n")


async def begun(world: World, way: Way, wishes: dict[str, Any]) -> ResearchState:
    """A run that has done nothing yet."""
    state = await begin(world, strategy=way.strategy, **wishes)
    assert state.resolved is not None
    state.resolved = state.resolved.model_copy(update={"canary": CANARY})
    return state


async def to_its_end(run: Run, way: Way) -> str:
    """How it ended."""
    watched = ResearchRun(run.state, run.inbox, run.host)
    run.task = asyncio.ensure_future(Driver(watched, strategy_of(way.strategy)).conduct())
    try:
        return str(await run.task)
    except (asyncio.CancelledError, ActivityError) as error:
        return repr(error)
    finally:
        if run.person is not None:
            run.person.cancel()
            await asyncio.wait([run.person])


def events_of(state: ResearchState) -> str:
    """A line for each."""
    return "\n".join(f"{one.type}: {one.text} {json.dumps(one.data)}" for one in state.events)


def told_of_agent(asked: AgentRequest, driver: AgentDriver) -> tuple[str, str]:
    """What an agent was told, what it did, and where it stood at its end."""
    state = driver.state
    told = asked.model_dump(mode="json", exclude={"packed_ledger", "packed_before", "task"})
    known = {"ledger": asked.ledger(), "before": asked.before()}
    told |= {name: value.model_dump(mode="json", exclude_defaults=True) for name, value in known.items()}
    told |= state.model_dump(mode="json", include={"decisions", "plan", "query_ledger", "position"})
    return f"{asked.task.id}: {asked.task.text}", f"{lines_of(told)}\n{events_of(state)}"


def lines_of(document: dict[str, Any]) -> str:
    """A JSON object with a line for each element of its lists and objects."""
    lines = []
    for name, value in document.items():
        if isinstance(value, dict):
            parts = [(f"{name}.{key}", part) for key, part in value.items()]
        else:
            parts = [(name, part) for part in value] if isinstance(value, list) else [(name, value)]
        lines += [f"{place}: {json.dumps(part, ensure_ascii=False)}" for place, part in parts]
    return "\n".join(lines)


def settled(text: str) -> str:
    """Without moments, ports, and hashes, for some are of what has a moment in it."""
    text = WORDS.sub(lambda run: f"{WORD.strip()}×{len(run[0]) // len(WORD)} ", text)
    return HASH.sub("HASH", PORT.sub("PORT", MOMENT.sub("MOMENT", text)))


async def recording_of(way: Way, folder: Path) -> str:
    """What is recorded of a way."""
    if way.scenario is None:
        return await conduct(way, folder, None)
    with (
        patch.dict(TOOL_WORK, way.works),
        patch.multiple(reflective_work, **way.answers or {"answer": reflective_work.answer}),
    ):
        async with MessagesApi(way.scenario, plan=way.plan, by_role=way.by_role) as api:
            return await conduct(way, folder, api)


def record(ways: Mapping[str, Way], folder: Path) -> None:
    """Anew: those that are named on the command line, else all of them."""
    folder.mkdir(exist_ok=True)
    for name in sys.argv[1:] or ways:
        with tempfile.TemporaryDirectory() as place:
            produced = asyncio.run(recording_of(ways[name], Path(place)))
        (folder / f"{name}.txt").write_text(produced, encoding="utf-8")
        print(name, len(produced), produced.splitlines()[1])  # noqa: T201


@pytest.mark.parametrize("name", WAYS)
async def test_what_leaves_an_uncommon_run_is_what_was_recorded(name: str, tmp_path: Path) -> None:
    """State, calls, events, status and report are, word for word, what they were when somebody read them."""
    made = await recording_of(WAYS[name], tmp_path)
    assert made.splitlines() == (FOLDER / f"{name}.txt").read_text(encoding="utf-8").splitlines()


if __name__ == "__main__":
    record(WAYS, FOLDER)
