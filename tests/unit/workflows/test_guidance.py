"""What is told to the next phase, and what gives way."""

from contracts.outcome import Guidance
from contracts.vocabulary import Phase
from workflows.run.context import MAX_GUIDANCE, newest, with_guidance
from workflows.run.research_run import GUIDANCE_OF_CALL


def said(origin: str, *texts: str) -> list[Guidance]:
    """Guidance of one origin."""
    return [Guidance(origin=origin, phase=Phase.ANALYSIS, text=text) for text in texts]


def test_what_is_said_again_stands_once_and_counts_as_new() -> None:
    """A gate that finds the same each time does not push everything else out."""
    known = said("rules", "too few sources", "no high confidence")
    told = with_guidance(known, *said("rules", "too few sources"))
    assert [one.text for one in told] == ["no high confidence", "too few sources"]
    assert len(with_guidance(known, *said("model", "too few sources"))) == 3


def test_a_persons_wish_gives_way_to_newer_wishes_alone() -> None:
    """However much rules and models say, the wish is shown (S0-081)."""
    wish = said("person", "look at the appendix")
    known = wish
    for number in range(2 * MAX_GUIDANCE):
        known = with_guidance(known, *said("rules", f"issue {number}"))
    assert (len(known), known[0]) == (MAX_GUIDANCE, wish[0])
    shown = newest(known, GUIDANCE_OF_CALL)
    assert shown == [*wish, *known[-GUIDANCE_OF_CALL + 1 :]]
    wishes = said("person", *(f"wish {number}" for number in range(GUIDANCE_OF_CALL + 2)))
    assert newest([*wishes, *said("rules", "an issue")], GUIDANCE_OF_CALL) == wishes[2:]
