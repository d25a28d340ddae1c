"""Judgement of a claim by rules: what can be decided about a sentence and its passages without understanding them.

Rules decide a verbatim copy, quantities, units, dates and names, and passages that share no word with the claim. A
negation, a wider quantifier or exchanged parts give a hint for the checker and the reader, and no verdict: on
statements not used for tuning, numbers and names were right in 75 of 77 cases, word order and negation in 49 of 56.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from itertools import chain, islice, pairwise
from typing import Final

from contracts.evidence import Verdict
from contracts.sentences import Message
from contracts.texts import shorten, without_hyphens
from providers.text import detect_language, language_data, sentence_spans, stem
from providers.verification.quantities import (
    DATE,
    MODIFIERS,
    SHARES,
    UNITS,
    Comparison,
    Quantity,
    compare,
    find_quantities,
)

MAX_PARTS: Final = 400  # parts of a sentence that are compared: `SequenceMatcher` takes quadratic time
COPY_SHARE: Final = 0.9
"""Share of a claim's words that one sentence must have, in order, for the claim to count as its copy."""
CLOSE_SHARE: Final = 0.6
"""Share from which a claim and a sentence are about the same thing; a different number there is a contradiction."""
UNRELATED_SHARE: Final = 0.15  # share of a claim's words below which its passages are about something else
MIN_WORDS: Final = 3
"""Content words that a claim needs for their absence to show that the passages are about something else."""
MAX_CANDIDATES: Final = 3  # sentences with which a claim is aligned
SMALL_COUNT: Final = 4  # up to this, a number in words counts what is listed ("two ways") and is no figure of a source
MAX_ACRONYM: Final = 5  # letters of an acronym that is compared with the initials of words
MAX_SPELLINGS: Final = 20  # places of a page at which an acronym may be spelled out
SPELLING_CHARACTERS: Final = 80  # on either side of an acronym
MIN_MENTIONS: Final = 5  # of a name on a page that is about it
MENTION_CHARACTERS: Final = 2_000  # of a page for each mention of a name that it is about
MAX_LABEL: Final = 60  # characters before a number in which the word stands that it belongs to ("steps 1, 2 and 3")
NAME_WEIGHT: Final = 3.0  # weight of a name among the words of a claim: a shared name says more than a shared verb

CODE_NAME: Final = re.compile(r"(?<![\w-])(?:--?[A-Za-z][\w-]*|[A-Za-z]\w+(?:(?:\.|::?)[A-Za-z]\w+)+|[A-Za-z]\w*_\w+)")
"""A name in code: an option, or words joined by underscores, dots or colons. The only pattern that tells one."""
SIGNS: Final = r"<>@#&!?|~$^:=*+/%-"
OPERATOR: Final = re.compile(rf"(?<![\w{SIGNS}])(?=[=*+/%-]*[<>@#&!?|~$^:])[{SIGNS}]{{2,4}}(?![\w{SIGNS}])")
"""Two to four signs by themselves, such as `->>` and `@?`; those that lines are drawn with are none alone."""
PLAIN_NUMBER: Final = re.compile(r"(?<![\w.,])\d+(?:[.,]\d+)*(?!\w)")
QUOTATION_MARKS: Final = ("“”", '""', "«»", "„“", "‘’")
QUOTATION: Final = re.compile(r"“[^“”]++”|(?<![^\s(])\"(?=\S)[^\"\n]++\"|«[^«»]++»|„[^„“”]++[“”]")
"""Words between quotation marks inside a sentence."""
ELLIPSIS: Final = re.compile(r"\[?(?:…|\.\.\.)\]?")
SUPPORTED_REASON: Final = Message("reason_agrees")
UNDECIDED_REASON: Final = Message("reason_undecided")
UNRELATED_REASON: Final = Message("reason_something_else")

WORD: Final = re.compile(r"[^\W_]++(?:[._:/@#+'’-]++[^\W_]++)*+(?:\(\))?")
POSSESSIVE: Final = re.compile(r"['’][sS]\Z")
IDENTIFIER_MARK: Final = re.compile(r"[\d_.:/@#]|(?<=[a-z])[A-Z]")
"""Marks of an identifier: a digit, a symbol or a capital inside a word."""

