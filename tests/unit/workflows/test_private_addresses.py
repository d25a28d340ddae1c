"""Addresses that carry what only a run knows are marked before they are read."""

from contracts.activities import ReadRequest
from contracts.request import Turn
from contracts.resolved import EffectiveSearch
from tests.fakes import states
from tests.fakes.host import InProcessHost
from workflows.desk import Desk
from workflows.gathering import Gathering
from workflows.run import ResearchRun

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
    run = ResearchRun(states.state(resolved=resolved), Desk(), InProcessHost({}))
    hit = states.hit(url, 1)
    return Gathering(run, [])._read_request("src-1", hit)


def test_what_only_the_run_knows_marks_an_address() -> None:
    """Its canary, its instructions and its earlier turns do; the question, which searches are told, does not."""
    assert request_for(f"https://a.test/{CANARY}").holds_private
    assert request_for("https://a.test/?d=heliotrope-memorandum-stays").holds_private
    assert request_for("https://a.test/?d=the+cobalt+procedure+of+last").holds_private
    assert not request_for("https://a.test/?q=how+does+the+engine+prevent+wraparound").holds_private
    assert not request_for("https://a.test/page").holds_private


def test_the_domains_of_a_run_go_with_its_reads_of_the_web() -> None:
    """Both lists are told to whoever reads a page; documents of a corpus are not concerned (S0-056)."""
    search = EffectiveSearch(domains_allow=["a.test"], domains_deny=["b.test"])
    run = ResearchRun(states.state(resolved=states.resolved(search=search)), Desk(), InProcessHost({}))
    page, document = (
        Gathering(run, [])._read_request("src-1", states.hit(url, 1)) for url in ("https://a.test/", "corpus:m/a")
    )
    assert (page.domains_allow, page.domains_deny) == (["a.test"], ["b.test"])
    assert (document.domains_allow, document.domains_deny) == ([], [])
