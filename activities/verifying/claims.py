"""Claims of a draft: extraction, verdicts that need no model, and their sum. Pure."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from activities.reporting.addresses import KnownAddresses
from activities.reporting.claims import CitedWords, FoundClaim, claim_id, claim_key, find_claims, judge
from activities.reporting.drafts import parse_draft
from activities.reporting.markdown import write
from activities.reporting.passages import words_around
from contracts import checking
from contracts.evidence import CheckMethod, ClaimVerdict, Evidence, Verdict
from providers.verification.quantities import find_quantities

MOST_PASSAGES: Final = 4
"""Of one claim that a checker is shown."""
DECIDED_BY_RULES: Final = (Verdict.CONTRADICTED, Verdict.SUPPORTED)
NOT_REACHED: Final = "The check did not get to this sentence."
PASSAGES_SAY: Final = "The passages say: “{}”"
WORTH: Final[Mapping[Verdict, float]] = {
    Verdict.SUPPORTED: 1.0,
    Verdict.PARTIAL: 0.4,
    Verdict.NOT_ENOUGH_INFORMATION: 0.2,
    Verdict.UNVERIFIED: 0.2,
    Verdict.UNSUPPORTED: 0.0,
    Verdict.CONTRADICTED: -1.0,
}
"""A higher one is a better verdict."""


@dataclass(frozen=True)
class Material:
    """The passages and texts that the claims of a run are compared with."""

    entry: checking.ClaimsEntry
    texts: Mapping[str, str]
    """Stored texts of sources by hash."""
    by_model: bool
    """Whether there is a checker."""

    @cached_property
    def evidence(self) -> dict[str, Evidence]:
        """The passages of the run by id."""
        return {item.id: item for item in self.entry.evidence}

    @cached_property
    def sources(self) -> dict[str, checking.CheckedSource]:
        """The sources of the run by id."""
        return {source.id: source for source in self.entry.sources}

    @cached_property
    def registry(self) -> KnownAddresses:
        """The addresses that the run knows."""
        return KnownAddresses.of([source.url for source in self.entry.sources], self.entry.query)


def extract_claims(draft: str, material: Material) -> list[checking.ExtractedClaim]:
    """Give the claims of a draft in order, each with the verdict that needs no model.

    The draft is one that `write` has written: places of claims are of its text.
    """
    blocks = parse_draft(draft)
    written = write(blocks)
    found = find_claims(blocks, material.entry.language, uncited=material.entry.written_freely)
    first = next((each.section for each in found if each.evidence_ids), "")
    extracted = []
    for each in found:
        start, end = each.place(written)
        weight = 0.2 + 0.2 * bool(each.evidence_ids) + 0.3 * (each.section == first)
        weight += 0.3 * bool(find_quantities(each.words, material.entry.language))
        extracted.append(
            checking.ExtractedClaim(
                **{name: getattr(each, name) for name in ("id", "section", "evidence_ids")},
                text=each.words,
                start=start,
                end=end,
                fingerprint=claim_id(claim_key(each.words, each.evidence_ids), 0),
                importance=round(weight, 2),
                decided=_decide(each, material),
                row=each.quoted or each.row,
            )
        )
    return extracted


def _decide(found: FoundClaim, material: Material) -> ClaimVerdict | None:
    """The verdict of a claim that needs no checker; None for the others."""
    strip = material.registry.strip
    # As a report shows them, and as an audit compares them again.
    words = [
        CitedWords(each.quote, strip(material.evidence[each.evidence_id].heading), strip(each.title))
        for each in show_all(found.evidence_ids, material)
    ]
    judged = judge(found.words, words, material.registry, material.entry.language, quoted=found.quoted)
    by_rules = judged.method is CheckMethod.RULES
    if by_rules and material.by_model and judged.verdict not in DECIDED_BY_RULES:
        return None
    return judged.model_copy(update={"claim_id": found.id})


def ask(
    claims: Sequence[checking.ExtractedClaim], material: Material, known: Collection[str]
) -> list[checking.AskedClaim]:
    """The claims that a checker is to judge, each once, the most important first; those that are `known` are not."""
    waiting = {
        each.fingerprint: each
        for each in sorted(claims, key=lambda each: -each.importance)
        if each.decided is None and each.fingerprint not in known
    }
    return [as_asked(each, material) for each in waiting.values()]


def is_judged(answer: checking.ClaimAnswer | None) -> bool:
    """Return whether an answer has a verdict."""
    return answer is not None and answer.verdict is not Verdict.UNVERIFIED


def as_asked(each: checking.ExtractedClaim, material: Material) -> checking.AskedClaim:
    """The claim in the form for checkers and correctors."""
    return checking.AskedClaim(
        fingerprint=each.fingerprint,
        text=each.text,
        passages=show_all(each.evidence_ids[:MOST_PASSAGES], material),
    )


def show_passage(item: Evidence, source: checking.CheckedSource, text: str) -> checking.ShownPassage:
    """A passage with the words around it."""
    before, after = words_around(text, item.start, item.end)
    quote = text[item.start : item.end]
    return checking.ShownPassage(evidence_id=item.id, title=source.title, before=before, quote=quote, after=after)


def show_all(identities: Sequence[str], material: Material) -> list[checking.ShownPassage]:
    """The passages of these ids, as far as their texts are known."""
    items = [material.evidence[identity] for identity in identities if identity in material.evidence]
    known = [(item, material.sources[item.source_id]) for item in items if item.source_id in material.sources]
    texts = material.texts
    return [show_passage(item, source, texts[source.text.hash]) for item, source in known if source.text.hash in texts]


def conclude(
    claims: Sequence[checking.ExtractedClaim], answers: Mapping[str, checking.ClaimAnswer]
) -> list[ClaimVerdict]:
    """The verdict on each claim: the one that needed no model, else the checker's, else none."""
    return [
        (each.decided or _verdict(answers.get(each.fingerprint))).model_copy(update={"claim_id": each.id})
        for each in claims
    ]


def _verdict(answer: checking.ClaimAnswer | None) -> ClaimVerdict:
    if answer is None:
        return ClaimVerdict(claim_id="", verdict=Verdict.UNVERIFIED, method=CheckMethod.NONE, reason=NOT_REACHED)
    return ClaimVerdict(
        claim_id="",
        verdict=answer.verdict,
        method=CheckMethod.MODEL if is_judged(answer) else CheckMethod.NONE,
        reason=answer.reason or (PASSAGES_SAY.format(answer.quote) if answer.quote else ""),
    )
