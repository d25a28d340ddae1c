"""Claims of a draft: extraction, verdicts that need no model, their sum, and other passages that fit. Pure."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from activities.reporting.addresses import KnownAddresses
from activities.reporting.claims import CitedWords, FoundClaim, Judged, find_claims, judge
from activities.reporting.drafts import parse_draft
from activities.reporting.markdown import write
from activities.roles.grounding import Headings
from contracts.addresses import digest, evidence_id, long_hash
from contracts.checking import (
    AskedClaim,
    CheckedSource,
    ClaimAnswer,
    ClaimsEntry,
    Correction,
    ExtractedClaim,
    ShownPassage,
    VerificationSummary,
)
from contracts.evidence import CheckMethod, Claim, ClaimKind, ClaimVerdict, Evidence, Verdict
from providers.verification.passage_selection import select_passages
from providers.verification.rules import check

WINDOW_CHARACTERS: Final = 100
"""Of the stored text on each side of a passage."""
MOST_PASSAGES: Final = 4
"""Of one claim that a checker is shown."""
DECIDED_BY_RULES: Final = (Verdict.CONTRADICTED, Verdict.SUPPORTED)


@dataclass(frozen=True)
class Material:
    """What the claims of a run are compared with."""

    entry: ClaimsEntry
    """Without its claims."""
    texts: Mapping[str, str]
    """Stored texts of sources by hash."""
    by_model: bool
    """Whether a checker is asked at all."""

    def evidence(self) -> dict[str, Evidence]:
        """The passages of the run by id."""
        return {item.id: item for item in self.entry.evidence}

    def sources(self) -> dict[str, CheckedSource]:
        """The sources of the run by id."""
        return {source.id: source for source in self.entry.sources}

    def registry(self) -> KnownAddresses:
        """The addresses that the run knows."""
        return KnownAddresses.of([source.url for source in self.entry.sources], self.entry.query)


def fingerprint_of(text: str, evidence_ids: Sequence[str]) -> str:
    """What names a claim with its evidence: its words in their order, its passages in any."""
    return "c-" + long_hash(" ".join(text.split()), *sorted(evidence_ids))


def show_passage(item: Evidence, source: CheckedSource, text: str) -> ShownPassage:
    """A passage with the words around it, cut between words."""
    before = text[max(0, item.start - WINDOW_CHARACTERS) : item.start]
    after = text[item.end : item.end + WINDOW_CHARACTERS]
    if item.start > WINDOW_CHARACTERS and " " in before:
        before = before.split(" ", 1)[1]
    if item.end + WINDOW_CHARACTERS < len(text) and " " in after:
        after = after.rsplit(" ", 1)[0]
    quote = text[item.start : item.end]
    return ShownPassage(evidence_id=item.id, title=source.title, before=before, quote=quote, after=after)


def show_all(identities: Sequence[str], material: Material) -> list[ShownPassage]:
    """The passages of these ids, as far as their texts are known."""
    evidence, sources = material.evidence(), material.sources()
    shown = []
    for identity in identities:
        item = evidence.get(identity)
        source = sources.get(item.source_id) if item else None
        text = material.texts.get(source.text.hash) if source else None
        if item is not None and source is not None and text is not None:
            shown.append(show_passage(item, source, text))
    return shown


def weigh(draft: str, material: Material) -> list[ExtractedClaim]:
    """Give the claims of a draft in order, each with the verdict that needs no model.

    The draft is one that `write` has written: places of claims are of its text.
    """
    entry = material.entry
    blocks = parse_draft(draft)
    written = write(blocks)
    found = find_claims(blocks, entry.language, uncited=entry.written_freely)
    first = next((each.section for each in found if each.evidence_ids), "")
    registry = material.registry()
    weighed = []
    for each in found:
        claim = each.record(written)
        weighed.append(
            ExtractedClaim(
                claim=claim,
                fingerprint=fingerprint_of(each.words, each.evidence_ids),
                importance=_importance(claim, first),
                decided=_decide(each, claim, material, registry),
                row=each.quoted or each.row,
            )
        )
    return weighed


def _importance(claim: Claim, first_section: str) -> float:
    """What stands first and what has figures matters most: that is what readers take away."""
    weight = 0.2 + 0.2 * claim.cited + 0.3 * (claim.section == first_section)
    return round(weight + {ClaimKind.NUMERIC: 0.3, ClaimKind.QUOTE: 0.1}.get(claim.kind, 0.0), 2)


def _decide(found: FoundClaim, claim: Claim, material: Material, registry: KnownAddresses) -> ClaimVerdict | None:
    """The verdict of a claim that no checker is asked about; None for the others."""
    entry = material.entry
    shown = show_all(claim.evidence_ids, material)
    headings = material.evidence()
    # As a report shows them, and as an audit compares them again.
    words = [
        CitedWords(
            passage.quote,
            registry.strip(headings[passage.evidence_id].heading),
            registry.strip(passage.title),
        )
        for passage in shown
    ]
    judged = judge(found.words, words, registry, entry.language, quoted=found.quoted)
    if judged.method is not CheckMethod.RULES or not material.by_model or _is_clear(judged, claim, words, shown, entry):
        return verdict_of(claim, judged)
    return None


def _is_clear(
    judged: Judged, claim: Claim, words: Sequence[CitedWords], shown: Sequence[ShownPassage], entry: ClaimsEntry
) -> bool:
    """Whether a model could not change what the rules say, or not for the better."""
    about = [text for item in words for text in (item.title, item.heading) if text]
    if judged.verdict == Verdict.UNSUPPORTED:
        # The words around the passage may name what it only points to.
        windows = [passage.text for passage in shown]
        return check(claim.text, windows, about, entry.language).verdict is Verdict.UNSUPPORTED
    return judged.verdict in DECIDED_BY_RULES


def verdict_of(claim: Claim, judged: Judged) -> ClaimVerdict:
    """What rules say of a claim, as a record."""
    return ClaimVerdict(
        claim_id=claim.id, verdict=Verdict(judged.verdict), method=CheckMethod(judged.method), reason=judged.reason
    )


def ask(claims: Sequence[ExtractedClaim], material: Material, known: Collection[str]) -> list[AskedClaim]:
    """The claims that a checker is to judge, each once, the most important first; those that are `known` are not."""
    waiting = {
        each.fingerprint: each
        for each in sorted(claims, key=lambda each: -each.importance)
        if each.decided is None and each.fingerprint not in known
    }
    return [as_asked(each, material) for each in waiting.values()]


def is_judged(answer: ClaimAnswer | None) -> bool:
    """Whether an answer says something."""
    return answer is not None and answer.verdict is not Verdict.UNVERIFIED


def as_asked(each: ExtractedClaim, material: Material) -> AskedClaim:
    """A claim as it is shown."""
    return AskedClaim(
        fingerprint=each.fingerprint,
        text=each.claim.text,
        parts=[part.text for part in each.claim.parts],
        passages=show_all(each.claim.evidence_ids[:MOST_PASSAGES], material),
    )


MOST_UNSUPPORTED: Final = 0.2
MOST_CONTRADICTED: Final = 0.05
"""Shares of the judged claims above which a report warns of itself."""
NOT_REACHED: Final = "The check did not get to this sentence."
WORTH: Final[Mapping[Verdict, float]] = {
    Verdict.SUPPORTED: 1.0,
    Verdict.PARTIAL: 0.4,
    Verdict.NOT_ENOUGH_INFORMATION: 0.2,
    Verdict.UNVERIFIED: 0.2,
    Verdict.UNSUPPORTED: 0.0,
    Verdict.CONTRADICTED: -1.0,
}
"""What a claim adds to the score of a draft."""


def conclude(claims: Sequence[ExtractedClaim], answers: Mapping[str, ClaimAnswer]) -> list[ClaimVerdict]:
    """The verdict on each claim: what needed no model, else the checker's, else none."""
    return [_verdict(each, answers.get(each.fingerprint)) for each in claims]


