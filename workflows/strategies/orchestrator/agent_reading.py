"""What an agent's calls do: searches without reading, pages read and analyzed by who has no tools; all side by side."""

import asyncio
from dataclasses import dataclass, field
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
from workflows.strategies.orchestrator.agent_position import pages_found, position_of

MOST_LISTED: Final = 12
"""Pages of one search that are told."""


@dataclass
class WantedCalls:
    """What the calls of one turn want."""

    nodes: dict[str, PlanNode] = field(default_factory=dict)
    """Searches by their node's id."""
    pages: list[int] = field(default_factory=list)


async def carry_out(run: ResearchRun, wanted: WantedCalls) -> None:
    """Search and read side by side, then have what was read analyzed. Raises `Interrupted`."""
    state, found = run.state, pages_found(run.state)
    chosen = [found[number - 1] for number in wanted.pages]
    owners = {candidate.sub_query_id for candidate in state.candidates}
    addresses = frozenset(canonical_url(candidate.hit.url) for candidate in chosen)
    asked = {candidate.sub_query_id for candidate in chosen}
    # A page may have been found by several searches: the first one has it.
    before = [node for node in state.plan.nodes if node.id in owners and node.id in asked]
    nodes = [*before, *(node for name, node in wanted.nodes.items() if name not in asked)]
    if nodes:
        await Gathering(run, nodes, only=addresses).carry_out()
    position = position_of(state)
    position.opened += [number for number in wanted.pages if number not in position.opened]
    # Searches without a page to look at leave nothing to be analyzed at the end.
    looked_at = [node.id for node in nodes if node.id not in state.analyzed_sub_queries]
    state.analyzed_sub_queries = [*state.analyzed_sub_queries, *looked_at]
    await analyze_read(run)


def source_of_page(state: ResearchState, number: int) -> Source | None:
    """The source that an opened page is, read or not; None for one that is not there."""
    hit = pages_found(state)[number - 1].hit
    return state.sources.get(Identities(state.sources, state.aliases).identity_of(hit))


def unanalyzed(state: ResearchState) -> list[Source]:
    """What was read and nobody has looked at."""
    given_up = set(position_of(state).not_analyzed)
    return [source for source in state.readable_sources() if not source.analyzed and source.id not in given_up]


async def analyze_read(run: ResearchRun, engine: EngineKind | None = None) -> None:
    """Have what was read analyzed, one call for each search that found some of it. Raises `Interrupted`."""
    state, position = run.state, position_of(run.state)
    groups: dict[str, list[Source]] = {}
    for source in unanalyzed(state):
        if source.sub_query_ids:
            groups.setdefault(source.sub_query_ids[0], []).append(source)
    nodes = {node.id: node for node in state.plan.nodes}
    work = {
        name: asyncio.ensure_future(_analyze(run, nodes[name], sources, engine))
        for name, sources in groups.items()
        if name in nodes
    }
    try:
        await run.host.settle(list(work.values()))
    except asyncio.CancelledError:
        await run.abandon(list(work.values()))
        raise
    interruption: Interrupted | None = None
    for name, task in work.items():
        error = task.exception()
        if isinstance(error, Interrupted):
            interruption = interruption or error
        elif isinstance(error, ActivityError):
            run.branch_failed(f"analysis for “{shorten(nodes[name].text, 150)}”: {reason_of(error)}")
            position.not_analyzed += [source.id for source in groups[name]]
        else:
            _take(run, name, groups[name], task.result())
    if interruption is not None:
        raise interruption


async def _analyze(
    run: ResearchRun, node: PlanNode, sources: list[Source], engine: EngineKind | None
) -> AnalyzerResult:
    request = analyze_input(run, node, issues=[])
    request = request.model_copy(update={"sources": [extract_of(source) for source in sources]})
    return await run.ask(ANALYZER, f"analyze/{node.id}", request, engine)


def _take(run: ResearchRun, name: str, sources: list[Source], output: AnalyzerResult) -> None:
    state = run.state
    node = next(node for node in state.plan.nodes if node.id == name)
    known = node.finding_count
    merge(run, node, with_what_follows(output, [source.id for source in sources]))
    merged = next(node for node in state.plan.nodes if node.id == name)
    # Pages of one search may be opened in several turns.
    state.plan = state.plan.with_nodes(merged.model_copy(update={"finding_count": known + merged.finding_count}))
    seen = [state.sources[source.id] for source in sources]
    state.sources |= {source.id: source.model_copy(update={"analyzed": True}) for source in seen}


# --- what the agent is told ----------------------------------------------------------------------------------------
def told_of_search(state: ResearchState, query: str, node: PlanNode) -> str:
    """Numbered titles, never texts."""
    searched = next((one for one in state.plan.nodes if one.id == node.id), node)
    if searched.error and not searched.result_count:
        return f"The search for “{query}” failed: {searched.error}."
    opened = set(position_of(state).opened)
    own = {canonical_url(one.hit.url) for one in state.candidates if one.sub_query_id == node.id}
    lines = []
    for number, page in enumerate(pages_found(state), start=1):
        if canonical_url(page.hit.url) in own:
            when = f" ({page.hit.published_at})" if page.hit.published_at else ""
            done = ", opened already" if number in opened else ""
            lines.append(f"{number}. {page.hit.title or 'without a title'}{when}{done}")
    if not lines:
        return f"Nothing was found for “{query}”."
    more = len(lines) - MOST_LISTED
    head = f"Found for “{query}”:"
    return "\n".join([head, *lines[:MOST_LISTED], *([f"and {more} more that fit less"] if more > 0 else [])])


def told_of_page(state: ResearchState, number: int, fresh: list[Finding], numbers: dict[str, int]) -> tuple[str, bool]:
    """Notes on a page, by the numbers of the notes; and whether the page could not be read."""
    page, source = pages_found(state)[number - 1], source_of_page(state, number)
    title = page.hit.title or "without a title"
    if source is None or source.status is not SourceStatus.FULL:
        why = source.status_reason if source and source.status_reason else "the limit of pages is reached"
        return f"Page {number}, “{title}”, could not be read: {why}.", True
    notes = [finding for finding in fresh if source.id in finding.source_ids]
    if not notes:
        return f"Page {number}, “{title}”, was read: nothing in it speaks about the task.", False
    head = f"Page {number}, “{title}”, quality {source.quality.value}:"
    return "\n".join([head, *(f"note {numbers[note.id]}: {note.statement}" for note in notes)]), False
