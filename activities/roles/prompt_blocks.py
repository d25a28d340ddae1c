"""Blocks that prompts are made of: sources, findings, gaps, steps, guidance, issues."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from activities.reporting.citations import without_markers
from activities.roles.excerpts import allot, excerpt, part_of
from activities.roles.untrusted import attribute, break_lines, data, guard, guard_line, label_of
from contracts.call_sizes import CONTENT_CHARACTERS, MOST_SOURCES, QUOTE_CHARACTERS
from contracts.evidence import Evidence, Finding, Gap, SearchHit
from contracts.outcome import PERSON
from contracts.reflective_roles import StepSummary
from contracts.request import Turn
from contracts.resolved import CorpusSnapshot
from contracts.roles import AnalyzeInput, RoleInput, SourceExtract, WriteInput
from contracts.vocabulary import Confidence

LINE_CHARACTERS: Final = 600
SHORT_TITLE: Final = 80
SECTION_CHARACTERS: Final = 600
"""Beginning of each section, for the writer of the frame."""
FINDINGS_FROM: Final = 0.3
"""Down to this share only the words of sources are shortened; below it findings are left out too."""
FEWEST_FINDINGS: Final = 5
SECTION_TASK: Final = (
    "Write section {number} alone, in place of the form above: begin with its heading as a line that begins with "
    '"## ", translated into the language of the report; use "### " headings below it where that helps. No title, no '
    "summary, no conclusion, nothing that belongs to another section."
)
FRAME_TASK: Final = (
    "Write only what stands around the sections: the title, the summary, the gaps and limitations, and the conclusion. "
    "Between summary and gaps write, for each section in order, a line of its own with {{section 1}}, {{section 2}} "
    "and so on: the sections are put there word for word. Before such a line one sentence may lead over from the "
    "section before; it states nothing of fact."
)


@dataclass(frozen=True)
class PromptRendering:
    """Material of a prompt besides the role's input."""

    documents: Mapping[str, str]
    """Stored texts by hash."""
    label_key: str = ""
    """Key of the labels of ids (`activities.roles.untrusted`)."""
    share: float = 1.0
    """Share of the texts from outside that is shown."""
    excerpts: dict[str, str] = field(default_factory=dict)
    """Excerpt of each source at full share, by its id: selected once, shortened as often as needed."""


def common_values(request: RoleInput) -> dict[str, str]:
    """Values that fill every prompt."""
    issues = [f"- {guard_line(issue.message, LINE_CHARACTERS)}" for issue in request.issues]
    said = [item.text for item in request.guidance if item.origin == PERSON]
    preferences = [f"- {guard_line(text, 2_000)}" for text in (*request.preferences, *said)]
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
        "preferences": "\n".join(["<preferences>", *preferences, "</preferences>\n"]) if preferences else "",
        "guidance": add_heading("Advice from earlier steps, to be weighed:", data("guidance", advice)),
        "issues": add_heading("The previous result fell short; do it differently this time:", data("issues", issues)),
    }


def add_heading(heading: str, element: str) -> str:
    """Put a heading over an element; empty without an element."""
    return f"{heading}\n{element}" if element else ""


def list_items(heading: str, name: str, items: Sequence[str]) -> str:
    """Element of data with one line per item under a heading; empty without items."""
    return add_heading(heading, data(name, [f"- {guard_line(item, LINE_CHARACTERS)}" for item in items]))


def system_prompt_block(text: str | None) -> str:
    """The request's own system prompt, which a person wrote."""
    guarded = guard(text or "").strip()
    return f"<additional_context>\n{guarded}\n</additional_context>" if guarded else ""


def brief_block(brief: str) -> str:
    """The research brief."""
    return data("brief", [guard_line(brief, 2_000)]) if brief.strip() else ""


def corpus_block(corpus: CorpusSnapshot | None) -> str:
    """Name and size of the folder of documents that is searched, if any."""
    if corpus is None:
        return ""
    title = guard_line(corpus.title or corpus.name, 200)
    return add_heading("Only these documents are searched:", data("corpus", [f"{title} ({corpus.files} files)"]))


