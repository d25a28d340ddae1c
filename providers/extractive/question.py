"""What sort of question it is, and which parts an answer to it has."""

import re
from dataclasses import dataclass
from enum import StrEnum

from providers.extractive.question_terms import key_words
from providers.language_words import WORD, fold, language_words
from providers.sentences import sentence_spans


class QuestionType(StrEnum):
    """What sort of answer a question wants."""

    HOW = "how"
    HOW_TO = "how_to"
    WHY = "why"
    COMPARE = "compare"
    LIST = "list"
    DEFINE = "define"
    CONSEQUENCE = "consequence"
    YES_NO = "yes_no"
    QUANTITY = "quantity"
    FACT = "fact"


PARTS: dict[QuestionType, tuple[str, ...]] = {
    QuestionType.HOW: ("mechanism", "problem", "settings", "failure", "check", "limits", "version"),
    QuestionType.HOW_TO: ("steps", "settings", "limits", "failure", "check", "version"),
    QuestionType.WHY: ("reason", "limits", "mechanism", "settings", "problem", "version"),
    QuestionType.COMPARE: ("comparison", "limits", "settings", "mechanism"),
    QuestionType.LIST: ("items", "settings", "limits", "definition", "version"),
    QuestionType.DEFINE: ("definition", "mechanism", "settings", "limits", "version", "check"),
    QuestionType.CONSEQUENCE: ("mechanism", "failure", "settings", "limits", "check", "version"),
    QuestionType.YES_NO: ("fact", "limits", "settings", "version", "mechanism"),
    QuestionType.QUANTITY: ("fact", "limits", "settings", "version", "mechanism"),
    QuestionType.FACT: ("fact", "settings", "limits", "version", "mechanism"),
}
"""Type → facets, the most important first; the first is asked with the question's own words."""

_PATTERNS: tuple[tuple[QuestionType, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern, re.IGNORECASE))
    for kind, pattern in (
        (
            QuestionType.COMPARE,
            (
                r"\bcompar(?:e|ed|ison|ing)\b|\bdifferences?\s++between\b|\bdiffers?\b|\b(?:vs\.?|versus)\s|\bbetter\s*:|"
                r"\bunterschied\w*+\s++zwischen\b|\bunterscheide\w++\s++sich\b|\bdiff?[ée]ren\w++\s++entre\b|\bdifferenz\w++\s++[tf]ra\b|\bverschil\w*+\s++tussen\b|"
                r"\bcontrast\b|\bdistinguish\b|\badvantages?\b.*\bover\b|\bwhich\s++(?:one\s++)?is\s++(?:better|faster)\b.*\bor\b"
            ),
        ),
        (
            QuestionType.WHY,
            r"^\W*(?:why|for\s++what\s++reason|what\s++is\s++the\s++reason|what\s++(?:are\s++the\s++)?reasons?)\b",
        ),
        (
            QuestionType.CONSEQUENCE,
            r"\bwhat\s++(?:happens|will\s++happen|would\s++happen|are\s++the\s++(?:consequences|effects|risks))\b",
        ),
        (
            QuestionType.HOW_TO,
            (
                r"^\W*how\s++(?:do|can|should|could|would|must)\s++(?:i|you|we|one|(?:an?\s++|the\s++)?(?:users?|applications?|developers?|administrators?|clients?|programs?))\b|^\W*how\s++to\b"
                r"|^\W*how\s++(?:can|is|are|should)\s++.+\b(?:be\s++\w+ed|\w+ed)\b\W*$|^\W*what\s++(?:steps|command|commands)\b"
            ),
        ),
        (
            QuestionType.QUANTITY,
            (
                r"^\W*how\s++(?:many|much|long|large|big|often|old|far|fast|high|deep|small)\b"
                r"|^\W*what\s++(?:is|are)\s++the\s++(?:\w+\s++)?(?:maximum|minimum|largest|smallest|limits?|size|number)\b"
            ),
        ),
        (
            QuestionType.HOW,
            r"^\W*(?:how|explain\s++how|describe\s++how|in\s++what\s++way|what\s++(?:prevents|protects|keeps))\b",
        ),
        (
            QuestionType.LIST,
            (
                r"^\W*(?:list|name|enumerate|give\s++(?:me\s++)?(?:a\s++list|all))\b|^\W*(?:which|what)\s++(?!is\b|was\b|does\b|has\b)(?:\w+\s++){0,3}"
                r"(?:types|kinds|modes|levels|methods|options|ways|commands|functions|formats|strategies|forms|classes|states|"
                r"privileges|algorithms|features|categories|limits|restrictions|limitations|values|settings|parameters|operators|"
                r"(?!does\b|is\b|has\b|was\b)\w\w+s)\s++(?:are|do|does|can|exist|of|for|in|is|were|has|have|may|must|control|affect|influence)\b"
            ),
        ),
        (QuestionType.FACT, r"^\W*(?:when|where|who|which)\b|^\W*what\s++(?:is|are)\s++the\s++(?:default|name)\b"),
        (
            QuestionType.DEFINE,
            r"^\W*(?:what\s++(?:is|are|was|were)|define|what\s++(?:does|do)\s++.+\s++(?:mean|do|control|controls|provide|specify|set|contain|return)\b|what's|explain|describe|summari[sz]e|tell\s++me\s++about|overview)\b",
        ),
        (QuestionType.YES_NO, r"^\W*(?:is|are|was|were|does|do|did|can|could|should|will|would|has|have|may|must)\b"),
    )
)

