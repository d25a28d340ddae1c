"""No address outside the source registry: links lose their target, bare addresses are taken out, both are reported.

An address of a source is written as the registry has it, never as a page or a model spelled it: what an identity leaves
out (tracking parameters, sessions, fragments) can carry data out.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from html import unescape

from markdown_it import MarkdownIt
from markdown_it.common.utils import normalizeReference
from markdown_it.token import Token

from activities.reporting.markdown_layout import FILE, HOST_DOT, MAIL, MARKDOWN_SIGN, MASK, layout
from contracts.addresses import canonical_url
from contracts.names import CORPUS_SCHEME

REMOVED = "(link removed)"
ADDRESS = re.compile(
    r"(?:(?:https?|ftp|wss?):(?=[/\\]*+[\w\[])|(?<![^\W_])(?:www\.|mailto:)|(?<![:/\\])(?<![^\W_])[/\\]{2}(?=\[[\da-f:.]{2,45}+\]|[\w-]++\.\w)"
    rf"|(?<![^\W_])corpus:[\w.-]++/)|(?P<mail>{MAIL.pattern})",
    re.IGNORECASE,
)
"""What a renderer or a browser may take for the beginning of an address, and mail addresses as a whole."""
REST = re.compile(r"[^\s<>\"`|^{}()\[\]]*+")
SCHEME = re.compile(r"(?:https?|ftp|wss?):", re.IGNORECASE)
WEB_ADDRESS = re.compile(r"https?://[^/?#@\\\s]+(?:[/?#]|$)", re.IGNORECASE)
"""Without a user name: `https://good.test@evil.test/` reads as another host than it leads to."""
UNSAFE = re.compile(r"[\s<>\\`\x00-\x1f]")
READ_AS = re.compile(r"\\[!-/:-@\[-`{-~]|&(?:#[xX][0-9a-fA-F]{1,6}|#[0-9]{1,7}|[A-Za-z][A-Za-z0-9]{1,31});")
"""What Markdown shows as something else: an escaped sign, an entity."""
BRACKET = re.compile(r"\\.|!?\[|\]|\n[ \t>]*+(?=\n)|<(?=[A-Za-z/!?])", re.DOTALL)
AUTOLINK = re.compile(r"<([A-Za-z][A-Za-z0-9+.-]{1,31}:[^\s<>]*+|[\w.+-]++@[\w.-]++)>")
TITLE = r"\"[^\"\n]*+\"|'[^'\n]*+'|\([^()\n]*+\)"
TARGET = re.compile(rf"\(\s*+(?:<([^<>\n]*+)>|([^\s()<>]*+(?:\([^\s()]*+\)[^\s()]*+)*+))(?:\s++(?:{TITLE})|\s*+)\s*+\)")
DEFINITION = re.compile(
    r":[ \t]*+\n?[ \t]*+(?:<([^<>\n]*+)>|([^\s<]\S*+))"
    rf"(?:(?:[ \t]++|[ \t]*+\n[ \t]*+)(?:{TITLE}))?+[ \t]*+(?=\n|\Z)"
)
MARKER_TEXT = re.compile(
    r"\s{0,3}+(?:\^?\d{1,3}|(?:ev|src)-\w{1,80}+)(?:\s?[,;]\s?(?:\^?\d{1,3}|(?:ev|src)-\w{1,80}+))*+\s{0,3}+"
)
LINK_SIGNS = re.compile(r"\\.|[\[\]()<>&:@/]", re.DOTALL)


@dataclass(frozen=True)
class Registry:
    """The addresses that a report may name: those of its sources, as links, and those of the question, as text."""

    sources: Mapping[str, str]
    """Each address as it is registered, by the form that addresses are compared in."""
    question: Mapping[str, str] = field(default_factory=dict)
    mail: frozenset[str] = frozenset()
    """Mail addresses that stand in quotes: they are words of the source, and never a link."""

    @classmethod
    def of(cls, urls: Iterable[str], question: str = "", quotes: Iterable[str] = ()) -> "Registry":
        """The registry of a run; `quotes` are the words of its evidence."""
        known = {_identity(url): url for url in urls}
        mail = frozenset(found for quote in quotes if "@" in quote for found in addresses(quote) if is_mail(found))
        return cls(known, {_identity(found): found for found in addresses(question)}, mail)

    def registered(self, url: str) -> str | None:
        """A source's own address for any spelling of it, if it can be opened in a browser."""
        own = self.sources.get(_identity(url), "") if WEB_ADDRESS.match(url) else ""
        return own if WEB_ADDRESS.match(own) and not UNSAFE.search(own) else None

    def links(self, url: str) -> bool:
        """Whether this address is one of a source that can be opened in a browser."""
        return self.registered(url) is not None

    def named(self, url: str) -> str | None:
        """How a text may name this address; one of a corpus may stop at a blank, as paths can hold blanks."""
        if url.startswith(CORPUS_SCHEME):
            return url if any(known.startswith(url) for known in (*self.sources, *self.question)) else None
        if url in self.mail:
            return url
        return self.sources.get(_identity(url)) or self.question.get(_identity(url))

    def names(self, url: str) -> bool:
        """Whether a text may name this address in this spelling."""
        return self.named(url) == url


