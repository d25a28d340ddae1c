"""References in a text: the addresses that it may name, and its citations. Both are passes over a tree.

Links and text name only addresses of sources and of the question. An address of a source is written as registered,
never as a page or a model spelled it: differences in spelling (tracking parameters, sessions, fragments) can leak data.

A draft cites passages (`[ev-…]`), a report cites numbers (`[1]`) or links with the title of the source. Only names that
the writer was given count. A quotation is text of a page: it stays text, and never becomes a citation.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import unescape
from typing import Final

from activities.reporting.report_messages import all_signs
from activities.reporting.tree import (
    PLAIN_BRACKETS,
    Block,
    Blocks,
    CitationMark,
    Inline,
    Pass,
    Run,
    Sentence,
    change_sentences,
    one_line,
    sentences,
)
from contracts.addresses import canonical_url
from contracts.evidence import Evidence, Source
from contracts.names import OWN_SCHEMES
from contracts.outcome import Citation
from contracts.outlines import SOURCE_HEADING
from contracts.protected_sources import NAMED
from contracts.report import ReportSource
from contracts.texts import shorten
from contracts.vocabulary import SourceStatus

REMOVED: Final = "(link removed)"
MAIL: Final = r"(?<![\w.+-])[\w.+-]++@[\w-]++(?:\.[\w-]++)++"
ADDRESS: Final = re.compile(
    r"(?:(?:https?|ftp|wss?):(?=[/\\]*+[\w\[])|(?<![^\W_])(?:www\.|mailto:)"
    r"|(?<![:/\\])(?<![^\W_])[/\\]{2}(?=\[[\da-f:.]{2,45}+\]|[\w-]++\.\w)"
    rf"|(?<![^\W_])(?:corpus|mcp):[\w.-]++/)|(?P<mail>{MAIL})",
    re.IGNORECASE,
)
"""The beginning of an address, as a renderer or a browser may read it, or a whole mail address."""
MAY_HAVE_ADDRESS: Final = re.compile(r"[:/\\@&]|www\.", re.IGNORECASE)
"""Quick test that every text with an address passes, but few of the many ids and figures of a report."""
ADDRESS_TAIL: Final = re.compile(r"[^\s<>\"`|^{}()\[\]]*+")
WEB_ADDRESS: Final = re.compile(r"https?://[^/?#@\\\s]+(?:[/?#]|$)", re.IGNORECASE)
"""Without a user name: `https://good.test@evil.test/` looks like another host than it leads to."""
UNSAFE: Final = re.compile(r"[\s<>\\`\x00-\x1f]")
TITLE_CHARACTERS: Final = 80
"""Of the title of a source, in a link that cites it."""
ITEM: Final = (
    r"\^?+(?:(?:ev|src)-[^\s,;()\\\[\]【】［］（）]{1,80}+|(?:f|gap|sq)-[0-9a-f]{1,80}+"
    r"|[0-9]{1,3}+(?![0-9])(?:\s?[-–]\s?[0-9]{1,3}+)?+)"
)
ITEMS: Final = rf"(?P<items>{ITEM}(?:(?:\s{{0,3}}+[,;&]|\s)\s{{0,3}}+(?:and\s{{1,3}}+)?+{ITEM})*+)"
OPENING: Final = "[【［(（"
CLOSING: Final = "]】］)）"
GROUP: Final = re.compile(
    rf"[{re.escape(OPENING)}]{{1,2}}+\s{{0,3}}+{ITEMS}\s{{0,3}}+[{re.escape(CLOSING)}]{{1,2}}+", re.IGNORECASE
)
"""Names or numbers in any brackets, as models vary the form. Every repetition is possessive, so time is linear."""
ESCAPED_BRACKET: Final = re.compile(r"\\([\[\]])")
SQUARE_GROUP: Final = re.compile(rf"(?<!\\)\[{{1,2}}+\s{{0,3}}+{ITEMS}\s{{0,3}}+\]{{1,2}}+", re.IGNORECASE)
"""Names or numbers in unescaped square brackets, which a reader would take for a citation of ours."""
STORED_MARKER: Final = re.compile(r"[ \t]*+(?<!\\)\[ev-[0-9A-Za-z]{1,64}+\]")
STRAY_BLANK: Final = re.compile(r"[ \t]++(?=[,.](?:\s|\Z))")
INLINE_QUOTE: Final = re.compile(r"“[^“”]*+”|\"[^\"\n]*+\"|«[^«»]*+»|„[^„“”]*+[“”]|「[^「」]*+」")

DASHES: Final = "-\u2010\u2011\u2012\u2013"
"""Hyphens as writers set them: ASCII's, Unicode's, the one that does not break, figure dash and en dash."""
PROMPT_ID: Final = rf"(?:(?i:src|ev|gap|sq|step|node|leaf|need)|f|c)[{DASHES}](?i:[0-9a-f]{{10}}(?:[0-9a-f]{{22}})?)"
PROMPT_TEXT: Final = re.compile(
    r"[<＜]\s?/?\s?[a-z_]{4,20}-[0-9a-f]{10}\b[^<>＜＞]{0,80}[>＞]"
    r"|(?<![\w/-])[a-z]{2,10}_[a-z_]{2,10}-[0-9a-f]{10}(?![\w-])"
    rf"|(?<![\w/-]){PROMPT_ID}(?![\w-])"
)
"""Elements and ids of a prompt, which mean nothing to a reader."""
CODED_IDS: Final = re.compile(rf"(`{{1,3}}+)\s?+(\[?{PROMPT_ID}(?:\s?[,;]\s?{PROMPT_ID}){{0,20}}+\]?)\s?+\1(?!`)")
"""Ids of a prompt that a writer set as code."""
TYPESET_ID: Final = re.compile(rf"(?<![\w/-])(?i:ev|src)[{DASHES[1:]}](?i:[0-9a-f]{{10}})(?![\w-])")
"""A name of a citation whose hyphen a writer made a typographic one."""
OPEN_GROUP: Final = re.compile(rf"[\[(](?:[\s,;&`]|and\s|{PROMPT_ID})*+$")
"""A bracket in which there are only names so far."""
GROUP_CHARACTERS: Final = 200
REMOVED_NAMES: Final = re.compile(
    r"[ \t]?[\[(]\s?\0(?:\s?[,;]?\s?(?:and )?\0)*\s?[\])]|[ \t]?\0(?:\s?[,;]\s?(?:and )?\0|\s?\0)*"
)
"""Places of removed names, with the brackets around them and the commas between them."""


def with_plain_names(markdown: str, names: Collection[str]) -> str:
    """Return a writer's text whose names of citations are neither code nor have another hyphen.

    `names` has the names that can be cited, in lower case; others stay as they are written.
    """

    def with_hyphen(match: re.Match[str]) -> str:
        name = re.sub(f"[{DASHES}]", "-", match[0]).lower()
        return name if name in names else match[0]

    def as_citation(match: re.Match[str]) -> str:
        listed = [one.lower() for one in re.findall(PROMPT_ID, match[2])]
        if not all(name in names for name in listed):
            return match[0]
        in_group = OPEN_GROUP.search(match.string, max(0, match.start() - GROUP_CHARACTERS), match.start())
        text = ", ".join(listed)
        return text if in_group else f"[{text}]"

    return CODED_IDS.sub(as_citation, TYPESET_ID.sub(with_hyphen, markdown))


# --- addresses -------------------------------------------------------------------------------------------------------
def addresses_of(sources: Iterable[Source | ReportSource]) -> list[str]:
    """Return the addresses that a report may name: of sources that were read, tried, or named by the request.

    Other hits are untrusted addresses, to which a page could send a reader.
    """
    known = [source for source in sources if source.status != SourceStatus.NOT_FETCHED or source.provider == NAMED]
    return [address for source in known for address in (source.url, source.address) if address]


@dataclass(frozen=True)
class KnownAddresses:
    """The addresses that a report may name: those of its sources, as links, and those of the question, as text."""

    sources: Mapping[str, str]
    """Registered addresses by the form in which addresses are compared."""
    question: Mapping[str, str] = field(default_factory=dict)
    mail: frozenset[str] = frozenset()
    """Mail addresses in quotes: text of the source, shown as code because many renderers link them."""

    @classmethod
    def of(cls, urls: Iterable[str], question: str = "", quotes: Iterable[str] = ()) -> "KnownAddresses":
        """Make the registry of a run; `quotes` are the texts of its evidence."""
        mail = (text for quote in quotes if "@" in quote for text in find_addresses(quote) if re.fullmatch(MAIL, text))
        named = {_comparable(address): address for address in find_addresses(question)}
        return cls({_comparable(url): url for url in urls}, named, frozenset(mail))

    def link_of(self, url: str) -> str | None:
        """Return a source's registered address for any spelling of it, if a browser can open it."""
        known = ""
        if WEB_ADDRESS.match(url):
            known = self.sources.get(_comparable(url), "")
        if WEB_ADDRESS.match(known) and not UNSAFE.search(known) and known == one_line(known):
            return known
        return None

    def text_of(self, url: str) -> str | None:
        """Return an address as a text may name it; None for a foreign one."""
        if url.startswith(OWN_SCHEMES):
            # Paths can contain blanks, at which the address in the text ends.
            if not any(known.startswith(url) for known in (*self.sources, *self.question)):
                return None
            return url
        if url in self.mail:
            return url
        return self.sources.get(_comparable(url)) or self.question.get(_comparable(url))

    def strip(self, text: str) -> str:
        """Return a text without foreign addresses."""
        if not MAY_HAVE_ADDRESS.search(text):
            return text
        return "".join(piece if replacement is None else replacement for piece, replacement in self._pieces(text, []))

    def filter(self, foreign: list[str]) -> Pass:
        """Make the pass that removes foreign links and addresses, and adds them to `foreign`; must be the last pass."""

        def filtered(run: Inline) -> Iterator[Inline]:
            if not isinstance(run, Run):
                yield run
                return
            link = None if run.link is None else self.link_of(run.link)
            if run.link and link is None and not run.link.startswith("#") and not run.link.endswith(run.text):
                foreign.append(run.link)
            run = replace(run, text=run.text.translate(PLAIN_BRACKETS), link=link)
            for piece, replacement in self._pieces(run.text, foreign):
                if replacement is None or run.code or link:
                    yield run.with_text(piece if replacement is None else replacement)
                else:
                    yield replace(run, text=replacement, link=self.link_of(replacement), code=replacement in self.mail)

        return lambda inlines, _: [part for inline in inlines for part in filtered(inline)]

    def _pieces(self, text: str, foreign: list[str]) -> Iterator[tuple[str, str | None]]:
        """Split a text into other text and addresses, each address with its replacement."""
        # Some readers decode entities.
        if "&" in text and find_addresses(decoded := unescape(text)) != find_addresses(text):
            text = decoded
        last = 0
        for start, end in _address_spans(text):
            replacement = self.text_of(text[start:end])
            if replacement is None:
                foreign.append(text[start:end])
            yield text[last:start], None
            yield text[start:end], REMOVED if replacement is None else replacement
            last = end
        yield text[last:], None


