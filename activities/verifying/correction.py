"""Correction: the doubtful claims, passages that may support them, and the proposals to accept. Pure.

The sentence of a proposal is judged as any sentence of a draft, and put into the draft only if all of it passes. A
wrong statement for which none passes is removed, even where nothing else is in its section.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from activities.reporting.addresses import KnownAddresses
from activities.reporting.drafts import parse_draft
from activities.reporting.markdown import write
from activities.reporting.tree import Block, CitationPlace, Inline, Run, Sentence, change_sentences, parse_words
from activities.verifying.claims import WORTH, Material, as_asked, conclude, extract_claims, find_candidates
from contracts import checking
from contracts.checking import CorrectionAction
from contracts.evidence import ClaimVerdict, Verdict

MOST_DOUBTFUL: Final = 20
"""Claims that one round of corrections by a model takes on."""
WRONG: Final = (Verdict.CONTRADICTED, Verdict.UNSUPPORTED)
DOUBTFUL: Final = (*WRONG, Verdict.PARTIAL, Verdict.NOT_ENOUGH_INFORMATION)
MUST_PASS: Final = (CorrectionAction.REPLACE, CorrectionAction.ADD, CorrectionAction.REWRITE)
"""Actions whose text must be supported afterwards; a softened one must only be better supported than before."""


def find_doubtful(
    claims: Sequence[checking.ExtractedClaim], verdicts: Sequence[ClaimVerdict], material: Material
) -> checking.DoubtfulEntry:
    """The claims to be corrected, the most important first, with other passages that may support them.

    Rows of tables and quoted passages are not corrected: no sentence can take their place.
    """
    chosen = [number for number, each in enumerate(claims) if not each.row and verdicts[number].verdict in DOUBTFUL]
    chosen.sort(key=lambda number: (-claims[number].importance, WORTH[verdicts[number].verdict], number))
    chosen = chosen[:MOST_DOUBTFUL]
    # A claim that its own passages contradict is corrected by them.
    open_to_others = [number for number in chosen if verdicts[number].verdict is not Verdict.CONTRADICTED]
    found, fresh = find_candidates([claims[number] for number in open_to_others], material)
    candidates = dict(zip(open_to_others, found, strict=True))
    doubtful = [
        checking.DoubtfulClaim(
            number=number,
            asked=as_asked(claims[number], material),
            verdict=verdicts[number].verdict,
            reason=verdicts[number].reason,
            candidates=candidates.get(number, []),
        )
        for number in chosen
    ]
    return checking.DoubtfulEntry(claims=doubtful, evidence=fresh)


def try_proposals(
    claims: Sequence[checking.ExtractedClaim], proposals: Sequence[checking.Proposal], material: Material
) -> list[checking.TriedProposal]:
    """Take apart into claims what each proposal would write; the first proposal for a claim counts."""
    tried: dict[int, checking.TriedProposal] = {}
    for each in proposals:
        if each.action not in (CorrectionAction.KEEP, CorrectionAction.REMOVE) and each.number not in tried:
            words = _plain_words(each, material.registry) or claims[each.number].text
            text = write([Block("paragraph", (Sentence((Run(words), *_marks(each))),))]).text
            tried[each.number] = checking.TriedProposal(proposal=each, claims=extract_claims(text, material))
    return list(tried.values())


def choose(
    claims: Sequence[checking.ExtractedClaim],
    verdicts: Sequence[ClaimVerdict],
    tried: Sequence[checking.TriedProposal],
    answers: Mapping[str, checking.ClaimAnswer],
) -> tuple[list[checking.Proposal], list[checking.Correction]]:
    """The proposals whose sentences pass and a removal of every other wrong statement, in order, with a record of each.

    A corrector that is silent, or objects to no statement, does not save one.
    """
    accepted: list[checking.Proposal] = []
    corrections: list[checking.Correction] = []
    tried_by_number = {each.proposal.number: each for each in tried}
    for number, (each, before) in enumerate(zip(claims, verdicts, strict=True)):
        item = tried_by_number.get(number)
        now = _verdict_if_it_passes(item, before.verdict, answers) if item else None
        if item and now:
            proposal = item.proposal
        elif before.verdict in WRONG:
            proposal = checking.Proposal(number=number, action=CorrectionAction.REMOVE, reason=before.reason)
        else:
            continue
        accepted.append(proposal)
        corrections.append(
            checking.Correction(
                claim_id=each.id,
                section=each.section,
                action=proposal.action,
                before=each.text,
                after=(proposal.text or each.text) if now else "",
                reason=proposal.reason,
                verdict=now or before.verdict,
            )
        )
    return accepted, corrections


def _verdict_if_it_passes(
    item: checking.TriedProposal, before: Verdict, answers: Mapping[str, checking.ClaimAnswer]
) -> Verdict | None:
    """The worst verdict on the text of a proposal, if that is good enough."""
    worst = min((given.verdict for given in conclude(item.claims, answers)), key=WORTH.__getitem__, default=None)
    if worst is None or WORTH[worst] <= WORTH[before]:
        return None
    enough = Verdict.SUPPORTED if item.proposal.action in MUST_PASS else Verdict.PARTIAL
    return worst if WORTH[worst] >= WORTH[enough] else None


def apply(
    draft: str,
    claims: Sequence[checking.ExtractedClaim],
    proposals: Sequence[checking.Proposal],
    registry: KnownAddresses,
) -> str:
    """Return the draft with these proposals in it, at most one for a claim."""
    blocks = parse_draft(draft)
    places = write(blocks).places
    changed: dict[Sentence, Sentence] = {}
    for proposal in proposals:
        claim = claims[proposal.number]
        inside = [each for each, (start, end) in places.items() if claim.start <= start and end <= claim.end]
        changed |= zip(inside, _proposed(inside, proposal, registry), strict=True)
    return write(change_sentences(blocks, lambda each: changed.get(each, each))).text


def _proposed(inside: Sequence[Sentence], proposal: checking.Proposal, registry: KnownAddresses) -> list[Sentence]:
    """Return the sentences of a claim with a proposal applied; removed ones have no words."""
    empty = [replace(each, inlines=()) for each in inside]
    if proposal.action is CorrectionAction.REMOVE or not inside:
        return empty
    if words := _plain_words(proposal, registry):
        return [replace(inside[0], inlines=(Run(words), *_marks(proposal))), *empty[1:]]
    bare = [replace(each, inlines=tuple(_without_marks(each))) for each in inside]
    return [*bare[:-1], replace(bare[-1], inlines=(*bare[-1].inlines, *_marks(proposal)))]


def _plain_words(proposal: checking.Proposal, registry: KnownAddresses) -> str:
    return registry.strip(parse_words(proposal.text))


def _marks(proposal: checking.Proposal) -> list[Inline]:
    return [Run(" "), CitationPlace(tuple(proposal.evidence_ids))] if proposal.evidence_ids else []


def _without_marks(sentence: Sentence) -> list[Inline]:
    """Return the words of a sentence, without its citations and the blank before them."""
    found: list[Inline] = []
    for inline in sentence.inlines:
        if isinstance(inline, Run):
            found.append(inline)
        elif found and isinstance(last := found[-1], Run):
            found[-1] = replace(last, text=last.text.rstrip(" "))
    return [inline for inline in found if isinstance(inline, Run) and inline.text]
