"""The searches of one step in turns, and the background searches before the plan."""

from functools import partial
from typing import Final

from contracts.addresses import canonical_url, name_page, source_id, sub_query_id
from contracts.evidence import Candidate, SearchHit, Source
from contracts.plan import WITHOUT_SEARCH, PlanNode
from contracts.reflective_roles import INVESTIGATOR, RESEARCHER, InvestigateInput, ResearchStepInput
from contracts.request import Depth, Mode
from contracts.state import ResearchState
from contracts.vocabulary import AgentRole, EngineKind
from workflows.phases.agent_reading import describe_hit
from workflows.phases.analysis import analyze
from workflows.phases.gathering import Gathering
from workflows.phases.searching import Searching
from workflows.rules.duplicates import Identities, protected_ids
from workflows.run.host import run_parallel
from workflows.run.research_run import ResearchRun
from workflows.strategies.reflective.position import ReflectivePosition
from workflows.strategies.reflective.steps import findings_of, open_queries, query_nodes

MAX_TITLES: Final = 10
MAX_OFFERED_PAGES: Final = 12
"""Found but unread pages offered to the model."""
BACKGROUND_QUERIES: Final = 3
MAX_HITS_PER_QUERY: Final = 5
"""First hits of each background query shown to the planner."""


async def take_turn(run: ResearchRun, step: PlanNode) -> bool:
    """Choose queries, search, read, analyze; return true if another turn may follow."""
    state = run.state
    limits = run.resolved.limits
    position = ReflectivePosition.of(state)
    if not open_queries(state, step):
        nodes = await _next_nodes(run, step)
        if not nodes:
            return False
        state.work.plan = state.work.plan.with_nodes(*nodes)
        position.turns += 1
    room = _reads_left(state, step, limits.max_reads_per_step)
    # Without a model, at light depth or on the quick route, the researcher gets no turn to react to results.
    by_model = run.resolved.engine is EngineKind.MODEL
    has_turns = by_model and run.resolved.depth is not Depth.LIGHT and position.route is not Mode.QUICK
    await Gathering(run, open_queries(state, step), cap=room, labelled=has_turns).carry_out()
    await analyze(run)
    return has_turns


async def _next_nodes(run: ResearchRun, step: PlanNode) -> list[PlanNode]:
    """Return the next searches, and a node for found pages to read, as chosen by the researcher.

    A step begins with the searches that came with the plan, if there are any.
    """
    state = run.state
    limits = run.resolved.limits
    position = ReflectivePosition.of(state)
    searches = [node for node in state.work.plan.children(step) if node.origin != WITHOUT_SEARCH]
    searches_left = limits.max_searches_per_step - len(searches)
    if searches_left <= 0 or (position.turns and not _reads_left(state, step, limits.max_reads_per_step)):
        return []
    if position.route is Mode.QUICK:
        return query_nodes(step, [step.text], state.work.iteration)
    known = {node.id for node in state.work.plan.nodes}
    if planned := position.first_searches.pop(step.id, []):
        # The researcher would know no more than the planner did; where it has turns, a search is left to it.
        limit = searches_left if run.resolved.depth is Depth.LIGHT else max(1, searches_left - 1)
        nodes = query_nodes(step, planned[:limit], state.work.iteration)
        if fresh := [node for node in nodes if node.id not in known]:
            return fresh
    search_ids = {node.id for node in state.work.plan.children(step)}
    read = [source for source in state.evidence.readable_sources() if search_ids.intersection(source.sub_query_ids)]
    titles = [name_page(source.title, source.url) for source in read]
    offered = _unread_pages(state, step)
    request = ResearchStepInput(
        step_title=step.text,
        description=step.expected_contribution,
        most_queries=searches_left,
        asked=[node.text for node in state.work.plan.sub_queries],
        observations=[finding.statement for finding in findings_of(state, step)],
        titles=titles[:MAX_TITLES],
        pages=[describe_hit(Candidate(sub_query_id=step.id, hit=hit)) for hit in offered],
        turn=position.turns + 1,
    )
    output = await run.ask(RESEARCHER, f"research/{step.id}/{position.turns + 1}", request)
    nodes = [node for node in query_nodes(step, output.queries, state.work.iteration) if node.id not in known]
    if output.pages:
        # A sub-query that already has hits is read without a search.
        chosen = query_nodes(step, [step.expected_contribution or step.text], state.work.iteration)[0]
        page_id = sub_query_id(f"{step.id} pages {position.turns + 1}")
        nodes.append(chosen.with_fields(id=page_id, origin=WITHOUT_SEARCH))
        hits = [offered[number - 1].with_fields(rank=rank) for rank, number in enumerate(output.pages, 1)]
        state.evidence.candidates += [Candidate(sub_query_id=nodes[-1].id, hit=hit) for hit in hits]
        run.decide(RESEARCHER.name, "choose_pages", output.reasoning, {"offered": len(offered)}, {"chosen": len(hits)})
    return nodes


