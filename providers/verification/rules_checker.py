"""Whether a claim follows from the passages that it cites, judged by rules; no model, no claim of understanding.

The rules look for what makes a sentence say something else than its source: another number or unit, another name, a
negation, an opposite, a wider quantifier, a lost hedge, exchanged parts. Where nothing of that is found, shared words
decide between *supported* and *not enough information*: a paraphrase in other words is no error, and is not called
verified either.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from contracts.evidence import Verdict
from providers.sentences import sentence_spans
from providers.verification.alignment import LONGEST, Difference, Part, Sort, difference, same_word
from providers.verification.derivations import PER_CENT, Derivation, derive
from providers.verification.quantities import PER, Comparison, Quantity, compare
from providers.verification.statement import NOT_ONLY, Statement, negative_form
from providers.verification.units import MONTHS, UNITS
from providers.verification.wording import (
    EXCLUSIVE,
    HEDGES,
    MOSTLY,
    OBLIGATIONS,
    OPPOSITES_OF,
    OPTIONS,
    PARTLY,
    RANKS,
    RARELY,
    UNIVERSAL,
)

ENOUGH: Final = 0.6
"""Share of a claim's words that its passages must have to be called supported."""
RELATED_ENOUGH: Final = 0.3
"""Below this share the passages are about something else."""
FOREIGN: Final = 0.15
"""Below this share they are about something else, unless they share a figure."""
NEAR: Final = 0.6
"""From this share on, in the order of one sentence, a claim is a version of that sentence: what differs counts."""
KEPT: Final = 0.5
"""The share of a paraphrase's words and figures that one sentence must have, in any order."""
DECISIVE: Final = 0.7
"""From this share on a negation, an opposite or an exchange is a contradiction; below, it may be other words."""
LITTLE_CHANGED: Final = 0.66
"""From this share on the same words are meant: another name, rank or quantifier among them is no paraphrase."""
COPY: Final = 0.75
"""From this share on it is a copy with few changes."""
DENIED_BY_PREFIX: Final = re.compile(r"(?:un|im|in|ir|dis)\w+[ai]ble|un(?:usual|common|likely|known)", re.IGNORECASE)
COPY_OF_ORDER: Final = 0.5
"""From this share on the places of words tell what stands for what."""
LOOSE: Final = frozenset("to from into over under".split())
"""Words of direction that stand in many other senses: an exchange around them must be one of names."""
CANDIDATES: Final = 3
"""Sentences that a claim is laid over."""
TOO_DIFFERENT: Final = (
    "Nothing in the cited passages contradicts it, yet their words are too different for rules to judge."
)
DENIES: Final = "The claim denies"
AGREES: Final = "Numbers, names and wording agree with the cited passages."
_MAYBE: Final = "The wording is too different to be sure: "
NAME_WEIGHT: Final = 3.0
"""How much more a name weighs than another word."""
SAME_QUANTITY: Final = 0.3
"""What a shared quantity adds to the likeness of two sentences."""
ALIGNED: Final = 0.3
"""A sentence of a passage is compared for meaning from this share of the claim's words on."""


@dataclass(frozen=True)
class ClaimJudgement:
    """A verdict with its reason, in words for a reader."""

    verdict: Verdict
    reason: str


@dataclass(frozen=True)
class CitedText:
    """The cited passages, sentence by sentence, and as a whole."""

    sentences: list[Statement]
    whole: Statement
    about: Statement
    """Titles and headings: what the passages are about without saying it."""

    @classmethod
    def of(cls, passages: Sequence[str], about: Sequence[str], language: str) -> "CitedText":
        """Take the passages apart."""
        sentences = [
            Statement(passage[start:end], language) for passage in passages for start, end in sentence_spans(passage)
        ]
        return cls(sentences, Statement("\n".join(passages), language), Statement("\n".join(about), language))