def _verdict(each: ExtractedClaim, answer: ClaimAnswer | None) -> ClaimVerdict:
    if each.decided is not None:
        given = each.decided
    elif answer is None:
        given = ClaimVerdict(claim_id="", verdict=Verdict.UNVERIFIED, method=CheckMethod.NONE, reason=NOT_REACHED)
    else:
        judged = answer.verdict is not Verdict.UNVERIFIED
        given = ClaimVerdict(
            claim_id="",
            verdict=answer.verdict,
            method=CheckMethod.MODEL if judged else CheckMethod.NONE,
            reason=answer.reason or (f"The passages say: “{answer.quote}”" if answer.quote else ""),
            evidence_ids=each.claim.evidence_ids if judged else [],
        )
    return given.model_copy(update={"claim_id": each.claim.id, "importance": each.importance})


def score(verdicts: Sequence[ClaimVerdict]) -> float:
    """What the claims of a draft are worth on average, from -1 to 1; 0 without claims."""
    return round(sum(WORTH[one.verdict] for one in verdicts) / len(verdicts), 6) if verdicts else 0.0


def shares(verdicts: Mapping[str, int]) -> tuple[float, float]:
    """The shares of unsupported and of contradicted claims among those that were judged."""
    judged = sum(verdicts.values())
    judged -= verdicts.get(Verdict.UNVERIFIED, 0) + verdicts.get(Verdict.NOT_ENOUGH_INFORMATION, 0)
    if not judged:
        return 0.0, 0.0
    return (
        round(verdicts.get(Verdict.UNSUPPORTED, 0) / judged, 4),
        round(verdicts.get(Verdict.CONTRADICTED, 0) / judged, 4),
    )


