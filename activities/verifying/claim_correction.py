"""Correction: which claims are doubtful, which passages may bear them out, and which proposals stand. Pure.

A proposal is first put into a draft, and that draft is weighed and checked like any other. It stands only if what it
says now passes; a draft as a whole only if it is worth no less than the one before, and has all its sections.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from activities.reporting.links import Registry, clean_links
from activities.reporting.markdown_layout import clean_characters
from activities.roles.evidence_markers import without_markers
from activities.roles.report_shape import shape_of
from activities.verifying.claim_weighing import Material, as_asked
from activities.verifying.passage_candidates import find_candidates
from contracts.checking import (
    Correction,
    CorrectionAction,
    DoubtfulClaim,
    DoubtfulEntry,
    PlacedProposal,
    Proposal,
    WeighedClaim,
)
from contracts.evidence import ClaimKind, ClaimVerdict, Verdict
from contracts.texts import shorten

MOST_DOUBTFUL: Final = 20
"""Claims that one round of corrections by a model takes on."""
DOUBTFUL: Final = (Verdict.CONTRADICTED, Verdict.UNSUPPORTED, Verdict.PARTIAL, Verdict.NOT_ENOUGH_INFORMATION)

OPEN: Final = (Verdict.UNSUPPORTED, Verdict.NOT_ENOUGH_INFORMATION, Verdict.PARTIAL)
"""Verdicts that another source could change."""
MOST_QUERIES: Final = 3
QUERY_CHARACTERS: Final = 200
RANK: Final[Mapping[Verdict, int]] = {
    Verdict.CONTRADICTED: 0,
    Verdict.UNSUPPORTED: 1,
    Verdict.NOT_ENOUGH_INFORMATION: 2,
    Verdict.UNVERIFIED: 2,
    Verdict.PARTIAL: 3,
    Verdict.SUPPORTED: 4,
}
MUST_PASS: Final = (CorrectionAction.REPLACE, CorrectionAction.ADD, CorrectionAction.REWRITE)
"""What must be supported afterwards; what is softened must only be borne out better than before."""
FAILED: Final = "no proposal for it passed the check"
DENIED: Final = "its sources say otherwise, and no other wording passed the check"
LINE_STARTS: Final = "#>-*+0123456789.) \t"


def find_doubtful(
    claims: Sequence[WeighedClaim], verdicts: Sequence[ClaimVerdict], material: Material
) -> DoubtfulEntry:
    """What is to be corrected, the most important first. What cites nothing is, where a passage may bear it out."""
    wanted = [
        number
        for number, (each, given) in enumerate(zip(claims, verdicts, strict=True))
        if given.verdict in DOUBTFUL or (not each.row and not each.claim.cited) or _misquotes(each, given)
    ]
    wanted.sort(key=lambda number: (-claims[number].importance, RANK[verdicts[number].verdict], number))
    most = MOST_DOUBTFUL
    rows = [number for number in wanted if claims[number].row][:most]
    wanted = [number for number in wanted if not claims[number].row][: 2 * most] + rows
    candidates, evidence = find_candidates([claims[number] for number in wanted], material)
    # What its own passages contradict is corrected by them.
    contradicted = [verdicts[number].verdict is Verdict.CONTRADICTED for number in wanted]
    candidates = [[] if denied else others for denied, others in zip(contradicted, candidates, strict=True)]
    found = [
        DoubtfulClaim(
            number=number,
            asked=as_asked(claims[number], material),
            verdict=verdicts[number].verdict,
            reason=verdicts[number].reason,
            candidates=others,
            row=claims[number].row,
            kind=claims[number].claim.kind,
        )
        for number, others in zip(wanted, candidates, strict=True)
        if claims[number].claim.cited or others
    ]
    found = [one for one in found if not one.row][:most] + [one for one in found if one.row]
    shown = {passage.evidence_id for doubtful in found for passage in doubtful.candidates}
    return DoubtfulEntry(claims=found, evidence=[item for item in evidence if item.id in shown])


def _misquotes(each: WeighedClaim, given: ClaimVerdict) -> bool:
    """Whether it is a quoted passage with other words than the one that it cites."""
    return (
        each.row and each.claim.kind is ClaimKind.QUOTE and each.claim.cited and given.verdict is not Verdict.SUPPORTED
    )


def queries_for(doubtful: Sequence[DoubtfulClaim]) -> list[str]:
    """The most important claims that no other passage may bear out: another source may."""
    lacking = (one for one in doubtful if not one.candidates and one.verdict in OPEN and not one.row)
    return [shorten(one.asked.text, QUERY_CHARACTERS) for one in lacking][:MOST_QUERIES]


def apply(
    draft: str, claims: Sequence[WeighedClaim], proposals: Sequence[Proposal], registry: Registry
) -> tuple[str, list[PlacedProposal]]:
    """The draft with these proposals in it, and where each of them stands."""
    pieces: list[str] = []
    placed: list[PlacedProposal] = []
    last = length = 0
    for proposal in sorted(proposals, key=lambda one: claims[one.number].claim.start):
        claim = claims[proposal.number].claim
        if proposal.action is CorrectionAction.KEEP or claim.start < last:
            continue
        start, end = claim.start, claim.end
        new = _sentence(draft[start:end], proposal, registry)
        if new == draft[start:end]:
            continue
        if not new:
            start, end = _whole_line(draft, start, end)
        pieces += [draft[last:start], new]
        length += start - last
        placed.append(PlacedProposal(proposal=proposal, start=length, end=length + len(new)))
        length += len(new)
        last = end
    return "".join([*pieces, draft[last:]]), placed


def _sentence(raw: str, proposal: Proposal, registry: Registry) -> str:
    """The Markdown of the new sentence with its markers; empty for one that is removed."""
    if proposal.action is CorrectionAction.REMOVE:
        return ""
    words = without_markers(raw).strip()
    if proposal.text:
        words, _ = clean_links(clean_characters(proposal.text), registry)
        words = without_markers(" ".join(words.split())).lstrip(LINE_STARTS) or words
    marks = "".join(f"[{identity}]" for identity in proposal.evidence_ids)
    # The marks of a row stand in its last cell.
    return f"{words[:-1].rstrip()} {marks} |" if words.startswith("|") and words.endswith("|") else f"{words} {marks}"


def _whole_line(draft: str, start: int, end: int) -> tuple[int, int]:
    """The range to remove: with the blanks before it, and with its line where nothing else stands on that."""
    line = draft.rfind("\n", 0, start) + 1
    stop = draft.find("\n", end)
    stop = len(draft) if stop < 0 else stop + 1
    if not draft[line:start].strip(LINE_STARTS) and not draft[end:stop].strip():
        return line, stop
    while start > line and draft[start - 1] == " ":
        start -= 1
    return start, end


@dataclass(frozen=True)
class Choice:
    """Which proposals stand, and what is recorded of all of them."""

    accepted: list[Proposal]
    corrections: list[Correction]


def choose(
    claims: Sequence[WeighedClaim],
    verdicts: Sequence[ClaimVerdict],
    placed: Sequence[PlacedProposal],
    after: Sequence[WeighedClaim],
    verdicts_after: Sequence[ClaimVerdict],
    doubtful: Sequence[int],
) -> Choice:
    """The proposals whose text passes; what its sources contradict and nothing mended is removed."""
    accepted: list[Proposal] = []
    corrections: list[Correction] = []
    left = Counter(each.claim.section for each in claims)
    proposed = {item.proposal.number: item for item in placed}
    for number in doubtful:
        each, before = claims[number], verdicts[number]
        item = proposed.get(number)
        now = _passes(item, before.verdict, after, verdicts_after) if item else None
        proposal, reason = (item.proposal, item.proposal.reason) if item and now else (None, FAILED)
        if proposal is None and before.verdict is Verdict.CONTRADICTED and not each.row:
            proposal, reason = Proposal(number=number, action=CorrectionAction.REMOVE), DENIED
        if proposal is not None and proposal.action is CorrectionAction.REMOVE:
            # No section is emptied: what is wrong there is marked, not removed.
            allowed = before.verdict in (Verdict.CONTRADICTED, Verdict.UNSUPPORTED) and left[each.claim.section] > 1
            left[each.claim.section] -= allowed
            proposal = proposal if allowed else None
        action = proposal.action if proposal else CorrectionAction.KEEP
        if proposal is not None:
            accepted.append(proposal)
        corrections.append(
            Correction(
                claim_id=each.claim.id,
                action=action,
                before=each.claim.text,
                after=(proposal.text or each.claim.text) if proposal and now else "",
                reason=reason if proposal else FAILED,
                reverified=now is not None,
                verdict=now or before.verdict,
            )
        )
    return Choice(accepted, corrections)


def _passes(
    item: PlacedProposal, before: Verdict, after: Sequence[WeighedClaim], verdicts: Sequence[ClaimVerdict]
) -> Verdict | None:
    """The verdict on what a proposal says now, if it passes; for a removal the verdict on what is removed."""
    if item.proposal.action is CorrectionAction.REMOVE:
        return before
    inside = [
        given.verdict
        for each, given in zip(after, verdicts, strict=True)
        if each.claim.start < item.end and each.claim.end > item.start
    ]
    if not inside:
        return None
    worst = min(inside, key=lambda verdict: RANK[verdict])
    passes = worst is Verdict.SUPPORTED if item.proposal.action in MUST_PASS else RANK[worst] >= RANK[Verdict.PARTIAL]
    return worst if passes and RANK[worst] > RANK[before] else None


def keeps_outline(before: str, after: str) -> bool:
    """Whether a corrected draft has the title and all sections of the one before, in their order."""
    old, new = shape_of(before), shape_of(after)
    return (old.title, old.sections) == (new.title, new.sections)