def check(claim: str, passages: Sequence[str], about: Sequence[str] = (), language: str = "en") -> ClaimJudgement:
    """Judge one claim by the words of its passages. `claim` is plain text without citation numbers.

    `about` are the titles and headings of the passages: a name may stand there alone.
    """
    said, evidence = Statement(claim, language), CitedText.of(passages, about, language)
    if len(said.quantities) > LONGEST:
        return ClaimJudgement(Verdict.NOT_ENOUGH_INFORMATION, "The sentence has too many numbers to compare them.")
    closest = _closest_difference(said, evidence)
    doubt = None
    for rule in (_numbers, _names):
        for problem in rule(said, evidence, closest):
            if problem.verdict is not Verdict.NOT_ENOUGH_INFORMATION:
                return problem
            doubt = problem.reason
    if not said.content and not said.quantities:
        return ClaimJudgement(Verdict.NOT_ENOUGH_INFORMATION, "The sentence has no words that can be compared.")
    share = _coverage(said, evidence.whole, evidence.about)
    if share < RELATED_ENOUGH:
        return _unrelated(said, evidence, share)
    if (turned := next(_not_only(said, evidence), None)) is not None:
        return turned
    if closest.same:
        return ClaimJudgement(Verdict.SUPPORTED, AGREES)
    found = _first(rule(said, evidence) for rule in (_opposites, _negations, _directions, _attributions))
    found = found or next(_exchanges(closest, evidence), None) or next(_strength(said, evidence), None)
    if found is not None:
        return (
            found
            if closest.share >= DECISIVE
            else ClaimJudgement(Verdict.NOT_ENOUGH_INFORMATION, _MAYBE + found.reason)
        )
    doubt = doubt or (TOO_DIFFERENT if share < ENOUGH else next(_doubts(closest, evidence), None))
    if doubt is not None:
        return ClaimJudgement(Verdict.NOT_ENOUGH_INFORMATION, doubt)
    return ClaimJudgement(Verdict.SUPPORTED, AGREES)


def check_numbers(claim: str, passages: Sequence[str], language: str = "en") -> ClaimJudgement | None:
    """A number that the passages give otherwise, None if there is none; other words may be of another language."""
    said, evidence = Statement(claim, language), CitedText.of(passages, (), language)
    if len(said.quantities) > LONGEST:
        return None
    found = _numbers(said, evidence, _closest_difference(said, evidence))
    return next((problem for problem in found if problem.verdict is Verdict.CONTRADICTED), None)


def find_objection(claim: str, passages: Sequence[str], about: Sequence[str] = (), language: str = "en") -> str:
    """What speaks against a claim that somebody else calls supported, without showing that it is wrong; else empty.

    Stricter than `check`: what would be too weak for a verdict of the rules' own is enough to withhold one.
    """
    said, evidence = Statement(claim, language), CitedText.of(passages, about, language)
    closest = _closest_difference(said, evidence)
    if closest.same or len(said.quantities) > LONGEST:
        return ""
    there = evidence.whole.quantities
    for quantity in said.quantities:
        if quantity.unit and quantity.unit not in (PER, PER_CENT) and not _is_given(quantity, there):
            return f"“{quantity.raw}” stands in no cited passage."
    if any(found.reason.startswith(DENIES) for found in _negations(said, evidence)):
        return _denial(by_claim=True).reason
    if closest.share < LITTLE_CHANGED:
        return ""
    found = _first(rule(said, evidence) for rule in (_opposites, _directions, _attributions, _strength))
    found = found or next(_exchanges(closest, evidence), None)
    return found.reason if found else next(_differences_of_copy(closest), "")


def _is_given(quantity: Quantity, there: Sequence[Quantity]) -> bool:
    same = (Comparison.EXACT, Comparison.APPROXIMATE)
    return any(compare(quantity, other) in same for other in there) or _derived(quantity, there)


def _differences_of_copy(found: Difference) -> Iterator[str]:
    """What keeps a claim in the words and the order of its source from saying the same."""
    for theirs, ours in found.replaced:
        for sort in (Sort.NAME, Sort.SIGN):
            old, new = ([part for part in parts if part.sort is sort] for parts in (theirs, ours))
            if old and new and not {part.key for part in old} & {part.key for part in new}:
                yield f"The claim says “{new[0].text}” where its source says “{old[0].text}”."
        ranks = [[part for part in parts if part.text.casefold() in RANKS] for parts in (theirs, ours)]
        if all(ranks):
            yield f"The claim says “{ranks[1][0].text}” where its source says “{ranks[0][0].text}”."
    if any(part.sort is Sort.NAME for part in found.moved) and not found.turned:
        yield "The names stand in another order in the source."
    for part in found.added:
        if part.sort is Sort.SIGN:
            yield f"“{part.text}” stands in no cited passage."
    yield from _left_out(found)


