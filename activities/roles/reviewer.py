"""The reviewer: what it is shown of a draft, and its review in bounds."""

from activities.roles.evidence_markers import without_markers
from activities.roles.excerpts import part_of
from activities.roles.prompt_blocks import PromptRendering, brief_block, list_items
from activities.roles.untrusted import break_lines, data, guard
from contracts.checking_roles import ReviewInput
from contracts.expected_calls import REVIEWED_CHARACTERS


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
