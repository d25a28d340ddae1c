"""A report as one tree with everything that a renderer needs: built once, and each renderer is one walk over it.

All texts from outside are in a form that is safe to print, and all sentences of the product in the report's language.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from activities.reporting.claims import Claim
from activities.reporting.inputs import CitedSource, QuotedPassage, ReportInputs
from activities.reporting.report_text import (
    Fact,
    describe_checking,
    describe_quality,
    end_reason,
    notice_of,
    open_sections,
    pages_of,
    report_facts,
)
from activities.reporting.tree import (
    Block,
    Blocks,
    CitationMark,
    Inline,
    Run,
    Sentence,
    WrittenText,
    heading,
    paragraph,
    sentences,
    write,
)
from contracts.evidence import CheckMethod, Source
from contracts.report import VERDICT_SIGNS
from contracts.texts import shorten
from providers.tokens.surroundings import text_around

CONTEXT_CHARACTERS: Final = 220
"""Most characters shown before and after a quote."""
STATEMENT_CHARACTERS: Final = 240
MAX_HEADINGS: Final = 3
CODE: Final = re.compile(r"`([^`\n]+)`")
"""Headings of a source that its line in the list of sources names."""


@dataclass(frozen=True)
class ListedSource:
    """A source as reports show it."""

    name: str
    """Its title, or a statement that it has none."""
    address: str
    link: str | None
    """The address of its link; None for one that is not linked."""
    about: list[str]
    """Author, date, quality with its reason, and day of reading, as far as they are known."""
    quality: str
    read: str
    extent: str = ""
    """That only its abstract was read, if so."""
    mark: CitationMark | None = None
    """Its citation; None if it is not cited."""
    location: str = ""
    """Headings and pages of its cited passages."""
    passages: list["ListedPassage"] = field(default_factory=list)
    """Its cited passages."""


@dataclass(frozen=True)
class ListedPassage:
    """A passage with its place, the text around it, and what was found out about the statements that cite it."""

    evidence_id: str
    name: str
    """Of its source."""
    place: list[str]
    """Its heading and pages, as far as they are known."""
    read: str
    before: str
    quote: str
    after: str
    checks: list["ListedCheck"] = field(default_factory=list)
    """Of the statements that cite it first."""
    anchors: list[str] = field(default_factory=list)
    """Of its citations in the text."""


@dataclass(frozen=True)
class ListedCheck:
    """The verdict on a statement, with its further passages."""

    index: int
    verdict: str
    title: str
    """Sign and name of the verdict."""
    method: str
    statement: str
    """Empty for one that is word for word its passage."""
    reason: str
    is_cited: bool
    proofs: list[ListedPassage]


@dataclass(frozen=True)
class ReportTree:
    """A whole report."""

    inputs: ReportInputs
    body: Blocks
    """The text between title and sources."""
    notice: tuple[str, str] | None
    """Label and sentence of the notice under the title, for an incomplete or unchecked report."""
    sections: list[Fact]
    """The sections after the text that its strategy declares: a heading, and either a list or a sentence."""
    sources: list[ListedSource]
    """Cited sources by number."""
    also_read: list[ListedSource]
    loose: list[ListedCheck]
    """Statements that cite nothing."""
    checking: str
    """A sentence on how far its citations were checked."""
    facts: list[Fact]
    chapters: Mapping[Block, str]
    """Anchor of each heading of the second level."""
    checks: Mapping[Sentence, Claim]
    """Verdict on the statement of a sentence."""
    anchors: Mapping[tuple[Sentence, int], str]
    """Anchor of each citation, by its sentence and its place in it."""


def build_report(inputs: ReportInputs) -> ReportTree:
    """Build the tree of a report."""
    say = inputs.messages
    body = inputs.body or (paragraph(f"{say('no_draft')} {say('no_draft_why', reason=end_reason(inputs))}"),)
    checks: dict[Sentence, Claim] = {}
    by_passage: defaultdict[str, list[ListedCheck]] = defaultdict(list)
    for claim in inputs.claims:
        checks |= dict.fromkeys(claim.sentences, claim)
        by_passage[next(iter(claim.evidence_ids), "")].append(_check(inputs, claim))
    anchors: dict[tuple[Sentence, int], str] = {}
    by_evidence: defaultdict[str, list[str]] = defaultdict(list)
    for sentence in sentences(body):
        for index, inline in enumerate(sentence.inlines):
            if isinstance(inline, CitationMark) and not inline.sign:
                anchor = anchors[sentence, index] = f"cite-{len(anchors) + 1}"
                for key in inline.evidence_ids:
                    by_evidence[key].append(anchor)
    headings = [block for block in body if block.kind == "heading" and block.level == 2]
    return ReportTree(
        inputs=inputs,
        body=body,
        notice=notice_of(inputs),
        sections=_shown(inputs, open_sections(inputs)),
        sources=[_cited_source(inputs, item, by_passage, by_evidence) for item in inputs.cited],
        also_read=[_source(inputs, source) for source in inputs.also_read],
        loose=by_passage[""],
        checking=describe_checking(inputs.claims, say),
        facts=_shown(inputs, report_facts(inputs)),
        chapters={block: f"section-{number}" for number, block in enumerate(headings, start=1)},
        checks=checks,
        anchors=anchors,
    )


def _shown(inputs: ReportInputs, facts: Iterable[Fact]) -> list[Fact]:
    return [
        replace(fact, value=inputs.show(fact.value), items=[inputs.show(item) for item in fact.items]) for fact in facts
    ]


def _source(inputs: ReportInputs, source: Source) -> ListedSource:
    say = inputs.messages
    written_by = inputs.show(", ".join(source.authors) or source.publisher or "")
    published = ""
    if source.published_at:
        published = say("published_on", day=say.day(source.published_at))
    quality = inputs.show(describe_quality(source, say))
    read = say("read_on", day=say.day(source.retrieved_at))
    extent = say("abstract_only") if source.abstract_only else ""
    return ListedSource(
        name=inputs.show(source.title) or say("untitled"),
        address=source.shown_url,
        link=inputs.registry.link_of(source.shown_url),
        about=[part for part in (extent, written_by, published, quality, read) if part],
        extent=extent,
        quality=quality,
        read=read,
    )


def _cited_source(
    inputs: ReportInputs,
    item: CitedSource,
    checks: Mapping[str, list[ListedCheck]],
    anchors: Mapping[str, list[str]],
) -> ListedSource:
    passages = [
        replace(
            _passage(inputs, passage),
            checks=checks.get(passage.evidence.id, []),
            anchors=anchors.get(passage.evidence.id, []),
        )
        for passage in item.passages
    ]
    return replace(_source(inputs, item.source), mark=item.mark, location=_location(inputs, item), passages=passages)


def _location(inputs: ReportInputs, item: CitedSource) -> str:
    """Return the headings and pages of the cited passages of a source, as its line in the list of sources has them."""
    source = item.source
    say = inputs.messages
    unique = dict.fromkeys(passage.evidence.heading for passage in item.passages)
    headings = [inputs.show(name) for name in unique if name and name.casefold() != source.title.casefold()]
    more = len(headings) - MAX_HEADINGS
    section = "; ".join(headings[:MAX_HEADINGS] + [say("and_more", count=more)] * (more > 0))
    pages = pages_of(source, (passage.evidence.page for passage in item.passages), say)
    location = f" § {section}" * bool(section) + f" · {pages}" * bool(pages)
    if any(passage.evidence.uncertain for passage in item.passages):
        location += f" · {say('reading_uncertain')}"
    return location


def _passage(inputs: ReportInputs, passage: QuotedPassage) -> ListedPassage:
    evidence = passage.evidence
    say = inputs.messages
    source = inputs.state.evidence.sources[evidence.source_id]
    place = []
    if evidence.heading and evidence.heading.casefold() != source.title.casefold():
        place.append(f"§ {inputs.show(evidence.heading)}")
    if pages := pages_of(source, [evidence.page], say):
        place.append(pages)
    before, after = text_around(passage.text, evidence.start, evidence.end, CONTEXT_CHARACTERS)
    return ListedPassage(
        evidence_id=evidence.id,
        name=inputs.show(source.title) or say("untitled"),
        place=place,
        read=say("read_on", day=say.day(source.retrieved_at)),
        before=before,
        quote=passage.quote,
        after=after,
    )


def _check(inputs: ReportInputs, claim: Claim) -> ListedCheck:
    judged = claim.judged
    say = inputs.messages
    is_verbatim = judged.method == CheckMethod.VERBATIM
    return ListedCheck(
        index=claim.index,
        verdict=judged.verdict.value,
        title=f"{VERDICT_SIGNS[judged.verdict]} {say.name('judged', judged.verdict)}",
        method=say.name("method", judged.method),
        statement="" if is_verbatim else shorten(claim.text, STATEMENT_CHARACTERS),
        reason=say.translated(judged.reason),
        is_cited=bool(claim.evidence_ids),
        proofs=[_passage(inputs, inputs.passages[key]) for key in list(claim.evidence_ids)[1:]],
    )


def split_code(heading: str) -> list[tuple[str, bool]]:
    """Return the parts of headings of stored texts, which are Markdown, each with whether it is code."""
    return [(part, bool(number % 2)) for number, part in enumerate(CODE.split(heading)) if part]


# --- report.md -------------------------------------------------------------------------------------------------------
def write_markdown(report: ReportTree) -> WrittenText:
    """Write a report as Markdown."""
    say = report.inputs.messages
    blocks = [heading(1, report.inputs.title)]
    if report.notice:
        label, sentence = report.notice
        see = say("see_method", method=say("method"))
        blocks.append(Block("quote", parts=((paragraph(Run(f"{label}:", bold=True), f" {sentence} {see}"),),)))
    blocks += report.body
    for section in report.sections:
        blocks.append(heading(2, section.label))
        if section.value:
            blocks.append(paragraph(section.value))
        blocks += _list(section.items)
    if report.sources:
        blocks.append(heading(2, say("sources")))
        blocks.append(Block("list", parts=tuple((_source_line(source),) for source in report.sources)))
    blocks += [heading(2, say("method")), paragraph(report.checking)]
    blocks.append(Block("list", parts=tuple(_fact_item(fact) for fact in report.facts)))
    return write(blocks)


def _source_line(source: ListedSource) -> Block:
    extent = f" · {source.extent}" if source.extent else ""
    description = f"{extent} · {source.quality} · {source.read} · "
    address = Run(source.link or source.address, link=source.link, code=source.link is None)
    label: list[Inline | str] = [] if source.mark is None or source.mark.link else [source.mark, " "]
    location = [Run(part, code=is_code) for part, is_code in split_code(source.location)]
    return paragraph(*label, source.name, *location, description, address)


def _fact_item(fact: Fact) -> Blocks:
    inlines: list[Inline | str] = [Run(f"{fact.label}:", bold=True), f" {fact.value}"]
    if fact.command:
        inlines += [" ", Run(fact.command, code=True)]
    return (paragraph(*inlines), *_list(fact.items))


def _list(items: Sequence[str]) -> Blocks:
    if not items:
        return ()
    return (Block("list", parts=tuple((paragraph(item),) for item in items)),)
