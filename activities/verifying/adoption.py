"""What the answers of checkers change by themselves: further citations of what they quoted, and verdicts.

A first check is shown passages that the report cites at other places, a second look whole sections. What a checker
quotes of them for a statement that they support becomes a citation of it; no word of the statement changes.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from activities.reporting.claims import claim_id
from activities.roles.grounding import MAX_QUOTE_CHARACTERS, evidence_at
from activities.verifying.material import SCORES, Answers, Claims, Material
from activities.verifying.second_look import Stretch, second_fingerprint
from contracts import checking
from contracts.checking import CorrectionAction
from contracts.evidence import Evidence, Verdict
from providers.text import sentence_spans

SUPPORTING = (Verdict.SUPPORTED, Verdict.PARTIAL)


@dataclass(frozen=True)
class Adopted:
    """What the answers of a check change."""

    proposals: list[checking.Proposal]
    """Further citations, one per statement that gets any, in the order of the statements."""
    corrections: list[checking.Correction]
    """A record of each."""
    answers: dict[str, checking.ClaimAnswer]
    """The answers by the fingerprint of the statement in its new form."""
    evidence: list[Evidence] = field(default_factory=list)
    """Passages that the statements cite now, or that decide about them, and that the run did not have."""


def adopt_first(claims: Claims, answers: Answers, material: Material) -> Adopted:
    """Return what a first check changes: citations of passages that the report has at another place.

    The answers about other statements stay as they are.
    """
    changes = []
    for number, claim in enumerate(claims):
        answer = answers.get(claim.fingerprint)
        if answer is None or answer.verdict not in SUPPORTING:
            continue
        further = [key for key in answer.evidence_ids if key in material.evidence and key not in claim.evidence_ids]
        if further:
            changes.append((number, answer, _cited_with(claim, answer, further)))
    return _adopted(claims, changes)


def adopt_second(claims: Claims, answers: Answers, material: Material) -> Adopted:
    """Return what a second look changes: verdicts, and citations of what the checker quoted for a statement.

    An answer that supports a statement less than the first one counts only if a passage contradicts the statement.
    """
    changes = []
    evidence: dict[str, Evidence] = {}
    for number, claim in enumerate(claims):
        answer = answers.get(second_fingerprint(claim.fingerprint))
        first = answers.get(claim.fingerprint)
        if answer is None or not checking.is_judged(answer):
            continue
        before = first.verdict if first is not None else claim.ruled.verdict
        if SCORES[answer.verdict] < SCORES[before] and answer.verdict is not Verdict.CONTRADICTED:
            continue
        quoted = [_to_evidence(place, claim, material) for place in _telling(answer.places, material)]
        evidence |= {item.id: item for item in quoted if item.id not in material.passages}
        keys = [*answer.evidence_ids, *(item.id for item in quoted)]
        used = [key for key in dict.fromkeys(keys) if key not in claim.evidence_ids]
        cited = list(claim.evidence_ids)
        if used and answer.verdict in SUPPORTING:
            cited = _cited_with(claim, answer, used)
        changes.append((number, answer.with_fields(is_second=True, evidence_ids=keys), cited))
    return _adopted(claims, changes, evidence.values())


def _cited_with(claim: checking.ExtractedClaim, answer: checking.ClaimAnswer, further: Sequence[str]) -> list[str]:
    """Return what a statement cites with further passages; of a citation that it only shares, what was quoted."""
    own = [key for key in claim.evidence_ids if not claim.shared or key in answer.evidence_ids]
    return [*own, *further]


def _adopted(
    claims: Claims,
    changes: Iterable[tuple[int, checking.ClaimAnswer, list[str]]],
    evidence: Iterable[Evidence] = (),
) -> Adopted:
    """Return what answers about the claims with these numbers change, each with the passages that its claim cites."""
    adopted = Adopted([], [], {}, list(evidence))
    for number, answer, cited in changes:
        claim = claims[number]
        fingerprint = claim_id(claim.words, cited)
        adopted.answers[fingerprint] = answer.with_fields(fingerprint=fingerprint)
        if cited != claim.evidence_ids:
            adopted.proposals.append(checking.Proposal(number=number, action=CorrectionAction.CITE, evidence_ids=cited))
            adopted.corrections.append(
                checking.Correction(
                    claim_id=claim.id,
                    section=claim.section,
                    action=CorrectionAction.CITE,
                    before=claim.text,
                    after=claim.text,
                    verdict=answer.verdict,
                )
            )
    return adopted


def _telling(places: Sequence[checking.QuotePlace], material: Material) -> list[checking.QuotePlace]:
    """Return the places of an answer's quotes that are no headings, as those support nothing; if all are, all."""
    lines = [material.text_of(place.source_id)[: place.end].rpartition("\n")[2] for place in places]
    telling = [place for place, line in zip(places, lines, strict=True) if not line.lstrip().startswith("#")]
    return telling or list(places)


def _to_evidence(place: checking.QuotePlace, claim: checking.ExtractedClaim, material: Material) -> Evidence:
    """Return the passage of the run in which a quote lies, one that the claim cites before others, or its sentences."""
    known = [material.passages[key][0] for key in claim.evidence_ids if key in material.passages]
    known += [item for item, _, _ in material.evidence.values()]
    quote = Stretch(place.source_id, place.start, place.end)
    around = (item for item in known if Stretch(item.source_id, item.start, item.end).holds(quote))
    if (item := next(around, None)) is not None:
        return item
    text = material.text_of(place.source_id)
    return evidence_at(place.source_id, text, *_whole_sentences(text, place.start, place.end))


def _whole_sentences(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the place of the sentences, the item or the row that a quote is part of, within its lines."""
    first = text.rfind("\n", 0, start) + 1
    last = text.find("\n", end)
    last = len(text) if last < 0 else last
    spans = [(first + begin, first + stop) for begin, stop in sentence_spans(text[first:last])]
    touched = [span for span in spans if span[0] < end and start < span[1]]
    if not touched:
        return start, end
    begin = min(start, touched[0][0])
    stop = max(end, begin + len(text[begin : touched[-1][1]].rstrip()))
    if stop - begin > MAX_QUOTE_CHARACTERS:
        return start, end
    return begin, stop
