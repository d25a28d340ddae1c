"""The scoped strategy `executor`: leaves and executors below side by side → report → self-check → correction.

Each executor is an agent with its part of the tree. A correction adds leaves to the executor itself, and executors
below it only where a level is left; what was found before stays.
"""

from typing import Final

from contracts.agents import SUMMARY_CHARACTERS, NodeEnd, NodeSummary
from contracts.evidence import Gap
from contracts.outcome import Mark, Pause, Progress, UnitProgress
from contracts.recursive_roles import EXECUTOR, SelfCheckInput
from contracts.roles import SYNTHESIZER, ProposedGap
from contracts.state import OpenPause, ResearchState, Unit
from contracts.texts import plural
from contracts.vocabulary import Action, EngineKind, GapStatus, Severity, StopReason
from workflows.phases.drafts import take_draft
from workflows.phases.role_calls import ask_for
from workflows.phases.role_inputs import write_input
from workflows.rules.gaps import open_gaps
from workflows.run.research_run import ResearchRun
from workflows.strategies.protocol import Finished, ScopedStrategy
from workflows.strategies.recursive.corrections import correct
from workflows.strategies.recursive.leaves import work_on_node
from workflows.strategies.recursive.position import (
    CALLER,
    LABELS,
    NO_SOURCES,
    ExecutorPosition,
    NodeUnit,
    due_leaves,
    position_of,
    read_position,
)
from workflows.strategies.units import carry_out

SUFFICIENT: Final = "its report is sufficient"
USED_UP: Final = "its corrections are used up"
NO_PROGRESS: Final = "the last correction brought nothing new"
REPORT_WORDS: Final = 1_500
"""Of the report of one executor: about 3,000 of the 4,000 tokens that it may have."""
GAPS_SHOWN: Final = 12
STATEMENTS_SHOWN: Final = 20


class ExecutorStrategy(ScopedStrategy):
    """One unit per call."""

    async def advance(self, run: ResearchRun) -> Unit | Finished:
        """Do the unit that comes next."""
        position = position_of(run.state)
        if position.finished:
            is_open = run.state.unaddressed_gaps()
            return Finished(StopReason.NO_ACTIONABLE_GAPS if is_open else StopReason.NO_OPEN_GAPS)
        kind = position.next_unit
        work = {
            NodeUnit.WORK: work_on_node,
            NodeUnit.REPORT: _report,
            NodeUnit.CHECK: _check,
            NodeUnit.CORRECTION: correct,
        }[kind]
        name = kind.value if not position.corrections else f"{kind.value}-{position.corrections + 1}"
        await carry_out(run, name, LABELS[kind], work, lambda: _summary(run.state))
        return Unit(name=name, iteration_ended=kind is NodeUnit.CHECK)

    async def pause(self, run: ResearchRun, opened: OpenPause) -> Pause:
        """Move on: from the self-check to a correction, or to the end."""
        position = position_of(run.state)
        position.next_unit = {
            NodeUnit.WORK: NodeUnit.REPORT,
            NodeUnit.REPORT: NodeUnit.CHECK,
            NodeUnit.CHECK: NodeUnit.CORRECTION,
            NodeUnit.CORRECTION: NodeUnit.WORK,
        }[position.next_unit]
        position.finished = bool(position.ended)
        action = Action.COMPLETE if position.finished else Action.PROCEED
        run.state.pause = Pause(phase=opened.unit.name, action=action, rationale=position.ended)
        return run.state.pause

    def resume(self, state: ResearchState, *, redo_analysis: bool) -> None:
        """No effect: an executor is not resumed by itself, its run gives its task again."""

    def replan(self, state: ResearchState) -> None:
        """No effect: its tree was authorized with the scope."""

    def progress(self, state: ResearchState) -> Progress:
        """Return its leaves, and its corrections."""
        position = read_position(state)
        units = [
            UnitProgress(
                name=leaf.id,
                label=leaf.task_detail or leaf.task_type.value.replace("_", " ").lower(),
                mark=Mark.DONE if leaf.id in position.done else Mark.WAITING,
                detail="failed" if leaf.id in position.failed else "",
            )
            for leaf in (position.tree.root.leaves if position.tree.nodes else [])
        ]
        return Progress(summary=_summary(state), units=units)

    async def conclude(self, run: ResearchRun) -> str:
        """State what was not carried out, and sum up. Raises `Interrupted`."""
        state, position = run.state, position_of(run.state)
        undone = [leaf.task_detail or position.tree.root.goal for leaf in due_leaves(position)]
        drafts = [ProposedGap(description=f"Not looked into to its end: {text}", priority=1) for text in undone]
        state.gaps = [*state.gaps, *open_gaps(state, drafts, f"sub_query:{state.scope}")]
        if not state.findings and not state.unaddressed_gaps():
            drafts = [ProposedGap(description=f"Nothing in the vetted sources answers “{position.tree.root.goal}”.")]
            state.gaps = [*state.gaps, *open_gaps(state, drafts, f"sub_query:{state.scope}")]
        found = state.draft.summary if state.draft else state.findings[0].statement if state.findings else ""
        return f"{_summary(state)}: {found or 'nothing was found'}"[:SUMMARY_CHARACTERS]

    def describe_node(self, state: ResearchState) -> NodeSummary | None:
        """Return this executor's node of the tree, with the reason for its end."""
        position, limits = read_position(state), state.resolution.limits
        root = position.tree.root
        reasons = {USED_UP: NodeEnd.CORRECTIONS_USED, NO_PROGRESS: NodeEnd.NO_PROGRESS, NO_SOURCES: NodeEnd.NO_PROGRESS}
        end = reasons.get(position.ended, NodeEnd.SUFFICIENT)
        if not position.ended:
            end = NodeEnd.TIME if state.deadline_at and limits.reserve_seconds else NodeEnd.STOPPED
        return NodeSummary(
            id=state.scope,
            goal=root.goal,
            level=root.level,
            source_ids=list(dict.fromkeys(leaf.source_id for leaf in root.leaves)),
            corrections=position.corrections,
            end=end,
        )