_NEGATED = re.compile(r"\b(?:not|never|no\s++longer|without|fails?\s++to)\b|n['’]t\b", re.IGNORECASE)

_SIDES = tuple(
    re.compile(pattern + r"(?:\s++(?:in|for|when|with|on)\s++.+)?$", re.IGNORECASE | re.DOTALL)
    for pattern in (
        r"\bbetween\s++(?P<a>.+?)\s++and\s++(?P<b>.+?)",
        r"\b(?:zwischen|entre|tra|fra|tussen)\s++(?P<a>.+?)\s++(?:und|et|y|e|en)\s++(?P<b>.+?)",
        r"\bunterscheide\w++\s++sich\s++(?P<a>.+?)\s++(?:und|von)\s++(?P<b>.+?)",
        r"\bcompar\w+\s++(?P<a>.+?)\s++(?:and|with|to|against|vs\.?|versus)\s++(?P<b>.+?)",
        r"\bhow\s++(?:do|does|is|are)\s++(?P<a>.+?)\s++differ\w*\s++from\s++(?P<b>.+?)",
        r"\bhow\s++(?:do|does)\s++(?P<a>.+?)\s++and\s++(?P<b>.+?)\s++(?:differ|compare)",
        r"^(?P<a>.+?)\s++(?:vs\.?|versus|compared\s++(?:to|with))\s++(?P<b>.+?)",
        r"\b(?:better|faster|safer)\s*+[:,]?\s*+(?P<a>.+?)\s++or\s++(?P<b>.+?)",
    )
)


