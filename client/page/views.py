"""What the pages say, as values that the templates print."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markdown_it import MarkdownIt
from markupsafe import Markup, escape

from activities.reporting.tree import clean_characters
from client.cli.context import RunInfo
from client.cli.talk import plan_as_text
from client.handle import ResearchHandle
from client.view.console import AGENT_MARKS
from client.view.words import (
    agent_text,
    duration,
    elapsed_at,
    event_lines,
    local_time,
    printable,
    seconds_since,
    task_text,
    thread_words,
    usage_text,
    waits_of,
)
from contracts.evidence import Evidence
from contracts.outcome import AgentProgress, Event, Mark, ResearchStatus
from contracts.plan import PlanAnswer, WaitKind
from contracts.texts import plural

TEMPLATES: Final = Path(__file__).parent / "templates"
SIGNS: Final = {Mark.WAITING: "○", Mark.RUNNING: "▸", Mark.DONE: "✔", Mark.FAILED: "✖"}
STATUS_SIGNS: Final = {
    "completed": "✔", "partial": "◐", "empty": "○", "cancelled": "■", "queued": "…", "running": "▸", "refused": "✖",
    "failed": "✖", "timed_out": "✖", "interrupted": "■",
}  # fmt: skip
AGES: Final = ((86_400, "d"), (3_600, "h"), (60, "min"))
MAX_NEWS: Final = 40
MARKER: Final = re.compile(r"(?<!\\)\[(ev-[0-9A-Za-z]{1,64})\]")
"""A citation of a passage in a draft."""


def clean(value: object) -> object:
    """Clean the characters of each printed text, which the template then escapes."""
    return clean_characters(value) if isinstance(value, str) and not isinstance(value, Markup) else value


@cache
def templates() -> Environment:
    """Load the templates; every value is escaped."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=clean,
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(sign=lambda status: STATUS_SIGNS.get(status, "▸"), age=age)
    return environment


def render(name: str, **values: Any) -> str:
    """Return a page or a part of one."""
    return templates().get_template(f"{name}.html.j2").render(**values)


def age(when: str) -> str:
    """Return how long ago an instant was: `3 h`."""
    seconds = seconds_since(when, datetime.now(tz=UTC))
    for size, unit in AGES:
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return "now"


def from_markdown(text: str, below: int = 0) -> Markup:
    """Render the Markdown of a draft; HTML in it is text, and links lead to web addresses or within the page.

    Its headings are `below` levels deeper than in the text, so that they follow those of the page.
    """
    parser = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    tokens = parser.parse(text)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1:]) + below)}"
    return Markup(parser.renderer.render(tokens, parser.options, {}))  # noqa: S704  the parser escapes and checks


def with_passages(text: str, research_id: str) -> str:
    """Make each citation of a draft a link to its passage, numbered in the order of the draft."""
    numbers: dict[str, int] = {}

    def link(marker: re.Match[str]) -> str:
        number = numbers.setdefault(marker[1], len(numbers) + 1)
        return f"[\\[{number}\\]](/runs/{quote(research_id, safe='')}/passages/{marker[1]})"

    return MARKER.sub(link, text)


def place_of(research_id: str, source_id: str, evidence_id: str) -> str:
    """Return the address of a passage in its archived text."""
    return f"/runs/{quote(research_id, safe='')}/sources/{quote(source_id, safe='')}#{quote(evidence_id, safe='')}"


def follows(run: RunInfo) -> str:
    """Return the id of the run whose report the question of this one follows; empty if there is none."""
    resolved = None if run.state is None else run.state.work.resolved
    return "" if resolved is None or resolved.follow_up is None else resolved.follow_up.research_id


@dataclass(frozen=True)
class WorkRow:
    """A line of the work of a run: a unit, or an agent below it."""

    sign: str
    label: str
    detail: str
    level: int = 0
    mark: str = ""


@dataclass(frozen=True)
class RunView:
    """A run at one moment."""

    status: ResearchStatus
    word: str
    note: str
    facts: list[tuple[str, str]]
    work: list[WorkRow]
    waits: list[str]
    news: list[str]
    plan: PlanAnswer | None
    plan_text: str
    asks: str
    """`answers`, `approval` or nothing."""
    is_open: bool
    has_report: bool
    draft: Markup | None
    picture: Markup | None
    follows: str
    """Id of the run whose report the question follows; empty if there is none."""


