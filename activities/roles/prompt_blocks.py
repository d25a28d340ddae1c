"""Blocks that prompts are made of: sources, findings, gaps, guidance, issues."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from activities.roles.evidence_markers import without_markers
from activities.roles.excerpts import allot, excerpt, findings_shown, part_of, shown_parts
from activities.roles.labels import label_of
from activities.roles.untrusted import attribute, break_lines, data, guard, guard_line
from contracts.evidence import Evidence, Finding, Gap
from contracts.expected_calls import DRAFT_CHARACTERS, MOST_SOURCES, QUOTE_CHARACTERS
from contracts.outcome import PERSON
from contracts.resolved import CorpusSnapshot
from contracts.roles import AnalyzeInput, RefineInput, RoleInput, SourceExtract, WriteInput
from contracts.vocabulary import Confidence

SNIPPET_CHARACTERS: Final = 300
SHORT_TITLE: Final = 80
CERTAINTY: Final = tuple(Confidence)
"""From the surest to guesses."""
LINE_CHARACTERS: Final = 600
SHOWN_OF_SECTION: Final = 600
"""Characters of each section that the writer of the frame is shown."""
SECTION_TASK: Final = (
    "Write section {number} alone, in place of the form above: begin with its heading as a line that begins with "
    '"## ", translated into the language of the report; use "### " headings below it where that helps. No title, no '
    "summary, no conclusion, nothing that belongs to another section."
)
FRAME_TASK: Final = (
    "Write only what stands around the sections: the title, the summary, the gaps and limitations, and the conclusion. "
    "Between summary and gaps write, for each section in order, a line of its own with {{{{section 1}}}}, "
    "{{{{section 2}}}} and so on: the sections are put there word for word. Before such a line one sentence may lead "
    "over from the section before; it states nothing of fact."
).format()


@dataclass(frozen=True)
class PromptRendering:
    """What rendering needs besides the input."""

    documents: Mapping[str, str]
    content_characters: int
    label_key: str = ""
    """What short names of ids are made with (`activities.roles.labels`)."""
    share: float = 1.0
    """How much of the texts from outside is shown."""
    excerpts: dict[str, str] = field(default_factory=dict)
    """What is shown of each source at most, by its id: found once, shortened as often as needed."""


def shown_sources(request: AnalyzeInput, rendering: PromptRendering | None = None) -> list[SourceExtract]:
    """The sources that fit into a prompt, in the order in which they were given."""
    first = request.sources[:MOST_SOURCES]
    return first if rendering is None else first[: len(_allot(first, rendering))]


def shown_findings(request: WriteInput, rendering: PromptRendering) -> list[Finding]:
    """The findings that have room, in their order; where some have not, certain ones go before guesses."""
    count = findings_shown(len(request.findings), rendering.share)
    ranked = sorted(request.findings, key=lambda finding: CERTAINTY.index(finding.confidence))
    kept = {finding.id for finding in ranked[:count]}
    return [finding for finding in request.findings if finding.id in kept]


def left_out(request: RoleInput, rendering: PromptRendering) -> list[str]:
    """What is not shown at all for lack of room: one short line each."""
    if isinstance(request, AnalyzeInput):
        every = len(shown_sources(request))
        missing, what = every - len(shown_sources(request, rendering)), "sources"
    elif isinstance(request, WriteInput):
        every = len(request.findings)
        missing, what = every - len(shown_findings(request, rendering)), "findings"
    else:
        return []
    return [f"{missing} of {every} {what} had no room in the prompt"] if missing else []


def common_values(request: RoleInput) -> dict[str, str]:
    """What every prompt is filled with."""
    issues = [f"- {guard_line(issue.message, LINE_CHARACTERS)}" for issue in request.issues]
    said = [item.text for item in request.guidance if item.origin == PERSON]
    wishes = [guard_line(text, 2_000) for text in (*request.wishes, *said)]
    advice = [
        f"- from {guard_line(item.origin, 40)}: {guard_line(item.text, 2_000)}"
        for item in request.guidance
        if item.origin != PERSON
    ]
    return {
        "date": request.date,
        "language": request.language,
        "iteration": str(request.iteration),
        "max_iterations": str(request.max_iterations),
        "query": guard(request.query),
        "wishes": "\n".join(["<wishes>", *(f"- {wish}" for wish in wishes), "</wishes>\n"]) if wishes else "",
        "guidance": add_heading("Advice from earlier steps, to be weighed:", data("guidance", advice)),
        "issues": add_heading("The previous result fell short; do it differently this time:", data("issues", issues)),
    }


def add_heading(heading: str, element: str) -> str:
    """An element under what we say of it; nothing if there is no element."""
    return f"{heading}\n{element}" if element else ""


def list_items(heading: str, name: str, items: list[str]) -> str:
    """An element of data with one line per item; nothing if there is no item."""
    return add_heading(heading, data(name, [f"- {guard_line(item, LINE_CHARACTERS)}" for item in items]))


def brief_block(brief: str) -> str:
    """The research brief."""
    return data("brief", [guard_line(brief, 2_000)]) if brief.strip() else ""


def corpus_block(corpus: CorpusSnapshot | None) -> str:
    """What will be searched, if it is a folder of documents."""
    if corpus is None:
        return ""
    title = guard_line(corpus.title or corpus.name, 200)
    return add_heading("Only these documents are searched:", data("corpus", [f"{title} ({corpus.files} files)"]))


def sources_block(request: AnalyzeInput, rendering: PromptRendering) -> str:
    """The sources of a sub-query, each with the passages that speak of it."""
    first = shown_sources(request)
    shown = zip(first, _allot(first, rendering), strict=False)  # the last ones may have no room
    return "\n".join(_source(source, request, rendering, budget) for source, budget in shown) or "(none)"


def findings_block(request: WriteInput, rendering: PromptRendering) -> str:
    """Each finding with its evidence: `[ev-…] statement`, and under it the words of the source."""
    evidence = {item.id: item for item in request.evidence}
    texts = {source.id: _text(source, rendering) for source in request.sources}
    quote_characters = part_of(QUOTE_CHARACTERS, rendering.share)
    blocks = [
        _finding(finding, evidence, texts, quote_characters, rendering.label_key)
        for finding in shown_findings(request, rendering)
    ]
    return data("findings", [line for block in blocks for line in (*block, "")][:-1]) or "(none)"


def source_lines(request: WriteInput, rendering: PromptRendering) -> str:
    """The sources that findings rest on, without their addresses: a writer has no use for them."""
    used = {source_id for finding in shown_findings(request, rendering) for source_id in finding.source_ids}
    kept = [source for source in request.sources if source.id in used]
    width = part_of(200, rendering.share, SHORT_TITLE)
    key = rendering.label_key
    lines = [
        f"{label_of(source.id, key)}: {guard_line(source.title, width)} (quality {source.quality.value})"
        for source in kept
    ]
    return data("sources", lines) or "(none)"


def gaps_block(gaps: list[Gap], key: str, *, suggestions: bool = False) -> str:
    """All gaps under their labels."""
    lines = [line for gap in gaps for line in _gap_lines(gap, key, suggestions=suggestions)]
    return data("gaps", lines) or "(none)"


def draft_block(request: RefineInput, rendering: PromptRendering) -> str:
    """The beginning of the report's draft, if there is one."""
    text = rendering.documents.get(request.draft.hash, "") if request.draft else ""
    shown = without_markers(text)[: part_of(DRAFT_CHARACTERS, rendering.share)]
    if not shown:
        return ""
    return data("draft", break_lines(guard(shown)))


