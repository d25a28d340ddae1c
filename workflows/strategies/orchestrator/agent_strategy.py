"""The scoped strategy `agent`: turn by turn it searches, has pages read, thinks, and reports what was found."""

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
from workflows.strategies.orchestrator.agent_position import go_on, kept_for_later, position_of, read_position
from workflows.strategies.orchestrator.agent_reading import analyze_read, unanalyzed
from workflows.strategies.orchestrator.agent_reports import report_of
from workflows.strategies.orchestrator.agent_turns import take_turn, why_no_further_turn
from workflows.strategies.protocol import Finished

TURN: Final = "turn"


class AgentStrategy:
    """One unit per turn. It knows its task, and nothing of the run that gave it."""

    async def advance(self, run: ResearchRun) -> Unit | Finished:
        """Take the turn that comes next."""
        go_on(run.state)
        position = position_of(run.state)
        if why := why_no_further_turn(run.state):
            if not position.finished:
                position.finished = why
                run.decide(AGENT.name, "end_work", why)
            return Finished(StopReason.NO_OPEN_GAPS if position.open_questions == [] else StopReason.NO_ACTIONABLE_GAPS)
        name = f"{TURN}-{position.turn}"
        run.state.phase = name
        await run.watchers.enter_phase(run)
        run.note("phase.started", name, phase=name, label=name, sub_turn=position.turn)
        await take_turn(run)
        run.note("phase.finished", name, phase=name, summary=_summary(run.state))
        return Unit(name=name, iteration_ended=True)

    def evaluate(self, run: ResearchRun, unit: Unit) -> OpenPause:
        """No rule judges a turn; the report is judged by who gave the task."""
        return OpenPause(unit=unit, moment=run.moment())

    async def pause(self, run: ResearchRun, opened: OpenPause) -> Pause:
        """On to the next turn."""
        run.state.pause = Pause(phase=opened.unit.name, action=Action.PROCEED)
        return run.state.pause

    def resume(self, state: ResearchState, *, redo_analysis: bool) -> None:
        """An agent is not resumed by itself: its run gives its task again."""
        del state, redo_analysis

    def replan(self, state: ResearchState) -> None:
        """An agent has no plan."""
        del state

    def progress(self, state: ResearchState) -> Progress:
        """Its turns, and how much it has read and found."""
        position = read_position(state)
        turns = [
            UnitProgress(name=f"{TURN}-{number}", label=f"{TURN} {number}", mark=Mark.DONE)
            for number in range(position.first_turn, position.turn)
        ]
        if not position.finished:
            name = f"{TURN}-{position.turn}"
            turns.append(UnitProgress(name=name, label=f"{TURN} {position.turn}", mark=Mark.RUNNING))
        return Progress(summary=_summary(state), units=turns)

    async def conclude(self, run: ResearchRun, reason: StopReason) -> AgentReport:
        """What was found, as it is: nothing is worded anew, so nothing is lost. Raises `Interrupted`."""
        del reason
        state, position = run.state, position_of(run.state)
        if unanalyzed(state):
            await analyze_read(run, EngineKind.EXTRACTIVE)
            run.degrade("what was read last was analyzed without the model: the time for work was over")
        _state_gaps(state)
        fresh = [finding for finding in state.findings if finding.id not in set(position.earlier)]
        report = report_of(fresh)
        cited = {finding_id for finding in fresh for finding_id in finding.evidence_ids}
        summary = fresh[0].statement if fresh else "nothing was found"
        return AgentReport(
            summary=f"{_summary(state)}: {summary}"[:SUMMARY_CHARACTERS],
            cited=sorted(cited),
            left_out={"findings": report.left_out} if report.left_out else {},
            notes=[position.finished] if position.finished and position.open_questions is None else [],
            kept=kept_for_later(state),
        )


def _state_gaps(state: ResearchState) -> None:
    """Gaps as the agent says them; as the pages' analyses say them where it did not come to that."""
    position = read_position(state)
    if position.open_questions is None:
        return
    drafts = [ProposedGap(description=text, kind=GapKind.QUESTION.value) for text in position.open_questions]
    state.gaps = []
    state.gaps = open_gaps(state, drafts, f"sub_query:{state.scope}")


def _summary(state: ResearchState) -> str:
    read, found = len(state.readable_sources()), len(state.findings)
    return f"{plural(read, 'page')} read, {plural(found, 'finding')}"
