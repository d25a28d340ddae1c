"""Addresses that carry what only a run knows are marked before they are read; such queries are not asked."""

import pytest
from temporalio.exceptions import ApplicationError

from contracts import failures
from contracts.addresses import canonical_url
from contracts.canary import STEERED_NOTE
from contracts.messages import ReadRecord, ReadRequest, SearchRequest, SearchResponse
from contracts.request import Turn
from contracts.vocabulary import NodeStatus
from tests.fakes import states
from tests.fakes.host import InProcessHost
from workflows.phases.gathering import Gathering
from workflows.phases.searching import Searching
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
        requests[request.url] = request.holds_private
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


@pytest.mark.parametrize(
    ("texts", "refused"),
    [
        (["how do widgets decay", f"widgets {CANARY}"], {1}),
        (["how do widgets decay", "what widgets cost in 2026", "part 8fbd-3160 of widgets"], set()),
    ],
)
async def test_a_query_that_gives_the_canary_away_is_not_asked(texts: list[str], refused: set[int]) -> None:
    """The other queries are; the run says so."""
    queries = [states.sub_query(text, status=NodeStatus.PENDING) for text in texts]
    asked: list[str] = []

    async def search(request: SearchRequest) -> SearchResponse:
        asked.append(request.text)
        return SearchResponse(provider="corpus")

    run = ResearchRun(
        states.state(resolved=states.resolved(canary=CANARY), plan=states.plan(*queries)),
        Inbox(),
        InProcessHost({"search": search}),
    )
    run.state.deadline_at = 4e9
    answers = [await Searching(run).search(query) for query in queries]
    assert asked == [text for position, text in enumerate(texts) if position not in refused]
    assert {position for position, answer in enumerate(answers) if answer.failed == "refused_private"} == refused
    assert (STEERED_NOTE in run.state.degraded) is bool(refused)
