"""Claims of a draft: extraction, verdicts that need no model, and corrections. Pure.

The sentence of a proposal is judged as any sentence of a draft, and put into the draft only if all of it passes. A
wrong statement for which none passes is removed, even where nothing else is in its section.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from activities.reporting.addresses import KnownAddresses
from activities.reporting.claims import CitedWords, FoundClaim, claim_id, claim_key, find_claims, judge
from activities.reporting.drafts import parse_draft
from activities.reporting.inputs import words_around
from activities.reporting.markdown import write
from activities.reporting.tree import Block, CitationPlace, Inline, Run, Sentence, change_sentences, parse_words
from contracts import checking
from contracts.checking import CorrectionAction
from contracts.evidence import CheckMethod, ClaimVerdict, Evidence, Verdict
from providers.verification.quantities import find_quantities

MOST_PASSAGES: Final = 4
"""Of one claim that a checker is shown."""
DECIDED_BY_RULES: Final = (Verdict.CONTRADICTED, Verdict.SUPPORTED)
MOST_DOUBTFUL: Final = 20
"""Claims that one round of corrections by a model takes on."""
WRONG: Final = (Verdict.CONTRADICTED, Verdict.UNSUPPORTED)
DOUBTFUL: Final = (*WRONG, Verdict.PARTIAL, Verdict.NOT_ENOUGH_INFORMATION)
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


def show_all(identities: Sequence[str], material: Material) -> list[checking.ShownPassage]:
    """The passages of these ids with the words around them, as far as their texts are known."""
    shown = []
    for item in (material.evidence[identity] for identity in identities if identity in material.evidence):
        source = material.sources.get(item.source_id)
        if source is None or (text := material.texts.get(source.text.hash)) is None:
            continue
        before, after = words_around(text, item.start, item.end)
        passage = {"before": before, "quote": text[item.start : item.end], "after": after}
        shown.append(checking.ShownPassage(evidence_id=item.id, title=source.title, **passage))
    return shown


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


# --- corrections ----------------------------------------------------------------------------------------------------
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
