"""The claims of a draft with what they are compared with, and the verdicts on them."""

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from activities.reporting.claims import ParsedClaim, claim_id, find_claims
from activities.reporting.drafts import parse_draft
from activities.reporting.inputs import CitedPassage, judge, show_passage
from activities.reporting.references import KnownAddresses
from activities.reporting.tree import write
from contracts import checking
from contracts.evidence import CheckMethod, ClaimVerdict, Evidence, Verdict
from contracts.sentences import Message
from providers.verification.quantities import find_quantities
from providers.verification.rules import Statement, find_differences

Claims = Sequence[checking.ExtractedClaim]
Answers = Mapping[str, checking.ClaimAnswer]
"""Answers of checkers by the fingerprint of the claim."""

MAX_PASSAGES: Final = 12
"""Passages shown to a checker for one claim; hardly any cites more."""
MAX_OTHERS: Final = 5
"""Further passages of the run that are tried for a doubtful claim."""
LACKING_WEIGHT: Final = 3.0
"""Weight of a word that the cited passages of a claim lack, in the search for further ones."""
MAX_REMARKS: Final = 4
"""Differences found by rules that a checker is asked about, of one claim."""
MAX_CONTROLS: Final = 8
"""Controls of one text; each call shows one."""
MIN_CONTROL_STEMS: Final = 3
"""Different words with a meaning that a control needs."""
MAX_CONTROL_SHARE: Final = 0.2
"""Share of the words of a control that its passage may have, with its title, its headings and the text around it."""
CONTROL_DISTANCE: Final = 2_000
"""Characters between the passage of a control and those that the statement cites: neighbours say the same."""
CONTROL: Final = "control"
WRONG: Final = (Verdict.CONTRADICTED, Verdict.UNSUPPORTED)
NOT_REACHED: Final = Message("reason_not_reached")
QUOTE_BREAK: Final = "” – “"
"""Between the quotes of a reason."""


@dataclass(frozen=True)
class Material:
    """The passages and texts that the claims of a run are compared with."""

    entry: checking.ClaimsEntry
    texts: Mapping[str, str]
    """Stored texts of sources by hash."""
    by_model: bool
    """True if a model checks claims that rules cannot decide."""

    @cached_property
    def passages(self) -> dict[str, tuple[Evidence, str, str]]:
        """The run's passages by id, with title and text of their source; those without a loaded text are missing."""
        sources = {source.id: source for source in self.entry.sources if source.text.hash in self.texts}
        known = ((item, sources[item.source_id]) for item in self.entry.evidence if item.source_id in sources)
        return {item.id: (item, source.title, self.texts[source.text.hash]) for item, source in known}

    @cached_property
    def stems(self) -> dict[str, frozenset[str]]:
        """The stems of the content words of each passage."""
        language = self.entry.language
        return {
            key: Statement(text[item.start : item.end], language).stems
            for key, (item, _, text) in self.passages.items()
        }

    @cached_property
    def shown_stems(self) -> dict[str, frozenset[str]]:
        """The stems of the content words of each passage as it is shown: with title, heading and the text around it."""
        shown = {key: show_passage(*passage) for key, passage in self.passages.items()}
        return {
            key: Statement(f"{passage.title}\n{passage.text}", self.entry.language).stems
            for key, passage in shown.items()
        }

    @cached_property
    def uses(self) -> dict[str, list[frozenset[str]]]:
        """The stems of the claims that cite each passage."""
        uses: dict[str, list[frozenset[str]]] = {}
        for claim in self.entry.claims:
            stems = Statement(claim.words, self.entry.language).stems
            for key in claim.evidence_ids:
                uses.setdefault(key, []).append(stems)
        return uses

    def related(self, claim: checking.ExtractedClaim) -> list[str]:
        """Return the passages that share most with a claim among those that it does not cite, best first.

        A passage shares its own words, or those of another claim that cites it: the summary says again what a section
        says with a citation. Rare words weigh more, and so do words that the claim's own passages lack; a short text
        that has them comes before a long one.
        """
        counts = Counter(stem for stems in self.stems.values() for stem in stems)
        covered = frozenset[str]().union(*(self.stems.get(key, ()) for key in claim.evidence_ids))
        weights = {
            stem: math.log(1 + len(self.stems) / max(1, counts[stem])) * (1 if stem in covered else LACKING_WEIGHT)
            for stem in Statement(claim.words, self.entry.language).stems
        }

        def share(stems: frozenset[str]) -> float:
            return sum(weights.get(stem, 0.0) for stem in stems) / math.sqrt(max(1, len(stems)))

        scores = {
            key: max(map(share, (stems, *self.uses.get(key, ()))))
            for key, stems in self.stems.items()
            if key not in claim.evidence_ids
        }
        best = sorted((key for key in scores if scores[key]), key=lambda key: (-scores[key], key))
        return best[:MAX_OTHERS]

    @cached_property
    def registry(self) -> KnownAddresses:
        """The addresses known to the run."""
        return KnownAddresses.of([source.url for source in self.entry.sources], self.entry.query)


