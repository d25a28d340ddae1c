"""The position of an agent, the pages that it found, and its continuation by a later agent."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from temporalio.exceptions import ActivityError

from contracts.addresses import canonical_url
from contracts.evidence import Candidate, DocumentRef, Finding, SearchHit, Source
from contracts.notebooks import with_what_follows
from contracts.orchestrator_roles import FoundPage
from contracts.plan import PlanNode
from contracts.roles import ANALYZER, AnalyzerResult
from contracts.state import Position, ResearchState
from contracts.state_changes import pack_json, unpack_json
from contracts.texts import shorten
from contracts.tools import ToolAnswer, ToolCall
from contracts.vocabulary import EngineKind, NodeStatus, SourceStatus
from workflows.phases.analysis import merge
from workflows.phases.gathering import Gathering
from workflows.phases.role_inputs import analyze_input, extract_of
from workflows.rules.duplicates import Identities
from workflows.run.calls import reason_of
from workflows.run.host import abandon
from workflows.run.inbox import Interrupted
from workflows.run.research_run import ResearchRun

CONTINUATION: Final = "continuation"
"""Key of the packed values for an agent that continues another one."""

MOST_LISTED: Final = 12
"""Pages in the description of one search."""


class AgentPosition(Position):
    """The turn under way, and values that turns pass to later ones."""

    NAME: ClassVar[str] = "agent"

    turn: int = 1
    first_turn: int = 1
    """Its own first one: an agent that continues another one counts on."""
    transcript: DocumentRef | None = None
    is_under_way: bool = False
    """True while the calls of the turn have no answers yet."""
    calls: list[ToolCall] = []
    answers: list[ToolAnswer] = []
    """Answers to the calls of the turn before."""
    opened: list[int] = []
    """Numbers of the opened pages."""
    opened_before: int = 0
    """Number of pages opened by the agent that this one continues."""
    searches: int = 0
    """Searches that count against the limit: repetitions do not."""
    has_searched: bool = False
    """True if the turn before searched."""
    thought: bool = False
    """True if the turn before was a thought."""
    silent_turns: int = 0
    """Turns in a row without a call."""
    not_analyzed: list[str] = []
    """Ids of sources whose analysis failed: it is not tried again."""
    earlier: list[str] = []
    """Ids of the findings of the agent that this one continues."""
    open_questions: list[str] | None = None
    """Questions that the agent reports as open; None if it did not report."""
    finished: str = ""
    """Reason for which there is no further turn; empty while there is one."""
    is_continuing: bool = False
    """True once the values of the agent that this one continues are taken over."""


# --- pages ---------------------------------------------------------------------------------------------------------
def pages_found(state: ResearchState) -> list[Candidate]:
    """Return the hits of all searches, each address once; the first has the number 1."""
    found: dict[str, Candidate] = {}
    for candidate in state.candidates:
        found.setdefault(canonical_url(candidate.hit.url), candidate)
    return list(found.values())


def unopened(state: ResearchState) -> list[FoundPage]:
    """Return the pages that were not opened yet, by number."""
    opened = set(AgentPosition.read(state).opened)
    return [
        FoundPage(index=number, rank=page.hit.rank)
        for number, page in enumerate(pages_found(state), start=1)
        if number not in opened
    ]


# --- continuation --------------------------------------------------------------------------------------------------
def continuation_of(state: ResearchState) -> dict[str, Any]:
    """Return the values that another agent needs to continue this one: its conversation, and its numbered pages."""
    position = AgentPosition.read(state)
    if position.transcript is None:
        return {}
    values = {
        "transcript": position.transcript.model_dump(mode="json"),
        "turn": position.turn,
        "answers": [answer.model_dump(mode="json") for answer in position.answers],
        "opened": position.opened,
        "candidates": [
            {"node": one.sub_query_id, "hit": one.hit.model_dump(mode="json", exclude_defaults=True)}
            for one in pages_found(state)
        ],
        "nodes": [{"id": node.id, "text": node.text} for node in state.plan.nodes],
    }
    return {CONTINUATION: pack_json(values)}


def take_continuation(state: ResearchState) -> None:
    """Start with the values of the agent that this one continues, if any. Raises ValueError for broken ones."""
    position = AgentPosition.of(state)
    packed = state.task.given.get(CONTINUATION) if state.task else None
    if position.is_continuing or not isinstance(packed, str):
        return
    values = unpack_json(packed)
    position.is_continuing = True
    position.earlier = [finding.id for finding in state.findings]
    position.transcript = DocumentRef.model_validate(values["transcript"])
    position.turn = position.first_turn = int(values["turn"])
    position.answers = [ToolAnswer.model_validate(answer) for answer in values["answers"]]
    position.opened = [int(number) for number in values["opened"]]
    position.opened_before = len(position.opened)
    nodes = [PlanNode(id=each["id"], text=each["text"], status=NodeStatus.COMPLETED) for each in values["nodes"]]
    state.plan = state.plan.with_nodes(*nodes)
    state.analyzed_sub_queries = [node.id for node in nodes]
    state.candidates = [
        Candidate(sub_query_id=each["node"], hit=SearchHit.model_validate(each["hit"])) for each in values["candidates"]
    ]


async def search_and_read(run: ResearchRun, searches: Mapping[str, PlanNode], pages: Sequence[int]) -> None:
    """Make searches and open pages in parallel, then analyze the sources that were read. Raises `Interrupted`."""
    state, found = run.state, pages_found(run.state)
    chosen = [found[number - 1] for number in pages]
    addresses = frozenset(canonical_url(candidate.hit.url) for candidate in chosen)
    # A page may have been found by several searches: it belongs to the first one.
    owners = {candidate.sub_query_id for candidate in chosen}
    earlier = [node for node in state.plan.nodes if node.id in owners]
    nodes = [*earlier, *(node for name, node in searches.items() if name not in owners)]
    if nodes:
        await Gathering(run, nodes, only=addresses).carry_out()
    position = AgentPosition.of(state)
    position.opened += [number for number in pages if number not in position.opened]
    # Searches without an opened page leave nothing to be analyzed at the end.
    names = [node.id for node in nodes if node.id not in state.analyzed_sub_queries]
    state.analyzed_sub_queries = [*state.analyzed_sub_queries, *names]
    await analyze_read(run)


def unanalyzed(state: ResearchState) -> list[Source]:
    """Return the sources that were read and not analyzed."""
    failed = set(AgentPosition.read(state).not_analyzed)
    return [source for source in state.readable_sources() if not source.analyzed and source.id not in failed]


async def analyze_read(run: ResearchRun, engine: EngineKind | None = None) -> None:
    """Analyze the sources that were read, one call for each search that found some of them. Raises `Interrupted`."""
    state, position = run.state, AgentPosition.of(run.state)
    nodes = {node.id: node for node in state.plan.nodes}
    groups: dict[str, list[Source]] = {}
    for source in unanalyzed(state):
        if source.sub_query_ids and source.sub_query_ids[0] in nodes:
            groups.setdefault(source.sub_query_ids[0], []).append(source)
    calls = {
        name: asyncio.ensure_future(_analyze(run, nodes[name], sources, engine)) for name, sources in groups.items()
    }
    try:
        await run.host.settle(list(calls.values()))
    except asyncio.CancelledError:
        await abandon(run.host, list(calls.values()))
        raise
    interruption: Interrupted | None = None
    for name, call in calls.items():
        error = call.exception()
        if isinstance(error, Interrupted):
            interruption = interruption or error
        elif isinstance(error, ActivityError):
            run.branch_failed(f"analysis for “{shorten(nodes[name].text, 150)}”: {reason_of(error)}")
            position.not_analyzed += [source.id for source in groups[name]]
        else:
            _merge(run, name, groups[name], call.result())
    if interruption is not None:
        raise interruption


async def _analyze(
    run: ResearchRun, node: PlanNode, sources: list[Source], engine: EngineKind | None
) -> AnalyzerResult:
    request = analyze_input(run, node, issues=[])
    request = request.model_copy(update={"sources": [extract_of(source) for source in sources]})
    return await run.ask(ANALYZER, f"analyze/{node.id}", request, engine)


def _merge(run: ResearchRun, name: str, sources: list[Source], output: AnalyzerResult) -> None:
    state = run.state
    node = next(node for node in state.plan.nodes if node.id == name)
    merge(run, node, with_what_follows(output, [source.id for source in sources]))
    merged = next(node for node in state.plan.nodes if node.id == name)
    # Pages of one search may be opened in several turns.
    total = node.finding_count + merged.finding_count
    state.plan = state.plan.with_nodes(merged.model_copy(update={"finding_count": total}))
    state.sources |= {one.id: state.sources[one.id].model_copy(update={"analyzed": True}) for one in sources}


# --- descriptions --------------------------------------------------------------------------------------------------
def describe_search(state: ResearchState, query: str, node: PlanNode) -> str:
    """Return the numbered titles that a search found."""
    searched = next((one for one in state.plan.nodes if one.id == node.id), node)
    if searched.error and not searched.result_count:
        return f"The search for “{query}” failed: {searched.error}."
    opened = set(AgentPosition.read(state).opened)
    own = {canonical_url(one.hit.url) for one in state.candidates if one.sub_query_id == node.id}
    lines = []
    for number, page in enumerate(pages_found(state), start=1):
        if canonical_url(page.hit.url) in own:
            date = f" ({page.hit.published_at})" if page.hit.published_at else ""
            done = ", opened already" if number in opened else ""
            lines.append(f"{number}. {page.hit.title or 'without a title'}{date}{done}")
    if not lines:
        return f"Nothing was found for “{query}”."
    more = [f"and {len(lines) - MOST_LISTED} more that fit less"] if len(lines) > MOST_LISTED else []
    return "\n".join([f"Found for “{query}”:", *lines[:MOST_LISTED], *more])


def describe_page(
    state: ResearchState, number: int, fresh: Sequence[Finding], numbers: Mapping[str, int]
) -> tuple[str, bool]:
    """Return the notes on a page, and true if it could not be read.

    `fresh` are the findings of this turn, `numbers` the numbers of notes by the id of the finding.
    """
    hit = pages_found(state)[number - 1].hit
    source = state.sources.get(Identities(state.sources, state.aliases).identity_of(hit))
    title = hit.title or "without a title"
    if source is None or source.status is not SourceStatus.FULL:
        reason = source.status_reason if source and source.status_reason else "the limit of pages is reached"
        return f"Page {number}, “{title}”, could not be read: {reason}.", True
    notes = [finding for finding in fresh if source.id in finding.source_ids]
    if not notes:
        return f"Page {number}, “{title}”, was read: nothing in it speaks about the task.", False
    head = f"Page {number}, “{title}”, quality {source.quality.value}:"
    return "\n".join([head, *(f"note {numbers[note.id]}: {note.statement}" for note in notes)]), False