def earlier_turns(context: Sequence[Turn], share: float) -> str:
    """Earlier questions with their answers."""
    asked, answered = part_of(2_000, share, 200), part_of(4_000, share, 200)
    lines = [
        line
        for turn in context
        for line in (f"Question: {guard_line(turn.question, asked)}", f"Answer: {guard_line(turn.answer, answered)}")
    ]
    return add_heading("Asked and answered before:", data("earlier", lines))


# --- sources and findings --------------------------------------------------------------------------------------------
def sources_block(request: AnalyzeInput, rendering: PromptRendering) -> str:
    """The sources of a sub-query, each with the passages about it."""
    shown = shown_sources(request, rendering)
    budgets = _budgets(request, rendering.share)
    blocks = (_source(source, request, rendering, budget) for source, budget in zip(shown, budgets, strict=True))
    return "\n".join(blocks) or "(none)"


def shown_sources(request: AnalyzeInput, rendering: PromptRendering | None = None) -> list[SourceExtract]:
    """The sources that fit into a prompt, in their order."""
    return request.sources[: len(_budgets(request, 1.0 if rendering is None else rendering.share))]


def missing_content(request: RoleInput, rendering: PromptRendering) -> list[str]:
    """Sources or findings that have no room at all: one line with their number."""
    if isinstance(request, AnalyzeInput):
        every, shown, noun = len(shown_sources(request)), len(shown_sources(request, rendering)), "sources"
    elif isinstance(request, WriteInput):
        every, shown, noun = len(request.findings), len(_shown_findings(request, rendering)), "findings"
    else:
        return []
    return [f"{every - shown} of {every} {noun} had no room in the prompt"] if shown < every else []


def findings_block(request: WriteInput, rendering: PromptRendering) -> str:
    """Each finding with its evidence: `[ev-…] statement`, and under it the words of the source."""
    evidence = {item.id: item for item in request.evidence}
    texts = {source.id: _text(source, rendering) for source in request.sources}
    blocks = [_finding(finding, evidence, texts, rendering) for finding in _shown_findings(request, rendering)]
    return data("findings", [line for block in blocks for line in (*block, "")][:-1]) or "(none)"


def source_lines(request: WriteInput, rendering: PromptRendering) -> str:
    """Titles of the sources that findings rest on; a writer has no use for their addresses."""
    used = {source_id for finding in _shown_findings(request, rendering) for source_id in finding.source_ids}
    width, key = part_of(200, rendering.share, SHORT_TITLE), rendering.label_key
    lines = [
        f"{label_of(source.id, key)}: {guard_line(source.title, width)} (quality {source.quality.value})"
        for source in request.sources
        if source.id in used
    ]
    return data("sources", lines) or "(none)"


def _budgets(request: AnalyzeInput, share: float) -> list[int]:
    """Characters of each source that is shown."""
    return allot(len(request.sources[:MOST_SOURCES]), CONTENT_CHARACTERS, share)


def _text(source: SourceExtract, rendering: PromptRendering) -> str:
    return rendering.documents.get(source.text.hash, "") if source.text else ""


def _source(source: SourceExtract, request: AnalyzeInput, rendering: PromptRendering, budget: int) -> str:
    text = guard(_excerpt(source, f"{request.sub_query.text} {request.query}", rendering, budget))
    snippet_characters = part_of(300, rendering.share)
    snippet = attribute(source.snippet, snippet_characters) if snippet_characters else ""
    attributes = {
        "id": label_of(source.id, rendering.label_key),
        "title": attribute(source.title, part_of(300, rendering.share, SHORT_TITLE)),
        "url": attribute(source.url, part_of(2_000, rendering.share, 2 * SHORT_TITLE)),
        "quality": source.quality.value,
        **({"snippet": snippet} if snippet else {}),
    }
    named = "".join(f' {name}="{value}"' for name, value in attributes.items())
    return data("source", break_lines(text) if text else [""], named)


def _excerpt(source: SourceExtract, topic: str, rendering: PromptRendering, budget: int) -> str:
    full = rendering.excerpts.get(source.id)
    if full is None:
        full = excerpt(_text(source, rendering), source.sections, topic, CONTENT_CHARACTERS)
        rendering.excerpts[source.id] = full
    return full if budget >= CONTENT_CHARACTERS else excerpt(full, [], topic, budget)