def extract_claims(draft: str, material: Material) -> list[checking.ExtractedClaim]:
    """Return the claims of a draft in order, each with the verdict that needs no model, if any.

    The draft must be text that `write` produced: the offsets of claims refer to it.
    """
    blocks = parse_draft(draft)
    written = write(blocks)
    parsed = find_claims(blocks, material.entry.language, uncited=material.entry.written_freely)
    first = next((claim.section for claim in parsed if claim.evidence_ids), "")
    extracted = []
    for claim in parsed:
        start, end = claim.span(written)
        weight = 0.2 + 0.2 * bool(claim.evidence_ids) + 0.3 * (claim.section == first)
        weight += 0.3 * bool(find_quantities(claim.stated, material.entry.language))
        extracted.append(
            checking.ExtractedClaim(
                id=claim.id,
                text=claim.words,
                section=claim.section,
                evidence_ids=claim.evidence_ids,
                start=start,
                end=end,
                subject=claim.subject if claim.cell else "",
                place=claim.place,
                fingerprint=claim_id(claim.subject, claim.evidence_ids),
                importance=round(weight, 2),
                row=claim.quoted or claim.row,
                cell=claim.cell,
                shared=bool(claim.evidence_ids) and not any(part.marks for part in claim.sentences),
                names_row=claim.cell and not claim.row_head,
                **_rule(claim, material),
            )
        )
    return extracted


def _rule(claim: ParsedClaim, material: Material) -> dict[str, Any]:
    """Return the fields of a claim that follow from its verdict by rules: what is left to a checker, with remarks."""
    known = [material.passages[key] for key in claim.evidence_ids if key in material.passages]
    cited = [CitedPassage(text[item.start : item.end], item.heading, title, text) for item, title, text in known]
    language = material.entry.language
    question = material.entry.query
    ruled = judge(claim, cited, material.registry, language, question=question)
    asked = material.by_model and ruled.method is CheckMethod.RULES and ruled.verdict is not Verdict.SUPPORTED
    remarks = []
    if asked:
        quotes = [show_passage(*passage).text for passage in known]
        about = [text for item in cited for text in (item.title, item.heading) if text]
        pages = list(dict.fromkeys(item.page for item in cited))
        found = find_differences(
            claim.stated, quotes, [*about, question], language, pages=pages, numbering=claim.numbering
        )
        remarks = [difference.reason for difference in found[:MAX_REMARKS]]
    return {"ruled": ruled.with_fields(claim_id=claim.id), "asked": asked, "remarks": remarks}


def select_open(claims: Claims, material: Material, known: Collection[str]) -> list[checking.AskedClaim]:
    """Return the claims that need a checker, each once, most important first, without the `known` ones."""
    unchecked = {
        claim.fingerprint: claim
        for claim in sorted(claims, key=lambda claim: -claim.importance)
        if claim.asked and claim.fingerprint not in known
    }
    return [to_asked(claim, material) for claim in unchecked.values()]