def part_block(request: WriteInput, rendering: PromptRendering) -> str:
    """What a call that writes a part of a long report is told of the others; nothing where it writes all of it."""
    part = request.part
    if part is None:
        return ""
    outline = [f"{number}. {guard_line(each, 200)}" for number, each in enumerate(part.outline, start=1)]
    shown = add_heading("The report is written in parts. Its sections:", data("outline", outline))
    if part.number:
        asked = add_heading("What it answers:", data("section_question", [guard_line(part.question, 400)]))
        return f"{shown}\n{asked}\n" + SECTION_TASK.format(number=part.number)
    written = "\n".join(
        data("section", break_lines(guard(without_markers(rendering.documents.get(each.hash, ""))[:SHOWN_OF_SECTION])))
        for each in part.sections
    )
    return f"{shown}\n{add_heading('How each section begins:', written)}\n{FRAME_TASK}"


def _gap_lines(gap: Gap, key: str, *, suggestions: bool) -> list[str]:
    known = f"({gap.severity.value}, priority {gap.priority}, {gap.status.value})"
    queries = "; ".join(guard_line(query, 300) for query in gap.suggested_queries) if suggestions else ""
    line = f"{label_of(gap.id, key)}: {guard_line(gap.description, 400)} {known}"
    return [line, f"  suggested: {queries}"] if queries else [line]


def _text(source: SourceExtract, rendering: PromptRendering) -> str:
    return rendering.documents.get(source.text.hash, "") if source.text else ""


def _allot(sources: list[SourceExtract], rendering: PromptRendering) -> list[int]:
    lengths = [len(_text(source, rendering)) for source in sources]
    return allot(lengths, rendering.content_characters, rendering.share)


def _excerpt(source: SourceExtract, topic: str, rendering: PromptRendering, budget: int) -> str:
    full = rendering.excerpts.get(source.id)
    if full is None:
        full = excerpt(_text(source, rendering), source.sections, topic, rendering.content_characters)
        rendering.excerpts[source.id] = full
    return full if budget >= rendering.content_characters else excerpt(full, shown_parts(full), topic, budget)


def _source(source: SourceExtract, request: AnalyzeInput, rendering: PromptRendering, budget: int) -> str:
    text = guard(_excerpt(source, f"{request.sub_query.text} {request.query}", rendering, budget))
    width = part_of(300, rendering.share, SHORT_TITLE)
    snippet_characters = part_of(SNIPPET_CHARACTERS, rendering.share)
    snippet = attribute(source.snippet, snippet_characters) if snippet_characters else ""
    known = f' snippet="{snippet}"' if snippet else ""
    url = attribute(source.url, part_of(2_000, rendering.share, 2 * SHORT_TITLE))
    known_by = (
        f' id="{label_of(source.id, rendering.label_key)}" title="{attribute(source.title, width)}" url="{url}" '
        f'quality="{source.quality.value}"{known}'
    )
    return data("source", break_lines(text) if text else [""], known_by)


def _finding(
    finding: Finding, evidence: Mapping[str, Evidence], texts: Mapping[str, str], quote_characters: int, key: str
) -> list[str]:
    sources = ", ".join(label_of(source_id, key) for source_id in finding.source_ids)
    against = f"; contradicted by {len(finding.contradicts)} other findings" if finding.contradicts else ""
    lines = [f"Finding (confidence: {finding.confidence.value}; sources: {sources}{against})"]
    for item in (evidence[key] for key in finding.evidence_ids if key in evidence):
        lines.append(f"[{label_of(item.id, key)}] {guard_line(finding.statement, LINE_CHARACTERS)}")
        passage = texts.get(item.source_id, "")[item.start : item.end] if quote_characters else ""
        quote = guard_line(passage, quote_characters)
        if quote:
            lines.append(f"  {label_of(item.source_id, key)} says: “{quote}”")
    return lines
