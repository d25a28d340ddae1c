"""The corrector: what it is shown of doubtful claims, and what is left of its proposals."""

from collections.abc import Sequence
from typing import Final

from activities.roles.checker import CLAIM_CHARACTERS, passage_line
from activities.roles.evidence_markers import without_markers
from activities.roles.finishers import RoleWork
from activities.roles.labels import label_all, label_key, label_of
from activities.roles.lenient_values import line_of
from activities.roles.prompt_blocks import PromptRendering
from activities.roles.untrusted import data, guard_line
from contracts.checking import CorrectionAction, DoubtfulClaim, Proposal
from contracts.checking_roles import (
    CorrectInput,
    CorrectorAnswer,
    CorrectorResult,
    ProposedCorrection,
)

SENTENCE_CHARACTERS: Final = 600
REASON_CHARACTERS: Final = 240
MOST_CITED: Final = 3
NEW_TEXT: Final = (CorrectionAction.REWRITE, CorrectionAction.SOFTEN)


def corrector_values(request: CorrectInput, rendering: PromptRendering) -> dict[str, str]:
    """What the corrector's prompt is filled with: every claim in a block of its own."""
    blocks = [_claim(claim, rendering) for claim in request.claims]
    return {"claims": "\n".join(blocks) or "(none)", "count": str(len(blocks))}


def _claim(claim: DoubtfulClaim, rendering: PromptRendering) -> str:
    named = label_of(claim.asked.fingerprint, rendering.label_key)
    lines = [
        f"statement: {guard_line(claim.asked.text, CLAIM_CHARACTERS)}",
        f"verdict: {claim.verdict.value}; {guard_line(claim.reason, REASON_CHARACTERS)}".rstrip("; "),
    ]
    cited = [(passage, "cited") for passage in claim.asked.passages[:MOST_CITED]]
    for passage, kind in [*cited, *((passage, "other") for passage in claim.candidates)]:
        label = label_of(passage.evidence_id, rendering.label_key)
        quoted = passage.model_copy(update={"before": "", "after": ""})
        lines.append(passage_line(f"{kind} {label}", quoted, rendering.share))
    return data("statement", lines, f' id="{named}"')


def finish_correction(work: RoleWork[CorrectInput, CorrectorAnswer]) -> CorrectorResult:
    """One proposal for each claim that was given; what cannot be used leaves the claim as it is."""
    key = label_key(work.request)
    known = label_all((claim.asked.fingerprint for claim in work.request.claims), key)
    drafts: dict[str, ProposedCorrection] = {}
    for draft in work.answer.proposals:
        name = known.get(draft.claim.strip())
        if name is None or name in drafts:
            work.warnings.append("a proposal for an unknown or a settled statement was ignored")
        else:
            drafts[name] = draft
    proposals = [_proposal(claim, drafts.get(claim.asked.fingerprint), key) for claim in work.request.claims]
    return CorrectorResult(proposals=proposals, account=work.account_with_warnings())


def _proposal(claim: DoubtfulClaim, draft: ProposedCorrection | None, key: str) -> Proposal:
    kept = Proposal(number=claim.number)
    if draft is None or draft.action is CorrectionAction.KEEP:
        return kept
    action = draft.action
    reason = line_of(draft.reason, REASON_CHARACTERS)
    if action is CorrectionAction.REMOVE:
        return Proposal(number=claim.number, action=action, reason=reason)
    passages = _named_passages(claim, draft.passages, key)
    cited = [passage.evidence_id for passage in claim.asked.passages]
    text = line_of(without_markers(draft.text), SENTENCE_CHARACTERS) if action in NEW_TEXT else ""
    if action is CorrectionAction.ADD:
        passages = list(dict.fromkeys([*cited, *passages]))
    if action is CorrectionAction.SOFTEN:
        passages = passages or cited
    changed = text != claim.asked.text if text else passages != cited
    if not passages or not changed or (action in NEW_TEXT and not text):
        return kept
    return Proposal(number=claim.number, action=action, text=text, evidence_ids=passages, reason=reason)


def _named_passages(claim: DoubtfulClaim, names: Sequence[str], key: str) -> list[str]:
    """The passages of this claim that an answer names by their labels; others count for nothing."""
    shown = [*claim.asked.passages, *claim.candidates]
    known = label_all((passage.evidence_id for passage in shown), key)
    found = [known[name.strip().strip("[]")] for name in names if name.strip().strip("[]") in known]
    return list(dict.fromkeys(found))[:MOST_CITED]