def _unread_pages(state: ResearchState, step: PlanNode) -> list[SearchHit]:
    """Return the unread titled hits of the step's searches and of the background search, one per page."""
    evidence = state.evidence
    search_ids = {node.id for node in state.work.plan.children(step)}
    known = Identities(evidence.sources, evidence.aliases)
    hits = [candidate.hit for candidate in evidence.candidates if candidate.sub_query_id in search_ids]
    fetched = evidence.fetched_sources()
    unread: dict[str, SearchHit] = {}
    for hit in [*hits, *ReflectivePosition.of(state).background]:
        if hit.title and known.identity_of(hit) not in fetched:
            unread.setdefault(canonical_url(hit.url), hit)
    return list(unread.values())[:MAX_OFFERED_PAGES]


def _reads_left(state: ResearchState, step: PlanNode, limit: int) -> int:
    """Return the number of sources that a step may still read; unreadable ones count, protected ones do not."""
    search_ids = {node.id for node in state.work.plan.children(step)}
    protected = set(protected_ids(state).values())
    sources = [
        source
        for source in state.evidence.fetched_sources().values()
        if search_ids.intersection(source.sub_query_ids[:1])
    ]
    read = [source for source in sources if source.id not in protected]
    return max(0, limit - len(read))


# --- before the plan -------------------------------------------------------------------------------------------------
async def propose_background(run: ResearchRun) -> None:
    """Have background searches proposed. Raises `Interrupted`."""
    output = await run.ask(INVESTIGATOR, "background", InvestigateInput(most_queries=BACKGROUND_QUERIES))
    ReflectivePosition.of(run.state).background_queries = output.queries


async def investigate(run: ResearchRun) -> None:
    """Make a few background searches in parallel; their first hits become unfetched sources, for the planner.

    Raises `Interrupted`.
    """
    position = ReflectivePosition.of(run.state)
    if not position.background_queries:
        await propose_background(run)
    nodes = [PlanNode(id=sub_query_id(text), text=text) for text in position.background_queries]
    number = run.decide(AgentRole.GATHERER, "search_background", "", {"queries": len(nodes)})
    searching = Searching(run, nodes)
    searches = [partial(searching.search, node) for node in nodes]
    calls = await run.within_limits(run_parallel(run.host, searches, run.resolved.limits.max_parallel))
    hits: dict[str, SearchHit] = {}
    for node, call in zip(nodes, calls, strict=True):
        answer = call.result()
        run.state.evidence.query_ledger += answer.asked
        if answer.failed is not None:
            run.note("status", f"background search failed: {node.text}: {answer.failed_in_words}", level="warning")
            continue
        for hit in searching.response(answer).hits[:MAX_HITS_PER_QUERY]:
            if not run.is_excluded(hit) and canonical_url(hit.url) not in hits:
                hits[canonical_url(hit.url)] = hit
                run.state.evidence.sources.setdefault(source_id(hit.url), Source.of_hit(hit, [node.id]))
    position.background = list(hits.values())
    run.decided(number, {"titles": len(hits)})