def _shown_findings(request: WriteInput, rendering: PromptRendering) -> list[Finding]:
    """The findings that have room, in their order; if some have not, certain ones go before guesses."""
    count, share = len(request.findings), rendering.share
    if share < FINDINGS_FROM:
        count = min(count, max(FEWEST_FINDINGS, int(count * share / FINDINGS_FROM)))
    certainty = list(Confidence)  # from the surest to guesses
    ranked = sorted(request.findings, key=lambda finding: certainty.index(finding.confidence))
    shown = {finding.id for finding in ranked[:count]}
    return [finding for finding in request.findings if finding.id in shown]


def _finding(
    finding: Finding, evidence: Mapping[str, Evidence], texts: Mapping[str, str], rendering: PromptRendering
) -> list[str]:
    key, quote_characters = rendering.label_key, part_of(QUOTE_CHARACTERS, rendering.share)
    sources = ", ".join(label_of(source_id, key) for source_id in finding.source_ids)
    against = f"; contradicted by {len(finding.contradicts)} other findings" if finding.contradicts else ""
    lines = [f"Finding (confidence: {finding.confidence.value}; sources: {sources}{against})"]
    for item in (evidence[identity] for identity in finding.evidence_ids if identity in evidence):
        lines.append(f"[{label_of(item.id, key)}] {guard_line(finding.statement, LINE_CHARACTERS)}")
        passage = texts.get(item.source_id, "")[item.start : item.end] if quote_characters else ""
        if quote := guard_line(passage, quote_characters):
            lines.append(f"  {label_of(item.source_id, key)} says: “{quote}”")
    return lines


# --- gaps, drafts, steps ---------------------------------------------------------------------------------------------
def gaps_block(gaps: Sequence[Gap], key: str, *, suggestions: bool = False) -> str:
    """All gaps under their labels."""
    lines = []
    for gap in gaps:
        state = f"({gap.severity.value}, priority {gap.priority}, {gap.status.value})"
        lines.append(f"{label_of(gap.id, key)}: {guard_line(gap.description, 400)} {state}")
        if suggestions and gap.suggested_queries:
            lines.append(f"  suggested: {'; '.join(guard_line(query, 300) for query in gap.suggested_queries)}")
    return data("gaps", lines) or "(none)"


def draft_block(text: str, characters: int) -> str:
    """The beginning of a report's draft, if there is one."""
    return data("draft", break_lines(guard(text[:characters])))


def part_block(request: WriteInput, rendering: PromptRendering) -> str:
    """Outline and task of a call that writes a part of a long report; empty for a whole report."""
    part = request.part
    if part is None:
        return ""
    outline = [f"{number}. {guard_line(each, 200)}" for number, each in enumerate(part.outline, start=1)]
    shown = add_heading("The report is written in parts. Its sections:", data("outline", outline))
    if part.number:
        asked = add_heading("What it answers:", data("section_question", [guard_line(part.question, 400)]))
        return f"{shown}\n{asked}\n{SECTION_TASK.format(number=part.number)}"
    texts = (without_markers(rendering.documents.get(each.hash, "")) for each in part.sections)
    written = "\n".join(data("section", break_lines(guard(text[:SECTION_CHARACTERS]))) for text in texts)
    return f"{shown}\n{add_heading('How each section begins:', written)}\n{FRAME_TASK}"


def steps_block(steps: Sequence[StepSummary], share: float) -> str:
    """The steps with their status, and the statements that each found."""
    width = part_of(400, share, 80)
    lines = [
        line
        for number, step in enumerate(steps, start=1)
        for line in (
            f"{number}. {guard_line(step.title, 200)} ({step.status.value})",
            *(f"   - {guard_line(text, width)}" for text in step.observations),
        )
    ]
    return add_heading("Steps so far:", data("steps", lines))


def hits_block(hits: Sequence[SearchHit], share: float) -> str:
    """Title and snippet of each hit of a first search."""
    width = part_of(300, share)
    lines = [
        f"- {guard_line(hit.title, 200)}" + (f": {guard_line(hit.snippet, width)}" if hit.snippet and width else "")
        for hit in hits
    ]
    return add_heading("What a first search found (titles and snippets, nothing was read):", data("background", lines))
