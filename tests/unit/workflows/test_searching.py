"""Searches: several providers for one sub-query, what they cost, one list of hits, and queries that were made before."""

import asyncio
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from contracts import failures
from contracts.evidence import QueryRecord, SearchHit
from contracts.messages import SearchRequest, SearchResponse
from contracts.outcome import Usage
from contracts.request import Constraints, SearchPolicy, SourceType
from contracts.resolved import EffectiveSearch, ProviderChoice
from contracts.state import ResearchState
from contracts.vocabulary import NodeStatus, Phase, StopReason
from tests.fakes import states
from tests.fakes.host import InProcessHost
from workflows.phases.gathering import Gathering
from workflows.phases.searching import Searching
from workflows.rules.sub_queries import asked_before, record_of, same_query
from workflows.run.inbox import Inbox, Interrupted
from workflows.run.research_run import ResearchRun

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


def run_with(services: Services, *choices: ProviderChoice, constraints: Any = None, **search: Any) -> ResearchRun:
    """A run over these providers, by default one for the web for each service."""
    resolved = states.resolved(
        providers=list(choices) or [choice(name) for name in services.answers],
        web=True,
        search=EffectiveSearch(**search),
        constraints=constraints or Constraints(),
        corpus=None,
    )
    state = states.state(resolved=resolved, plan=states.plan(QUESTION, OTHER), phase=Phase.GATHERING)
    state.deadline_at = 4e9
    return ResearchRun(state, Inbox(), InProcessHost({"search": services.search, "read_source": services.read_source}))


def misconfigured(spent: Usage | None = None) -> ApplicationError:
    """A provider that refuses, perhaps after attempts that cost something."""
    details = [{"usage": spent.model_dump(mode="json")}] if spent else []
    return ApplicationError("the key is refused", *details, type=failures.SEARCH_NOT_CONFIGURED, non_retryable=True)


async def test_fan_out_asks_everybody_and_takes_turns() -> None:
    """Hits come rank by rank in the order of the providers, whoever answered first; duplicates are one (X-16)."""
    same = page("two", 1, "https://one.example/1?utm_source=x")
    services = Services(one=[page("one", 1), page("one", 2)], two=[same, page("two", 2)])
    run = run_with(services)
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
    run = run_with(services, policy=SearchPolicy.FIRST_SUCCESS)
    answers = await Searching(run).search(QUESTION)
    assert [request.provider for request in services.asked] == ["one", "two", "three"]
    assert answers.failed is None
    assert answers.errors == {"two": failures.SEARCH_NOT_CONFIGURED}


async def test_when_everybody_is_lost_everybody_is_asked_once_more() -> None:
    """An outage can end; a sub-query that nobody answers is failed, not empty (S0-053)."""
    services = Services(one=misconfigured(), two=misconfigured())
    run = run_with(services)
    await Gathering(run, [QUESTION, OTHER]).carry_out()
    assert [query.status for query in run.state.plan.sub_queries] == [NodeStatus.FAILED] * 2
    assert len(services.asked) == 4
    assert all(record.outcome == "failed" for record in run.state.query_ledger)


@pytest.mark.parametrize(("spent", "total"), [(SPENT, 0.07), (Usage(cost_usd=None), None)])
async def test_searches_are_counted_paid_and_entered_in_the_ledger(spent: Usage, total: float | None) -> None:
    """Each answer is a search with its cost, a failure costs what its attempts cost, the ledger holds both (X-14)."""
    run = run_with(Services(one=[page("one", 1)], two=[page("two", 1)], three=misconfigured(spent)))
    state: ResearchState = run.state
    await Gathering(run, [QUESTION]).carry_out()
    assert state.usage.searches == 2
    assert state.usage.cost_usd == total
    assert state.usage.known_cost_usd == (total or 0.04)
    assert state.usage_by_role["gatherer"] == state.usage
    assert [(record.provider, record.found, record.outcome) for record in state.query_ledger] == [
        ("one", 1, "answered"), ("two", 1, "answered"), ("three", 0, "failed")
    ]  # fmt: skip
    assert state.plan.sub_queries[0].error == f"three: {failures.SEARCH_NOT_CONFIGURED}"


async def test_an_interrupted_sub_query_was_paid_as_far_as_it_came() -> None:
    """One provider answered before the time was over, after an attempt that cost something; another did not."""
    quick = SearchResponse(provider="quick", cost_usd=0.02, spent_before=SPENT)
    services = Services(quick=quick, slow=SILENT)
    run = run_with(services)
    work = asyncio.ensure_future(Gathering(run, [QUESTION]).carry_out())
    while len(services.asked) < 2:
        await asyncio.sleep(0)
    for _ in range(5):
        await asyncio.sleep(0)
    run.inbox.interrupt(StopReason.BUDGET_TIME)
    with pytest.raises(Interrupted):
        await work
    assert run.state.usage == Usage(searches=1, cost_usd=0.05)


async def test_each_provider_is_asked_for_the_types_that_it_has() -> None:
    """Types of sources are matched with providers; domains, language and dates go along (S0-056)."""
    services = Services(papers=[], news=[])
    run = run_with(
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


@pytest.mark.parametrize(("names", "patient"), [(["one"], True), (["one", "two"], False)])
async def test_a_single_provider_is_waited_for(names: list[str], patient: bool) -> None:
    """Two types of sources at one provider are no two providers: an outage of it costs no search (S0-053)."""
    services = Services(**{name: [] for name in names})
    both = [SourceType.WEB, SourceType.ACADEMIC]
    await Searching(run_with(services, *(choice(name, both) for name in names), source_types=both)).search(QUESTION)
    assert {request.patience_seconds is None for request in services.asked} == {patient}


async def test_a_type_of_source_is_no_stand_in_for_another() -> None:
    """Asked one after the other, providers are asked for each type until one of them finds something (S0-056, X-16)."""
    services = Services(one=[page("one", 1)], two=[page("two", 1)], three=[])
    run = run_with(
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
    failed = record_of(query, "tavily", found=None)
    answered = record_of(query, "brave", found=3, source_type="news")
    assert (failed.outcome, answered.outcome) == ("failed", "answered")
    assert (answered.found, answered.iteration) == (3, 2)
    assert QueryRecord.model_validate_json(answered.model_dump_json()) == answered
    text = "what are AUTOVACUUM settings for large tables"
    assert asked_before([failed], text) is None
    assert asked_before([failed, answered], text) == answered
    assert asked_before([failed, answered], text, provider="tavily") is None
    assert asked_before([failed, answered], text, provider="brave", source_type="web") is None