def draw_controls(claims: Claims, material: Material) -> list[checking.AskedClaim]:
    """Return statements of a draft, each with the passage of the run that shares least with it, and hardly anything.

    Unlike invented ones they look like any other statement of a call; those that no call shows come first, then those
    with a figure, which are the easiest to decide. Nothing near the passages that a statement cites is taken for it.
    """
    language = material.entry.language
    controls: list[checking.AskedClaim] = []
    figures = {claim.fingerprint: bool(find_quantities(claim.words, language)) for claim in claims}
    order = sorted(claims, key=lambda claim: (claim.asked, not figures[claim.fingerprint], claim.fingerprint))
    for claim in order:
        stems = Statement(claim.words, language).stems
        if not claim.evidence_ids or len(stems) < MIN_CONTROL_STEMS:
            continue
        shares = {
            key: len(stems & others) / len(stems)
            for key, others in material.shown_stems.items()
            if others and _is_apart(key, claim, material)
        }
        key = min(shares, key=lambda key: (shares[key], key), default="")
        if not key or shares[key] > MAX_CONTROL_SHARE:
            continue
        asked = to_asked(claim, material)
        fingerprint = claim_id(claim.words, [key, CONTROL])
        passages = show_passages([key], material)
        controls.append(asked.with_fields(fingerprint=fingerprint, passages=passages, remarks=[]))
        if len(controls) == MAX_CONTROLS:
            break
    return controls


def _is_apart(key: str, claim: checking.ExtractedClaim, material: Material) -> bool:
    """Return whether a passage is far from all that a claim cites: of another source, or of another part of it."""
    item = material.passages[key][0]
    cited = [material.passages[name][0] for name in claim.evidence_ids if name in material.passages]
    return all(
        item.source_id != other.source_id
        or item.start - other.end > CONTROL_DISTANCE
        or other.start - item.end > CONTROL_DISTANCE
        for other in cited
    )


def is_judged(answer: checking.ClaimAnswer | None) -> bool:
    """Return whether an answer has a verdict."""
    return answer is not None and answer.verdict is not Verdict.UNVERIFIED


def to_asked(claim: checking.ExtractedClaim, material: Material) -> checking.AskedClaim:
    """Return a claim in the form shown to checkers and correctors."""
    return checking.AskedClaim(
        fingerprint=claim.fingerprint,
        text=claim.text,
        place=claim.place,
        passages=show_passages(claim.evidence_ids[:MAX_PASSAGES], material),
        remarks=claim.remarks,
    )


def show_passages(identities: Sequence[str], material: Material) -> list[checking.ShownPassage]:
    """Return the passages with these ids and the text around them, where their texts are available."""
    return [show_passage(*material.passages[key]) for key in identities if key in material.passages]


def conclude(claims: Claims, answers: Answers) -> list[ClaimVerdict]:
    """Return the verdict on each claim: the checker's if it was asked, else that of the rules.

    Without a usable answer a difference that the rules found counts; other claims are `UNVERIFIED`.
    """
    verdicts = []
    for claim in claims:
        answer = answers.get(claim.fingerprint)
        if not claim.asked or (not is_judged(answer) and claim.ruled.verdict in WRONG):
            verdict = claim.ruled
        elif answer is None:
            verdict = ClaimVerdict(claim_id="", verdict=Verdict.UNVERIFIED, method=CheckMethod.NONE, reason=NOT_REACHED)
        else:
            method = CheckMethod.MODEL if is_judged(answer) else CheckMethod.NONE
            quoted = QUOTE_BREAK.join(answer.quotes)
            reason = answer.reason or (Message("reason_passages_say", words=quoted) if quoted else "")
            verdict = ClaimVerdict(claim_id="", verdict=answer.verdict, method=method, reason=reason)
        verdicts.append(verdict.with_fields(claim_id=claim.id))
    return verdicts
