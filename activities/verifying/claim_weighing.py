"""Weighing: which claims a draft makes, what rules say of each, and which ones a checker is asked. Pure.

A claim that is word for word its passage needs no call, nor does one that the rules decide: they are cheap and strict,
so what they confirm is confirmed, and what they find wrong no model makes right.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from activities.reporting.addresses import KnownAddresses
from activities.reporting.claims import CitedWords, FoundClaim, Judged, find_claims, judge
from activities.reporting.drafts import parse_draft
from activities.reporting.markdown import write
from contracts.addresses import long_hash
from contracts.checking import AskedClaim, CheckedSource, ClaimAnswer, ClaimsEntry, ShownPassage, WeighedClaim
from contracts.evidence import CheckMethod, Claim, ClaimKind, ClaimVerdict, Evidence, Verdict
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


def weigh(draft: str, material: Material) -> list[WeighedClaim]:
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
            WeighedClaim(
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


def ask(claims: Sequence[WeighedClaim], material: Material, known: Collection[str]) -> list[AskedClaim]:
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


def as_asked(each: WeighedClaim, material: Material) -> AskedClaim:
    """A claim as it is shown."""
    return AskedClaim(
        fingerprint=each.fingerprint,
        text=each.claim.text,
        parts=[part.text for part in each.claim.parts],
        passages=show_all(each.claim.evidence_ids[:MOST_PASSAGES], material),
    )
