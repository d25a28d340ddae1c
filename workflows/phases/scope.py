"""The scope of a run: a manager turns the question into queries, or explains why one cannot be answered.

The scope is the run's plan, made without searches. Objections about limits are computed and binding; that a query is
too broad is a model's opinion, which a person may overrule.
"""

from collections.abc import Sequence

from contracts.addresses import normalized_text
from contracts.plan import Objection, ObjectionKind, PlanNode
from contracts.recursive_roles import MANAGER, JudgedQuery, ManagerAnswer, ScopeInput
from contracts.resolved import ResolvedResearch
from contracts.roles import SubQuery
from contracts.state import ResearchState
from contracts.strategies import calls_by_role
from contracts.texts import plural
from contracts.tree_sizes import estimate_trees, structural_objections, tree_calls
from contracts.vocabulary import EngineKind, StopReason
from workflows.rules.sub_queries import plan_sub_queries
from workflows.run.inbox import Interrupted
from workflows.run.research_run import ResearchRun


async def judge_scope(run: ResearchRun) -> None:
    """Make the plan of queries with the objections to them, or judge a plan edited by a person.

    If no person approves the plan, the manager's narrower queries replace one that is too broad, unless there are
    objections to them too. Raises `Interrupted`, with `INFEASIBLE` if objections remain that no person can resolve.
    """
    state = run.state
    is_asked = run.resolved.gates.requires_approval
    answer = await _ask(run, [node.text for node in state.work.plan.parts] if state.work.plan.to_judge else [])
    if state.work.plan.to_judge:
        nodes = state.work.plan.parts
    else:
        nodes = _nodes(run, answer.queries)
    objections = _objections(run, nodes, answer)
    splits: list[str] = []
    if not (is_asked or all(query.feasible for query in answer.queries)):
        parts = ([query.query] if query.feasible else query.splits for query in answer.queries)
        splits = list(dict.fromkeys(text for part in parts for text in part))
    if splits and len(splits) <= max_queries(run):
        second = await _ask(run, splits, "/narrower")
        narrower = _nodes(run, second.queries)
        if not _objections(run, narrower, second):
            nodes = narrower
            objections = [objection.with_fields(followed=True) for objection in objections]
    if state.work.plan.to_judge:
        state.work.plan = state.work.plan.with_fields(objections=objections, to_judge=False)
        judged = f"plan version {state.work.plan.version}: {plural(len(state.work.plan.open_objections), 'objection')}"
        run.note("plan.judged", judged, **state.work.plan.texts())
    else:
        run.draft_plan("", nodes, objections=objections)
    remaining = state.work.plan.open_objections
    for objection in remaining:
        run.note("status", f"objection: {objection.line()}", level="warning")
    text = "; ".join(objection.line() for objection in remaining) or "every query can be answered within the limits"
    outputs = {"queries": len(nodes), "objections": len(remaining)}
    run.decide(MANAGER.name, "judge_scope", text, {"version": state.work.plan.version}, outputs)
    if remaining and not is_asked:
        raise Interrupted(StopReason.INFEASIBLE)


def with_current_limits(state: ResearchState) -> list[Objection]:
    """Return the objections to a plan under the limits in force, which a resumed run may have raised; opinions stay."""
    opinions = [
        objection
        for objection in state.work.plan.objections
        if objection.kind is not ObjectionKind.STRUCTURAL or objection.followed
    ]
    nodes = state.work.plan.parts
    estimate = estimate_scope(state.resolution, [node.text for node in nodes])
    return [*structural_objections(estimate, state.resolution.limits, nodes), *opinions]


def estimate_scope(resolved: ResolvedResearch, queries: Sequence[str]) -> dict[str, float | None]:
    """Return the least work for queries, by limit (see `estimate_trees`)."""
    calls = calls_by_role(resolved, tree_calls(resolved.limits, len(queries)))
    by_model = resolved.engine is EngineKind.MODEL
    return estimate_trees(queries, calls if by_model else {}, resolved.model_prices)


def max_queries(run: ResearchRun) -> int:
    """Return the number of queries that the limits allow, at least one."""
    limits = run.resolved.limits
    fitting = (
        count
        for count in range(limits.max_sub_queries, 1, -1)
        if not structural_objections(estimate_scope(run.resolved, [""] * count), limits, [])
    )
    return next(fitting, 1)


async def _ask(run: ResearchRun, edited: Sequence[str], part: str = "") -> ManagerAnswer:
    request = ScopeInput(
        most_queries=max_queries(run),
        edited=list(edited),
        previous=[] if edited else [node.text for node in run.state.work.plan.parts],
    )
    return await run.ask(MANAGER, f"scope{part}", request)


def _nodes(run: ResearchRun, judged: Sequence[JudgedQuery]) -> list[PlanNode]:
    proposed = [SubQuery(query=query.query, rationale=query.reason, priority=1) for query in judged]
    return plan_sub_queries(proposed, run.state.work.iteration, run.resolved.limits.max_sub_queries)


def _objections(run: ResearchRun, nodes: Sequence[PlanNode], answer: ManagerAnswer) -> list[Objection]:
    """Return the objections to queries: first the computed ones, then the manager's opinions.

    If no person approves the plan and the budget did not allow the manager's call, the work continues without a model
    and names the exhausted limit; budget limits are then no objection to starting.
    """
    refused = run.resolved.engine is not answer.account.engine and not run.state.accounts.fallbacks.get(MANAGER.name)
    pays = run.resolved.gates.requires_approval or not refused
    estimate = estimate_scope(run.resolved, [node.text for node in nodes])
    if not pays:
        estimate = {name: estimate[name] for name in ("max_sources", "deadline_seconds")}
    judged = {normalized_text(query.query): query for query in answer.queries}
    opinions = [
        Objection(query_id=node.id, query=node.text, kind=ObjectionKind.OPINION, text=query.reason, splits=query.splits)
        for node in nodes
        if (query := judged.get(normalized_text(node.text))) is not None and not query.feasible
    ]
    return [*structural_objections(estimate, run.resolved.limits, nodes), *opinions]
