"""Correction: the doubtful claims, and the proposals to accept. Pure.

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
from activities.verifying.claims import WORTH, Material, as_asked, conclude, extract_claims
from contracts import checking
from contracts.checking import CorrectionAction
from contracts.evidence import ClaimVerdict, Verdict

MOST_DOUBTFUL: Final = 20
"""Claims that one round of corrections by a model takes on."""
WRONG: Final = (Verdict.CONTRADICTED, Verdict.UNSUPPORTED)
DOUBTFUL: Final = (*WRONG, Verdict.PARTIAL, Verdict.NOT_ENOUGH_INFORMATION)


def find_doubtful(
    claims: Sequence[checking.ExtractedClaim], verdicts: Sequence[ClaimVerdict], material: Material
) -> checking.DoubtfulEntry:
    """The claims to be corrected, the most important first.

    Rows of tables and quoted passages are not corrected: no sentence can take their place.
    """
    chosen = [number for number, each in enumerate(claims) if not each.row and verdicts[number].verdict in DOUBTFUL]
    chosen.sort(key=lambda number: (-claims[number].importance, WORTH[verdicts[number].verdict], number))
    doubtful = [
        checking.DoubtfulClaim(
            number=number,
            asked=as_asked(claims[number], material),
            verdict=verdicts[number].verdict,
            reason=verdicts[number].reason,
        )
        for number in chosen[:MOST_DOUBTFUL]
    ]
    return checking.DoubtfulEntry(claims=doubtful)


def try_proposals(proposals: Sequence[checking.Proposal], material: Material) -> list[checking.TriedProposal]:
    """Take apart into claims what each proposal would write; the first proposal for a claim counts."""
    tried: dict[int, checking.TriedProposal] = {}
    for each in proposals:
        words = _plain_words(each, material.registry)
        if words and each.number not in tried:
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
                after=proposal.text if now else "",
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
    # A softened statement must only be better supported than before.
    enough = Verdict.PARTIAL if item.proposal.action is CorrectionAction.SOFTEN else Verdict.SUPPORTED
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
    return [replace(inside[0], inlines=(Run(_plain_words(proposal, registry)), *_marks(proposal))), *empty[1:]]


def _plain_words(proposal: checking.Proposal, registry: KnownAddresses) -> str:
    return registry.strip(parse_words(proposal.text))


def _marks(proposal: checking.Proposal) -> list[Inline]:
    return [Run(" "), CitationPlace(tuple(proposal.evidence_ids))] if proposal.evidence_ids else []
