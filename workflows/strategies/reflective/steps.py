"""The steps of a plan: by status, as a new plan changes them, with their searches and results."""

from collections.abc import Sequence
from typing import Final

from contracts.addresses import sub_query_id
from contracts.evidence import Finding
from contracts.plan import Plan, PlanNode
from contracts.reflective_roles import StepSummary
from contracts.state import ResearchState
from contracts.vocabulary import Confidence, NodeStatus
from workflows.strategies.reflective.position import UnitKind

MAX_OBSERVATIONS: Final = 6
"""Statements of a step shown to planner and reflector."""


def named_step(state: ResearchState, unit: str) -> PlanNode | None:
    """Return the step done by the unit with this name; None for a unit that only analyzed leftovers."""
    steps = state.work.plan.steps
    number = unit.removeprefix(f"{UnitKind.STEP}-")
    if number.isdecimal() and 0 < int(number) <= len(steps):
        return steps[int(number) - 1]
    return None


def steps_with_status(plan: Plan, *statuses: NodeStatus) -> list[PlanNode]:
    """Return the steps with one of these statuses."""
    return [step for step in plan.steps if step.status in statuses]


def completed_steps(plan: Plan) -> list[PlanNode]:
    """Return the completed steps, which no later plan changes."""
    return steps_with_status(plan, NodeStatus.COMPLETED)


def pending_steps(plan: Plan) -> list[PlanNode]:
    """Return the unfinished steps, the current one first."""
    return [*steps_with_status(plan, NodeStatus.EXECUTING), *steps_with_status(plan, NodeStatus.PENDING)]


def replaceable_steps(plan: Plan) -> list[PlanNode]:
    """Return the steps that a new plan may replace: not started, and not requested by a person during the run."""
    return [step for step in steps_with_status(plan, NodeStatus.PENDING) if step.gap_id is None]


def room_for_steps(plan: Plan, limit: int) -> int:
    """Return the number of steps that a planner may still add; started and requested steps count against the limit."""
    fixed = len(plan.steps) - len(steps_with_status(plan, NodeStatus.SKIPPED)) - len(replaceable_steps(plan))
    return max(0, limit - fixed)


def open_queries(state: ResearchState, step: PlanNode) -> list[PlanNode]:
    """Return the unfinished searches of a step."""
    unfinished = (NodeStatus.PENDING, NodeStatus.EXECUTING)
    return [node for node in state.work.plan.children(step) if node.status in unfinished]


# --- changes of the plan ---------------------------------------------------------------------------------------------
def with_new_steps(plan: Plan, brief: str, fresh: Sequence[PlanNode]) -> Plan:
    """Return the plan with new steps in place of the replaceable ones."""
    replaced = {step.id for step in replaceable_steps(plan)}
    nodes = {node.id: node for node in plan.nodes if node.id not in replaced}
    fresh = [step for step in fresh if step.id not in nodes]
    return Plan(version=plan.version + 1, brief=brief, nodes=[*nodes.values(), *fresh])


def query_nodes(step: PlanNode, queries: Sequence[str], iteration: int) -> list[PlanNode]:
    """Return the searches of a step as its child nodes."""
    return [
        PlanNode(
            id=sub_query_id(text),
            text=text,
            expected_contribution=step.expected_contribution,
            parent=step.id,
            depth=1,
            iteration=iteration,
        )
        for text in queries
    ]


# --- results of a step -----------------------------------------------------------------------------------------------
def findings_of(state: ResearchState, step: PlanNode) -> list[Finding]:
    """Return the findings of a step, in order."""
    search_ids = {node.id for node in state.work.plan.children(step)}
    return [finding for finding in state.evidence.findings if finding.sub_query_id in search_ids]


def summarize_steps(state: ResearchState, *statuses: NodeStatus) -> list[StepSummary]:
    """Return summaries of the steps for planner and reflector: those with these statuses, or all if none is given."""
    return [
        StepSummary(
            title=step.text,
            status=step.status,
            # Best-supported findings first.
            observations=[
                finding.statement
                for finding in sorted(findings_of(state, step), key=lambda one: list(Confidence).index(one.confidence))
            ][:MAX_OBSERVATIONS],
            queries=[node.id for node in state.work.plan.children(step)],
            finding_count=step.finding_count,
        )
        for step in (steps_with_status(state.work.plan, *statuses) if statuses else state.work.plan.steps)
    ]
