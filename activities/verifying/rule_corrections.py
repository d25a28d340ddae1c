"""Corrections that rules can prove: another passage, another word, the sentence of the source, or nothing. Pure.

They are proposals like those of a model: put into a trial draft, judged again, and taken only if they pass. A sentence
in words too different for rules to judge stays as it is.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from activities.verifying.claim_weighing import Material, show_all
from contracts.checking import CorrectionAction, DoubtfulClaim, Proposal, ShownPassage
from contracts.evidence import ClaimKind, Verdict
from providers.text import detect_language
from providers.verification.repairs import exchange, find_exchange, find_quoted, find_sentence, stands_nowhere
from providers.verification.rules_checker import ENOUGH, PassageWords, check
from providers.verification.wording import MOSTLY, OPTIONS, PARTLY, RARELY

PROVABLE: Final = (Verdict.CONTRADICTED, Verdict.UNSUPPORTED, Verdict.PARTIAL)
"""What rules are sure enough of to touch the words."""
WEAKER: Final = MOSTLY | PARTLY | RARELY | OPTIONS
MOST_OF_THE_RUN: Final = 4
OTHER_PASSAGE: Final = "Another passage says it."
MORE_PASSAGES: Final = "It takes another passage as well."
AS_STORED: Final = "Its source says it so."
NOWHERE: Final = "No text that was read says it."


def propose(doubtful: DoubtfulClaim, material: Material) -> Proposal:
    """What rules propose for a claim; `keep` where they can prove nothing."""
    found = next(_proposals(doubtful, material), None)
    return found or Proposal(number=doubtful.number)


def _proposals(doubtful: DoubtfulClaim, material: Material) -> Iterator[Proposal]:
    number, text, cited, language = (
        doubtful.number,
        doubtful.asked.text,
        doubtful.asked.passages,
        material.entry.language,
    )
    if doubtful.row and doubtful.kind is ClaimKind.QUOTE:
        yield from _quotation(doubtful)
        return
    if cited and detect_language(text) != detect_language(" ".join(one.quote for one in cited)):
        return
    for passage in (*(cited if len(cited) > 1 else ()), *doubtful.candidates, *_of_the_run(doubtful, material)):
        if _bears_out(text, [passage], language):
            action = CorrectionAction.REPLACE if cited else CorrectionAction.ADD
            yield Proposal(number=number, action=action, evidence_ids=[passage.evidence_id], reason=OTHER_PASSAGE)
    for passage in doubtful.candidates if cited else ():
        if _bears_out(text, [*cited, passage], language):
            both = [one.evidence_id for one in (*cited, passage)]
            yield Proposal(number=number, action=CorrectionAction.ADD, evidence_ids=both, reason=MORE_PASSAGES)
    if doubtful.verdict not in PROVABLE or not cited:
        return
    quotes, about, identities = [one.quote for one in cited], _about(cited), [one.evidence_id for one in cited]
    if pair := find_exchange(text, quotes, about, language):
        wrong, right = pair
        weaker = right.casefold() in WEAKER
        yield Proposal(
            number=number,
            action=CorrectionAction.SOFTEN if weaker else CorrectionAction.REWRITE,
            text=exchange(text, wrong, right),
            wrong=wrong,
            right=right,
            evidence_ids=identities,
            reason=AS_STORED,
        )
    if doubtful.row:
        return
    if found := find_sentence(text, quotes, language):
        place, sentence = found
        yield Proposal(
            number=number,
            action=CorrectionAction.REWRITE,
            text=sentence,
            evidence_ids=[identities[place]],
            reason=AS_STORED,
        )
    if doubtful.verdict is Verdict.UNSUPPORTED and stands_nowhere(text, material.texts.values(), language):
        yield Proposal(number=number, action=CorrectionAction.REMOVE, reason=NOWHERE)


def _quotation(doubtful: DoubtfulClaim) -> Iterator[Proposal]:
    """A quotation gets back the words of the passage that it is meant to be."""
    cited = doubtful.asked.passages
    place = find_quoted(doubtful.asked.text, [one.quote for one in cited])
    if place is not None:
        yield Proposal(
            number=doubtful.number,
            action=CorrectionAction.REWRITE,
            text=" ".join(cited[place].quote.split()),
            evidence_ids=[cited[place].evidence_id],
            reason=AS_STORED,
        )


def _of_the_run(doubtful: DoubtfulClaim, material: Material) -> list[ShownPassage]:
    """Passages that the run has quoted already and that have most words of the claim, the likeliest first."""
    if doubtful.verdict is Verdict.CONTRADICTED:
        return []
    cited = {one.evidence_id for one in doubtful.asked.passages}
    others = show_all([item.id for item in material.entry.evidence if item.id not in cited], material)
    shares = PassageWords([one.quote for one in others], material.entry.language).shares(doubtful.asked.text)
    rated = sorted(zip(shares, range(len(others)), strict=True), key=lambda one: (-one[0], one[1]))
    return [others[place] for share, place in rated[:MOST_OF_THE_RUN] if share >= ENOUGH]


def _bears_out(text: str, passages: Sequence[ShownPassage], language: str) -> bool:
    return check(text, [one.quote for one in passages], _about(passages), language).verdict is Verdict.SUPPORTED


def _about(passages: Sequence[ShownPassage]) -> list[str]:
    return [one.title for one in passages if one.title]
