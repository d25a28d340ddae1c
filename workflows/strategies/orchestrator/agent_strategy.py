"""The scoped strategy `agent`: turn by turn it searches, has pages read, thinks, and reports its findings."""

from dataclasses import dataclass, field
from typing import Final

from contracts.addresses import sub_query_id
from contracts.agents import SUMMARY_CHARACTERS, AgentReport
from contracts.orchestrator_roles import (
    AGENT,
    AGENT_REPORT,
    OPEN_PAGE,
    OPEN_TOOL,
    REPORT_TOOL,
    SEARCH,
    SEARCH_TOOL,
    THINK_TOOL,
    WorkInput,
)
from contracts.outcome import Mark, Pause, Progress, UnitProgress
from contracts.plan import PlanNode
from contracts.roles import ProposedGap
from contracts.state import OpenPause, ResearchState, Unit
from contracts.texts import plural
from contracts.tools import ToolAnswer, ToolCall, refusal_of
from contracts.vocabulary import Action, EngineKind, GapKind, StopReason
from workflows.rules.gaps import open_gaps
from workflows.rules.query_matching import same_query
from workflows.rules.sub_queries import sources_left
from workflows.run.research_run import ResearchRun
from workflows.strategies.orchestrator.agent_pages import (
    AgentPosition,
    analyze_read,
    continuation_of,
    describe_page,
    describe_search,
    pages_found,
    search_and_read,
    take_continuation,
    unanalyzed,
    unopened,
)
from workflows.strategies.orchestrator.agent_reports import report_of
from workflows.strategies.orchestrator.orchestrator_strategy import CALL_A_TOOL, THINK_ALONE, THOUGHT, thinks_by_itself
from workflows.strategies.protocol import Finished

TURN: Final = "turn"

MOST_SILENT: Final = 2
"""Turns in a row without a call, after which the agent's work ends."""
MORE_TURNS: Final = 4
"""Turns beyond one for each search and each page."""
MOST_SHOWN: Final = 12
"""Pages and gaps in the request of a script without a model."""


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
        run.hooks.enter_phase()
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


@dataclass
class TurnPlan:
    """The calls of one turn, sorted: searches and pages to carry out, and refusals."""

    searches: dict[str, PlanNode] = field(default_factory=dict)
    """New searches by the id of their node."""
    pages: list[int] = field(default_factory=list)
    """Numbers of the pages to open."""
    subjects: dict[str, PlanNode | int] = field(default_factory=dict)
    """Call id → search or page."""
    refusals: dict[str, str] = field(default_factory=dict)
    """Call id → reason."""


async def take_turn(run: ResearchRun) -> None:
    """Take a turn, or finish the one that was interrupted. Raises `Interrupted`."""
    position = AgentPosition.of(run.state)
    if not position.is_under_way:
        output = await run.turn(AGENT, f"work/{position.turn}", _request(run))
        position.transcript, position.calls = output.transcript, output.calls
        position.is_under_way = True
        for call in output.calls:
            text = f"{call.name}: {_subject(call)}".removesuffix(": ")
            run.note("agent.turn", text, tool=call.name, sub_turn=position.turn)
    position.answers = await _carry_out_calls(run, position)
    position.is_under_way = False
    position.turn += 1


async def _carry_out_calls(run: ResearchRun, position: AgentPosition) -> list[ToolAnswer]:
    """Carry out the calls; an answer for each, in their order. Raises `Interrupted`."""
    calls = position.calls
    usable = [call for call in calls if not call.problem]
    position.silent_turns = 0 if calls else position.silent_turns + 1
    thoughts = [call for call in usable if call.name == THINK_TOOL]
    position.thought = bool(thoughts)
    position.has_searched = not thoughts and any(call.name == SEARCH_TOOL for call in usable)
    if thoughts:
        run.note("agent.thought", str(thoughts[0].arguments.get("reasoning", "")), sub_turn=position.turn)
        return [_answer_beside_thought(call, call.id == thoughts[0].id) for call in calls]
    plan = _sort_calls(run.state, position, usable, run)
    known = {finding.id for finding in run.state.findings}
    await search_and_read(run, plan.searches, plan.pages)
    answers = _answers(run.state, plan, usable, known)
    reports = [call for call in usable if call.name == REPORT_TOOL]
    if reports and not plan.searches and not plan.pages:
        questions = [text.strip()[:400] for text in AGENT_REPORT.read(reports[0]).open_questions]
        position.open_questions = [text for text in questions if text]
        position.finished = "it has reported"
        answers[reports[0].id] = ToolAnswer(call_id=reports[0].id, text="The report was handed over.")
    return [answers.get(call.id) or refusal_of(call) for call in calls]


def _answer_beside_thought(call: ToolCall, is_first: bool) -> ToolAnswer:
    if call.problem:
        return refusal_of(call)
    return ToolAnswer(call_id=call.id, text=THOUGHT if is_first else THINK_ALONE, is_error=not is_first)