def find_addresses(text: str) -> list[str]:
    """Return every address written in a text, in order."""
    return [text[start:end] for start, end in _address_spans(text)]


def _comparable(url: str) -> str:
    """Return the form in which addresses are compared; ones that cannot be parsed or name a user are unchanged."""
    if url.startswith(OWN_SCHEMES):
        return url
    full = url if re.match(r"(?:https?|ftp|wss?):", url, re.IGNORECASE) else "http://" + url
    if not WEB_ADDRESS.match(full):
        return url
    try:
        return canonical_url(full)
    except ValueError:
        return url


def _address_spans(text: str) -> Iterator[tuple[int, int]]:
    """Find addresses, searching again from the end of each, where the next one may begin."""
    offset = 0
    while match := ADDRESS.search(text, offset):
        start = match.start()
        if match["mail"]:
            end = match.end()
        else:
            end = _end_of_address(text, start, match.end())
        offset = max(end, start + 1)
        if match["mail"] or end > match.end():
            yield start, end


def _end_of_address(text: str, start: int, end: int) -> int:
    """Return the end of an address: before the first bracket that it does not open, without final punctuation."""
    depth = {")": 0, "]": 0}
    while tail := ADDRESS_TAIL.match(text, end):
        end = tail.end()
        sign = text[end : end + 1]
        if sign in ("(", "["):
            depth[")" if sign == "(" else "]"] += 1
        elif depth.get(sign):
            depth[sign] -= 1
        else:
            break
        end += 1
    while end > start and text[end - 1] in ".,;:!?'*_~":
        end -= 1
    return end


