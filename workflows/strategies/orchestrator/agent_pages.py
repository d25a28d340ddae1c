"""The position of an agent, and the pages that it found and had read."""

from collections.abc import Collection, Sequence
from typing import ClassVar, Final

from temporalio.exceptions import ActivityError

from contracts.addresses import canonical_url
from contracts.call_sizes import FINDINGS_PER_SUB_QUERY, MOST_SOURCES
from contracts.evidence import Candidate, DocumentRef, Source
from contracts.notebooks import with_what_follows
from contracts.orchestrator_roles import FoundPage
from contracts.plan import OTHER_FORM, PlanNode
from contracts.roles import ANALYZER
from contracts.state import Position, ResearchState
from contracts.texts import plural
from contracts.tools import ToolAnswer
from contracts.vocabulary import EngineKind, NodeKind, SourceStatus
from workflows.phases.analysis import merge
from workflows.phases.gathering import Gathering
from workflows.phases.role_inputs import analyze_input, extract_of
from workflows.rules.duplicates import Identities
from workflows.run.calls import is_cancelled, reason_of
from workflows.run.research_run import ResearchRun

MOST_LISTED: Final = 12
"""Pages in the description of one search."""


class AgentPosition(Position):
    """The turn that comes next, and values that turns pass to later ones."""

    NAME: ClassVar[str] = "agent"

    turn: int = 1
    transcript: DocumentRef | None = None
    answers: list[ToolAnswer] = []
    """Answers to the calls of the turn before."""
    opened: list[int] = []
    """Numbers of the opened pages."""
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
    open_questions: list[str] | None = None
    """Questions that the agent reports as open; None if it did not report."""
    finished: str = ""
    """Reason for which there is no further turn; empty while there is one."""


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


async def search_and_read(run: ResearchRun, searches: Sequence[PlanNode], pages: Sequence[int]) -> None:
    """Make searches and open pages in parallel, then analyze the sources that were read. Raises `Interrupted`."""
    state, position, found = run.state, AgentPosition.of(run.state), pages_found(run.state)
    chosen = [found[number - 1] for number in pages]
    # A page may have been found by several searches: it belongs to the first one.
    owners = {candidate.sub_query_id for candidate in chosen}
    earlier = [node for node in state.plan.nodes if node.id in owners]
    nodes = [*earlier, *(node for node in searches if node.id not in owners)]
    if nodes:
        addresses = frozenset(canonical_url(candidate.hit.url) for candidate in chosen)
        await Gathering(run, nodes, only=addresses).carry_out()
    position.opened += [number for number in pages if number not in position.opened]
    # What was read is analyzed for the task, so no search is left to be analyzed at the end.
    state.analyzed_sub_queries = list(dict.fromkeys([*state.analyzed_sub_queries, *(node.id for node in nodes)]))
    await analyze_read(run)


def unanalyzed(state: ResearchState) -> list[Source]:
    """Return the sources that were read and not analyzed."""
    failed = set(AgentPosition.read(state).not_analyzed)
    return [source for source in state.readable_sources() if not source.analyzed and source.id not in failed]


async def analyze_read(run: ResearchRun, engine: EngineKind | None = None) -> None:
    """Analyze the sources that were read, in one call about the agent's task. Raises `Interrupted`."""
    state, position, sources = run.state, AgentPosition.of(run.state), unanalyzed(run.state)[:MOST_SOURCES]
    if not sources:
        return
    # The pages of one turn may say nothing that those of another one do.
    task = PlanNode(id=state.scope, text=run.resolved.query, kind=NodeKind.TASK, needs_search=False, facet=OTHER_FORM)
    request = analyze_input(run, task, issues=[])
    searches = {source.sub_query_ids[0] for source in sources if source.sub_query_ids}
    update = {
        "sources": [extract_of(source) for source in sources],
        "max_findings": FINDINGS_PER_SUB_QUERY * len(searches),
    }
    names = [source.id for source in sources]
    try:
        output = await run.ask(ANALYZER, f"analyze/{position.turn}", request.model_copy(update=update), engine)
    except ActivityError as error:
        if is_cancelled(error):
            raise
        run.branch_failed(f"analysis of {plural(len(sources), 'page')}: {reason_of(error)}")
        position.not_analyzed += names
        return
    merge(run, task, with_what_follows(output, names))
    state.sources |= {name: state.sources[name].model_copy(update={"analyzed": True}) for name in names}


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


def describe_page(state: ResearchState, number: int, known: Collection[str]) -> tuple[str, bool]:
    """Return the notes on a page, and true if it could not be read; findings that were `known` before are no notes."""
    hit = pages_found(state)[number - 1].hit
    source = state.sources.get(Identities(state.sources, state.aliases).identity_of(hit))
    title = hit.title or "without a title"
    if source is None or source.status is not SourceStatus.FULL:
        reason = source.status_reason if source and source.status_reason else "the limit of pages is reached"
        return f"Page {number}, “{title}”, could not be read: {reason}.", True
    notes = [
        f"note {place}: {finding.statement}"
        for place, finding in enumerate(state.findings, start=1)
        if finding.id not in known and source.id in finding.source_ids
    ]
    if not notes:
        return f"Page {number}, “{title}”, was read: nothing in it speaks about the task.", False
    return "\n".join([f"Page {number}, “{title}”, quality {source.quality.value}:", *notes]), False
