"""Blocks that prompts are made of: sources, findings, gaps, guidance, issues."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from activities.content_share import allotted, findings_shown, part_of
from activities.excerpts import excerpt, shown_parts
from activities.labels import label_of
from activities.markers import without_markers
from activities.untrusted import attribute, guarded, guarded_line
from contracts.evidence import Evidence, Finding, Gap
from contracts.identity import short_hash
from contracts.resolved import CorpusSnapshot
from contracts.roles import AnalyzeInput, RefineInput, RoleInput, SourceExtract, WriteInput
from contracts.vocabulary import Confidence

DEFAULT_CONTENT_CHARACTERS: Final = 1_000
"""Characters of each source that the analyzer sees (S0-060)."""
MOST_SOURCES: Final = 20
"""Sources in one prompt (S0-060)."""
SNIPPET_CHARACTERS: Final = 300
QUOTE_CHARACTERS: Final = 400
SHORT_TITLE: Final = 80
CERTAINTY: Final = tuple(Confidence)
"""From the surest to guesses."""
DRAFT_CHARACTERS: Final = 6_000
LINE_CHARACTERS: Final = 600


@dataclass(frozen=True)
class Rendering:
    """What rendering needs besides the input."""

    documents: Mapping[str, str]
    content_characters: int
    mark: str
    """Tells our elements from imitations; the same for every attempt of a call."""
    share: float = 1.0
    """How much of the texts from outside is shown."""
    excerpts: dict[str, str] = field(default_factory=dict)
    """What is shown of each source at most, by its id: found once, shortened as often as needed."""


def mark_of(request: RoleInput) -> str:
    """The mark of a call: unknown to any page, yet the same when the call is made again."""
    return short_hash("mark", request.tenant, request.research_id, request.operation)


def shown_sources(request: AnalyzeInput, rendering: Rendering | None = None) -> list[SourceExtract]:
    """The sources that fit into a prompt, in the order in which they were given (S0-060)."""
    first = request.sources[:MOST_SOURCES]
    return first if rendering is None else first[: len(_allotted(first, rendering))]


def shown_findings(request: WriteInput, rendering: Rendering) -> list[Finding]:
    """The findings that have room, in their order; where some have not, certain ones go before guesses (S0-159)."""
    count = findings_shown(len(request.findings), rendering.share)
    ranked = sorted(request.findings, key=lambda finding: CERTAINTY.index(finding.confidence))
    kept = {finding.id for finding in ranked[:count]}
    return [finding for finding in request.findings if finding.id in kept]


def left_out(request: RoleInput, rendering: Rendering) -> list[str]:
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
    advice = [f"- from {guarded_line(item.origin, 40)}: {guarded_line(item.text, 2_000)}" for item in request.guidance]
    issues = [f"- {guarded_line(issue.message, LINE_CHARACTERS)}" for issue in request.issues]
    return {
        "date": request.date,
        "language": request.language,
        "iteration": str(request.iteration),
        "max_iterations": str(request.max_iterations),
        "query": guarded(request.query),
        "guidance": _element("guidance", advice),
        "issues": _element("issues", ["The previous result fell short; do it differently this time:", *issues])
        if issues
        else "",
    }


def listed(heading: str, items: list[str]) -> str:
    """A heading with one line per item; nothing if there is no item."""
    if not items:
        return ""
    return "\n".join([heading, *(f"- {guarded_line(item, LINE_CHARACTERS)}" for item in items)]) + "\n"


def brief_block(brief: str) -> str:
    """The research brief."""
    return f"Research brief: {guarded_line(brief, 2_000)}\n" if brief.strip() else ""


def corpus_block(corpus: CorpusSnapshot | None) -> str:
    """What will be searched, if it is a folder of documents."""
    if corpus is None:
        return ""
    title = guarded_line(corpus.title or corpus.name, 200)
    return f"Only these documents are searched: {title} ({corpus.files} files).\n"


def sources_block(request: AnalyzeInput, rendering: Rendering) -> str:
    """The sources of a sub-query, each with the passages that speak of it."""
    first = shown_sources(request)
    shown = zip(first, _allotted(first, rendering), strict=False)  # the last ones may have no room
    return "\n\n".join(_source(source, request, rendering, budget) for source, budget in shown) or "(none)"


def findings_block(request: WriteInput, rendering: Rendering) -> str:
    """Each finding with its evidence: `[ev-…] statement`, and under it the words of the source."""
    evidence = {item.id: item for item in request.evidence}
    texts = {source.id: _text(source, rendering) for source in request.sources}
    quote_characters = part_of(QUOTE_CHARACTERS, rendering.share)
    return "\n\n".join(
        _finding(finding, evidence, texts, quote_characters, rendering.mark)
        for finding in shown_findings(request, rendering)
    )


def source_lines(request: WriteInput, rendering: Rendering) -> str:
    """The sources that findings rest on, without their addresses: a writer has no use for them."""
    used = {source_id for finding in shown_findings(request, rendering) for source_id in finding.source_ids}
    kept = [source for source in request.sources if source.id in used]
    width = part_of(200, rendering.share, SHORT_TITLE)
    return "\n".join(
        f"{label_of(source.id, rendering.mark)}: {guarded_line(source.title, width)} (quality {source.quality.value})"
        for source in kept
    )


def gap_line(gap: Gap, mark: str, *, suggestions: bool = False) -> str:
    """A gap under its label (C0-9)."""
    line = (
        f"{label_of(gap.id, mark)}: {guarded_line(gap.description, 400)} "
        f"({gap.severity.value}, priority {gap.priority}, {gap.status.value})"
    )
    queries = "; ".join(guarded_line(query, 300) for query in gap.suggested_queries) if suggestions else ""
    return f"{line}\n  suggested: {queries}" if queries else line


def draft_block(request: RefineInput, rendering: Rendering) -> str:
    """The beginning of the report's draft, if there is one."""
    text = rendering.documents.get(request.draft.hash, "") if request.draft else ""
    shown = without_markers(text)[: part_of(DRAFT_CHARACTERS, rendering.share)]
    if not shown:
        return ""
    return f'<draft mark="{rendering.mark}">\n{guarded(shown)}\n</draft>\n'


