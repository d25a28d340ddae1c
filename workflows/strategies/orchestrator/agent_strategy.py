"""The scoped strategy `agent`: turn by turn it searches, has pages read, thinks, and reports its findings."""

from typing import Final

from contracts.agents import SUMMARY_CHARACTERS, AgentReport
from contracts.orchestrator_roles import AGENT
from contracts.outcome import Mark, Pause, Progress, UnitProgress
from contracts.roles import ProposedGap
from contracts.state import OpenPause, ResearchState, Unit
from contracts.texts import plural
from contracts.vocabulary import Action, EngineKind, GapKind, StopReason
from workflows.rules.gaps import open_gaps
from workflows.run.research_run import ResearchRun
from workflows.strategies.orchestrator.agent_pages import analyze_read, unanalyzed
from workflows.strategies.orchestrator.agent_position import AgentPosition, continuation_of, take_continuation
from workflows.strategies.orchestrator.agent_reports import report_of
from workflows.strategies.orchestrator.agent_turns import reason_to_end, take_turn
from workflows.strategies.protocol import Finished

TURN: Final = "turn"


class AgentStrategy:
    """One unit per turn. It knows its task, and nothing of the run that gave it."""

    async def advance(self, run: ResearchRun) -> Unit | Finished:
        """Take the turn that comes next."""
        take_continuation(run.state)
        position = AgentPosition.of(run.state)
        if reason := reason_to_end(run.state):
            if not position.finished:
                position.finished = reason
                run.decide(AGENT.name, "end_work", reason)
            return Finished(StopReason.NO_OPEN_GAPS if position.open_questions == [] else StopReason.NO_ACTIONABLE_GAPS)
        name = f"{TURN}-{position.turn}"
        run.state.phase = name
        await run.watchers.enter_phase(run)
        run.note("phase.started", name, phase=name, label=name, sub_turn=position.turn)
        await take_turn(run)
        run.note("phase.finished", name, phase=name, summary=_summary(run.state))
        return Unit(name=name, iteration_ended=True)

    def evaluate(self, run: ResearchRun, unit: Unit) -> OpenPause:
        """Open a pause without a gate: the run that gave the task judges the report."""
        return OpenPause(unit=unit, moment=run.moment())

    async def pause(self, run: ResearchRun, opened: OpenPause) -> Pause:
        """Move on to the next turn."""
        run.state.pause = Pause(phase=opened.unit.name, action=Action.PROCEED)
        return run.state.pause

    def resume(self, state: ResearchState, *, redo_analysis: bool) -> None:
        """Do nothing: an agent is not resumed by itself, its run gives its task again."""

    def replan(self, state: ResearchState) -> None:
        """Do nothing: an agent has no plan."""

    def progress(self, state: ResearchState) -> Progress:
        """Return its turns, and its numbers of pages and findings."""
        position = AgentPosition.read(state)
        last = position.turn - 1 if position.finished else position.turn
        turns = [
            UnitProgress(
                name=f"{TURN}-{number}",
                label=f"{TURN} {number}",
                mark=Mark.DONE if number < position.turn else Mark.RUNNING,
            )
            for number in range(position.first_turn, last + 1)
        ]
        return Progress(summary=_summary(state), units=turns)

    async def conclude(self, run: ResearchRun, reason: StopReason) -> AgentReport:
        """Report the findings in their own words. Raises `Interrupted`."""
        del reason
        state, position = run.state, AgentPosition.of(run.state)
        if unanalyzed(state):
            await analyze_read(run, EngineKind.EXTRACTIVE)
            run.degrade("what was read last was analyzed without the model: the time for work was over")
        if position.open_questions is not None:
            # The agent's own questions replace those of the pages' analyses.
            drafts = [ProposedGap(description=text, kind=GapKind.QUESTION.value) for text in position.open_questions]
            state.gaps = []
            state.gaps = open_gaps(state, drafts, f"sub_query:{state.scope}")
        fresh = [finding for finding in state.findings if finding.id not in set(position.earlier)]
        omitted = report_of(fresh).omitted
        summary = fresh[0].statement if fresh else "nothing was found"
        return AgentReport(
            summary=f"{_summary(state)}: {summary}"[:SUMMARY_CHARACTERS],
            cited=sorted({evidence_id for finding in fresh for evidence_id in finding.evidence_ids}),
            omitted={"findings": omitted} if omitted else {},
            notes=[position.finished] if position.finished and position.open_questions is None else [],
            continuation=continuation_of(state),
        )


def _summary(state: ResearchState) -> str:
    read, found = len(state.readable_sources()), len(state.findings)
    return f"{plural(read, 'page')} read, {plural(found, 'finding')}"