def is_mail(address: str) -> bool:
    """Whether an address is one of mail, without a scheme."""
    return MAIL.fullmatch(address) is not None


def _identity(url: str) -> str:
    """The form that addresses are compared in; one that cannot be parsed, or names a user, stands for itself alone."""
    if url.startswith(CORPUS_SCHEME):
        return url
    full = url if SCHEME.match(url) else "http://" + url
    try:
        return canonical_url(full) if WEB_ADDRESS.match(full) else url
    except ValueError:
        return url


def _end(text: str, start: int, place: int) -> int:
    """Where an address in prose ends: before the first bracket that nothing in it opens, without punctuation."""
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


def _find_addresses(text: str) -> Iterator[tuple[int, int]]:
    """Where addresses stand; what follows one is searched again, for it may hold the next."""
    place = 0
    while match := ADDRESS.search(text, place):
        start = match.start()
        end = match.end() if match["mail"] else _end(text, start, match.end())
        place = max(end, start + 1)
        if match["mail"] or end > match.end():
            yield start, end


def addresses(text: str) -> list[str]:
    """Every address written in a text, in order."""
    return [text[start:end] for start, end in _find_addresses(text)]


def strip_addresses(text: str, registry: Registry, foreign: list[str]) -> str:
    """The text without foreign addresses, and with those of sources as they are registered.

    Each foreign one is appended to `foreign`.
    """
    edits = []
    for start, end in _find_addresses(text):
        own = registry.named(text[start:end])
        if own is None:
            foreign.append(text[start:end])
        edits.append((start, end, REMOVED if own is None else own))
    return _replace(text, edits)


def readable(text: str) -> tuple[str, list[int]]:
    """A Markdown text with escapes and entities as a reader sees them, and where each character stands in the source.

    The last number is the length of the source. Code is read like all else: some reader may not see that it is code.
    """
    pieces: list[str] = []
    starts: list[int] = []
    last = 0
    for match in READ_AS.finditer(text):
        shown = match[0][1:] if match[0][0] == "\\" else unescape(match[0])
        pieces += [text[last : match.start()], shown]
        starts += [*range(last, match.start()), *([match.start()] * len(shown))]
        last = match.end()
    return "".join(pieces) + text[last:], [*starts, *range(last, len(text) + 1)]


def addresses_in_markdown(text: str) -> list[str]:
    """Every address that a reader of a Markdown text sees, in order."""
    return addresses(readable(text)[0])


def _replace(text: str, edits: list[tuple[int, int, str]]) -> str:
    pieces, last = [], 0
    for start, end, replacement in sorted(edits):
        pieces += [text[last:start], replacement]
        last = end
    return "".join(pieces) + text[last:]


def strip_addresses_shown(text: str, registry: Registry) -> str:
    """A text that may be read as Markdown or HTML without foreign addresses, escapes and entities seen through."""
    return _replace(text, _address_edits(*readable(text), registry, []))