def _sort_calls(state: ResearchState, position: AgentPosition, calls: list[ToolCall], run: ResearchRun) -> TurnPlan:
    plan, left = TurnPlan(), {SEARCH_TOOL: searches_left(state), OPEN_TOOL: pages_left(state)}
    for call in calls:
        if call.name == SEARCH_TOOL:
            text = " ".join(SEARCH.read(call).query.split())
            made = [node for node in (*state.plan.nodes, *plan.searches.values()) if same_query(node.text, text)]
            if made:
                plan.subjects[call.id] = made[0]  # its result is repeated
            elif not left[SEARCH_TOOL]:
                plan.refusals[call.id] = "no search is left: open pages that were found, or report"
            else:
                node = PlanNode(id=sub_query_id(text), text=text, iteration=state.iteration)
                plan.searches[node.id] = plan.subjects[call.id] = node
                position.searches += 1
                left[SEARCH_TOOL] -= 1
        elif call.name == OPEN_TOOL:
            number = OPEN_PAGE.read(call).index
            if refusal := _reason_against_page(run, number, plan, left[OPEN_TOOL]):
                plan.refusals[call.id] = refusal
            else:
                plan.pages.append(number)
                plan.subjects[call.id] = number
                left[OPEN_TOOL] -= 1
    return plan


def _reason_against_page(run: ResearchRun, number: int, plan: TurnPlan, left: int) -> str:
    """Return the reason for which a page is not opened; empty if it is."""
    found = pages_found(run.state)
    if not 0 < number <= len(found):
        numbers = f"pages are numbered from 1 to {len(found)}" if found else "search first"
        return f"there is no page {number}: {numbers}"
    if number in AgentPosition.read(run.state).opened or number in plan.pages:
        return f"page {number} was opened already: its notes stand above"
    if run.is_excluded(found[number - 1].hit):
        return f"page {number} is excluded by the request"
    return "" if left else "no page is left to open: report what was found"


def _answers(state: ResearchState, plan: TurnPlan, calls: list[ToolCall], known: set[str]) -> dict[str, ToolAnswer]:
    """Return the answers by call; `known` are ids of findings of earlier turns."""
    numbers = {finding.id: place for place, finding in enumerate(state.findings, start=1)}
    fresh = [finding for finding in state.findings if finding.id not in known]
    answers: dict[str, ToolAnswer] = {}
    for call in calls:
        subject, failed = plan.subjects.get(call.id), False
        if call.id in plan.refusals:
            text, failed = plan.refusals[call.id], True
        elif isinstance(subject, PlanNode):
            text = describe_search(state, SEARCH.read(call).query, subject)
        elif isinstance(subject, int):
            text, failed = describe_page(state, subject, fresh, numbers)
        else:
            text = "The other calls of this turn came first: look at what they brought, then report."
            failed = True
        answers[call.id] = ToolAnswer(call_id=call.id, text=text, is_error=failed)
    return answers


def _subject(call: ToolCall) -> str:
    if call.problem:
        return f"refused: {call.problem}"[:150]
    return " ".join(str(value) for value in call.arguments.values() if value)[:150]


# --- the request ---------------------------------------------------------------------------------------------------
def _request(run: ResearchRun) -> WorkInput:
    state, position = run.state, AgentPosition.of(run.state)
    thinks, has_pages = thinks_by_itself(run.resolved, AGENT), bool(pages_left(state) and unopened(state))
    offered = [SEARCH_TOOL] if searches_left(state) else []
    if position.searches or position.earlier or not offered:
        offered.append(REPORT_TOOL)
    if has_pages:
        offered.append(OPEN_TOOL)
    if not thinks and not position.thought:
        offered.append(THINK_TOOL)
    reminder = ""
    if position.silent_turns:
        reminder = CALL_A_TOOL
    elif position.turn == position.first_turn > 1:
        reminder = f"You go on, with a further task: {run.resolved.query}"
    elif position.has_searched and has_pages:
        reminder = "Titles prove nothing: open the pages that promise most, unless the task is answered already."
    return WorkInput(
        transcript=position.transcript,
        answers=position.answers,
        offered=offered,
        reminder=reminder,
        searches_left=searches_left(state),
        pages_left=pages_left(state),
        reasons=thinks,
        found=unopened(state)[:MOST_SHOWN],
        searches=position.searches,
        open_gaps=[gap.description for gap in state.unaddressed_gaps()][:MOST_SHOWN],
    )


# --- limits --------------------------------------------------------------------------------------------------------
def reason_to_end(state: ResearchState) -> str:
    """Return the reason for which the agent takes no further turn; empty while it takes one."""
    position = AgentPosition.read(state)
    if position.finished:
        return position.finished
    if position.silent_turns >= MOST_SILENT:
        return "it called no tool"
    turns = position.turn - position.first_turn
    if turns >= _allowed(state, "searches") + _allowed(state, "pages") + MORE_TURNS:
        return "its turns are used up"
    if not searches_left(state) and not (pages_left(state) and unopened(state)):
        return "its searches and pages are used up"
    return ""


def searches_left(state: ResearchState) -> int:
    """Return the number of searches that the agent may still make."""
    return max(0, _allowed(state, "searches") - AgentPosition.read(state).searches)


def pages_left(state: ResearchState) -> int:
    """Return the number of pages that the agent may still open."""
    position = AgentPosition.read(state)
    opened = len(position.opened) - position.opened_before
    return max(0, min(_allowed(state, "pages") - opened, sources_left(state, state.resolution.limits)))


def _allowed(state: ResearchState, kind: str) -> int:
    """Return the limit of `searches` or `pages`: that of the task, else that of the preset."""
    given = state.task.given.get(kind) if state.task else None
    if isinstance(given, int):
        return given
    limits = state.resolution.limits
    return limits.max_searches_per_step if kind == "searches" else limits.max_reads_per_step