def _element(name: str, lines: list[str]) -> str:
    return "\n".join([f"<{name}>", *lines, f"</{name}>"]) + "\n" if lines else ""


def _text(source: SourceExtract, rendering: Rendering) -> str:
    return rendering.documents.get(source.text.hash, "") if source.text else ""


def _allotted(sources: list[SourceExtract], rendering: Rendering) -> list[int]:
    lengths = [len(_text(source, rendering)) for source in sources]
    return allotted(lengths, rendering.content_characters, rendering.share)


def _excerpt(source: SourceExtract, topic: str, rendering: Rendering, budget: int) -> str:
    full = rendering.excerpts.get(source.id)
    if full is None:
        full = excerpt(_text(source, rendering), source.sections, topic, rendering.content_characters)
        rendering.excerpts[source.id] = full
    return full if budget >= rendering.content_characters else excerpt(full, shown_parts(full), topic, budget)


def _source(source: SourceExtract, request: AnalyzeInput, rendering: Rendering, budget: int) -> str:
    text = guarded(_excerpt(source, f"{request.sub_query.text} {request.query}", rendering, budget))
    width = part_of(300, rendering.share, SHORT_TITLE)
    snippet_characters = part_of(SNIPPET_CHARACTERS, rendering.share)
    snippet = attribute(source.snippet, snippet_characters) if snippet_characters else ""
    known = f' snippet="{snippet}"' if snippet else ""
    url = attribute(source.url, part_of(2_000, rendering.share, 2 * SHORT_TITLE))
    return (
        f'<source id="{label_of(source.id, rendering.mark)}" title="{attribute(source.title, width)}" url="{url}" '
        f'quality="{source.quality.value}"{known} mark="{rendering.mark}">\n{text}\n</source>'
    )


def _finding(
    finding: Finding, evidence: Mapping[str, Evidence], texts: Mapping[str, str], quote_characters: int, mark: str
) -> str:
    sources = ", ".join(label_of(source_id, mark) for source_id in finding.source_ids)
    lines = [f"Finding (confidence: {finding.confidence.value}; sources: {sources})"]
    for item in (evidence[key] for key in finding.evidence_ids if key in evidence):
        lines.append(f"[{label_of(item.id, mark)}] {guarded_line(finding.statement, LINE_CHARACTERS)}")
        passage = texts.get(item.source_id, "")[item.start : item.end] if quote_characters else ""
        quote = guarded_line(passage, quote_characters)
        if quote:
            lines.append(f"  {label_of(item.source_id, mark)} says: “{quote}”")
    return "\n".join(lines)