MARKER: Final = re.compile(r"\d{1,3}[.)](?:\s|\Z)")
"""The marker of a list item at the start of a claim."""
ENUMERATOR: Final = re.compile(r"(?<![^\s(])(\d{1,2})[.)](?=\s)")
"""A number with the sign of a list behind it, inside a sentence."""
OTHER_NUMBERS: Final = re.compile(r"(?:\d{1,3}(?:\s?[,–—-]\s?|\s[^\W\d_]{1,4}\s))+\Z")
"""Numbers of list items before another one: "1, 2 and ", "1–"."""
NAME_START: Final = re.compile(r"(?<!\w)\w+\Z")
JOINED_TO_LETTERS: Final = re.compile(r"(?<![\w-])[^\W\d_]\w*(?:-\w+)*-\Z")
"""What makes the number behind it a part of a name: `ISO-8859-1`, `N-200`."""
NAME_END: Final = re.compile(r"\w+")
COUNTED: Final = re.compile(r"\d+[^\W\d_]{0,2}")
"""A number by itself, or with a short ending: `3rd`, `10x`."""
LAST_CAPITALS: Final = re.compile(r"(?<![^\W_])([A-Z]{2,5})s?\Z")
"""An acronym at the end of a text, maybe in the plural."""
OWN_LIST: Final = re.compile(r"[^.:;,\n]{0,60}:\s((?:[^.\n]|\.(?!\s))*)")
"""What follows a number, up to the end of the sentence, if it introduces a list."""
MIN_SHORTENED: Final = 2  # names of a statement that a shorter one stands for
MIN_LISTED: Final = 3  # items from which a list counts
LEADING_NUMBER: Final = re.compile(r"\A\d[\d.,]*")
LAST_WORD: Final = re.compile(r"([^\W\d_]{2,}) ?\Z")

SOURCE: Final = (
    r"(?:the|its|this|die|der|das|le|la|el|il) (?:\w+ )?(?:source|document|documentation|manual|page|passage|text"
    r"|report|article|study|quelle|dokumentation|anleitung|handbuch|seite|artikel|fuente|fonte|bron)s?"
)
LEAD_IN: Final = re.compile(
    r"\s*(?:"
    r"(?:notably|importantly|specifically|overall|moreover|furthermore|additionally|in (?:fact|short|summary)"
    r"|in particular|insbesondere|außerdem|zudem|insgesamt|kurz gesagt|notamment|en outre|de plus|en résumé|además"
    r"|en resumen|inoltre|in particolare|in sintesi|além disso|em resumo|bovendien|met name|kortom),"
    rf"|(?:according to|laut|gemäß|selon|según|secondo|segundo|volgens) {SOURCE},"
    rf"|{SOURCE} (?:says|states|notes|explains|reports|sagt|dit|dice|diz|zegt)(?: that|:|,? dass| que| che| dat)"
    r"|[\[(](?:src|ev)-[0-9a-z]{4,64}[\])]:?"
    r")\s*",
    re.IGNORECASE,
)
"""Words before a statement that are not part of it: an adverb, an unnamed source, an id."""
AS_OF: Final = re.compile(r"\s*(?:as of|stand) (?:\d{1,2}\.? )?(?:[^\W\d]{3,12} )?\d{4}, ", re.IGNORECASE)
"""Date of writing. If the passages have dates of their own, it decides nothing."""


@dataclass(frozen=True)
class ClaimJudgement:
    """A verdict with its reason, worded for a reader."""

    verdict: Verdict
    reason: str
    words: str = ""
    """The words of the claim that it is about; empty if it is about all of them."""


def without_lead_in(claim: str) -> str:
    """Return a statement without leading words that are not part of it, and without quotation marks around it all."""
    while match := LEAD_IN.match(claim):
        claim = claim[match.end() :]
    stripped = claim.rstrip(" .")
    if stripped[:1] + stripped[-1:] in QUOTATION_MARKS and len(stripped) > 2:
        return stripped[1:-1]
    return claim


