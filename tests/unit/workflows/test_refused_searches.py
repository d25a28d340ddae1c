"""One query that a provider refuses is not the end of the provider."""

from typing import Any

from temporalio.exceptions import ApplicationError

from contracts import failures
from contracts.evidence import SearchHit
from contracts.messages import SearchRequest, SearchResponse
from contracts.request import SourceType
from contracts.resolved import EffectiveSearch, ProviderChoice
from contracts.vocabulary import NodeStatus, Phase
from tests.fakes import states
from tests.fakes.host import InProcessHost
from workflows.phases.gathering import Gathering
from workflows.run.inbox import Inbox
from workflows.run.research_run import ResearchRun

QUERIES = [states.sub_query(f"question number {number} of the plan", status=NodeStatus.PENDING) for number in "abc"]
TWO_TYPES = [SourceType.WEB, SourceType.NEWS]


class Picky:
    """A provider that refuses some queries beside one that takes all."""

    def __init__(self, *refused: str) -> None:
        self.refused = refused
        self.asked: list[str] = []

    async def search(self, request: SearchRequest) -> SearchResponse:
        if request.provider == "picky":
            self.asked.append(request.text)
            if request.text in self.refused:
                raise ApplicationError("refuses it (400)", type=failures.SEARCH_REJECTED, non_retryable=True)
        hit = SearchHit(url="https://a.example/", title="A", rank=1, provider=request.provider)
        return SearchResponse(provider=request.provider, hits=[hit])

    async def read_source(self, request: Any) -> Any:
        raise ApplicationError("gone", {"kind": "not_found"}, type=failures.SOURCE_UNREADABLE, non_retryable=True)


async def gathered(picky: Picky, source_types: list[SourceType]) -> ResearchRun:
    """A gathering, one query after the other."""
    choices = [
        ProviderChoice(name=name, available=True, host="h", source_types=TWO_TYPES) for name in ("picky", "other")
    ]
    limits = states.resolved().limits.model_copy(update={"max_parallel": 1})
    search = EffectiveSearch(source_types=source_types)
    resolved = states.resolved(providers=choices, web=True, search=search, corpus=None, limits=limits)
    state = states.state(resolved=resolved, plan=states.plan(*QUERIES), phase=Phase.GATHERING)
    state.deadline_at = 4e9
    run = ResearchRun(state, Inbox(), InProcessHost({"search": picky.search, "read_source": picky.read_source}))
    await Gathering(run, QUERIES).carry_out()
    return run


async def test_one_refused_query_fails_alone() -> None:
    """The provider is asked the others; the refusal is told with its query (S0-053, S0-097)."""
    picky = Picky(QUERIES[0].text)
    run = await gathered(picky, [SourceType.WEB])
    assert picky.asked == [query.text for query in QUERIES]
    assert (run.state.degraded, run.state.lost_providers) == ([], {})
    assert [query.error for query in run.state.plan.sub_queries] == [f"picky: {failures.SEARCH_REJECTED}", None, None]
    told = [event.text for event in run.state.events if "refuses it" in event.text]
    assert told == [f"picky did not take “{QUERIES[0].text}”: refuses it (400)"]
