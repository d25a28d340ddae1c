"""The report as Markdown: the text with numbers, its sources, its method and its limits."""

from collections.abc import Iterable
from dataclasses import dataclass

from activities.reporting.citations import CitationMark
from activities.reporting.judged_claims import CitedWords, PlacedClaim, judge_claims
from activities.reporting.markdown_layout import code_span
from activities.reporting.method_section import Fact, method_facts
from activities.reporting.report_inputs import CitedSource, ReportInputs, title_line
from activities.reporting.report_words import ReportWords
from activities.reporting.verification import describe_checking, verification_facts
from contracts.evidence import Source
from contracts.vocabulary import Outcome, Quality

HEADINGS_SHOWN = 3
PAGES_SHOWN = 8


@dataclass(frozen=True)
class ReportText:
    """The finished Markdown and where its numbers stand."""

    markdown: str
    marks: list[CitationMark]
    """Offsets in `markdown`."""
    title: str
    """Markdown of the title, without its sign."""
    notice: str
    """Markdown of the remark under the title, or empty."""
    body: str
    """The text between title and sources."""
    body_start: int
    """Where it begins in `markdown`."""
    body_marks: list[CitationMark]
    """Offsets in `body`."""
    claims: list[PlacedClaim]
    """Offsets in `markdown`."""


def headings_of(item: CitedSource) -> list[str]:
    """The headings under which the cited passages of a source stand, in order; its own title is none."""
    found = dict.fromkeys(passage.evidence.heading for passage in item.passages)
    return [heading for heading in found if heading and heading.casefold() != item.source.title.casefold()]


def pages_of(source: Source, pages: Iterable[int | None], say: ReportWords) -> str:
    """The pages of passages as a citation names them (`p. 12`, `slides 3, 7`); empty where there are none."""
    numbers = sorted({page for page in pages if page is not None})
    if not numbers:
        return ""
    kind = "slide" if source.raw is not None and source.raw.media_type.endswith("presentation") else "page"
    shown = ", ".join(map(str, numbers[:PAGES_SHOWN])) + (", …" if len(numbers) > PAGES_SHOWN else "")
    return f"{say[kind + ('_many' if len(numbers) > 1 else '_one')]} {shown}"


def quality_words(quality: Quality, reason: str, say: ReportWords) -> str:
    """A source's quality with the reason for it."""
    known = say[f"quality_{quality.value}"]
    return f"{known} ({say.told(reason)})" if reason else known


def _address(matter: ReportInputs, url: str) -> str:
    safe = all(character.isprintable() and character not in "<>\\ " for character in url)
    return f"<{url}>" if safe and matter.registry.links(url) else code_span(url)


def _source_line(matter: ReportInputs, item: CitedSource) -> str:
    source, say = item.source, matter.words
    headings = [matter.escape(heading) for heading in headings_of(item)]
    more = len(headings) - HEADINGS_SHOWN
    section = "; ".join([*headings[:HEADINGS_SHOWN], *([say.say("and_more", count=more)] if more > 0 else [])])
    quality = matter.escape(quality_words(source.quality, source.quality_reason, say))
    name = matter.escape(source.title) or say["untitled"]
    pages = pages_of(source, (passage.evidence.page for passage in item.passages), say)
    place = (f" § {section}" if section else "") + (f" · {pages}" if pages else "")
    read = say.say("read_on", day=say.day(source.retrieved_at))
    label = "" if item.label.markdown.endswith(")") else f"{item.label.markdown} "
    return f"- {label}{name}{place} · {quality} · {read} · {_address(matter, source.url)}"


def _fact_lines(matter: ReportInputs, fact: Fact) -> list[str]:
    value = f" {matter.escape(fact.value)}" if fact.value else ""
    command = f" {code_span(fact.command)}" if fact.command else ""
    return [f"- **{fact.label}:**{value}{command}", *(f"  - {matter.escape(item)}" for item in fact.items)]


def notice(matter: ReportInputs) -> str:
    """The remark that a report which is not complete carries under its title; empty for a complete one."""
    ending, checked, say = matter.ending, matter.state.verification.summary, matter.words
    see = say.say("see_method", method=say["method"])
    marked = f" {say['not_borne_out']}" if checked.strict and checked.warning else ""
    if ending.outcome is not Outcome.COMPLETED:
        return f"> **{matter.outcome()}:** {matter.why()}.{marked} {see}"
    return f"> **{say['not_verified']}:**{marked} {see}" if marked else ""


def without_draft(matter: ReportInputs) -> str:
    """What stands in the place of the text if none was written."""
    say = matter.words
    lines = [say["no_draft"], say.say("no_draft_why", reason=matter.why())]
    if matter.passages:
        read = len({passage.evidence.source_id for passage in matter.passages.values()})
        kept = say.count("passage", len(matter.passages))
        lines.append(say.say("no_draft_found", sources=say.count("source", read), passages=kept))
    return " ".join(lines) + "\n"


def words_to_check(matter: ReportInputs) -> dict[str, CitedWords]:
    """The passages by evidence id, as claims are compared with them and as `report.json` shows them."""
    return {
        identity: CitedWords(
            passage.quote,
            matter.without_links(passage.evidence.heading),
            matter.without_links(matter.state.sources[passage.evidence.source_id].title),
        )
        for identity, passage in matter.passages.items()
    }


def compose_markdown(matter: ReportInputs) -> ReportText:
    """Put the finished Markdown together."""
    text = matter.numbered.text
    heading = title_line(text)
    title, cut = (text[heading.start : heading.end], heading.cut) if heading else ("", 0)
    lead = len(text) - len(text[cut:].lstrip("\n"))
    body = text[lead:].rstrip() + "\n" if text[lead:].strip() else without_draft(matter)
    remark = notice(matter)
    top = f"# {title}\n\n" + (f"{remark}\n\n" if remark else "")
    in_body = [mark.moved(-lead) for mark in matter.numbered.marks if mark.start >= lead]
    in_title = [mark.moved(2 - heading.start) for mark in matter.numbered.marks if heading and mark.end <= cut]
    marks = [*in_title, *(mark.moved(len(top)) for mark in in_body)]
    resolved = matter.resolved
    claims = judge_claims(
        top + body,
        marks,
        words_to_check(matter),
        matter.registry,
        language=resolved.language,
        verify=resolved.verify,
        uncited=matter.written_freely(),
        passed_over=(0, len(top)),
        given=matter.verdicts,
    )
    sources = "\n".join(_source_line(matter, item) for item in matter.cited)
    all_facts = [*verification_facts(claims, matter), *method_facts(matter)]
    facts = "\n".join(line for fact in all_facts for line in _fact_lines(matter, fact))
    say = matter.words
    tail = (f"\n## {say['sources']}\n\n{sources}\n" if sources else "") + (
        f"\n## {say['method']}\n\n{describe_checking(claims, resolved.verify, say)}\n\n{facts}\n"
    )
    return ReportText(
        markdown=top + body + tail,
        marks=marks,
        title=title,
        notice=remark,
        body=body,
        body_start=len(top),
        body_marks=in_body,
        claims=claims,
    )