def check(
    claim: str,
    passages: Sequence[str],
    about: Sequence[str] = (),
    language: str = "en",
    *,
    pages: Sequence[str] = (),
    numbering: Collection[int] = (),
) -> ClaimJudgement:
    """Judge one claim, plain text without citation numbers, by its passages.

    `about` are titles and headings of the passages, and the question: a name, a number or a date may occur there, too.
    `pages` are the texts that the passages are from: an acronym that one of them spells out is no missing name, nor is
    the name of what a page is about.
    `numbering` are the numbers of list items and sections in the claim's own text, to which it may refer.
    The verdict is supported (a copy with few changes), contradicted (a different quantity), unsupported (a quantity, a
    name or everything is missing), or not enough information, with a hint as the reason.
    """
    claim_text = without_lead_in(claim)
    date_prefix = AS_OF.match(claim_text)
    statement = Statement(without_lead_in(claim_text[date_prefix.end() :]) if date_prefix else claim_text, language)
    evidence = _Evidence.of(passages, about, language)
    closest = evidence.closest(statement)
    for problem in _problems(claim, statement, evidence, closest, pages, numbering):
        return problem
    if not statement.content:
        return ClaimJudgement(Verdict.NOT_ENOUGH_INFORMATION, UNDECIDED_REASON)
    is_long = len(statement.content) >= MIN_WORDS
    shares_quantity = any(
        _agree(quantity, other) for quantity in statement.quantities for other in evidence.whole.quantities
    )
    if is_long and not shares_quantity and _coverage(statement, evidence.whole, evidence.about) < UNRELATED_SHARE:
        return ClaimJudgement(Verdict.UNSUPPORTED, UNRELATED_REASON)
    absent = (item.raw for item in statement.quantities if item.unit and not _is_given(item, evidence.whole.quantities))
    if hint := closest.hint or next((Message("reason_in_no_passage", part=raw) for raw in absent), ""):
        return ClaimJudgement(Verdict.NOT_ENOUGH_INFORMATION, hint)
    has_days = any(item.unit == DATE or item.is_year for item in evidence.whole.quantities)
    # Verbatim words do not prove what a sentence says about them.
    unquoted = Statement(QUOTATION.sub(" ", statement.text), language)
    is_covered = unquoted.text == statement.text or _coverage(unquoted, evidence.whole, evidence.about) >= COPY_SHARE
    if closest.share >= COPY_SHARE and is_covered and not (date_prefix and has_days):
        return ClaimJudgement(Verdict.SUPPORTED, SUPPORTED_REASON)
    return ClaimJudgement(Verdict.NOT_ENOUGH_INFORMATION, UNDECIDED_REASON)


def find_differences(
    claim: str,
    passages: Sequence[str],
    about: Sequence[str] = (),
    language: str = "en",
    *,
    pages: Sequence[str] = (),
    numbering: Collection[int] = (),
) -> list[ClaimJudgement]:
    """Return every quantity, quotation and name of a claim that its passages and `about` lack or give otherwise.

    The arguments are those of `check`. Each difference may be without meaning: it is a question for a person or a
    model. Of a claim in another language than its passages only the quantities are compared.
    """
    statement = Statement(without_lead_in(claim), language)
    evidence = _Evidence.of(passages, about, language)
    closest = evidence.closest(statement)
    if detect_language(" ".join(passages)) != detect_language(claim):
        return list(_wrong_quantities(statement, evidence, closest, numbering))
    return list(_problems(claim, statement, evidence, closest, pages, numbering))


def code_names(text: str) -> list[str]:
    """Return the options and other names in code of a text, in order."""
    return CODE_NAME.findall(text)


def exact_tokens(text: str) -> frozenset[str]:
    """Return what has one form alone in a text: names in code, in lower case, operators, and numbers as written."""
    return frozenset((*map(str.casefold, code_names(text)), *OPERATOR.findall(text), *PLAIN_NUMBER.findall(text)))