def _address_edits(shown: str, starts: list[int], registry: Registry, foreign: list[str]) -> list[tuple[int, int, str]]:
    edits = []
    for start, end in _find_addresses(shown):
        own = registry.named(shown[start:end])
        if own is None:
            foreign.append(shown[start:end])
        if own != shown[start:end]:
            edits.append((starts[start], starts[end], REMOVED if own is None else own))
    return edits


def _strip_from_markdown(text: str, registry: Registry, foreign: list[str]) -> str:
    """The same as `strip_addresses` for what a reader sees of a Markdown text."""
    shown, starts = readable(text)
    masked = layout(text).masked
    edits = [
        (start, end, new if masked[start] == MASK or new == REMOVED else MARKDOWN_SIGN.sub(r"\\\g<0>", new))
        for start, end, new in _address_edits(shown, starts, registry, foreign)
    ]
    # Many renderers make a link of a mail address; of one that is code none does.
    edits += [
        (starts[start], starts[end], f"`{shown[start:end]}`")
        for start, end in _find_addresses(shown)
        if shown[start:end] in registry.mail and masked[starts[start]] != MASK
    ]
    return _replace(text, edits)


def _with_plain_hosts(text: str) -> str:
    """The dots of hosts without a scheme, which stay words, escaped: otherwise some renderers make links of them."""
    shown, starts = readable(text)
    masked, edits, last = layout(text).masked, [], 0
    for start, end in [*_find_addresses(shown), (len(shown), len(shown))]:
        places = (starts[dot.start()] for dot in HOST_DOT.finditer(shown, last, start))
        files = [(starts[file.start()], starts[file.end()]) for file in FILE.finditer(shown, last, start)]
        files = [(first, end) for first, end in files if MASK not in masked[first:end] and "\\" not in text[first:end]]
        edits += [(first, end, f"`{text[first:end]}`") for first, end in files]
        covered = {place for first, end in files for place in range(first, end)}
        edits += [(place, place + 1, "\\.") for place in places if masked[place] == "." and place not in covered]
        last = end
    return _replace(text, edits)


def _read_target(target: str) -> str:
    """What a link target says."""
    return READ_AS.sub(lambda match: match[0][1:] if match[0][0] == "\\" else unescape(match[0]), target)


def write_target(url: str) -> str:
    """An address as the target of a link."""
    plain = READ_AS.sub(lambda match: "&amp;" + match[0][1:], url)
    return f"({plain})" if TARGET.fullmatch(f"({plain})") else f"(<{plain}>)"


