"""No address outside the source registry: links lose their target, bare addresses are taken out, both are reported."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from markdown_it import MarkdownIt
from markdown_it.common.utils import normalizeReference
from markdown_it.token import Token

from activities.reporting.layout import Layout, layout
from contracts.identity import canonical_url
from contracts.names import CORPUS_SCHEME

REMOVED = "(link removed)"
ADDRESS = re.compile(r"(?:(?:https?|ftp)://|\bwww\.|\bcorpus:[\w.-]+/)[^\s<>\"`|\\^{}]+", re.IGNORECASE)
SCHEME = re.compile(r"^(?:https?|ftp)://", re.IGNORECASE)
WEB_ADDRESS = re.compile(r"https?://[^/?#@\\\s]+(?:[/?#]|$)", re.IGNORECASE)
"""Without a user name: `https://good.test@evil.test/` reads as another host than it leads to."""
LABEL = r"[^\[\]]{0,500}(?:\[[^\[\]]{0,200}\][^\[\]]{0,200}){0,4}"
TARGET = r"(?:<[^<>\n]{0,4000}>|[^\s()<>]{0,4000}(?:\([^\s()]{0,1000}\)[^\s()]{0,1000}){0,5})"
TITLE = r"(?:\s{1,9}(?:\"[^\"\n]{0,500}\"|'[^'\n]{0,500}'|\([^()\n]{0,500}\)))?"
LINK = re.compile(rf"!?\[({LABEL})\]\(\s{{0,9}}({TARGET}){TITLE}\s{{0,9}}\)")
REFERENCE = re.compile(r"!?\[([^\[\]]{1,500})\]\[([^\[\]]{0,200})\]")
AUTOLINK = re.compile(r"<([A-Za-z][A-Za-z0-9+.-]{1,31}:[^\s<>]{0,4000}|[\w.+-]{1,200}@[\w.-]{1,200})>")
DEFINITION = re.compile(
    r"^[ ]{0,3}(?:>[ ]?){0,9}[ ]{0,3}\[([^\[\]]{1,200})\]:[ \t]*\n?[ \t]*(<[^<>\n]*>|[^\s<]\S*)"
    r"(?:[ \t]*\n?[ \t]+(?:\"[^\"\n]*\"|'[^'\n]*'|\([^()\n]*\)))?[ \t]*$",
    re.MULTILINE,
)
MARKER_TEXT = re.compile(r"\s*(?:\^?\d{1,3}|(?:ev|src)-\w+)(?:\s*[,;]\s*(?:\^?\d{1,3}|(?:ev|src)-\w+))*\s*")
TAG = re.compile(r"(?<!\\)((?:\\\\)*)<(?=[A-Za-z/!?])")


@dataclass(frozen=True)
class Registry:
    """The addresses that a report may name: those of its sources, as links, and those of the question, as text."""

    sources: frozenset[str]
    question: frozenset[str] = frozenset()

    @classmethod
    def of(cls, urls: Iterable[str], question: str = "") -> "Registry":
        """The registry of a run."""
        asked = (_identity(found) for found in addresses(question))
        return cls(frozenset(_identity(url) for url in urls), frozenset(asked))

    def links(self, url: str) -> bool:
        """Whether this address is one of a source that can be opened in a browser."""
        return bool(WEB_ADDRESS.match(url)) and _identity(url) in self.sources

    def names(self, url: str) -> bool:
        """Whether a text may name this address; one of a corpus may stop at a blank, as paths can hold blanks."""
        if url.startswith(CORPUS_SCHEME):
            return any(known.startswith(url) for known in self.sources | self.question)
        return _identity(url) in self.sources or _identity(url) in self.question


def _identity(url: str) -> str:
    """The form that addresses are compared in; an address that cannot be parsed stands for itself alone."""
    if url.startswith(CORPUS_SCHEME):
        return url
    full = url if SCHEME.match(url) else "http://" + url
    try:
        return canonical_url(full)
    except ValueError:
        return url


def _trimmed(found: str) -> str:
    """An address found in prose, up to the first bracket that nothing in it opens, without punctuation at its end."""
    depth = {")": 0, "]": 0}
    for place, character in enumerate(found):
        if character in "([":
            depth[")" if character == "(" else "]"] += 1
        elif character in ")]":
            depth[character] -= 1
            if depth[character] < 0:
                return _trimmed(found[:place])
    return found.rstrip(".,;:!?'*_~")


def _found(text: str) -> Iterator[tuple[int, int]]:
    """Where addresses stand; what follows one is searched again, for it may hold the next."""
    place = 0
    while match := ADDRESS.search(text, place):
        address = _trimmed(match.group(0))
        place = match.start() + max(len(address), 1)
        if not address.endswith("://"):
            yield match.start(), match.start() + len(address)


def addresses(text: str) -> list[str]:
    """Every address written in a text, in order."""
    return [text[start:end] for start, end in _found(text)]


def strip_addresses(text: str, registry: Registry, foreign: list[str]) -> str:
    """The text without foreign addresses; each one taken out is appended to `foreign`."""
    edits = [(start, end, REMOVED) for start, end in _found(text) if not registry.names(text[start:end])]
    foreign.extend(text[start:end] for start, end, _ in edits)
    return _replace(text, edits)


def _replace(text: str, edits: list[tuple[int, int, str]]) -> str:
    pieces, last = [], 0
    for start, end, replacement in edits:
        pieces += [text[last:start], replacement]
        last = end
    return "".join(pieces) + text[last:]


def _drop_definitions(page: Layout, registry: Registry, foreign: list[str]) -> str:
    """Reference definitions go, and what refers to them becomes its words."""
    if not page.references:
        return page.text
    edits, masked = [], page.masked
    for match in DEFINITION.finditer(masked):
        if normalizeReference(match.group(1)) in page.references and not MARKER_TEXT.fullmatch(match.group(1)):
            address = match.group(2).strip("<>")
            if not registry.links(address):
                foreign.append(address)
            edits.append((match.start(), match.end(), ""))
    text = _replace(page.text, edits)
    if layout(text).references:
        text = text.replace("]:", "]\\:")
    dropped = set(page.references)

    def words(match: re.Match[str]) -> str:
        label = match.group(2) or match.group(1)
        return match.group(1) if normalizeReference(label) in dropped else match.group(0)

    return REFERENCE.sub(words, text)


def _drop_links(text: str, registry: Registry, foreign: list[str]) -> str:
    """Links outside the registry become their words; a marker is never the words of a link."""
    masked, edits = layout(text).masked, []
    for match in LINK.finditer(masked):
        target = text[match.start(2) : match.end(2)].strip("<>")
        words = text[match.start(1) : match.end(1)]
        if MARKER_TEXT.fullmatch(words):
            edits.append((match.start(), match.end(), f"[{words}]"))
        elif match.group(0).startswith("!") or not registry.links(target):
            edits.append((match.start(), match.end(), words))
        else:
            continue
        if not registry.links(target) and not target.startswith("#"):
            foreign.append(target)
    for match in AUTOLINK.finditer(masked):
        if not registry.links(match.group(1)) and not any(s <= match.start() < e for s, e, _ in edits):
            foreign.append(match.group(1))
            edits.append((match.start(), match.end(), REMOVED))
    return _replace(text, sorted(edits))


def _targets(token: Token) -> list[str]:
    pairs = {"link_open": "href", "image": "src"}
    return [str(child.attrs.get(pairs[child.type], "")) for child in token.children or [] if child.type in pairs]


class _EveryLink(MarkdownIt):
    """A parser that also sees the links which ours refuses by their scheme: others may not refuse them."""

    def validateLink(self, url: str) -> bool:  # noqa: N802 - the parser's own name
        return bool(url)


EVERY_LINK = _EveryLink("commonmark", {"html": False, "linkify": False}).enable("table")


def link_targets(markdown: str) -> list[str]:
    """The target of every link that a Markdown parser sees in a text, in order."""
    return [target for token in EVERY_LINK.parse(markdown) for target in _targets(token)]


def _disarm(text: str, registry: Registry, foreign: list[str]) -> str:
    """The last word is the parser's: where it still sees a foreign link, the block's link syntax is escaped."""
    lines = text.split("\n")
    for token in EVERY_LINK.parse(text):
        bad = [target for target in _targets(token) if not registry.links(target)] if token.type == "inline" else []
        if bad and token.map:
            foreign.extend(bad)
            for number in range(*token.map):
                lines[number] = lines[number].replace("](", "]\\(").replace("][", "]\\[").replace("<", "&lt;")
    return "\n".join(lines)


def _escape_tags(text: str) -> str:
    """Raw HTML is shown, never interpreted, whatever reads the Markdown."""
    masked = layout(text).masked
    edits = [(match.end() - 1, match.end(), "\\<") for match in TAG.finditer(masked)
             if not AUTOLINK.match(masked, match.end() - 1)]  # fmt: skip
    return _replace(text, edits)


def clean_links(text: str, registry: Registry) -> tuple[str, list[str]]:
    """A cleaned Markdown text without foreign addresses, and the distinct addresses taken out, in order."""
    foreign: list[str] = []
    text = _drop_definitions(layout(text), registry, foreign)
    for _ in range(4):
        before, text = text, _drop_links(text, registry, foreign)
        if text == before:
            break
    text = strip_addresses(text, registry, foreign)
    text = _escape_tags(text)
    text = _disarm(text, registry, foreign)
    return text, list(dict.fromkeys(foreign))
