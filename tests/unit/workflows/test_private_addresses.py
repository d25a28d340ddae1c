"""Addresses that carry what only a run knows are marked before they are read; such queries are not asked."""

import pytest

from contracts.canary import STEERED_NOTE
from contracts.messages import ReadRequest, SearchRequest, SearchResponse
from contracts.request import Turn
from contracts.resolved import EffectiveSearch
from contracts.vocabulary import NodeStatus
from tests.fakes import states
from tests.fakes.host import InProcessHost
from workflows.phases.gathering import Gathering
from workflows.phases.provider_searches import Searching
from workflows.run.inbox import Inbox
from workflows.run.research_run import ResearchRun

CANARY = "8fbddb3160f16a89af97bab4"


def request_for(url: str) -> ReadRequest:
    """What the activity is asked for a hit with this address."""
    resolved = states.resolved(
        canary=CANARY,
        system_prompt="The heliotrope memorandum stays among the four of us.",
        context=[
            Turn(question="How does the engine prevent wraparound?", answer="By the cobalt procedure of last spring.")
        ],
    )
    run = ResearchRun(states.state(resolved=resolved), Inbox(), InProcessHost({}))
    hit = states.hit(url, 1)
    return Gathering(run, [])._read_request("src-1", hit)


def test_what_only_the_run_knows_marks_an_address() -> None:
    """Its canary, its instructions and its earlier turns do; the question, which searches are told, does not."""
    assert request_for(f"https://a.test/{CANARY}").holds_private
    assert request_for("https://a.test/?d=heliotrope-memorandum-stays").holds_private
    assert request_for("https://a.test/?d=the+cobalt+procedure+of+last").holds_private
    assert not request_for("https://a.test/?q=how+does+the+engine+prevent+wraparound").holds_private
    assert not request_for("https://a.test/page").holds_private


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


def test_the_domains_of_a_run_go_with_its_reads_of_the_web() -> None:
    """Both lists are told to whoever reads a page; documents of a corpus are not concerned (S0-056)."""
    search = EffectiveSearch(domains_allow=["a.test"], domains_deny=["b.test"])
    run = ResearchRun(states.state(resolved=states.resolved(search=search)), Inbox(), InProcessHost({}))
    page, document = (
        Gathering(run, [])._read_request("src-1", states.hit(url, 1)) for url in ("https://a.test/", "corpus:m/a")
    )
    assert (page.domains_allow, page.domains_deny) == (["a.test"], ["b.test"])
    assert (document.domains_allow, document.domains_deny) == ([], [])
