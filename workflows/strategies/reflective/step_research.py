"""The searches of this strategy: those of one step, turn by turn, and the background search before the plan."""

import asyncio
from typing import Final

from contracts.addresses import canonical_url, sub_query_id
from contracts.call_sizes import MOST_SOURCES
from contracts.evidence import Candidate, SearchHit
from contracts.plan import WITHOUT_SEARCH, PlanNode
from contracts.reflective_roles import INVESTIGATOR, RESEARCHER, InvestigateInput, ResearchStepInput, Route
from contracts.request import Depth
from contracts.state import ResearchState
from contracts.vocabulary import AgentRole, EngineKind, NodeStatus
from workflows.phases.analysis import analyze
from workflows.phases.gathering import Gathering
from workflows.phases.searching import Answers, Searching
from workflows.rules.duplicates import Identities
from workflows.rules.gaps import after_follow_up
from workflows.rules.query_matching import record_of
from workflows.run.research_run import ResearchRun
from workflows.strategies.reflective.plan import (
    ReflectivePosition,
    findings_of,
    is_analysis,
    open_queries,
    query_nodes,
)

SHOWN_TITLES: Final = 10
OFFERED_PAGES: Final = 12
"""Found and unread pages among which the model may choose."""
BACKGROUND_QUERIES: Final = 3
HITS_OF_QUERY: Final = 5
"""First hits of each background query that the planner sees."""


async def research_step(run: ResearchRun, step: PlanNode) -> None:
    """Carry out a step within its limits, after the searches that an interruption cut off. Raises `Interrupted`."""
    state, position = run.state, ReflectivePosition.of(run.state)
    if not state.plan.children(step):
        position.turns = 0
    state.plan = state.plan.with_nodes(step.model_copy(update={"status": NodeStatus.EXECUTING}))
    if is_analysis(step):
        _assign_all_sources(state, step)
        await analyze(run)
    else:
        while await _take_turn(run, step):
            pass
    _finish(state, step)


def _finish(state: ResearchState, step: PlanNode) -> None:
    """Enter the result of a step: it failed if all its searches did, and a resumed run repeats it."""
    searches = state.plan.children(step)
    failed = bool(searches) and all(search.status is NodeStatus.FAILED for search in searches)
    found = sum(search.finding_count for search in searches)
    update = {
        "status": NodeStatus.FAILED if failed else NodeStatus.COMPLETED,
        "error": searches[0].error if failed else None,
        "finding_count": found,
    }
    state.plan = state.plan.with_nodes(step.model_copy(update=update))
    state.gaps = after_follow_up(state.gaps, step.gap_id, [finding.id for finding in findings_of(state, step)])


async def _take_turn(run: ResearchRun, step: PlanNode) -> bool:
    """Choose queries, search, read, analyze; true if another turn may follow."""
    state, limits, position = run.state, run.resolved.limits, ReflectivePosition.of(run.state)
    if not open_queries(state, step):
        nodes = await _next_nodes(run, step)
        if not nodes:
            return False
        state.plan = state.plan.with_nodes(*nodes)
        position.turns += 1
    room = _reads_left(state, step, limits.max_reads_per_step)
    await Gathering(run, open_queries(state, step), most=room).carry_out()
    await analyze(run)
    # A researcher without a model, at light depth or on the quick route does not see its results.
    by_model = run.resolved.engine is EngineKind.MODEL
    return by_model and run.resolved.depth is not Depth.LIGHT and position.route is not Route.QUICK