# --- citations -------------------------------------------------------------------------------------------------------
@dataclass
class DraftMarks:
    """The pass that recognises the citations of a draft.

    `passages` has evidence ids by lower-case names. With `exact`, only square brackets count: the writer was a program.
    Unknown names are removed and noted; in a quotation they stay text, unless they are names or elements of the prompt
    that no cited page has.
    """

    passages: Mapping[str, Sequence[str]]
    exact: bool = True
    quotes: Sequence[str] = ()
    """The words of passages, in which something that looks like a name of the prompt is text."""
    unresolved: list[str] = field(default_factory=list)
    copied: list[str] = field(default_factory=list)
    """Names and elements of the prompt that were removed."""

    def __call__(self, inlines: list[Inline], quoted: bool) -> list[Inline]:
        """Replace groups of names by citations, and merge neighbouring citations."""
        changed: list[Inline] = []
        for inline in inlines:
            if isinstance(inline, CitationMark) or inline.code:
                changed.append(inline)
            elif inline.link and re.fullmatch(rf"\[?{ITEMS}\]?", inline.text, re.IGNORECASE):
                # A citation is never the text of a link.
                changed += self._read(Run(f"[{inline.text.strip('[]')}]"), quoted=quoted)
            else:
                changed += self._read(inline, quoted=quoted)
        if not self.exact:
            changed = [self._without_prompt_text(inline) if isinstance(inline, Run) else inline for inline in changed]
        merged = _merge_neighbours(changed)
        return merged if quoted else _without_stray_blanks(merged)

    def _without_prompt_text(self, run: Run) -> Run:
        """Remove and note names that a writer copied from its prompt."""
        shown = without_prompt_text(run.text, self.quotes, self.copied)
        return run.with_text(shown)

    def _read(self, run: Run, *, quoted: bool) -> list[Inline]:
        quotes = _quoted_offsets(run.text)
        pieces: list[Inline] = []
        last = 0
        for match in (SQUARE_GROUP if self.exact else GROUP).finditer(run.text):
            names = [name.lstrip("^").lower() for name in re.findall(ITEM, match["items"], re.IGNORECASE)]
            known = [identity for name in names for identity in self.passages.get(name, ())]
            unknown = [name for name in names if name not in self.passages]
            if unknown and (quoted or match.start() in quotes or match[0][0] in "(（"):
                continue
            self.unresolved += unknown
            # A bracket without its other half belongs to the sentence: "(by default 3 [ev-…])".
            opened = len(match[0]) - len(match[0].lstrip(OPENING))
            closed = len(match[0]) - len(match[0].rstrip(CLOSING))
            preceding = run.text[last : match.start() + max(0, opened - closed)]
            pieces.append(run.with_text(preceding if known else preceding.rstrip(" ")))
            if known:
                pieces += [CitationMark(tuple(dict.fromkeys(known)))]
            last = match.end() - max(0, closed - opened)
        return [*pieces, run.with_text(run.text[last:])]