def facts_of(status: ResearchStatus, now: datetime) -> list[tuple[str, str]]:
    """Return the figures of a run with their labels."""
    counts = status.counts
    limit = f" of {duration(status.deadline_seconds)}" if status.deadline_seconds else ""
    found = f"{plural(counts.sources, 'source')}, {plural(counts.findings, 'finding')}, "
    found += plural(counts.gaps_open, "open gap")
    rows = [
        ("Strategy", " · ".join(filter(None, (status.strategy, status.engine, status.corpus)))),
        ("Text", status.egress),
        ("Expected", status.estimate),
        ("Time", duration(elapsed_at(status, now)) + limit),
        ("Used", usage_text(status) if status.engine else ""),
        ("Found", found),
        ("Thread", thread_words(counts) if status.outcome is not None else ""),
        ("Queue", f"place {status.queue_place} of {status.queue_length}" if status.queue_place else ""),
        ("Failed", status.last_failure),
        ("Ended", f"{local_time(status.ended_at or '')}: {status.stop_reason.text}" if status.stop_reason else ""),
    ]
    return [(label, printable(text)) for label, text in rows if text]


def work_of(status: ResearchStatus) -> list[WorkRow]:
    """Return a row for each unit of the strategy and for each agent."""
    rows = []
    for unit in status.progress.units:
        iteration = f"iteration {status.iteration} of {status.max_iterations}" if status.max_iterations > 1 else ""
        parts = filter(None, (iteration if unit.mark is Mark.RUNNING else "", unit.detail))
        rows.append(WorkRow(SIGNS[unit.mark], unit.label, " · ".join(parts), mark=unit.mark.value))
    rows += [_agent_row(level, agent) for top in status.agents for level, agent in top.walk()]
    return rows


def _agent_row(level: int, agent: AgentProgress) -> WorkRow:
    mark = AGENT_MARKS.get(agent.status, Mark.FAILED)
    return WorkRow(SIGNS[mark], f"{agent.id} {agent_text(agent)}", task_text(agent), level, mark.value)


def news_of(events: Iterable[Event]) -> list[str]:
    """Return the lines of the newest events, newest first."""
    return event_lines(events, in_terminal=False)[-MAX_NEWS:][::-1]


async def plan_of(run: RunInfo, handle: ResearchHandle | None, status: ResearchStatus) -> tuple[PlanAnswer | None, str]:
    """Return the plan of an open run, and its text for an editor."""
    if handle is None or (status.phase is None and status.waiting is None):
        return None, ""
    plan = await handle.plan()
    lines = plan_as_text(plan, run.research_id).splitlines() if plan.version else []
    return (plan if plan.version else None), "\n".join(line for line in lines if not line.startswith("#")).strip()


def asks_of(status: ResearchStatus) -> str:
    """Return what the run waits for from a person."""
    if status.waiting is None or status.outcome is not None:
        return ""
    return "answers" if status.waiting.kind is WaitKind.CLARIFICATION else "approval"


def waits(status: ResearchStatus) -> list[str]:
    """Return the calls in flight, the longest wait first."""
    return waits_of(status, datetime.now(tz=UTC))


@dataclass(frozen=True)
class TextPiece:
    """A piece of an archived text: a quoted passage, or what stands between two."""

    text: str
    evidence_id: str = ""


def pieces_of(text: str, passages: Sequence[Evidence]) -> list[TextPiece]:
    """Cut an archived text at its quoted passages; of two that overlap the first keeps the common words."""
    pieces = []
    end = 0
    for passage in sorted(passages, key=lambda each: (each.start, each.end)):
        start = max(end, passage.start)
        if start >= passage.end:
            continue
        pieces += [TextPiece(text[end:start]), TextPiece(text[start : passage.end], passage.id)]
        end = passage.end
    return [*pieces, TextPiece(text[end:])]


PASSAGE: Final = 'class="passage" id="'
CLOSE: Final = '<a class="close"'


def with_places(html: str, research_id: str, sources: Mapping[str, str]) -> str:
    """Add a link to each passage of a report that shows it in its place in the archived text.

    `sources` are the ids of their sources by evidence id.
    """
    first, *parts = html.split(PASSAGE)
    pieces = [first]
    for part in parts:
        source_id = sources.get(part.partition('"')[0], "")
        address = place_of(research_id, source_id, part.partition('"')[0])
        link = f'<p class="where"><a href="{escape(address)}" target="_top">In its place in the archived text</a></p>'
        pieces.append(part.replace(CLOSE, link + CLOSE, 1) if source_id else part)
    return PASSAGE.join(pieces)


@dataclass(frozen=True)
class ComparedLine:
    """A paragraph of the one report beside that of the other; empty where there is none."""

    left: str
    right: str
    is_same: bool


def compare_texts(left: str, right: str) -> list[ComparedLine]:
    """Put the paragraphs of two reports side by side."""
    one, other = ([part for part in text.split("\n\n") if part.strip()] for text in (left, right))
    lines = []
    for kind, a, b, c, d in SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        for index in range(max(b - a, d - c)):
            lefts = one[a + index] if a + index < b else ""
            rights = other[c + index] if c + index < d else ""
            lines.append(ComparedLine(lefts, rights, kind == "equal"))
    return lines
