"""Whether a page shows its content to a reader who does nothing but read: deterministic rules over facts and phrases.

Every rule asks for little prose first, because long articles are about paywalls, robots and missing pages too.
"""

import re
from collections.abc import Callable
from functools import cache
from typing import Final

from contracts.vocabulary import PageAccess
from providers.reading.canonical_text import Block, BlockKind, Extraction
from providers.reading.page_signals import LOOKED_AT, POINTERS, PageSignals, phrases

OTHER_PROSE: Final = 300
"""Characters that a page which only turns readers away may say beside its notice."""
NOTICE: Final = 1_500
"""Characters of prose of the longest page that may be nothing but a notice."""
TEASER: Final = 2_500
"""Characters of prose up to which an article that stops at an offer may be its beginning only."""
UNMARKED_TEASER: Final = 900
"""The same where neither the structure nor the page's own statement speaks of an offer."""
HARDLY_ANYTHING: Final = 200
ENDING: Final = 700
"""Characters at the end in which the offer stands."""
LEAST_SCRIPTS: Final = 1
OPENING: Final = 2
"""Sentences with which the first words of a page begin."""
MOST_OF_IT: Final = 0.5
"""Share of the prose in sentences that hold a phrase."""
LEAD: Final = 3
"""Words in front of an offer in its sentence: a longer beginning tells of the offer."""
TITLE_LEAD: Final = 1
"""The same in a title: `How to fix page not found` is about it."""
FIRST_BLOCKS, LAST_BLOCKS, LONGEST_BLOCK = 200, 50, 3_000
"""How much is looked at of a page that has little prose but many links."""

SENTENCE_END: Final = re.compile(r"(?<=[.!?…:])\s+|(?<=[。！？：])|\n+")
QUOTED: Final = re.compile(
    '「[^」]{0,400}」|“[^”]{0,400}”|"[^"]{0,400}"|«[^»]{0,400}»|„[^„“”]{0,400}[“”]|`[^`]{0,400}`|‘[^’]{0,400}’'
)
QUOTE_SIGN: Final = re.compile('[「“"«„`‘]')
SITE_NAME: Final = re.compile(r"(?<!\s)\s++[|–—·•»:-]\s.*", re.DOTALL)
ENDS: Final = " .!?…:-–—|¡¿"


def judge_access(found: Extraction, signals: PageSignals) -> PageAccess:
    """What the page shows; `OPEN` unless a rule says otherwise."""
    if signals.prose >= (LOOKED_AT if signals.free is False else TEASER):
        return PageAccess.OPEN
    page = _JudgedPage(found, signals)
    return next((access for access, applies in RULES if applies(page)), PageAccess.OPEN)


class _JudgedPage:
    """A page with little prose, looked at for phrases."""

    def __init__(self, found: Extraction, signals: PageSignals) -> None:
        self.signals = signals
        self.prose = signals.prose
        self.names = {_name(found.title), _name(SITE_NAME.sub("", found.title))}
        self._blocks: list[tuple[str, int]] = []
        for block in _ends_of(found.blocks):
            words = found.text[block.start : min(block.end, block.start + LONGEST_BLOCK)]
            is_prose = block.kind is not BlockKind.HEADING and block.link_share < POINTERS
            if block.kind is BlockKind.HEADING and block.level == 1:
                self.names.add(_name(words))
            if block.kind is not BlockKind.CODE:
                self._blocks.append((_fold(words), len(words) if is_prose else 0))
        self.text = "\n".join(words for words, _ in self._blocks)
        first = self._blocks[0][0] if self._blocks else ""
        first_prose = next((words for words, size in self._blocks if size), "")
        self.opening = [*_sentences(first)[:OPENING], *_sentences(first_prose)[:OPENING]]
        self.aside = f"{_fold(signals.labels)}\n{_fold(signals.noscript)}"

    def is_called(self, access: PageAccess) -> bool:
        """Whether its title or its main heading is nothing but a notice."""
        return not self.names.isdisjoint(_list_names(access))

    def says(self, access: PageAccess) -> bool:
        """Whether its text holds a phrase outside of quotes."""
        return _holds(access, self.text)

    def says_aside(self, access: PageAccess) -> bool:
        """The same for its forms, buttons and dialogs, and for what is shown without scripts."""
        return _holds(access, self.aside)

    def ends_with(self, access: PageAccess) -> bool:
        """Whether its text, or what stands beside it, ends with an offer."""
        if not self.says(access) and not self.says_aside(access):
            return False
        offers = {
            found[0]
            for sentence in _sentences(self.text[-ENDING:])
            if (found := _search_led(_compile_phrases(access), sentence))
        }
        offers.update(_compile_phrases(access).findall(self.aside))
        # What newsletters and menus say too needs a second sign.
        return bool(offers.difference(phrases("weak").get(access, ()))) or (
            bool(offers) and (len(offers) > 1 or access in self.signals.marks)
        )

    def stops_at(self, access: PageAccess) -> bool:
        """Whether its text ends where one must do something to read on."""
        return any(
            _search_led(_stops(access), sentence) for sentence in _sentences(f"{self.text[-ENDING:]}\n{self.aside}")
        )

    def other_prose(self, access: PageAccess) -> int:
        """Characters of prose in blocks that hold no phrase."""
        pattern = _compile_phrases(access)
        return sum(size for words, size in self._blocks if size and pattern.search(words) is None)

    def is_notice(self, access: PageAccess) -> bool:
        """Whether it says little beside what the phrases are part of, and says those first or above all."""
        if self.prose >= NOTICE or not self.says(access) or self.other_prose(access) >= OTHER_PROSE:
            return False
        pattern = _compile_phrases(access)
        if any(map(pattern.search, self.opening)) or any(
            (found := pattern.search(part)) and _words_before(part, found) <= TITLE_LEAD
            for name in self.names
            for part in _sentences(name)
        ):
            return True
        sentences = [sentence for words, size in self._blocks if size for sentence in _sentences(words)]
        holding = sum(len(sentence) for sentence in sentences if pattern.search(sentence))
        return holding >= MOST_OF_IT * sum(map(len, sentences))