def _without_stray_blanks(inlines: Sequence[Inline]) -> list[Inline]:
    """Remove blanks before commas and full stops, which removed markers leave: no language has any there."""
    return [
        inline.with_text(STRAY_BLANK.sub("", inline.text)) if isinstance(inline, Run) and not inline.code else inline
        for inline in inlines
    ]


def _quoted_offsets(text: str) -> set[int]:
    return {offset for match in INLINE_QUOTE.finditer(text) for offset in range(*match.span())}


def read_stored_marks(inlines: list[Inline], _quoted: bool) -> list[Inline]:
    """Recognise the citations of a stored draft: every evidence id in plain brackets."""
    texts = (run.text for run in inlines if isinstance(run, Run) and not run.code)
    keys = {key for text in texts for key in re.findall(r"\[(ev-[0-9A-Za-z]{1,64})\]", text)}
    if keys:
        return DraftMarks({key.lower(): [key] for key in keys})(inlines, quoted=True)
    return inlines


def is_sign(run: Run) -> bool:
    """Return whether a run has the form of a verdict's sign in a report."""
    return run.italic and run.text[:1] == "(" and run.text[1:-1] in all_signs()


def without_signs(inlines: list[Inline], _quoted: bool) -> list[Inline]:
    """Drop signs of verdicts, which only the renderer may add."""
    return [inline for inline in inlines if isinstance(inline, CitationMark) or not is_sign(inline)]


def _merge_neighbours(inlines: Iterable[Inline]) -> list[Inline]:
    """Merge citations with at most a comma or a semicolon between them."""
    merged: list[Inline] = []
    for inline in inlines:
        match inline, merged[-2:]:
            case CitationMark(), [CitationMark(), Run(text)] if text.strip(" ") in ("", ",", ";"):
                merged.pop()
        if isinstance(inline, CitationMark) and merged and isinstance(previous := merged[-1], CitationMark):
            merged[-1] = CitationMark(tuple(dict.fromkeys((*previous.evidence_ids, *inline.evidence_ids))))
        else:
            merged.append(inline)
    return merged


def cited_evidence(blocks: Iterable[Block]) -> list[str]:
    """Return the evidence ids that a draft cites, in order of first appearance."""
    return list(
        dict.fromkeys(key for sentence in sentences(blocks) for mark in sentence.marks for key in mark.evidence_ids)
    )


def without_source_lists(blocks: Blocks) -> Blocks:
    """Return the blocks without sections that list sources; a report has its own list."""
    remaining: list[Block] = []
    skipped = 0
    """Level of the heading of the list; 0 outside of one."""
    for block in blocks:
        if block.kind == "heading" and (not skipped or block.level <= skipped):
            skipped = block.level if block.level > 1 and SOURCE_HEADING.fullmatch(block.words) else 0
        if not skipped:
            remaining.append(block)
    return tuple(remaining)