def find_code_names(claim: str, texts: Iterable[str]) -> list[ClaimJudgement]:
    """Return a difference for each name in code of a claim, such as `primary_conninfo`, that none of the texts has.

    Like those of `find_differences` they are questions. Other names may have other words in a passage, these have one
    form; but the passage may be about them without naming them.
    """
    texts = list(texts)
    known = {name.casefold() for text in texts for name in code_names(text)}
    named = dict.fromkeys(code_names(claim))
    unknown = [name for name in named if name.casefold() not in known]
    return [
        ClaimJudgement(Verdict.UNSUPPORTED, Message("reason_named_nowhere", part=name), name)
        for name in unknown
        if not (_shortens_several(name, named) or _begins_one(name, known) or _is_part_of_one(name, known, texts))
    ]


def _is_part_of_one(name: str, known: Collection[str], texts: Iterable[str]) -> bool:
    """Return whether a name such as `pg_locks.mode` joins a known one to a word of the texts, as its column's name."""
    whole, _, part = name.rpartition(".")
    if whole.casefold() not in known:
        return False
    word = re.compile(rf"(?<!\w){re.escape(part)}(?!\w)", re.IGNORECASE)
    return any(map(word.search, texts))


def _begins_one(name: str, known: Iterable[str]) -> bool:
    """Return whether a name that ends with an underscore, as of `max_locks_per_*`, is the beginning of a known one."""
    return name.endswith("_") and any(other.startswith(name.casefold()) for other in known)


def _shortens_several(name: str, named: Iterable[str]) -> bool:
    """Return whether a name is how several names of a statement end, for all of which it stands.

    Of one alone it may be another name: `cost_limit` is not `io_cost_limit`.
    """
    return sum(other.endswith(f"_{name}") for other in named) >= MIN_SHORTENED


def _problems(
    claim: str,
    statement: "Statement",
    evidence: "_Evidence",
    closest: "_Alignment",
    pages: Sequence[str],
    numbering: Collection[int],
) -> Iterator[ClaimJudgement]:
    return chain(
        _wrong_quantities(statement, evidence, closest, numbering),
        _other_quotations(claim, evidence),
        _missing_names(statement, evidence, pages),
    )


def shared_words(claim: str, passages: Sequence[str], language: str) -> list[float]:
    """Return for each passage the share of the claim's words in it, from 0 to 1; names count more."""
    statement = Statement(claim, language)
    return [_coverage(statement, Statement(passage, language)) if statement.content else 0.0 for passage in passages]


@dataclass(frozen=True)
class _Word:
    text: str
    start: int
    stem: str
    folded: str  # in lower case, without a possessive
    modifier: str  # its kind among `MODIFIERS`, or empty
    content: bool  # true if it has meaning by itself
    name: bool  # true if it is certainly a name: a capital inside a sentence, an acronym, an identifier