def derivations_of(claim: str, passages: Sequence[str], language: str = "en") -> list[Derivation]:
    """How the numbers of a claim that stand in no passage follow from numbers that do."""
    said, evidence = Statement(claim, language), CitedText.of(passages, (), language)
    there = evidence.whole.quantities
    known = (Comparison.EXACT, Comparison.APPROXIMATE)
    missing = [one for one in said.quantities if not any(compare(one, other) in known for other in there)]
    return [found for one in missing[:LONGEST] if (found := derive(one, there)) is not None]


def denies_otherwise(claim: str, passages: Sequence[str], quote: str, language: str = "en") -> bool:
    """Whether the claim denies something where neither the closest sentence nor the quote does, or the other way."""
    said, evidence, named = Statement(claim, language), CitedText.of(passages, (), language), Statement(quote, language)
    near = _aligned(said, evidence)[:1] or evidence.sentences[:1]
    return bool(near) and _has_denial(said) not in (_has_denial(near[0]), _has_denial(named))


def _has_denial(statement: Statement) -> bool:
    return bool(statement.negated or statement.negative)


class PassageWords:
    """Passages that many claims are compared with."""

    def __init__(self, passages: Sequence[str], language: str = "en") -> None:
        self._language = language
        self._passages = [Statement(passage, language) for passage in passages]

    def shares(self, claim: str) -> list[float]:
        """The share of the claim's words that each passage has; names count more."""
        said = Statement(claim, self._language)
        return [_coverage(said, passage) if said.content else 0.0 for passage in self._passages]


def _first(found: Iterable[Iterator[ClaimJudgement]]) -> ClaimJudgement | None:
    return next((judgement for each in found for judgement in each), None)


def _unrelated(claim: Statement, evidence: CitedText, share: float) -> ClaimJudgement:
    """Few shared words: another subject, or the same in other words if a figure or a name is shared."""
    figures = any(
        compare(one, other) in (Comparison.EXACT, Comparison.APPROXIMATE)
        for one in claim.quantities
        for other in evidence.whole.quantities
    )
    if share >= FOREIGN or figures or not claim.content:
        return ClaimJudgement(Verdict.NOT_ENOUGH_INFORMATION, TOO_DIFFERENT)
    return ClaimJudgement(Verdict.UNSUPPORTED, "The cited passages are about something else.")


def _closest_difference(claim: Statement, evidence: CitedText) -> Difference:
    """How the claim differs from the sentence that it keeps most of."""
    near = _aligned(claim, evidence)[:CANDIDATES] or [Statement("", claim.language)]
    return max((difference(claim, sentence) for sentence in near), key=lambda found: found.share)


def _exchanges(found: Difference, evidence: CitedText) -> Iterator[ClaimJudgement]:
    """Another number, name, duty or quantifier in the place of the source's, all else being equal."""
    for theirs, ours in found.replaced:
        for sort in (Sort.QUANTITY, Sort.NAME):
            old = [part for part in theirs if part.sort is sort]
            new = [part for part in ours if part.sort is sort]
            if old and new and not {part.key for part in old} & {part.key for part in new}:
                if new[0].text.isdecimal() and new[0].text == old[0].text.split()[0]:
                    continue  # the unit is said elsewhere, or a number would have been missed before
                elsewhere = any(part is moved for part in new for moved in found.moved)
                if elsewhere and found.share < COPY:
                    continue
                if sort is Sort.NAME and not _same_role(old[0], new[0], evidence):
                    continue
                reason = f"The claim says “{new[0].text}” where its source says “{old[0].text}”."
                yield ClaimJudgement(Verdict.CONTRADICTED, reason)
        denied = found.share >= COPY and found.denied and _denies(theirs) != _denies(ours)
        if denied and not (_denies_denial(theirs) or _denies_denial(ours)):
            yield _denial(by_claim=_denies(ours))
        signs = {part.key: part.text for part in theirs if part.sort is Sort.SIGN}
        said = {part.key: part.text for part in ours if part.sort is Sort.SIGN}
        if {"(may)", "(must)"} == {*signs, *said} and signs.keys() != said.keys():
            reason = f"The claim says “{min(said.values())}” where its source says “{min(signs.values())}”."
            yield ClaimJudgement(Verdict.PARTIAL, reason)
    if found.share >= COPY and found.denied and (_denies(found.added) or any(map(_denies, found.left_out))):
        yield _denial(by_claim=_denies(found.added))
    names = [part for part in found.moved if part.sort is Sort.NAME]
    if len(names) >= 2 and not found.turned and not found.opposites:
        yield ClaimJudgement(Verdict.CONTRADICTED, "The claim exchanges the parts of what its source says.")