def without_prompt_text(text: str, quotes: Iterable[str] = (), removed: list[str] | None = None) -> str:
    """Return a text without names and elements of a prompt, and without the brackets and commas around them.

    What one of the `quotes` has stays. Removed names are added to `removed`.
    """
    names = dict.fromkeys(PROMPT_TEXT.findall(text))
    foreign = [name for name in names if not any(name in quote for quote in quotes)]
    if not foreign:
        return text
    if removed is not None:
        removed += foreign
    return REMOVED_NAMES.sub("", PROMPT_TEXT.sub(lambda match: "\0" if match[0] in foreign else match[0], text))


def without_markers(text: str) -> str:
    """Return a text as shown to a reader, without citations and other names of a prompt."""
    return without_prompt_text(without_citations(text))


def without_citations(text: str) -> str:
    """Return a stored text without the markers of passages, and without the blanks before them."""
    return STORED_MARKER.sub("", text)


def with_escaped_markers(text: str) -> str:
    """Escape brackets in text of a page that could be taken for a citation of ours."""
    return SQUARE_GROUP.sub(lambda match: re.sub(r"[\[\]]", r"\\\g<0>", match[0]), text)


def without_escaped_markers(text: str) -> str:
    """Return text that a model copied from a prompt with the brackets that `with_escaped_markers` escaped there."""
    return ESCAPED_BRACKET.sub(r"\1", text)


def number_citations(
    blocks: Blocks, evidence: Mapping[str, Evidence], assigned: Sequence[Citation], labels: Mapping[str, CitationMark]
) -> tuple[Blocks, list[Citation]]:
    """Assign each cited source its number, and each citation its label (`citation_labels`).

    Return the tree and every number of the run: those assigned before, which never change, then the new ones.
    """
    numbers = {citation.source_id: citation.number for citation in assigned}

    def numbered(sentence: Sentence) -> Sentence:
        inlines: list[Inline] = []
        for inline in sentence.inlines:
            if isinstance(inline, Run):
                # A link by the writer that looks like a citation becomes plain text.
                looks = any(inline.link == label.link and inline.text == label.label for label in labels.values())
                inlines.append(replace(inline, link=None) if inline.link and looks else inline)
                continue
            groups: dict[str, list[str]] = {}
            for identity in inline.evidence_ids:
                groups.setdefault(evidence[identity].source_id, []).append(identity)
            for source, identities in groups.items():
                number = numbers.setdefault(source, max(numbers.values(), default=0) + 1)
                mark = replace(labels.get(source, CitationMark()), evidence_ids=tuple(identities), number=number)
                last = inlines[-1] if inlines else None
                if isinstance(last, CitationMark) and (mark.link or last.link):
                    inlines.append(Run(" "))
                inlines.append(mark)
        return replace(sentence, inlines=tuple(inlines))

    changed = change_sentences(blocks, numbered)
    return changed, [Citation(number=number, source_id=source) for source, number in numbers.items()]


def citation_labels(style: str, sources: Mapping[str, Source], registry: KnownAddresses) -> dict[str, CitationMark]:
    """Return, for the style `link`, the citation of each source with a web address: its title as a link."""
    if style != "link":
        return {}
    addresses = {source.id: registry.link_of(source.shown_url) for source in sources.values()}
    return {
        key: CitationMark(label=label, link=link)
        for key, link in addresses.items()
        if link and (label := shorten(one_line(registry.strip(sources[key].title)), TITLE_CHARACTERS))
    }


@dataclass(frozen=True)
class ReportMarks:
    """The pass that recognises the citations of a finished report and the signs of its verdicts."""

    labels: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """Numbers by text and address of the links that represent them."""

    def __call__(self, inlines: list[Inline], quoted: bool) -> list[Inline]:  # noqa: ARG002 - a pass of `parse`
        """Replace numbers in brackets and labels by citations."""
        changed: list[Inline] = []
        for inline in inlines:
            if isinstance(inline, CitationMark) or inline.code:
                changed.append(inline)
            elif is_sign(inline):
                changed.append(CitationMark(sign=inline.text[1:-1]))
            elif number := self.labels.get((inline.text, inline.link or "")):
                changed.append(CitationMark(number=number, label=inline.text, link=inline.link))
            else:
                pieces = re.split(r"(?<!\\)\[([0-9]{1,3})\]", inline.text)
                for index, piece in enumerate(pieces):
                    changed.append(CitationMark(number=int(piece)) if index % 2 else inline.with_text(piece))
        return changed