class Statement:
    """A claim or a sentence of a passage, split into words and quantities."""

    def __init__(self, text: str, language: str) -> None:
        self.text = text
        self.language = language

    @cached_property
    def quantities(self) -> list[Quantity]:
        """Numbers with their units, in order."""
        return find_quantities(self.text, self.language)[:MAX_PARTS]

    @cached_property
    def lone_units(self) -> set[tuple[str, tuple[float, ...]]]:
        """The units that are named without a number, each with its factors to the base unit."""
        inside = {offset for quantity in self.quantities for offset in range(quantity.start, quantity.end)}
        lone = (word.folded for word in self.words if word.start not in inside and len(word.folded) > 1)
        return {UNITS[name] for name in lone if name in UNITS}

    @cached_property
    def words(self) -> list[_Word]:
        """All words in order."""
        return [self._word(match) for match in WORD.finditer(self.text)]

    @cached_property
    def content(self) -> list[_Word]:
        """Words that have meaning by themselves."""
        return [word for word in self.words if word.content]

    @cached_property
    def stems(self) -> frozenset[str]:
        """The stems of its content words."""
        return frozenset(word.stem for word in self.content)

    @cached_property
    def folded_words(self) -> frozenset[str]:
        """Every word in lower case."""
        return frozenset(word.folded for word in self.words)

    @cached_property
    def initials(self) -> str:
        """The first letter of every word and part of a word, in lower case: `wal` for "write-ahead log"."""
        return "".join(part[0] for word in self.words for part in re.split(r"[^\w]+", word.folded) if part)

    def keys(self, sources: Sequence[Quantity]) -> list[str]:
        """Return the compared parts, in order: stems, modifiers, and quantities, each as its equal among `sources`."""
        inside = {offset for quantity in self.quantities for offset in range(quantity.start, quantity.end)}
        matched = (next((other for other in sources if _agree(item, other)), item) for item in self.quantities)
        values = [f"#{item.unit}:{item.values}:{item.forms}" for item in matched]
        keys = [(quantity.start, value) for quantity, value in zip(self.quantities, values, strict=True)]
        keys += [
            (word.start, f"({word.modifier})" if word.modifier else word.stem)
            for word in self.words
            if word.start not in inside and (word.modifier or word.content)
        ]
        return [key for _, key in sorted(keys)][:MAX_PARTS]

    def _word(self, match: re.Match[str]) -> _Word:
        text = match[0]
        folded = POSSESSIVE.sub("", match[0]).casefold().replace("’", "'")
        modifier = "not"
        if not folded.endswith("n't"):
            modifier = MODIFIERS.get(folded, "")
        content = not modifier and folded not in language_data("en").stop and not text.isdecimal() and len(text) > 1
        preceding = self.text[: match.start()].rstrip(" \"'“”‘’(*_`")
        first = not preceding or preceding[-1] in ".!?:\n|"
        capital = text[0].isupper() and not first and self.language != "de"
        # "e.g" and "z.B" are single letters with points, which also marks identifiers.
        abbreviated = not text.isupper() and "." in text and all(len(part) == 1 for part in text.split("."))
        identifier = (IDENTIFIER_MARK.search(text) is not None and not abbreviated) or (
            text.isupper() and len(text) > 1
        )
        name = content and not text[0].isdigit() and (identifier or capital)
        return _Word(text, match.start(), stem(folded, self.language), folded, modifier, content, name)


@dataclass(frozen=True)
class _Alignment:
    """Alignment of a claim with a sentence."""

    share: float = 0.0  # share of the claim's parts found in the sentence, in order
    hint: str = ""  # a difference that may change the meaning; empty if there is none or the sentence is not close


@dataclass(frozen=True)
class _Evidence:
    """The cited passages, sentence by sentence and as a whole, and their titles and headings."""

    sentences: list[Statement]
    whole: Statement
    about: Statement

    @classmethod
    def of(cls, passages: Sequence[str], about: Sequence[str], language: str) -> "_Evidence":
        sentences = [Statement(text[start:end], language) for text in passages for start, end in sentence_spans(text)]
        whole = Statement("\n".join(passages), language)
        if len(sentences) == 1 and sentences[0].text == whole.text:
            whole = sentences[0]  # most passages are one sentence, which is split into words once
        return cls(sentences, whole, Statement("\n".join(about), language))

    def closest(self, claim: Statement) -> _Alignment:
        """Return the alignment with the sentence that shares most with the claim."""
        nearest = sorted(self.sentences, key=lambda sentence: -len(claim.stems & sentence.stems))[:MAX_CANDIDATES]
        return max((_align(claim, sentence) for sentence in nearest), key=lambda item: item.share, default=_Alignment())