def _denies(parts: Sequence[Part]) -> bool:
    return any(part.key == "(not)" for part in parts)


def _denies_denial(parts: Sequence[Part]) -> bool:
    """`not impenetrable`: what replaces it may well affirm."""
    return _denies(parts) and any(DENIED_BY_PREFIX.fullmatch(part.text) for part in parts)


def _denial(*, by_claim: bool) -> ClaimJudgement:
    reason = "The claim denies what its source affirms." if by_claim else "Its source denies what the claim affirms."
    return ClaimJudgement(Verdict.CONTRADICTED, reason)


def _same_role(old: Part, new: Part, evidence: CitedText) -> bool:
    """Whether two names may stand for each other: both in the passages, not merely in a title."""
    return old.text[0].isupper() and _has(evidence.whole, new.key, new.text.casefold())


def _doubts(found: Difference, evidence: CitedText) -> Iterator[str]:
    """What keeps rules from calling a claim supported, without a sign that it is wrong."""
    if found.other_names:
        yield f"The closest sentence is not about “{found.other_names[0].text}”."
    if found.share < NEAR:
        yield from _doubts_of_paraphrase(found)
        return
    if found.moved and not found.turned:
        yield "The words stand in another order in the source."
    for theirs, ours in found.replaced:
        for part in ours:
            if part.sort is Sort.NAME and _has(evidence.about, part.key, part.text.casefold()):
                continue
            if part.sort is not Sort.QUANTITY and not any(same_word(part.key, other.key) for other in theirs):
                yield f"The claim says “{part.text}” where its source says “{theirs[0].text}”."
    for part in found.added:
        if part.sort is Sort.SIGN or not _known(part, evidence):
            yield f"“{part.text}” stands in no cited passage."
    yield from _left_out(found)


def _left_out(found: Difference) -> Iterator[str]:
    for stretch in found.left_out:
        for part in stretch:
            if part.sort is Sort.QUANTITY or part.key in ("(not)", "(may)"):
                yield f"The claim leaves out “{part.text}”."


def _doubts_of_paraphrase(found: Difference) -> Iterator[str]:
    """Other words in another order: enough of them must be those of one sentence, with the same signs."""
    if found.kept < KEPT:
        yield TOO_DIFFERENT
    if found.denied:
        yield "Only one of the claim and its source has a negation."
    if found.compares and found.moved:
        yield "It compares in another order than its source."
    if found.other_signs:
        yield f"The closest sentence does not say “{found.other_signs[0].text}”."
    if any(part.sort is Sort.NAME for part in found.moved) and not found.turned and found.names > 1:
        yield "The names stand in another order in the source."


def _known(part: Part, evidence: CitedText) -> bool:
    return any(_has(text, part.key, part.text.casefold()) for text in (evidence.whole, evidence.about))


def _coverage(claim: Statement, passage: Statement, about: Statement | None = None) -> float:
    """The share of the claim's content words that the passage has; names, and what may be one, count more."""
    total = found = 0.0
    for word in claim.content:
        weight = NAME_WEIGHT if word.name or word.may_be_name else 1.0
        known = _has(passage, word.stem, word.low) or negative_form(word.low, passage.stems, claim.language) is not None
        known = known or bool(about and weight > 1 and _has(about, word.stem, word.low))
        total += weight
        found += weight * known
    return found / total if total else 1.0


def _has(passage: Statement, stem: str, low: str) -> bool:
    return stem in passage.stems or low in passage.low_words or _inside(low, passage)


def _inside(word: str, passage: Statement) -> bool:
    """Whether a long word shares its beginning with one of the passage: `replicating`, `replication`."""
    return len(word) >= 6 and any(other.startswith(word[:6]) for other in passage.low_words)