def _summary(state: ResearchState) -> str:
    position = read_position(state)
    leaves = [leaf for leaf in position.tree.root.leaves if leaf.id in position.done]
    below = len(position.tree.children(position.tree.root))
    parts = [plural(len(leaves), "task"), plural(len(state.findings), "finding")]
    return ", ".join([*parts, *([plural(below, "executor")] if below else [])])


# --- units -----------------------------------------------------------------------------------------------------------
async def _report(run: ResearchRun) -> None:
    """Join results of leaves and reports from below into one text; a single input passes as it is.

    Raises `Interrupted`.
    """
    if len({finding.sub_query_id for finding in run.state.findings}) < 2:
        return
    request = write_input(run, issues=[]).model_copy(update={"target_words": REPORT_WORDS})
    output = await ask_for(run, CALLER, SYNTHESIZER, "synthesize", request)
    await take_draft(run, output.draft)


async def _check(run: ResearchRun) -> None:
    """Compare the report with the goal, and decide whether it is corrected. Raises `Interrupted`."""
    state, position = run.state, position_of(run.state)
    left = run.resolved.limits.max_corrections - position.corrections
    gaps = _gaps_to_judge(state, position)
    request = SelfCheckInput(
        goal=position.tree.root.goal,
        draft=state.draft.document if state.draft else None,
        statements=[] if state.draft else [finding.statement for finding in state.findings[:STATEMENTS_SHOWN]],
        gaps=gaps,
        corrections_left=left,
    )
    answer = await run.ask(EXECUTOR, "check", request, EngineKind.EXTRACTIVE if not state.findings else None)
    evidence, closed = len(state.evidence), _closed(state)
    is_idle = position.corrections > 0 and (evidence, closed) == (position.seen_evidence, position.seen_closed)
    position.material = answer.material
    if not position.material:
        position.ended = SUFFICIENT if answer.sufficient else "nothing that is missing can be closed"
    elif left <= 0:
        position.ended = USED_UP
    elif is_idle:
        position.ended = NO_PROGRESS
    position.seen_evidence, position.seen_closed = evidence, closed
    run.decide(
        EXECUTOR.name,
        "end_node" if position.ended else "correct_node",
        answer.reason or position.ended,
        {"corrections": position.corrections, "gaps": len(gaps)},
        {"material": position.material, "ended": position.ended},
    )


def _gaps_to_judge(state: ResearchState, position: ExecutorPosition) -> list[Gap]:
    """Return the open gaps for the self-check, the most important first; the goal itself where nothing was found."""
    if not state.findings:
        goal = position.tree.root.goal
        draft = ProposedGap(description=f"Nothing was found for: {goal}", suggested_queries=[goal], priority=1)
        state.gaps = [*state.gaps, *open_gaps(state, [draft], f"sub_query:{state.scope}")]
    open_now = sorted(state.unaddressed_gaps(), key=lambda gap: (gap.severity is Severity.MINOR, gap.priority))
    return open_now[:GAPS_SHOWN]


def _closed(state: ResearchState) -> int:
    return sum(gap.status is GapStatus.ADDRESSED for gap in state.gaps)
