"""Citations: recognised in drafts, numbered by source in order of first appearance, and recognised in reports again.

A draft cites passages (`[ev-…]`), a report cites numbers (`[1]`) or links with the title of the source. Only names that
the writer was given count. What is in a quotation is a page's word: it stays a word, and never becomes a citation.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from activities.reporting.addresses import KnownAddresses
from activities.reporting.tree import (
    Blocks,
    CitationPlace,
    Inline,
    Run,
    Sentence,
    change_sentences,
    one_line,
    sentences,
)
from activities.reporting.words import all_signs
from contracts.evidence import Evidence, Source
from contracts.outcome import Citation
from contracts.request import CitationStyle
from contracts.texts import shorten

TITLE_CHARACTERS: Final = 80
"""Of a source in the words of a link that cites it."""
ITEM: Final = (
    r"\^?+(?:(?:ev|src)-[^\s,;()\\\[\]【】［］（）]{1,80}+|(?:f|gap|sq)-[0-9a-f]{1,80}+"
    r"|[0-9]{1,3}+(?![0-9])(?:\s?[-–]\s?[0-9]{1,3}+)?+)"
)
ITEMS: Final = rf"(?P<items>{ITEM}(?:(?:\s{{0,3}}+[,;&]|\s)\s{{0,3}}+(?:and\s{{1,3}}+)?+{ITEM})*+)"
GROUP: Final = re.compile(rf"[\[【［(（]{{1,2}}+\s{{0,3}}+{ITEMS}\s{{0,3}}+[\]】］)）]{{1,2}}+", re.IGNORECASE)
"""Names or numbers in any brackets: models vary the form. Every repetition is possessive: time is linear."""
OWN_GROUP: Final = re.compile(rf"(?<!\\)\[{{1,2}}+\s{{0,3}}+{ITEMS}\s{{0,3}}+\]{{1,2}}+", re.IGNORECASE)
"""Names or numbers in square brackets that nothing escapes: what a reader would take for a citation of ours."""
INLINE_QUOTE: Final = re.compile(r"“[^“”]*+”|\"[^\"\n]*+\"|«[^«»]*+»|„[^„“”]*+[“”]|「[^「」]*+」")

PROMPT_TEXT: Final = re.compile(
    r"\s?</?[a-z_]{4,20}-[0-9a-f]{10}\b[^<>]{0,80}>"
    r"|\s?[\[(]?(?<![\w/-])(?:src|ev|f|gap|sq)-[0-9a-f]{10}(?:[0-9a-f]{22})?(?![\w-])[\])]?"
)
"""Elements and ids of a prompt: no reader knows them."""


@dataclass
class DraftMarks:
    """The pass that recognises the citations of a draft.

    `passages` gives evidence ids by names in small letters. With `exact` only square brackets count: the text is a
    program's. Another name is taken out and noted; in a quotation it stays a word.
    """

    passages: Mapping[str, Sequence[str]]
    exact: bool = True
    unresolved: list[str] = field(default_factory=list)
    copied: bool = False
    """True if names or elements of the prompt were in the sentences."""

    def __call__(self, inlines: list[Inline], quoted: bool) -> list[Inline]:
        """Replace groups of names by citations; neighbouring citations are one."""
        found: list[Inline] = []
        for inline in inlines:
            if isinstance(inline, CitationPlace) or inline.code:
                found.append(inline)
            elif inline.link and re.fullmatch(rf"\[?{ITEMS}\]?", inline.text, re.IGNORECASE):
                # A citation is never the words of a link.
                found += self._read(Run(f"[{inline.text.strip('[]')}]"), quoted=quoted)
            else:
                found += self._read(inline, quoted=quoted)
        if not self.exact and not quoted:
            found = [self._without_prompt_text(each) if isinstance(each, Run) else each for each in found]
        return _merge_neighbours(found)

    def _without_prompt_text(self, run: Run) -> Run:
        """Take out what a writer copied from its prompt, and note it; a quotation has the words of a page."""
        quotes = [match.span() for match in INLINE_QUOTE.finditer(run.text)]

        def taken_out(match: re.Match[str]) -> str:
            if any(start <= match.start() < end for start, end in quotes):
                return match[0]
            self.unresolved.append(match[0].strip())
            self.copied = True
            return ""

        return replace(run, text=PROMPT_TEXT.sub(taken_out, run.text))

    def _read(self, run: Run, *, quoted: bool) -> list[Inline]:
        quotes = [match.span() for match in INLINE_QUOTE.finditer(run.text)]
        pieces: list[Inline] = []
        last = 0
        for match in (OWN_GROUP if self.exact else GROUP).finditer(run.text):
            names = [name.lstrip("^").lower() for name in re.findall(ITEM, match["items"], re.IGNORECASE)]
            known = [identity for name in names for identity in self.passages.get(name, ())]
            unknown = [name for name in names if name not in self.passages]
            quoted_here = quoted or any(start <= match.start() < end for start, end in quotes)
            if unknown and (quoted_here or match[0][0] in "(（"):
                continue
            self.unresolved += unknown
            before = run.text[last : match.start()]
            pieces.append(replace(run, text=before if known else before.rstrip(" ")))
            pieces += [CitationPlace(tuple(dict.fromkeys(known)))] if known else []
            last = match.end()
        return [*pieces, replace(run, text=run.text[last:])]


def read_stored_marks(inlines: list[Inline], quoted: bool) -> list[Inline]:  # noqa: ARG001 - a pass of `parse`
    """Recognise the citations of a stored draft: whatever is written like an evidence id in plain brackets."""
    words = (each.text for each in inlines if isinstance(each, Run) and not each.code)
    found = {key for text in words for key in re.findall(r"\[(ev-[0-9A-Za-z]{1,64})\]", text)}
    return DraftMarks({key.lower(): [key] for key in found})(inlines, quoted=True) if found else inlines


def is_sign(run: Run) -> bool:
    """Return whether words look like the sign of a verdict in a report."""
    return run.italic and run.text[:1] == "(" and run.text[1:-1] in all_signs()


def without_signs(inlines: list[Inline], quoted: bool) -> list[Inline]:  # noqa: ARG001 - a pass of `parse`
    """Drop what looks like the sign of a verdict: only the renderer gives them."""
    return [each for each in inlines if isinstance(each, CitationPlace) or not is_sign(each)]


def _merge_neighbours(inlines: Iterable[Inline]) -> list[Inline]:
    """Make one citation of several with at most a comma between them."""
    merged: list[Inline] = []
    for inline in inlines:
        if isinstance(inline, Run):
            merged.append(inline)
            continue
        match merged[-2:]:
            case [CitationPlace(), Run(text)] if text.strip(" ") in ("", ",", ";"):
                merged.pop()
        earlier: tuple[str, ...] = ()
        if merged and isinstance(before := merged[-1], CitationPlace):
            earlier = before.evidence_ids
            merged.pop()
        merged.append(CitationPlace(tuple(dict.fromkeys((*earlier, *inline.evidence_ids)))))
    return merged


def cited_evidence(blocks: Blocks) -> list[str]:
    """Return the evidence ids that a draft cites, in order of first appearance."""
    return list(dict.fromkeys(key for each in sentences(blocks) for mark in each.marks for key in mark.evidence_ids))


def without_markers(text: str) -> str:
    """Return a text as a reader would see it, without citations and other names of a prompt."""
    return PROMPT_TEXT.sub("", re.sub(r"[ \t]*+(?<!\\)\[ev-[0-9A-Za-z]{1,64}+\]", "", text))


def with_escaped_markers(text: str) -> str:
    """Return words of a page in which nothing can be taken for a citation of ours."""
    return OWN_GROUP.sub(lambda match: re.sub(r"[\[\]]", r"\\\g<0>", match[0]), text)


def number_citations(
    blocks: Blocks, evidence: Mapping[str, Evidence], given: Sequence[Citation], labels: Mapping[str, CitationPlace]
) -> tuple[Blocks, list[Citation]]:
    """Give each cited source its number, and each citation its label (`citation_labels`).

    Returns the tree and every number of the run: those given before, which never change, then the new ones.
    """
    numbers = {citation.source_id: citation.number for citation in given}

    def numbered(sentence: Sentence) -> Sentence:
        inlines: list[Inline] = []
        for inline in sentence.inlines:
            if isinstance(inline, Run):
                # A link of the writer that looks like a citation keeps its words.
                looks = any(inline.link == label.link and inline.text == label.label for label in labels.values())
                inlines.append(replace(inline, link=None) if inline.link and looks else inline)
                continue
            groups: dict[str, list[str]] = {}
            for identity in inline.evidence_ids:
                groups.setdefault(evidence[identity].source_id, []).append(identity)
            for source, identities in groups.items():
                number = numbers.setdefault(source, max(numbers.values(), default=0) + 1)
                mark = replace(labels.get(source, CitationPlace()), evidence_ids=tuple(identities), number=number)
                last = inlines[-1] if inlines else None
                if isinstance(last, CitationPlace) and (mark.link or last.link):
                    inlines.append(Run(" "))
                inlines.append(mark)
        return replace(sentence, inlines=tuple(inlines))

    changed = change_sentences(blocks, numbered)
    return changed, [Citation(number=number, source_id=source) for source, number in numbers.items()]


def citation_labels(
    style: CitationStyle, sources: Mapping[str, Source], registry: KnownAddresses
) -> dict[str, CitationPlace]:
    """Return how each source with an address on the web is cited in the style `link`: by its title."""
    if style is not CitationStyle.LINK:
        return {}
    addresses = {source.id: registry.link_of(source.url) for source in sources.values()}
    return {
        key: CitationPlace(label=label, link=link)
        for key, link in addresses.items()
        if link and (label := shorten(one_line(registry.strip(sources[key].title)), TITLE_CHARACTERS))
    }


@dataclass
class ReportMarks:
    """The pass that recognises the citations of a finished report and the signs of its verdicts.

    What looks like a citation and is none is noted.
    """

    labels: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """Numbers by the words and the address of the links that stand for them."""
    unknown: list[str] = field(default_factory=list)

    def __call__(self, inlines: list[Inline], quoted: bool) -> list[Inline]:  # noqa: ARG002 - a pass of `parse`
        """Replace numbers in brackets and labels by citations."""
        found: list[Inline] = []
        for inline in inlines:
            if isinstance(inline, CitationPlace) or inline.code:
                found.append(inline)
            elif is_sign(inline):
                found.append(CitationPlace(sign=inline.text[1:-1]))
            elif number := self.labels.get((inline.text, inline.link or "")):
                found.append(CitationPlace(number=number, label=inline.text, link=inline.link))
            else:
                found += self._read(inline)
        return found

    def _read(self, run: Run) -> list[Inline]:
        pieces: list[Inline] = []
        last = 0
        for match in OWN_GROUP.finditer(run.text):
            if re.fullmatch(r"\[[0-9]{1,3}\]", match[0]):
                pieces += [replace(run, text=run.text[last : match.start()]), CitationPlace(number=int(match["items"]))]
                last = match.end()
            else:
                self.unknown.append(match[0])
        return [*pieces, replace(run, text=run.text[last:])]
