"""Blocks of the prompts of this strategy: earlier turns, steps with what they found, hits of the background."""

from collections.abc import Sequence
from typing import Final

from activities.roles.excerpts import part_of
from activities.roles.prompt_blocks import add_heading
from activities.roles.untrusted import data, guard_line
from contracts.evidence import SearchHit
from contracts.reflective_roles import StepSummary
from contracts.request import Turn

QUERY_CHARACTERS: Final = 400
OBSERVATION_CHARACTERS: Final = 400
SNIPPET_CHARACTERS: Final = 300


def earlier_turns(context: Sequence[Turn], share: float) -> str:
    """What was asked and answered before."""
    asked, answered = part_of(2_000, share, 200), part_of(4_000, share, 200)
    lines = [
        line
        for turn in context
        for line in (f"Question: {guard_line(turn.question, asked)}", f"Answer: {guard_line(turn.answer, answered)}")
    ]
    return add_heading("Asked and answered before:", data("earlier", lines))


def steps_block(steps: Sequence[StepSummary], share: float) -> str:
    """The steps with their status, and the statements that each found."""
    width = part_of(OBSERVATION_CHARACTERS, share, 80)
    lines = [
        line
        for number, step in enumerate(steps, start=1)
        for line in (
            f"{number}. {guard_line(step.title, 200)} ({step.status.value})",
            *(f"   - {guard_line(text, width)}" for text in step.observations),
        )
    ]
    return add_heading("Steps so far:", data("steps", lines))


def hits_block(hits: Sequence[SearchHit], share: float) -> str:
    """What a first search found, title and snippet of each."""
    width = part_of(SNIPPET_CHARACTERS, share)
    lines = [
        f"- {guard_line(hit.title, 200)}" + (f": {guard_line(hit.snippet, width)}" if hit.snippet and width else "")
        for hit in hits
    ]
    return add_heading("What a first search found (titles and snippets, nothing was read):", data("background", lines))
