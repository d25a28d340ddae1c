"""Addresses in a report: links and text name those of its sources and of the question, and no others.

An address of a source is written as the registry has it, never as a page or a model spelled it: what two spellings
differ in (tracking parameters, sessions, fragments) can carry data out.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from html import unescape
from typing import Final

from activities.reporting.tree import PLAIN_BRACKETS, Inline, Pass, Run, one_line
from contracts.addresses import canonical_url
from contracts.evidence import Source
from contracts.names import CORPUS_SCHEME
from contracts.protected_sources import NAMED
from contracts.report import ReportSource
from contracts.vocabulary import SourceStatus

REMOVED: Final = "(link removed)"
MAIL: Final = r"(?<![\w.+-])[\w.+-]++@[\w-]++(?:\.[\w-]++)++"
ADDRESS: Final = re.compile(
    r"(?:(?:https?|ftp|wss?):(?=[/\\]*+[\w\[])|(?<![^\W_])(?:www\.|mailto:)"
    r"|(?<![:/\\])(?<![^\W_])[/\\]{2}(?=\[[\da-f:.]{2,45}+\]|[\w-]++\.\w)"
    rf"|(?<![^\W_])corpus:[\w.-]++/)|(?P<mail>{MAIL})",
    re.IGNORECASE,
)
"""The beginning of an address, as a renderer or a browser may read it, and mail addresses as a whole."""
REST: Final = re.compile(r"[^\s<>\"`|^{}()\[\]]*+")
WEB_ADDRESS: Final = re.compile(r"https?://[^/?#@\\\s]+(?:[/?#]|$)", re.IGNORECASE)
"""Without a user name: `https://good.test@evil.test/` reads as another host than it leads to."""
UNSAFE: Final = re.compile(r"[\s<>\\`\x00-\x1f]")


def addresses_of(sources: Iterable[Source | ReportSource]) -> list[str]:
    """Return the addresses that a report may name: of sources that were read, tried, or named by the request.

    A hit that was not chosen is a stranger's address: a page could send a reader there.
    """
    return [each.url for each in sources if each.status != SourceStatus.NOT_FETCHED or each.provider == NAMED]


@dataclass(frozen=True)
class KnownAddresses:
    """The addresses that a report may name: those of its sources, as links, and those of the question, as text."""

    sources: Mapping[str, str]
    """Each address as it is registered, by the form that addresses are compared in."""
    question: Mapping[str, str] = field(default_factory=dict)
    mail: frozenset[str] = frozenset()
    """Mail addresses in quotes: words of the source, shown as code, for many renderers make links of them."""

    @classmethod
    def of(cls, urls: Iterable[str], question: str = "", quotes: Iterable[str] = ()) -> "KnownAddresses":
        """Make the registry of a run; `quotes` are the words of its evidence."""
        mail = (text for quote in quotes if "@" in quote for text in find_addresses(quote) if re.fullmatch(MAIL, text))
        asked = {_comparable(found): found for found in find_addresses(question)}
        return cls({_comparable(url): url for url in urls}, asked, frozenset(mail))

    def link_of(self, url: str) -> str | None:
        """Return a source's own address for any spelling of it, if a browser can open it."""
        own = self.sources.get(_comparable(url), "") if WEB_ADDRESS.match(url) else ""
        return own if WEB_ADDRESS.match(own) and not UNSAFE.search(own) and own == one_line(own) else None

    def text_of(self, url: str) -> str | None:
        """Return how a text may name an address; None for a foreign one."""
        if url.startswith(CORPUS_SCHEME):
            # Paths can contain blanks, and the address in the text ends there.
            return url if any(known.startswith(url) for known in (*self.sources, *self.question)) else None
        if url in self.mail:
            return url
        return self.sources.get(_comparable(url)) or self.question.get(_comparable(url))

    def strip(self, text: str) -> str:
        """Return a text without foreign addresses."""
        return "".join(piece if own is None else own for piece, own in self._pieces(text, []))

    def filter(self, foreign: list[str]) -> Pass:
        """Make the pass that takes out foreign links and addresses, which it adds to `foreign`; the last pass."""

        def filtered(run: Inline) -> Iterator[Inline]:
            if not isinstance(run, Run):
                yield run
                return
            link = None if run.link is None else self.link_of(run.link)
            if run.link and link is None and not run.link.startswith("#") and not run.link.endswith(run.text):
                foreign.append(run.link)
            run = replace(run, text=run.text.translate(PLAIN_BRACKETS), link=link)
            for piece, own in self._pieces(run.text, foreign):
                if own is None or run.code or link:
                    yield replace(run, text=piece if own is None else own)
                else:
                    yield replace(run, text=own, link=self.link_of(own), code=own in self.mail)

        return lambda inlines, _: [each for inline in inlines for each in filtered(inline)]

    def _pieces(self, text: str, foreign: list[str]) -> Iterator[tuple[str, str | None]]:
        """Split a text into words and addresses, each address with what takes its place."""
        # Some reader may take entities for what they stand for.
        if "&" in text and find_addresses(shown := unescape(text)) != find_addresses(text):
            text = shown
        last = 0
        for start, end in _address_spans(text):
            own = self.text_of(text[start:end])
            if own is None:
                foreign.append(text[start:end])
            yield text[last:start], None
            yield text[start:end], REMOVED if own is None else own
            last = end
        yield text[last:], None


def find_addresses(text: str) -> list[str]:
    """Return every address written in a text, in order."""
    return [text[start:end] for start, end in _address_spans(text)]


def _comparable(url: str) -> str:
    """Return the form that addresses are compared in; one that cannot be parsed, or names a user, is its own."""
    if url.startswith(CORPUS_SCHEME):
        return url
    full = url if re.match(r"(?:https?|ftp|wss?):", url, re.IGNORECASE) else "http://" + url
    try:
        return canonical_url(full) if WEB_ADDRESS.match(full) else url
    except ValueError:
        return url


def _address_spans(text: str) -> Iterator[tuple[int, int]]:
    """Find addresses; what follows one is searched again, for it may contain the next."""
    place = 0
    while match := ADDRESS.search(text, place):
        start = match.start()
        end = match.end() if match["mail"] else _end_of_address(text, start, match.end())
        place = max(end, start + 1)
        if match["mail"] or end > match.end():
            yield start, end


def _end_of_address(text: str, start: int, place: int) -> int:
    """Return where an address ends: before the first bracket that is not opened in it, without punctuation."""
    depth = {")": 0, "]": 0}
    while rest := REST.match(text, place):
        place = rest.end()
        sign = text[place : place + 1]
        if sign in ("(", "["):
            depth[")" if sign == "(" else "]"] += 1
        elif depth.get(sign):
            depth[sign] -= 1
        else:
            break
        place += 1
    while place > start and text[place - 1] in ".,;:!?'*_~":
        place -= 1
    return place