def _aligned(claim: Statement, evidence: CitedText) -> list[Statement]:
    """The sentences that say something of the same kind, the closest first.

    What is said counts more than of whom: the subject is often a pronoun, or named in the sentence before.
    """
    weights = {word.stem: 0.5 if word.text[0].isupper() else 1.0 for word in claim.content}
    total = sum(weights.values()) or 1.0
    rated = []
    for place, sentence in enumerate(evidence.sentences):
        share = sum(weight for stem, weight in weights.items() if _has(sentence, stem, stem)) / total
        same = any(compare(one, other) is Comparison.EXACT for one in claim.quantities for other in sentence.quantities)
        rated.append((share + SAME_QUANTITY * same, -place, sentence))
    near = sorted((one for one in rated if one[0] >= ALIGNED), key=lambda one: one[:2], reverse=True)
    return [sentence for _, _, sentence in near]


def _closest_part(claim: Statement, sentence: Statement) -> Statement:
    """The part of the sentence that says most of what the claim says, if it says half of it; else the whole."""
    best, most = sentence, 0
    for words in sentence.clauses.values():
        count = len({word.stem for word in words if word.content} & claim.stems)
        if count > most:
            best, most = Statement(" ".join(word.text for word in words), sentence.language), count
    return best if most * 2 >= len(claim.stems) else sentence


# --- what makes a claim say something else ----------------------------------------------------------------------------
def _numbers(claim: Statement, evidence: CitedText, closest: Difference) -> Iterator[ClaimJudgement]:
    """A quantity that the passages do not have, or have of something else."""
    there = evidence.whole.quantities
    for quantity in claim.quantities:
        if quantity.unit == PER and not any(other.unit == PER for other in there):
            continue
        matches = [(compare(quantity, other), other) for other in there]
        kinds = {match for match, _ in matches}
        if Comparison.EXACT in kinds or Comparison.APPROXIMATE in kinds or _unit_said_before(quantity, claim, there):
            continue
        if Comparison.OPPOSED in kinds:
            verdict = Verdict.CONTRADICTED if closest.share >= NEAR else Verdict.NOT_ENOUGH_INFORMATION
            yield ClaimJudgement(verdict, f"“{quantity.raw}” is a least in one and a most in the other.")
        elif _small_count(quantity) or _derived(quantity, there):
            continue
        elif quantity.unit == PER_CENT and (derived := derive(quantity, there)):
            yield ClaimJudgement(Verdict.NOT_ENOUGH_INFORMATION, derived.reason)
        elif closest.share < NEAR and not any(sign.isdigit() for sign in quantity.raw):
            reason = f"“{quantity.raw}” is not found, yet the wording is too different to be sure."
            yield ClaimJudgement(Verdict.NOT_ENOUGH_INFORMATION, reason)
        elif rival := _rival(quantity, there):
            reason = f"The claim says “{quantity.raw}”; the cited passages say “{rival.raw}”."
            yield ClaimJudgement(Verdict.CONTRADICTED, reason)
        else:
            yield ClaimJudgement(Verdict.UNSUPPORTED, f"“{quantity.raw}” stands in no cited passage.")


def _unit_said_before(quantity: Quantity, claim: Statement, there: Sequence[Quantity]) -> bool:
    """`of the 95 bytes 87 are …`: the unit of another number of the claim, which the passages have with this one."""
    if quantity.unit or not quantity.raw.isdecimal():
        return False
    units = {other.unit for other in claim.quantities if other.unit}
    return any(other.unit in units and other.raw.split()[0] == quantity.raw for other in there)


def _small_count(quantity: Quantity) -> bool:
    """`two ways` counts what is listed: a small count in words is no figure of the source."""
    return not quantity.unit and not quantity.raw[:1].isdigit() and max(quantity.values, default=0) <= 4


def _derived(quantity: Quantity, there: Sequence[Quantity]) -> bool:
    """Whether it is the sum or the difference of two quantities of one unit in the passages."""
    same = [other for other in there if other.unit == quantity.unit and other.values][:20]
    wanted = quantity.values
    return quantity.unit != "" and any(
        abs(abs(first.values[0] + sign * second.values[0]) - value) <= 1e-9 * abs(value)
        for place, first in enumerate(same)
        for second in same[place + 1 :]
        for sign in (1, -1)
        for value in wanted
        if value
    )


def _rival(quantity: Quantity, there: Sequence[Quantity]) -> Quantity | None:
    """A quantity of the same kind that the passages have instead."""
    for other in there:
        if other.unit == quantity.unit and (quantity.unit or other.noun == quantity.noun):
            return other
    return None