class _Links:
    """One pass over the brackets of a text: what each of its links becomes."""

    def __init__(self, text: str, registry: Registry, foreign: list[str]) -> None:
        page = layout(text)
        self._text, self._masked, self._references = text, page.masked, page.references
        self._registry, self._foreign = registry, foreign
        self._edits: list[tuple[int, int, str]] = []
        self._closed: tuple[re.Match[str], re.Match[str]] | None = None

    def clean(self) -> str:
        """The text with links to sources alone, without definitions, and with raw HTML as words."""
        opened: list[re.Match[str]] = []
        place = 0
        for sign in BRACKET.finditer(self._masked):
            if sign.start() < place or sign[0][0] == "\\":
                continue
            if sign[0][0] == "\n":
                opened.clear()
            elif sign[0] == "<":
                place = self._angle(sign.start())
            elif sign[0] != "]":
                opened.append(sign)
            elif opened:
                place = self._close(opened.pop(), sign)
        text = _replace(self._text, self._edits)
        return text.replace("]:", "]\\:") if layout(text).references else text

    def _angle(self, place: int) -> int:
        found = AUTOLINK.match(self._masked, place)
        if found is None:
            self._edits.append((place, place + 1, "\\<"))
            return place + 1
        if found[1] in self._registry.mail:
            self._edits.append((place, found.end(), f"`{found[1]}`"))
            return found.end()
        own = self._registry.registered(found[1])
        if own is None:
            self._foreign.append(found[1])
        self._edits.append((place, found.end(), REMOVED if own is None else f"<{own}>"))
        return found.end()

    def _close(self, opening: re.Match[str], closing: re.Match[str]) -> int:
        before, self._closed = self._closed, (opening, closing)
        if target := TARGET.match(self._masked, closing.end()):
            self._closed = None
            return self._target(opening, closing, target)
        label = self._text[opening.end() : closing.start()]
        behind_words = before is not None and before[1].end() == opening.start()
        if before is not None and behind_words:
            label = label or self._text[before[0].end() : before[1].start()]
        if normalizeReference(label) not in self._references:
            return closing.end()
        marker = MARKER_TEXT.fullmatch(label) is not None
        definition = DEFINITION.match(self._masked, closing.end())
        if definition and self._begins_line(opening.start()):
            url = _read_target(definition[1] if definition[1] is not None else definition[2])
            if not marker or SCHEME.match(url):
                if not self._registry.links(url):
                    self._foreign.append(url)
                self._edits.append((opening.start(), definition.end(), ""))
                return definition.end()
        if marker:
            return closing.end()
        if before is not None and behind_words:
            self._edits += [(*before[0].span(), ""), (before[1].start(), closing.end(), "")]
            self._closed = None
        return closing.end()

    def _target(self, opening: re.Match[str], closing: re.Match[str], target: re.Match[str]) -> int:
        url = _read_target(target[1] if target[1] is not None else target[2])
        own = self._registry.registered(url)
        image = opening[0] == "!["
        if MARKER_TEXT.fullmatch(self._text, opening.end(), closing.start()):
            # A marker is never the words of a link.
            self._edits += [(opening.start(), opening.end(), "["), (closing.end(), target.end(), "")]
        elif image or own is None:
            self._edits += [(*opening.span(), ""), (closing.start(), target.end(), "")]
        elif target[0] not in (f"({own})", f"(<{own}>)"):
            self._edits.append((closing.end(), target.end(), write_target(own)))
        if own is None and not url.startswith("#"):
            self._foreign.append(url)
        return target.end()

    def _begins_line(self, place: int) -> bool:
        while place and self._text[place - 1] in " \t>":
            place -= 1
        return not place or self._text[place - 1] == "\n"


def _targets(token: Token) -> list[str]:
    pairs = {"link_open": "href", "image": "src"}
    return [str(child.attrs.get(pairs[child.type], "")) for child in token.children or [] if child.type in pairs]


class _EveryLink(MarkdownIt):
    """A parser that also sees the links which ours refuses by their scheme: another renderer may not refuse them."""

    def validateLink(self, url: str) -> bool:  # noqa: N802 - the parser's own name
        return bool(url)


EVERY_LINK = _EveryLink("commonmark", {"html": False, "linkify": False}).enable("table")


def link_targets(markdown: str) -> list[str]:
    """The target of every link that a Markdown parser sees in a text, in order."""
    return [target for token in EVERY_LINK.parse(markdown) for target in _targets(token)]


def is_registered(target: str, registry: Registry) -> bool:
    """Whether a link target that a parser reports is a source's address in the spelling of the registry."""
    own = registry.registered(target)
    return own is not None and target in (own, EVERY_LINK.normalizeLink(own))


def _disarm(text: str, registry: Registry, foreign: list[str]) -> str:
    """The last word is the parser's: where it still sees a foreign link, no sign of the block makes a link."""

    def escaped(match: re.Match[str]) -> str:
        return match[0] if match[0][0] == "\\" else "\\" + match[0]

    for last in (False, True):
        lines, bad = text.split("\n"), False
        for token in EVERY_LINK.parse(text):
            targets = [target for target in _targets(token) if not is_registered(target, registry)]
            if not targets or not token.map:
                continue
            bad = True
            foreign.extend(targets)
            for number in range(*token.map):
                rest = lines[number].lstrip(" \t>")
                prefix = lines[number][: len(lines[number]) - len(rest)]
                lines[number] = prefix + (REMOVED if last else LINK_SIGNS.sub(escaped, rest))
        if not bad:
            break
        text = "\n".join(lines)
    return text


def clean_links(text: str, registry: Registry) -> tuple[str, list[str]]:
    """A cleaned Markdown text without foreign addresses, and the distinct addresses taken out, in order."""
    foreign: list[str] = []
    text = _Links(text, registry, foreign).clean()
    text = _with_plain_hosts(_strip_from_markdown(text, registry, foreign))
    text = _disarm(text, registry, foreign)
    return text, list(dict.fromkeys(foreign))
