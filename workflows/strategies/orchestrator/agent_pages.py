"""The searches and pages of an agent's turn, in parallel, and their descriptions for the agent.

Pages are read by roles without tools; the agent sees titles and notes, never a text.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

from temporalio.exceptions import ActivityError

from contracts.addresses import canonical_url
from contracts.evidence import Finding, Source
from contracts.notebooks import with_what_follows
from contracts.plan import PlanNode
from contracts.roles import ANALYZER, AnalyzerResult
from contracts.state import ResearchState
from contracts.texts import shorten
from contracts.vocabulary import EngineKind, SourceStatus
from workflows.phases.analysis import merge
from workflows.phases.gathering import Gathering
from workflows.phases.role_inputs import analyze_input, extract_of
from workflows.rules.duplicates import Identities
from workflows.run.call_errors import reason_of
from workflows.run.inbox import Interrupted
from workflows.run.research_run import ResearchRun
from workflows.strategies.orchestrator.agent_position import AgentPosition, pages_found

MOST_LISTED: Final = 12
"""Pages in the description of one search."""


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
        await run.abandon(list(calls.values()))
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