def _names(claim: Statement, evidence: CitedText, _: Difference) -> Iterator[ClaimJudgement]:
    """A name that no passage has."""
    for low, word in claim.names.items():
        if low in UNITS:
            continue
        if any(_has(text, word.stem, low) or _part_of_name(low, text) for text in (evidence.whole, evidence.about)):
            continue
        yield ClaimJudgement(Verdict.UNSUPPORTED, f"“{word.text}” is named in no cited passage.")


def _part_of_name(low: str, passage: Statement) -> bool:
    """`PostgreSQL's`, `SQLite3`, `US` for `U.S.`, or the initials of a name."""
    bare = low.replace(".", "").replace("-", "").replace("()", "")
    if any(bare == other.replace(".", "").replace("-", "").replace("()", "") for other in passage.low_words):
        return True
    if len(bare) >= 4 and any(bare in other or (len(other) >= 4 and other in bare) for other in passage.low_words):
        return True
    initials = "".join(word.low[0] for word in passage.words if word.text[0].isupper())
    return 2 <= len(bare) <= 5 and bare in initials


def _opposites(claim: Statement, evidence: CitedText) -> Iterator[ClaimJudgement]:
    """`rose` where the closest sentence says `fell`, unless one of the two is denied."""
    for sentence in _aligned(claim, evidence)[:1]:
        names = [part for part in difference(claim, sentence).moved if part.sort is Sort.NAME]
        for word in claim.words if len(names) < 2 else ():
            opposite = OPPOSITES_OF.get(word.low, frozenset()) & sentence.low_words
            if not opposite or word.low in sentence.low_words or opposite & claim.low_words:
                continue
            if claim.negative != sentence.negative or not _in_its_place(word.low, opposite, claim, sentence):
                continue
            other = min(opposite)
            yield ClaimJudgement(Verdict.CONTRADICTED, f"The claim says “{word.low}” where its source says “{other}”.")


def _in_its_place(word: str, opposites: Collection[str], claim: Statement, sentence: Statement) -> bool:
    """Whether the opposite is not said of something else: replaced by other words than this one."""
    found = difference(claim, sentence)
    elsewhere = {
        part.text.casefold()
        for theirs, ours in found.replaced
        for part in theirs
        if word not in {other.text.casefold() for other in ours}
    }
    return found.share < COPY_OF_ORDER or not set(opposites) <= elsewhere


def _negations(claim: Statement, evidence: CitedText) -> Iterator[ClaimJudgement]:
    """A shared word that one of the two denies."""
    aligned = _aligned(claim, evidence)
    for sentence in aligned[:1]:
        shared = claim.stems & sentence.stems
        ours, theirs = claim.negated & shared, sentence.negated & shared
        ours |= _denied_by_prefix(claim, sentence)
        theirs |= _denied_by_prefix(sentence, claim)
        opposed = any(OPPOSITES_OF.get(word, frozenset()) & sentence.low_words for word in claim.low_words)
        if opposed or (bool(ours) == bool(theirs) and (ours & theirs or not ours)):
            continue
        if any(_agrees(claim, other, ours | theirs) for other in aligned[1:3]):
            continue
        denied = min(ours or theirs)
        who = DENIES if ours and not theirs else "Its source denies"
        other = "affirms" if ours != theirs else "does not"
        whose = "its source" if ours and not theirs else "the claim"
        yield ClaimJudgement(Verdict.CONTRADICTED, f"{who} what {whose} {other} (“{denied}”).")


def _agrees(claim: Statement, sentence: Statement, denied: frozenset[str]) -> bool:
    """Whether another close sentence speaks of what is denied, with the sign of the claim."""
    shared = claim.stems & sentence.stems
    return bool(denied & shared) and bool(claim.negated & shared) == bool(sentence.negated & shared)


def _denied_by_prefix(one: Statement, other: Statement) -> frozenset[str]:
    denied = (
        negative_form(word.low, other.stems, one.language) for word in one.content if word.stem not in other.stems
    )
    return frozenset(stem for stem in denied if stem)


def _directions(claim: Statement, evidence: CitedText) -> Iterator[ClaimJudgement]:
    """Exchanged parts: `A replaced B` for `B replaced A`."""
    for sentence in _aligned(claim, evidence)[:1]:
        theirs = list(sentence.directed())
        named = {word.stem for word in claim.content if word.name or word.may_be_name}
        for pivot, before, behind in claim.directed():
            for other, left, right in theirs:
                if pivot != other:
                    continue
                forth, back = (set(before) - set(left)) & set(right), (set(behind) - set(right)) & set(left)
                kept = len(set(before) & set(left)) + len(set(behind) & set(right))
                if pivot in LOOSE and not (forth | back) & named:
                    continue
                if forth and back and len(forth) + len(back) > kept:
                    reason = "The claim exchanges the parts of what its source says."
                    yield ClaimJudgement(Verdict.CONTRADICTED, reason)


