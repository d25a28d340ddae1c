"""The reviewer: what it is shown of a draft, and its review in bounds."""

from typing import Final

from activities.roles.evidence_markers import without_markers
from activities.roles.excerpts import part_of
from activities.roles.finishers import Draft
from activities.roles.lenient_values import clamp, line_of
from activities.roles.prompt_blocks import PromptRendering, brief_block, list_items
from activities.roles.untrusted import break_lines, data, guard
from contracts.checking import ReviewScores
from contracts.checking_roles import ReviewDraft, ReviewInput, ReviewOutput
from contracts.expected_calls import REVIEWED_CHARACTERS

NOTE_CHARACTERS: Final = 300
MOST_NOTES: Final = 5


def reviewer_values(request: ReviewInput, rendering: PromptRendering) -> dict[str, str]:
    """What the reviewer's prompt is filled with; citations stand as a sign, whatever they lead to."""
    text = rendering.documents.get(request.draft.hash, "").replace("[ev-", " (cited) [ev-")
    shown = without_markers(text)[: part_of(REVIEWED_CHARACTERS, rendering.share)]
    return {
        "brief": brief_block(request.brief),
        "sub_queries": list_items("Sub-queries that were looked into:", "sub_queries", request.sub_queries),
        "unanswered": list_items("Of these, without a finding:", "gaps", request.unanswered),
        "findings": str(request.findings),
        "sources_cited": str(request.sources_cited),
        "draft": data("draft", break_lines(guard(shown))),
    }


def finish_review(work: Draft[ReviewInput, ReviewDraft]) -> ReviewOutput:
    """The review with scores from 0 to 10 and notes of one line."""
    draft = work.draft
    given = {name: getattr(draft, name) for name in ReviewScores.model_fields}
    scores = {name: clamp(value, 0, 10) for name, value in given.items()}
    if scores != given:
        work.warnings.append("a score was moved into its bounds")
    return ReviewOutput(
        scores=ReviewScores(**scores),
        reasons=_lines(draft.reasons),
        missing=_lines(draft.missing),
        notes=_lines(draft.notes),
        account=work.account_with_warnings(),
    )


def _lines(texts: list[str]) -> list[str]:
    return [line for text in texts if (line := line_of(text, NOTE_CHARACTERS))][:MOST_NOTES]