def _align(claim: Statement, sentence: Statement) -> _Alignment:
    claim_keys = claim.keys(sentence.quantities)
    sentence_keys = sentence.keys(sentence.quantities)
    matcher = SequenceMatcher(None, sentence_keys, claim_keys, autojunk=False)
    blocks = [block for block in matcher.get_matching_blocks() if block.size]
    matched = Counter(key for block in blocks for key in claim_keys[block.b : block.b + block.size])
    share = matched.total() / max(1, len(claim_keys))
    if share < CLOSE_SHARE:
        return _Alignment(share)
    # A modifier just before or after the stretch governs it: "It is not true that …".
    covered = sentence_keys[max(0, blocks[0].a - 1) : blocks[-1].a + blocks[-1].size + 1]
    for modifier in dict.fromkeys(MODIFIERS.values()):
        claim_count = claim_keys.count(f"({modifier})")
        sentence_count = covered.count(f"({modifier})")
        if claim_count % 2 != sentence_count % 2 if modifier == "not" else claim_count != sentence_count:
            return _Alignment(share, Message("reason_modifier", word=modifier))
    gaps = (sentence_keys[block.a + block.size : next_block.a] for block, next_block in pairwise(blocks))
    if any(key.startswith("#") for gap in gaps for key in gap):
        return _Alignment(share, Message("reason_leaves_out_number"))
    displaced = (Counter(claim_keys) - matched) & (Counter(sentence_keys) - matched)
    swapped = any(not key.startswith("(") for key in displaced)
    return _Alignment(share, Message("reason_word_order") if swapped else "")


def _wrong_quantities(
    claim: Statement, evidence: _Evidence, closest: _Alignment, numbering: Collection[int]
) -> Iterator[ClaimJudgement]:
    """Judge the quantities that the passages lack or state differently."""
    evidence_quantities = evidence.whole.quantities
    for quantity in claim.quantities:
        if _is_reference(claim.text, quantity, numbering) or not _is_figure(claim.text, quantity):
            continue
        if _is_given(quantity, evidence_quantities) or (quantity.unit == "%" and SHARES & evidence.whole.folded_words):
            continue
        if _has_unit_elsewhere(quantity, evidence.whole):
            continue
        if any(compare(quantity, other) is Comparison.EXACT for other in evidence.about.quantities):
            continue  # such as the release that the title names
        in_words = not any(character.isdecimal() for character in quantity.raw)
        if in_words and (closest.share < CLOSE_SHARE or max(quantity.values, default=0) <= SMALL_COUNT):
            continue
        if any(compare(quantity, other) is Comparison.OPPOSED for other in evidence_quantities):
            if closest.share >= CLOSE_SHARE:
                reason = Message("reason_least_most", number=quantity.raw)
                yield ClaimJudgement(Verdict.CONTRADICTED, reason, quantity.raw)
            continue
        same_unit = (other for other in evidence_quantities if other.unit == quantity.unit and not _counts(other))
        if rival := next((other for other in same_unit if other.unit or other.noun == quantity.noun), None):
            reason = Message("reason_other_number", number=quantity.raw, rival=rival.raw)
            yield ClaimJudgement(Verdict.CONTRADICTED, reason, quantity.raw)
        else:
            reason = Message("reason_in_no_passage", part=quantity.raw)
            yield ClaimJudgement(Verdict.UNSUPPORTED, reason, quantity.raw)


def _counts(quantity: Quantity) -> bool:
    """Return whether a quantity is a small count in words, as of "two accounts", which is no rival of a figure."""
    in_words = not any(character.isdecimal() for character in quantity.raw)
    return in_words and not quantity.unit and max(quantity.values, default=0) <= SMALL_COUNT


def _is_reference(text: str, quantity: Quantity, numbering: Collection[int]) -> bool:
    """Return whether a number is that of a list item or a section of the claim's own text: "steps 1 and 2".

    It follows a word with a meaning, alone or after other such numbers; a number with a unit or after a comparator is
    none.
    """
    if not quantity.start and MARKER.match(text):
        return True
    if quantity.unit or quantity.comparator or not quantity.raw.isdecimal() or int(quantity.raw) not in numbering:
        return False
    preceding = LAST_WORD.search(OTHER_NUMBERS.sub("", text[max(0, quantity.start - MAX_LABEL) : quantity.start]))
    return preceding is not None and preceding[1].casefold() not in language_data("en").stop | MODIFIERS.keys()