def _attributions(claim: Statement, evidence: CitedText) -> Iterator[ClaimJudgement]:
    """A number that the passages give, yet of another name than the claim does."""
    names = set(claim.names)
    for quantity in claim.quantities if names else ():
        holders = [
            (sentence, other)
            for sentence in evidence.sentences
            for other in sentence.quantities
            if compare(quantity, other) in (Comparison.EXACT, Comparison.APPROXIMATE)
        ]
        if not holders:
            continue
        if all(_of_another(names, quantity, sentence, other, evidence) for sentence, other in holders):
            reason = f"“{quantity.raw}” is said of another in the cited passages."
            yield ClaimJudgement(Verdict.CONTRADICTED, reason)


def _of_another(names: set[str], ours: Quantity, sentence: Statement, held: Quantity, evidence: CitedText) -> bool:
    """Whether the part with this number names another, and the passages have another number of the kind for ours."""
    place = sentence.clause_at(held.start)
    here = _names_near(sentence, place)
    if not here - names or not (names - here) & evidence.whole.low_words:
        return False
    return any(
        other.unit == held.unit and other.is_year == held.is_year and compare(ours, other) is Comparison.NONE
        for one in evidence.sentences
        for other in one.quantities
    )


def _names_near(sentence: Statement, place: int) -> set[str]:
    """The names in a part of a sentence, or in the closest part before it that has any."""
    for number in range(place, -1, -1):
        words = sentence.clauses.get(number, [])
        found = {word.low for word in words if word.content and word.text[0].isupper() and word.low not in MONTHS}
        if found:
            return found
    return set()


def _not_only(claim: Statement, evidence: CitedText) -> Iterator[ClaimJudgement]:
    """`can not only` for `can only`, or the other way round."""
    for sentence in _aligned(claim, evidence)[:1]:
        ours, theirs = (NOT_ONLY.search(each.text) is not None for each in (claim, sentence))
        if ours != theirs and claim.exclusive and sentence.exclusive:
            yield _denial(by_claim=ours)


# --- what makes it say more -------------------------------------------------------------------------------------------
def _strength(claim: Statement, evidence: CitedText) -> Iterator[ClaimJudgement]:
    """A wider quantifier, a lost hedge, a duty made of a choice."""
    for sentence in _aligned(claim, evidence)[:1]:
        ours, theirs = claim.low_words, _closest_part(claim, sentence).low_words
        limited = theirs & (PARTLY | MOSTLY | RARELY)
        if ours & UNIVERSAL and limited and not theirs & UNIVERSAL:
            reason = f"The claim says “{min(ours & UNIVERSAL)}” where its source says “{min(limited)}”."
            yield ClaimJudgement(Verdict.PARTIAL, reason)
        if ours & MOSTLY and theirs & (PARTLY | RARELY) and not theirs & (MOSTLY | UNIVERSAL):
            reason = f"The claim says “{min(ours & MOSTLY)}” where its source says less."
            yield ClaimJudgement(Verdict.PARTIAL, reason)
        if ours & EXCLUSIVE and not sentence.exclusive:
            yield ClaimJudgement(Verdict.PARTIAL, f"Its source does not say “{min(ours & EXCLUSIVE)}”.")
        if ours & UNIVERSAL and not theirs & (UNIVERSAL | EXCLUSIVE) and not evidence.whole.low_words & UNIVERSAL:
            yield ClaimJudgement(Verdict.PARTIAL, f"Its source does not say “{min(ours & UNIVERSAL)}”.")
        hedged = theirs & HEDGES
        if hedged and not ours & (HEDGES | OPTIONS):
            yield ClaimJudgement(Verdict.PARTIAL, f"Its source is less sure: it says “{min(hedged)}”.")
        if ours & OBLIGATIONS and theirs & OPTIONS and not theirs & OBLIGATIONS:
            yield ClaimJudgement(
                Verdict.PARTIAL, f"The claim says “{min(ours & OBLIGATIONS)}” where its source leaves a choice."
            )
