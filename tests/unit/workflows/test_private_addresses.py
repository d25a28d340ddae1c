"""Addresses that carry what only a run knows are marked before they are read; such queries are not asked."""

from temporalio.exceptions import ApplicationError

from contracts import failures
from contracts.addresses import canonical_url
from contracts.messages import ReadRecord, ReadRequest, SearchRequest, SearchResponse
from contracts.request import Turn
from contracts.vocabulary import NodeStatus
from tests.fakes import states
from tests.fakes.host import InProcessHost
from workflows.phases.gathering import Gathering
from workflows.run.inbox import Inbox
from workflows.run.research_run import ResearchRun

CANARY = "8fbddb3160f16a89af97bab4"


async def marks(*urls: str) -> list[bool]:
    """Gather hits at these addresses; by address, whether its read is marked."""
    resolved = states.resolved(
        canary=CANARY,
        system_prompt="The heliotrope memorandum stays among the four of us.",
        context=[
            Turn(question="How does the engine prevent wraparound?", answer="By the cobalt procedure of last spring.")
        ],
    )
    query, requests = states.sub_query("a question", status=NodeStatus.PENDING), dict[str, bool]()

    async def search(request: SearchRequest) -> SearchResponse:
        return SearchResponse(provider=request.provider, hits=[states.hit(url, 1) for url in urls])

    async def read_source(request: ReadRequest) -> ReadRecord:
        requests[request.url] = request.exposes_private_text
        raise ApplicationError("not read", type=failures.SOURCE_UNREADABLE, non_retryable=True)

    host = InProcessHost({"search": search, "read_source": read_source})
    run = ResearchRun(states.state(resolved=resolved, plan=states.plan(query)), Inbox(), host)
    run.state.deadline_at = 4e9
    await Gathering(run, [query]).carry_out()
    return [requests[canonical_url(url)] for url in urls]


async def test_words_that_only_the_run_knows_mark_an_address() -> None:
    """Its canary, its instructions and its earlier turns do; the question, which searches have, does not."""
    assert await marks(
        f"https://a.test/{CANARY}",
        "https://a.test/?d=heliotrope-memorandum-stays",
        "https://a.test/?d=the+cobalt+procedure+of+last",
        "https://a.test/?q=how+does+the+engine+prevent+wraparound",
        "https://a.test/page",
    ) == [True, True, True, False, False]