def _is_figure(text: str, quantity: Quantity) -> bool:
    """Return false for a number that states nothing by itself: in a name, a placeholder, or a count of its own list.

    `0x1ED9`, `query1`, `y2016m07` and `N-200` are names, `<10>` is code; `28 languages: …` with 28 items counts what
    the statement lists.
    """
    start = quantity.start
    end = quantity.end
    if quantity.unit:
        return NAME_START.search(text[max(0, start - 1) : start]) is None
    head = NAME_START.search(text[max(0, start - MAX_LABEL) : start])
    tail = NAME_END.match(text, start)
    word = (head[0] if head else "") + (tail[0] if tail else "")
    is_name = any(character.isdecimal() for character in word) and not COUNTED.fullmatch(word)
    is_name = is_name or JOINED_TO_LETTERS.search(text[max(0, start - MAX_LABEL) : start]) is not None
    if is_name or (text[max(0, start - 1) : start] == "<" and text[end : end + 1] == ">"):
        return False
    if _is_enumerator(text, quantity):
        return False
    listed = OWN_LIST.match(text, end)
    counts = []
    if listed:
        # The list may end at a semicolon, after which the sentence says something else.
        parts = (listed[1], listed[1].partition(";")[0])
        counts = [part.count(",") + part.count(";") + 1 for part in parts]
    # The last item may follow a conjunction without a comma.
    fitting = (items for items in counts if items >= MIN_LISTED)
    return not any(value in (items, items + 1) for items in fitting for value in quantity.values)


def _is_enumerator(text: str, quantity: Quantity) -> bool:
    """Return whether a number numbers the parts of its own sentence: "(1) … (2) …", "1. … 2. …"."""
    numbered = list(ENUMERATOR.finditer(text))
    values = [int(match[1]) for match in numbered]
    is_counting = len(values) > 1 and values == list(range(1, len(values) + 1))
    return is_counting and any(match.start(1) == quantity.start for match in numbered)


def _is_given(quantity: Quantity, source_quantities: Sequence[Quantity]) -> bool:
    """Return whether the passages have a quantity, or two of its unit whose sum or difference it is."""
    if any(_agree(quantity, other) for other in source_quantities):
        return True
    if not quantity.unit:
        # "Of the 95 bytes 87 are …", "1 to 2 %": the unit is named with another number.
        return any(
            other.unit and LEADING_NUMBER.findall(other.raw)[:1] == [quantity.raw] for other in source_quantities
        )
    same = [other.values[0] for other in source_quantities if other.unit == quantity.unit and other.values][:20]
    results = {abs(first + sign * other) for first in same for other in same for sign in (1, -1)}
    return any(abs(result - value) <= 1e-9 * abs(value) for result in results for value in quantity.values if value)


def _has_unit_elsewhere(quantity: Quantity, passages: Statement) -> bool:
    """Return whether the passages give the number of a quantity, or none for one, and its unit at another place.

    "The number of bytes … defaults to 1,000" gives "1,000 bytes", and "in excess of a gigabyte" gives "1 GB".
    """
    if not (quantity.unit and quantity.values):
        return False
    numbers = {1.0, *(value for other in passages.quantities if not other.unit for value in other.values)}
    factors = {factor for unit, readings in passages.lone_units if unit == quantity.unit for factor in readings}
    return any(number * factor in quantity.values for number in numbers for factor in factors)


def _agree(quantity: Quantity, other: Quantity) -> bool:
    return compare(quantity, other) in (Comparison.EXACT, Comparison.APPROXIMATE)


def _other_quotations(claim: str, evidence: _Evidence) -> Iterator[ClaimJudgement]:
    """Judge quotations of several words that no passage, title or heading contains, whatever the punctuation."""
    evidence_text = _bare(f"{evidence.whole.text}\n{evidence.about.text}")
    for match in QUOTATION.finditer(claim):
        pieces = [_bare(piece) for piece in ELLIPSIS.split(match[0][1:-1])]
        if any(len(piece.split()) >= MIN_WORDS and piece not in evidence_text for piece in pieces):
            quotation = match[0][1:-1]
            reason = Message("reason_in_no_passage", part=shorten(quotation, 80))
            yield ClaimJudgement(Verdict.UNSUPPORTED, reason, quotation)


