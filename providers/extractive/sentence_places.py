"""Where a sentence stands: whether its section is about the question, opens there, or only tells of old releases."""

import re

from contracts.roles import SourceExtract
from providers.extractive.question_terms import QuestionTerms, key_words, text_keys, text_pairs, word_keys
from providers.extractive.text_structure import LABEL_LENGTH, Structure, TextBlock, TextBlockKind

HINT_BONUS = 0.15
"""Most that retrieval's own score of a section adds."""
TERM_BONUS = 0.25
"""What the text of a definition gains when the question asks for its term."""
HISTORY_COST = 0.25

HISTORY = re.compile(
    r"\b(?:release\s+notes?|release\s+history|change\s*log|changes\s+(?:in|since)|recent\s+news|release\s+\d|version\s+\d[\d.]*\s+(?:on|released)"
    r"|migration\s+to\s+version|history\s+of)\b|^\W*(?:E\.\d|\d{4}-\d\d-\d\d|\d{4}-\w+-\d\d|(?:version|v)\s*\d+\.\d+)",
    re.IGNORECASE,
)
_OVERVIEW = re.compile(
    r"\W*(?:name|description|overview|introduction|summary|definition|background|synopsis)\b", re.IGNORECASE
)
LEAD_WORDS = 4
NUMBERING = re.compile(
    r"^(?:(?:Appendix\s+)?(?:\d{1,3}|[A-Z])(?:\.\d{1,3})+\.?|(?:\d{1,3}|[A-Z]|[IVX]{1,5})[.)]|\d{1,3}(?=\s+[A-ZÀ-Þ]))\s+"
)
"""The number of a section; a first word such as `A` or `SQL` is none."""


class Places:
    """The sections of one source, seen from one question."""

    def __init__(self, document: Structure, source: SourceExtract, terms: QuestionTerms, best_hint: float) -> None:
        self._document = document
        self._terms = terms
        self._best_hint = best_hint
        self._hints = [hint for hint in source.sections if 0 <= hint.start < hint.end <= len(document.text)]
        self._title_keys = text_keys(source.title, document.language)
        self._title = self._likeness(source.title)
        self._topics: dict[tuple[tuple[str, ...], int | None], float] = {}
        self._historic_title = bool(HISTORY.search(source.title))

    def context(self, block: TextBlock) -> frozenset[str]:
        """Stems of the headings and the title above a block."""
        return self._document.context_keys[block.path] | self._title_keys

    def topic(self, block: TextBlock) -> float:
        """How much the section, or the term that the block explains, is what the question asks about (0 to about 1)."""
        key = (block.path, block.label)
        if key not in self._topics:
            named = [
                self._likeness(heading) * (1.0 - 0.1 * depth) for depth, heading in enumerate(reversed(block.path))
            ]
            best = max([*named, 0.8 * self._title])
            whole = self._terms.coverage(self.context(block))
            label = TERM_BONUS * self._likeness(self._label(block)) / 0.45 if block.label is not None else 0.0
            self._topics[key] = 0.7 * best + 0.3 * whole + label
        return self._topics[key]

    @property
    def hinted(self) -> bool:
        """Whether retrieval said where to look."""
        return bool(self._hints)

    def in_hint(self, index: int) -> bool:
        """Whether the sentence lies in a section that retrieval found."""
        start = self._document.sentences[index].start
        return any(hint.start <= start < hint.end for hint in self._hints)

    def hint_bonus(self, index: int) -> float:
        """More inside a section that retrieval found, by its score against the best of all sources."""
        start = self._document.sentences[index].start
        inside = [hint.score for hint in self._hints if hint.start <= start < hint.end]
        return HINT_BONUS * max(inside) / self._best_hint if inside and self._best_hint > 0 else 0.0

    def opens_block(self, index: int) -> bool:
        """Whether the sentence is the first of its paragraph."""
        sentences = self._document.sentences
        return index == 0 or sentences[index - 1].block != sentences[index].block

    def opens_section(self, index: int) -> bool:
        """Whether the sentence belongs to the first paragraph of its section."""
        number = self._document.sentences[index].block
        block = self._document.blocks[number]
        before = self._document.blocks[number - 1] if number else None
        if before is not None and before.kind is TextBlockKind.LABEL and before.section == block.section:
            before = self._document.blocks[number - 2] if number > 1 else None
        return before is None or before.section != block.section

    def lead_in(self, index: int) -> int | None:
        """The few words that open the paragraph of a sentence, as a name does: `Serialized. In this mode, …`."""
        if index == 0 or self.opens_block(index) or not self.opens_block(index - 1):
            return None
        return index - 1 if len(self._document.of(self._document.sentences[index - 1]).split()) <= LEAD_WORDS else None

    def overview(self, index: int) -> float:
        """How much a sentence belongs to the opening of a document, or of its description, about the question."""
        block = self._document.block_of(index)
        heading = NUMBERING.sub("", block.path[-1]) if block.path else ""
        general = len(block.path) <= 1 or bool(_OVERVIEW.match(heading))
        return min(1.0, 2 * self._title) if general and self.opens_section(index) else 0.0

    def history_cost(self, block: TextBlock) -> float:
        """What release notes and change logs lose: their lines speak of what was, one bug at a time."""
        told = self._historic_title or any(HISTORY.search(heading) for heading in block.path)
        return HISTORY_COST if told else 0.0

    def label(self, block: TextBlock) -> tuple[frozenset[str], frozenset[tuple[str, str]]]:
        """Stems, and pairs of stems, of the term that a block explains."""
        text, language = self._label(block), self._document.language
        return (text_keys(text, language), text_pairs(text, language)) if text else (frozenset(), frozenset())

    def _label(self, block: TextBlock) -> str:
        return (
            self._document.text[block.label : block.label + LABEL_LENGTH].split("\n", 1)[0]
            if block.label is not None
            else ""
        )

    def _likeness(self, heading: str) -> float:
        """Recall of the question's weight by a heading, lowered by what else the heading speaks of."""
        plain = NUMBERING.sub("", heading)
        language = self._document.language
        found = [key for word in key_words(plain, language) for key in word_keys(word, language)]
        if not found:
            return 0.0
        keys = text_keys(plain, self._document.language)
        asked = {term.key for term in self._terms.terms} | {
            part for term in self._terms.terms for part in (*term.parts, *term.related, *term.joined)
        }
        precision = sum(key in asked for key in found) / len(found)
        phrasing = self._terms.phrasing(text_pairs(plain, self._document.language))
        return self._terms.coverage(keys) * (0.4 + 0.4 * precision + 0.2 * phrasing)