def _is_bot_check(page: _JudgedPage) -> bool:
    access = PageAccess.BOT_CHECK
    if page.is_notice(access) or (page.is_called(access) and page.prose < NOTICE):
        return True
    return access in page.signals.marks and page.prose < OTHER_PROSE and (page.says_aside(access) or page.prose < 60)


def _is_soft_not_found(page: _JudgedPage) -> bool:
    access = PageAccess.SOFT_NOT_FOUND
    return page.is_notice(access) or (page.is_called(access) and page.prose < NOTICE / 2)


def _is_paywall(page: _JudgedPage) -> bool:
    access = PageAccess.PAYWALL
    if page.signals.free is False and (page.prose < TEASER or page.ends_with(access)):
        return True
    if page.signals.free is True or page.prose >= TEASER:
        return False
    return page.ends_with(access) and (page.prose < UNMARKED_TEASER or access in page.signals.marks)


def _is_login(page: _JudgedPage) -> bool:
    access = PageAccess.LOGIN_REQUIRED
    if page.is_notice(access) or (page.prose < UNMARKED_TEASER and page.stops_at(access)):
        return True
    if page.signals.password and page.prose < OTHER_PROSE:
        return page.is_called(access) or page.says(access) or page.says_aside(access) or not page.prose
    return page.is_called(access) and page.prose < HARDLY_ANYTHING


def _is_consent_wall(page: _JudgedPage) -> bool:
    access = PageAccess.CONSENT_WALL
    if page.is_notice(access) or (page.signals.consent_host and page.prose < NOTICE):
        return True
    hints = page.is_called(access) or page.says_aside(access)
    return hints and page.prose < HARDLY_ANYTHING and PageAccess.SCRIPT_REQUIRED not in page.signals.marks


def _is_script_required(page: _JudgedPage) -> bool:
    access = PageAccess.SCRIPT_REQUIRED
    if page.is_notice(access):
        return True
    if page.prose >= HARDLY_ANYTHING or page.signals.scripts < LEAST_SCRIPTS:
        return False
    return access in page.signals.marks or page.says_aside(access) or _name(page.text) in _list_names(access)


RULES: Final[tuple[tuple[PageAccess, Callable[[_JudgedPage], bool]], ...]] = (
    (PageAccess.BOT_CHECK, _is_bot_check),
    (PageAccess.SOFT_NOT_FOUND, _is_soft_not_found),
    (PageAccess.PAYWALL, _is_paywall),
    (PageAccess.LOGIN_REQUIRED, _is_login),
    (PageAccess.CONSENT_WALL, _is_consent_wall),
    (PageAccess.SCRIPT_REQUIRED, _is_script_required),
)
"""The first that applies wins: a check of browsers asks for scripts too, and an offer asks readers to sign in."""


@cache
def _phrases(access: PageAccess) -> tuple[str, ...]:
    return phrases("said").get(access, ()) + phrases("weak").get(access, ())


@cache
def _compile_phrases(access: PageAccess) -> re.Pattern[str]:
    return _pattern(_phrases(access))


@cache
def _stops(access: PageAccess) -> re.Pattern[str]:
    return _pattern(phrases("stops")[access])


@cache
def _list_names(access: PageAccess) -> frozenset[str]:
    return frozenset(map(_name, phrases("called").get(access, ())))


def _holds(access: PageAccess, words: str) -> bool:
    """Whether a text holds a phrase. Most hold none, and a search for each costs less than one for all of them."""
    ascii_parts, parts = _parts(access)
    return any(map(words.__contains__, ascii_parts if words.isascii() else parts)) and bool(
        _compile_phrases(access).search(words)
    )


@cache
def _parts(access: PageAccess) -> tuple[list[str], list[str]]:
    """The longest part of each phrase: of those in ASCII, and of all."""
    parts = [max(phrase.split(" * "), key=len) for phrase in _phrases(access)]
    return list(filter(str.isascii, parts)), parts


def _search_led(pattern: re.Pattern[str], sentence: str) -> re.Match[str] | None:
    """A phrase with no more than a few words in front of it."""
    found = pattern.search(sentence)
    return found if found and _words_before(sentence, found) <= LEAD else None


def _words_before(sentence: str, found: re.Match[str]) -> int:
    return len(sentence[: found.start()].split())


def _sentences(words: str) -> list[str]:
    return [sentence for sentence in SENTENCE_END.split(words) if sentence]


def _pattern(phrases: tuple[str, ...]) -> re.Pattern[str]:
    longest_first = sorted(phrases, key=len, reverse=True)
    return re.compile("|".join(".{1,40}?".join(map(re.escape, phrase.split(" * "))) for phrase in longest_first))


def _ends_of(blocks: list[Block]) -> list[Block]:
    return blocks if len(blocks) <= FIRST_BLOCKS + LAST_BLOCKS else blocks[:FIRST_BLOCKS] + blocks[-LAST_BLOCKS:]


def _fold(words: str) -> str:
    unquoted = QUOTED.sub(" ", words) if QUOTE_SIGN.search(words) else words
    return unquoted.replace("’", "'").casefold()


def _name(words: str) -> str:
    return words.replace("’", "'").casefold().strip(ENDS)