MOST_QUESTIONS = 5
JOINS = frozenset("and und et y e en".split())
"""Words before the last of several questions."""
QUESTION_PREFIX = "question:"
"""Of the facet of a search that is one of several questions; its number follows."""
POINTING_BACK = re.compile(
    r"\b(?:it|its|they|them|their|this|these|those|er|sie|ihn|ihm|dies\w*|il|elle|ils|elles|cela|celui-ci|esto|eso|ello"
    r"|esso|essa|ciò|questo|isto|isso|ele|ela|het|hij|zij|dit|dat)\b(?!\s++(?:possible|true|necessary)\b)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Question:
    """A question as read: its type, its key words in order, and the sides of a comparison."""

    text: str
    kind: QuestionType
    key_phrase: str
    entities: tuple[str, ...] = ()

    @property
    def main_facet(self) -> str:
        """The facet that the question's own words ask for."""
        return PARTS[self.kind][0]

    @property
    def may_hold_a_premise(self) -> bool:
        """Whether the question takes something for granted that the documents may deny.

        A question that denies something itself (`Why does it not …`) is not answered by a further denial.
        """
        return self.kind in (QuestionType.WHY, QuestionType.YES_NO) and not _NEGATED.search(self.text)


def read_question(text: str, language: str = "en") -> Question:
    """Classify a question by its wording."""
    core = _core(text)
    kind = next((kind for kind, pattern in _PATTERNS if pattern.search(core)), QuestionType.FACT)
    entities = _sides(core, language) if kind is QuestionType.COMPARE else ()
    return Question(text.strip(), kind, " ".join(key_words(core, language)[:18]), entities)


def split_questions(text: str, language: str = "en") -> list[str]:
    """The questions of a text that asks several, in order, at most `MOST_QUESTIONS`; none of a text that asks one.

    A question that only points back (`Why does it do that?`) belongs to the one before it.
    """
    found: list[str] = []
    flat = " ".join(text.split())
    sentences = [flat[start:end].strip() for start, end in sentence_spans(flat)]
    asking = [sentence for sentence in sentences if sentence.endswith("?")] or sentences
    for sentence in asking:
        parts = _parts(sentence, language) or [sentence] * sentence.endswith("?")
        for part in parts:
            content = key_words(part, language)
            full = len(parts) > 1 and bool(found) and found[-1].count("?") > 1
            if found and not full and (not content or POINTING_BACK.search(part)):
                found[-1] = f"{found[-1]} {part}"
            elif content:
                found.append(part)
    return found[:MOST_QUESTIONS] if len(found) > 1 else []


def _parts(sentence: str, language: str) -> list[str]:
    """The questions that one sentence puts side by side (`how …, which …, and what …`); none of any other sentence.

    Two of them must ask how or why: `which` may only add to what stands before it.
    """
    asks = language_words(language).asks
    sure = asks["mechanism"].first_words() | asks["reason"].first_words()
    openings = sure | asks["choice"].first_words()
    pieces: list[tuple[str, str]] = []
    for piece in sentence.rstrip("?. ").split(", "):
        tokens = fold(piece)
        at = next((place for place, word in enumerate(tokens) if word in openings), None)
        joined = at is not None and (at == 0 or not pieces or (at == 1 and tokens[0] in JOINS))
        if joined and at is not None:
            pieces.append((tokens[at], _from_word(piece, at)))
        elif pieces:
            pieces[-1] = (pieces[-1][0], f"{pieces[-1][1]}, {piece}")
    told = sum(opening in sure for opening, _ in pieces)
    enough = len(pieces) > 1 and told > 1 and all(key_words(piece, language) for _, piece in pieces)
    return [f"{piece[:1].upper()}{piece[1:]}?" for _, piece in pieces] if enough else []


def _from_word(piece: str, place: int) -> str:
    return piece[[found.start() for found in WORD.finditer(piece)][place] :]


def _core(text: str) -> str:
    """The sentence that asks, where a long text leads up to it."""
    flat = " ".join(text.split())
    if len(flat) <= 300:
        return flat
    asking = [piece for piece in re.split(r"(?<=[.?!])\s++", flat) if piece.endswith("?")]
    return (asking[0] if asking else flat)[:600]


def _sides(text: str, language: str) -> tuple[str, ...]:
    flat = text.strip().rstrip("?.! ")
    for pattern in _SIDES:
        match = pattern.search(flat)
        if match:
            sides = [" ".join(key_words(match.group(side), language)) for side in ("a", "b")]
            if all(sides) and sides[0].casefold() != sides[1].casefold():
                return tuple(sides)
    return ()