async def _next_nodes(run: ResearchRun, step: PlanNode) -> list[PlanNode]:
    """Have the next searches chosen, and pages to read among those that were found."""
    state, limits, position = run.state, run.resolved.limits, ReflectivePosition.of(run.state)
    searches = [node for node in state.plan.children(step) if node.origin != WITHOUT_SEARCH]
    searches_left = limits.max_searches_per_step - len(searches)
    if searches_left <= 0 or (position.turns and not _reads_left(state, step, limits.max_reads_per_step)):
        return []
    if position.route is Route.QUICK:
        return query_nodes(step, [step.text], state.iteration)
    names = {node.id for node in state.plan.children(step)}
    titles = [source.title for source in state.readable_sources() if names.intersection(source.sub_query_ids)]
    offered = _unread_pages(state, step)
    request = ResearchStepInput(
        step_title=step.text,
        description=step.expected_contribution,
        most_queries=searches_left,
        asked=[node.text for node in state.plan.sub_queries],
        observations=[finding.statement for finding in findings_of(state, step)],
        titles=titles[:SHOWN_TITLES],
        pages=[hit.title for hit in offered],
        turn=position.turns + 1,
    )
    output = await run.ask(RESEARCHER, f"research/{step.id}/{position.turns + 1}", request)
    known = {node.id for node in state.plan.nodes}
    nodes = [node for node in query_nodes(step, output.queries, state.iteration) if node.id not in known]
    if output.pages:
        # A sub-query whose hits are there already is read without a search.
        chosen = query_nodes(step, [step.expected_contribution or step.text], state.iteration)[0]
        update = {"id": sub_query_id(f"{step.id} pages {position.turns + 1}"), "origin": WITHOUT_SEARCH}
        nodes.append(chosen.model_copy(update=update))
        hits = [offered[number - 1].model_copy(update={"rank": rank}) for rank, number in enumerate(output.pages, 1)]
        state.candidates += [Candidate(sub_query_id=nodes[-1].id, hit=hit) for hit in hits]
        run.decide(RESEARCHER.name, "choose_pages", output.reasoning, {"offered": len(offered)}, {"chosen": len(hits)})
    return nodes


def _unread_pages(state: ResearchState, step: PlanNode) -> list[SearchHit]:
    """Return titled hits of the step's searches and of the background that were not read, each page once."""
    names, known = {node.id for node in state.plan.children(step)}, Identities(state.sources, state.aliases)
    hits = [one.hit for one in state.candidates if one.sub_query_id in names]
    unread: dict[str, SearchHit] = {}
    for hit in [*hits, *ReflectivePosition.of(state).background]:
        if hit.title and known.identity_of(hit) not in state.sources:
            unread.setdefault(canonical_url(hit.url), hit)
    return list(unread.values())[:OFFERED_PAGES]


def _reads_left(state: ResearchState, step: PlanNode, most: int) -> int:
    """Return the number of sources that a step may still read; unreadable ones count."""
    names = {node.id for node in state.plan.children(step)}
    read = [source for source in state.sources.values() if names.intersection(source.sub_query_ids[:1])]
    return max(0, most - len(read))


def _assign_all_sources(state: ResearchState, step: PlanNode) -> None:
    """Assign all read sources to a step that only thinks, by a sub-query that counts as searched."""
    node = query_nodes(step, [step.expected_contribution or step.text], state.iteration)[0]
    if any(known.id == node.id for known in state.plan.nodes):
        return
    update = {"status": NodeStatus.COMPLETED, "origin": WITHOUT_SEARCH}
    state.plan = state.plan.with_nodes(node.model_copy(update=update))
    for source in state.readable_sources()[:MOST_SOURCES]:
        owners = [*source.sub_query_ids, node.id]
        state.sources[source.id] = source.model_copy(update={"sub_query_ids": owners})


async def investigate(run: ResearchRun) -> None:
    """Search for two or three things in parallel, and store the first hits for the planner; no page is fetched.

    Raises `Interrupted`.
    """
    request = InvestigateInput(
        most_queries=BACKGROUND_QUERIES, context=run.resolved.context, corpus=run.resolved.corpus
    )
    output = await run.ask(INVESTIGATOR, "background", request)
    nodes = [PlanNode(id=sub_query_id(text), text=text) for text in output.queries]
    number = run.decide(AgentRole.GATHERER, "search_background", "", {"queries": len(nodes)})
    searching, turns = Searching(run, nodes), asyncio.Semaphore(run.resolved.limits.max_parallel)

    async def search(node: PlanNode) -> Answers:
        async with turns:
            return await searching.search(node)

    async def search_all() -> list[Answers]:
        return await asyncio.gather(*map(search, nodes))

    answers = await run.within_limits(search_all())
    hits: dict[str, SearchHit] = {}
    for node, answer in zip(nodes, answers, strict=True):
        asked = [record_of(node, name, found=found, source_type=kind) for name, kind, found in answer.asked]
        run.state.query_ledger += asked
        if answer.failed is not None:
            run.note("status", f"background search failed: {node.text}: {answer.failed}", level="warning")
            continue
        for hit in searching.response(answer).hits[:HITS_OF_QUERY]:
            hits.setdefault(canonical_url(hit.url), hit)
    ReflectivePosition.of(run.state).background = list(hits.values())
    run.decided(number, {"titles": len(hits)})
