"""Correction: the doubtful claims, passages that may support them, and the proposals to accept. Pure.

A proposal is first put into a draft, and that draft is checked like any other. It is accepted only if its new text
passes.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from activities.reporting.addresses import KnownAddresses
from activities.reporting.citations import read_stored_marks
from activities.reporting.drafts import parse_draft
from activities.reporting.markdown import write
from activities.reporting.tree import CitationPlace, Inline, Run, Sentence, change_sentences, parse, sentences, tidy
from activities.verifying.claims import WORTH, Material, as_asked, find_candidates
from contracts import checking
from contracts.evidence import ClaimVerdict, Verdict

MOST_DOUBTFUL: Final = 20
"""Claims that one round of corrections by a model takes on."""
DOUBTFUL: Final = (Verdict.CONTRADICTED, Verdict.UNSUPPORTED, Verdict.PARTIAL, Verdict.NOT_ENOUGH_INFORMATION)

MUST_PASS: Final = (checking.CorrectionAction.REPLACE, checking.CorrectionAction.ADD, checking.CorrectionAction.REWRITE)
"""Actions whose text must be supported afterwards; a softened one must only be better supported than before."""
FAILED: Final = "no proposal for it passed the check"
DENIED: Final = "its sources say otherwise, and no other wording passed the check"


def find_doubtful(
    claims: Sequence[checking.ExtractedClaim], verdicts: Sequence[ClaimVerdict], material: Material
) -> checking.DoubtfulEntry:
    """The claims to be corrected, the most important first, with other passages that may support them.

    Rows of tables and quoted passages are not corrected: no sentence can take their place.
    """
    chosen = [number for number, each in enumerate(claims) if not each.row and verdicts[number].verdict in DOUBTFUL]
    chosen.sort(key=lambda number: (-claims[number].importance, WORTH[verdicts[number].verdict], number))
    chosen = chosen[:MOST_DOUBTFUL]
    candidates, evidence = find_candidates([claims[number] for number in chosen], material)
    found = [
        checking.DoubtfulClaim(
            number=number,
            asked=as_asked(claims[number], material),
            verdict=verdicts[number].verdict,
            reason=verdicts[number].reason,
            # A claim that its own passages contradict is corrected by them.
            candidates=[] if verdicts[number].verdict is Verdict.CONTRADICTED else others,
        )
        for number, others in zip(chosen, candidates, strict=True)
    ]
    shown = {passage.evidence_id for doubtful in found for passage in doubtful.candidates}
    return checking.DoubtfulEntry(claims=found, evidence=[item for item in evidence if item.id in shown])


def apply(
    draft: str,
    claims: Sequence[checking.ExtractedClaim],
    proposals: Sequence[checking.Proposal],
    registry: KnownAddresses,
) -> tuple[str, list[checking.PlacedProposal]]:
    """Return the draft with these proposals in it, and where each of them is; the first proposal for a claim counts."""
    blocks = parse_draft(draft)
    places = write(blocks).places
    changed: dict[Sentence, Sentence] = {}
    made: dict[int, tuple[checking.Proposal, Sentence]] = {}
    for proposal in proposals:
        claim = claims[proposal.number].claim
        inside = [each for each, (start, end) in places.items() if claim.start <= start and end <= claim.end]
        if proposal.action is checking.CorrectionAction.KEEP or proposal.number in made or not inside:
            continue
        new = _proposed(inside, proposal, registry)
        if [each.inlines for each in new] != [each.inlines for each in inside]:
            changed |= dict(zip(inside, new, strict=True))
            made[proposal.number] = (proposal, new[0])
    after = write(change_sentences(blocks, lambda each: changed.get(each, each)))
    placed = []
    for proposal, sentence in sorted(made.values(), key=lambda one: claims[one[0].number].claim.start):
        start, end = after.places.get(sentence, (0, 0))
        placed.append(checking.PlacedProposal(proposal=proposal, start=start, end=end))
    return after.text, placed


def _proposed(inside: Sequence[Sentence], proposal: checking.Proposal, registry: KnownAddresses) -> list[Sentence]:
    """Return the sentences of a claim with a proposal applied; removed ones have no words."""
    empty = [replace(each, inlines=()) for each in inside]
    if proposal.action is checking.CorrectionAction.REMOVE:
        return empty
    mark: list[Inline] = [Run(" "), CitationPlace(tuple(proposal.evidence_ids))] if proposal.evidence_ids else []
    passes = (read_stored_marks, registry.filter([]))
    words = [_words_of(each) for each in sentences(parse(proposal.text, *passes))] if proposal.text else []
    if any(words):
        joined = tidy(inline for each in words for inline in (*each, Run(" ")))
        return [replace(inside[0], inlines=(*joined, *mark)), *empty[1:]]
    bare = [replace(each, inlines=tuple(_words_of(each))) for each in inside]
    return [*bare[:-1], replace(bare[-1], inlines=(*bare[-1].inlines, *mark))]


def _words_of(sentence: Sentence) -> list[Inline]:
    """Return the words of a sentence, without its citations and the blank before them."""
    found: list[Inline] = []
    for inline in sentence.inlines:
        if isinstance(inline, Run):
            found.append(inline)
        elif found and isinstance(last := found[-1], Run):
            found[-1] = replace(last, text=last.text.rstrip(" "))
    return [inline for inline in found if isinstance(inline, Run) and inline.text]


def choose(
    claims: Sequence[checking.ExtractedClaim],
    verdicts: Sequence[ClaimVerdict],
    placed: Sequence[checking.PlacedProposal],
    after: Sequence[checking.ExtractedClaim],
    verdicts_after: Sequence[ClaimVerdict],
    doubtful: Sequence[int],
) -> tuple[list[checking.Proposal], list[checking.Correction]]:
    """The proposals whose text passes, and a record of all.

    A claim that its sources contradict is removed where no proposal for it passes.
    """
    accepted: list[checking.Proposal] = []
    corrections: list[checking.Correction] = []
    left = Counter(each.claim.section for each in claims)
    proposed = {item.proposal.number: item for item in placed}
    for number in doubtful:
        each, before = claims[number], verdicts[number]
        item = proposed.get(number)
        now = _passes(item, before.verdict, after, verdicts_after) if item else None
        proposal, reason = (item.proposal, item.proposal.reason) if item and now else (None, FAILED)
        if proposal is None and before.verdict is Verdict.CONTRADICTED:
            proposal, reason = checking.Proposal(number=number, action=checking.CorrectionAction.REMOVE), DENIED
        if proposal is not None and proposal.action is checking.CorrectionAction.REMOVE:
            # No section is emptied: what is wrong there is marked, not removed.
            allowed = before.verdict in (Verdict.CONTRADICTED, Verdict.UNSUPPORTED) and left[each.claim.section] > 1
            left[each.claim.section] -= allowed
            proposal = proposal if allowed else None
        action = proposal.action if proposal else checking.CorrectionAction.KEEP
        if proposal is not None:
            accepted.append(proposal)
        corrections.append(
            checking.Correction(
                claim_id=each.claim.id,
                action=action,
                before=each.claim.text,
                after=(proposal.text or each.claim.text) if proposal and now else "",
                reason=reason if proposal else FAILED,
                reverified=now is not None,
                verdict=now or before.verdict,
            )
        )
    return accepted, corrections


def _passes(
    item: checking.PlacedProposal,
    before: Verdict,
    after: Sequence[checking.ExtractedClaim],
    verdicts: Sequence[ClaimVerdict],
) -> Verdict | None:
    """The verdict on the new text of a proposal, if it passes; for a removal the verdict on the removed claim."""
    if item.proposal.action is checking.CorrectionAction.REMOVE:
        return before
    inside = [
        given.verdict
        for each, given in zip(after, verdicts, strict=True)
        if each.claim.start < item.end and each.claim.end > item.start
    ]
    if not inside:
        return None
    worst = min(inside, key=lambda verdict: WORTH[verdict])
    passes = worst is Verdict.SUPPORTED if item.proposal.action in MUST_PASS else WORTH[worst] >= WORTH[Verdict.PARTIAL]
    return worst if passes and WORTH[worst] > WORTH[before] else None
