"""The report as Markdown: the text with numbers, its sources, its method and its limits."""

from dataclasses import dataclass

from activities.reporting.inputs import CitedSource, ReportInputs
from activities.reporting.markdown import Written, write
from activities.reporting.method import Fact, describe_checking, pages_of, quality_words, report_facts
from activities.reporting.tree import Block, Blocks, Inline, Run, heading, paragraph
from contracts.vocabulary import Outcome

HEADINGS_SHOWN = 3
"""Headings of cited passages in the line of their source."""


@dataclass(frozen=True)
class RenderedText:
    """The finished text and its parts."""

    written: Written
    body: Blocks
    """The text between title and sources."""
    notice: tuple[str, str] | None
    """The remark under the title of a report that is not complete: a label and a sentence."""
    checking: str
    """Extent of the check of its citations."""
    facts: list[Fact]


def compose_text(inputs: ReportInputs) -> RenderedText:
    """Put the text together."""
    say = inputs.words
    body = inputs.body or _without_draft(inputs)
    notice, facts = _notice(inputs), report_facts(inputs)
    checking = describe_checking(inputs.claims, inputs.resolved.verify, say)
    top = [heading(1, inputs.title)]
    if notice:
        see = say("see_method", method=say("method"))
        top.append(Block("quote", parts=((paragraph(Run(f"{notice[0]}:", bold=True), f" {notice[1]} {see}"),),)))
    tail = []
    if inputs.cited:
        tail.append(heading(2, say("sources")))
        tail.append(Block("list", parts=tuple((_source_line(inputs, item),) for item in inputs.cited)))
    tail += [heading(2, say("method")), paragraph(checking)]
    tail.append(Block("list", parts=tuple(_fact_item(inputs, fact) for fact in facts)))
    return RenderedText(write([*top, *body, *tail]), body, notice, checking, facts)


def _notice(inputs: ReportInputs) -> tuple[str, str] | None:
    checked, say = inputs.state.verification.summary, inputs.words
    marked = say("not_borne_out") if checked.strict and checked.warning else ""
    if inputs.ending.outcome is not Outcome.COMPLETED:
        return inputs.outcome(), f"{inputs.why()}. {marked}".rstrip()
    return (say("not_verified"), marked) if marked else None


def _without_draft(inputs: ReportInputs) -> Blocks:
    """Return what takes the place of the text if none was written."""
    say = inputs.words
    lines = [say("no_draft"), say("no_draft_why", reason=inputs.why())]
    if inputs.passages:
        read = len({passage.evidence.source_id for passage in inputs.passages.values()})
        found = say.count("passage", len(inputs.passages))
        lines.append(say("no_draft_found", sources=say.count("source", read), passages=found))
    return (paragraph(" ".join(lines)),)


def _source_line(inputs: ReportInputs, item: CitedSource) -> Block:
    source, say = item.source, inputs.words
    found = dict.fromkeys(passage.evidence.heading for passage in item.passages)
    headings = [inputs.show(each) for each in found if each and each.casefold() != source.title.casefold()]
    more = len(headings) - HEADINGS_SHOWN
    section = "; ".join(headings[:HEADINGS_SHOWN] + [say("and_more", count=more)] * (more > 0))
    pages = pages_of(source, (passage.evidence.page for passage in item.passages), say)
    place = f" § {section}" * bool(section) + f" · {pages}" * bool(pages)
    quality = inputs.show(quality_words(source.quality, source.quality_reason, say))
    read = say("read_on", day=say.day(source.retrieved_at))
    words = f"{inputs.show(source.title) or say('untitled')}{place} · {quality} · {read} · "
    link = inputs.registry.link_of(source.url)
    address = Run(link or source.url, link=link, code=link is None)
    label: list[Inline | str] = [] if item.mark.link else [item.mark, " "]
    return paragraph(*label, words, address)


def _fact_item(inputs: ReportInputs, fact: Fact) -> Blocks:
    inlines: list[Inline | str] = [Run(f"{fact.label}:", bold=True), f" {inputs.show(fact.value)}"]
    inlines += [" ", Run(fact.command, code=True)] if fact.command else []
    items = tuple((paragraph(inputs.show(item)),) for item in fact.items)
    return (paragraph(*inlines), Block("list", parts=items)) if items else (paragraph(*inlines),)