def _bare(text: str) -> str:
    return " ".join(["", *re.findall(r"[^\W_]+", without_hyphens(text).casefold()), ""])


def _missing_names(claim: Statement, evidence: _Evidence, pages: Sequence[str]) -> Iterator[ClaimJudgement]:
    """Judge names that no passage, title or heading contains, but for those that a page explains or is about."""
    inside_quantities = {offset for quantity in claim.quantities for offset in range(quantity.start, quantity.end)}
    for word in claim.words:
        if word.name and word.start not in inside_quantities and word.folded not in UNITS:
            texts = (evidence.whole, evidence.about)
            if any(_contains_word(text, word) or _contains_name(text, word.folded) for text in texts):
                continue
            name = POSSESSIVE.sub("", word.text)
            if not any(_spells_out(page, name) or _is_about(page, name) for page in pages):
                yield ClaimJudgement(Verdict.UNSUPPORTED, Message("reason_named_nowhere", part=name), name)


def _contains_word(statement: Statement, word: _Word) -> bool:
    """Return whether a statement has a word, or another form of a long one ("replicating", "replication")."""
    if word.stem in statement.stems or word.folded in statement.folded_words:
        return True
    return len(word.folded) >= 6 and any(other.startswith(word.folded[:6]) for other in statement.folded_words)


def _contains_name(statement: Statement, folded: str) -> bool:
    """Return whether a name occurs in another spelling: "SQLite3", "US" for "U.S.", the words that it abbreviates."""
    bare, *others = (re.sub(r"[.-]|\(\)", "", word) for word in (folded, *statement.folded_words))
    for other in others:
        if bare == other or (min(len(bare), len(other)) >= 4 and (bare in other or other in bare)):
            return True
    if not 2 <= len(bare) <= MAX_ACRONYM:
        return False
    capitals = "".join(word.folded[0] for word in statement.words if word.text[0].isupper())
    # Two letters begin too many pairs of words.
    return bare in capitals or (len(bare) > 2 and bare in statement.initials)


def _spells_out(page: str, acronym: str) -> bool:
    """Return whether a page gives the words of an acronym beside it in brackets: "write-ahead log (WAL)".

    Of the words the last may be an acronym itself, with which the whole one ends: "table ID (TAID)".
    """
    acronym = acronym.removesuffix("s") if acronym[:-1].isupper() else acronym
    if not (acronym.isalpha() and acronym.isupper() and 2 <= len(acronym) <= MAX_ACRONYM):
        return False
    letters = acronym.casefold()
    for match in islice(re.finditer(rf"\({acronym}s?\)", page), MAX_SPELLINGS):
        before = page[max(0, match.start() - SPELLING_CHARACTERS) : match.start()].rstrip()
        last = LAST_CAPITALS.search(before)
        if _initials(before).endswith(letters) or (last and acronym.endswith(last[1])):
            return True
    for match in islice(re.finditer(rf"(?<![^\W_]){acronym} \(", page), MAX_SPELLINGS):
        if _initials(page[match.end() : match.end() + SPELLING_CHARACTERS]).startswith(letters):
            return True
    return False


def _is_about(page: str, name: str) -> bool:
    """Return whether a page has a name so often that it is about it: a manual need not name its product each time."""
    count = sum(1 for _ in re.finditer(rf"(?<![^\W_]){re.escape(name)}(?![^\W_])", page))
    return count >= MIN_MENTIONS and count * MENTION_CHARACTERS >= len(page)


def _initials(text: str) -> str:
    return "".join(word[0] for word in re.findall(r"[^\W_]+", text.casefold()))


def _coverage(claim: Statement, passage: Statement, about: Statement | None = None) -> float:
    """Return the share of the claim's content words that the passage contains; names may be in its titles."""
    total = covered = 0.0
    for word in claim.content:
        weight = NAME_WEIGHT if word.name else 1.0
        is_covered = _contains_word(passage, word) or (about is not None and word.name and _contains_word(about, word))
        total += weight
        covered += weight * is_covered
    return covered / total if total else 1.0