def needs_warning(verdicts: Mapping[str, int]) -> bool:
    """Whether so much is not borne out that a report warns of itself."""
    unsupported, contradicted = shares(verdicts)
    return unsupported > MOST_UNSUPPORTED or contradicted > MOST_CONTRADICTED


def summarize(
    claims: Sequence[ExtractedClaim],
    verdicts: Sequence[ClaimVerdict],
    corrections: Sequence[Correction],
    *,
    mode: str,
    strict: bool,
    not_reached: int,
) -> VerificationSummary:
    """The figures of a verification."""
    counts = Counter(one.verdict.value for one in verdicts)
    unsupported, contradicted = shares(counts)
    cited = {each.claim.id: len(each.claim.evidence_ids) for each in claims}
    return VerificationSummary(
        mode=mode,
        claims=len(claims),
        uncited_claims=sum(not each.claim.cited for each in claims),
        verdicts=dict(sorted(counts.items())),
        methods=dict(sorted(Counter(one.method.value for one in verdicts).items())),
        unsupported_share=unsupported,
        contradicted_share=contradicted,
        effective_citations=sum(cited[one.claim_id] for one in verdicts if one.verdict is Verdict.SUPPORTED),
        corrections=dict(sorted(Counter(one.action.value for one in corrections).items())),
        not_reached=not_reached,
        warning=needs_warning(counts),
        strict=strict,
    )


MOST_CANDIDATES: Final = 2
"""For one claim."""
MOST_OF_A_SOURCE: Final = 2
LIKELY: Final = 0.5
"""Relevance from which a passage may bear out a claim that cites nothing."""


def find_candidates(
    claims: Sequence[ExtractedClaim], material: Material
) -> tuple[list[list[ShownPassage]], list[Evidence]]:
    """For each claim the passages that say most of it and that it does not cite, and all of them as evidence."""
    sources = [source for source in material.entry.sources if source.text.hash in material.texts]
    texts = [material.texts[source.text.hash] for source in sources]
    chosen = select_passages(
        [each.claim.text for each in claims],
        texts,
        material.entry.language,
        most=MOST_CANDIDATES + 1,
        most_of_a_text=MOST_OF_A_SOURCE,
    )
    known = material.evidence()
    headings: dict[int, Headings] = {}
    evidence: dict[str, Evidence] = {}
    found: list[list[ShownPassage]] = []
    for each, spans in zip(claims, chosen, strict=True):
        cited = [known[identity] for identity in each.claim.evidence_ids if identity in known]
        found.append([])
        for span in spans:
            source, text = sources[span.text], texts[span.text]
            inside = any(
                item.source_id == source.id and item.start <= span.start and span.end <= item.end for item in cited
            )
            if inside or (not each.claim.cited and span.relevance < LIKELY):
                continue
            key = evidence_id(source.id, span.start, span.end)
            if span.text not in headings:
                headings[span.text] = Headings(text)
            evidence[key] = Evidence(
                id=key,
                source_id=source.id,
                start=span.start,
                end=span.end,
                quote_hash=digest(text[span.start : span.end]),
                heading=headings[span.text].above(span.start),
            )
            found[-1].append(show_passage(evidence[key], source, text))
        found[-1] = found[-1][:MOST_CANDIDATES]
    return found, [item for key, item in evidence.items() if key not in known]
