"""One turn of an agent: it calls, its calls are held to its limits and carried out, and every one is answered."""

from typing import Final

from contracts.addresses import sub_query_id
from contracts.evidence import Finding
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
from contracts.plan import PlanNode
from contracts.state import ResearchState
from contracts.tools import ToolAnswer, ToolCall, refusal_of
from workflows.rules.query_matching import same_query
from workflows.rules.sub_queries import sources_left
from workflows.run.research_run import ResearchRun
from workflows.strategies.orchestrator.agent_position import (
    AgentPosition,
    pages_found,
    position_of,
    read_position,
    unopened,
)
from workflows.strategies.orchestrator.agent_reading import WantedCalls, carry_out, told_of_page, told_of_search
from workflows.strategies.orchestrator.cycle_rules import CALL_A_TOOL, THINK_ALONE, THOUGHT
from workflows.strategies.orchestrator.model_kind import reasons

MOST_SILENT: Final = 2
"""Turns in a row without a call, after which the agent's work ends."""
MORE_TURNS: Final = 4
"""Beyond one for each search and each page."""
MOST_SHOWN: Final = 12
"""Pages and gaps that a script is told of."""
OPEN_SOME: Final = "Titles prove nothing: open the pages that promise most, unless the task is answered already."
REPORT_AFTERWARDS: Final = "The other calls of this turn came first: look at what they brought, then report."


def allowed(state: ResearchState, what: str) -> int:
    """How many `searches` or `pages` the agent may use: as who gave the task says, else as its preset does."""
    told = state.task.given.get(what) if state.task else None
    if isinstance(told, int):
        return told
    limits = state.resolution.limits
    return limits.max_searches_per_step if what == "searches" else limits.max_reads_per_step


def searches_left(state: ResearchState) -> int:
    """How many more searches the agent may make."""
    return max(0, allowed(state, "searches") - read_position(state).searches)


def pages_left(state: ResearchState) -> int:
    """How many more pages it may open."""
    limits = state.resolved.limits if state.resolved else None
    if limits is None:
        return 0
    position = read_position(state)
    opened = len(position.opened) - position.opened_before
    return max(0, min(allowed(state, "pages") - opened, sources_left(state, limits)))


def why_no_further_turn(state: ResearchState) -> str:
    """Why the agent has nothing more to decide; empty while it has."""
    position, limits = read_position(state), state.resolved.limits if state.resolved else None
    if position.finished or limits is None:
        return position.finished or "there is nothing to do"
    if position.silent >= MOST_SILENT:
        return "it called no tool"
    turns = position.turn - position.first_turn
    if turns >= allowed(state, "searches") + allowed(state, "pages") + MORE_TURNS:
        return "its turns are used up"
    if not searches_left(state) and not (pages_left(state) and unopened(state)):
        return "its searches and pages are used up"
    return ""


async def take_turn(run: ResearchRun) -> None:
    """Take a turn, or finish the one that was interrupted. Raises `Interrupted`."""
    position = position_of(run.state)
    if not position.is_under_way:
        output = await run.turn(AGENT, f"work/{position.turn}", _request(run))
        position.transcript, position.calls = output.transcript, output.calls
        position.is_under_way = True
        for call in output.calls:
            run.note(
                "agent.turn",
                f"{call.name}: {_subject(call)}".removesuffix(": "),
                tool=call.name,
                sub_turn=position.turn,
            )
    position.answers = await _answers(run, position)
    position.is_under_way = False
    position.turn += 1


def _request(run: ResearchRun) -> WorkInput:
    state, position = run.state, position_of(run.state)
    thinks = reasons(run.resolved, AGENT)
    offered = [SEARCH_TOOL] if searches_left(state) else []
    if position.searches or position.earlier or not offered:
        offered.append(REPORT_TOOL)
    if pages_left(state) and unopened(state):
        offered.append(OPEN_TOOL)
    if not thinks and not position.thought:
        offered.append(THINK_TOOL)
    return WorkInput(
        transcript=position.transcript,
        answers=position.answers,
        offered=offered,
        reminder=_reminder(run, position),
        searches_left=searches_left(state),
        pages_left=pages_left(state),
        reasons=thinks,
        found=unopened(state)[:MOST_SHOWN],
        searches=position.searches,
        open_gaps=[gap.description for gap in state.unaddressed_gaps()][:MOST_SHOWN],
    )


def _reminder(run: ResearchRun, position: AgentPosition) -> str:
    if position.silent:
        return CALL_A_TOOL
    if position.turn == position.first_turn > 1:
        return f"You go on, with a further task: {run.resolved.query}"
    if position.has_searched and pages_left(run.state) and unopened(run.state):
        return OPEN_SOME
    return ""


async def _answers(run: ResearchRun, position: AgentPosition) -> list[ToolAnswer]:
    """Carry out the calls; an answer for each, in their order. Raises `Interrupted`."""
    calls = position.calls
    usable = [call for call in calls if not call.problem]
    position.silent = 0 if calls else position.silent + 1
    position.has_searched = any(call.name == SEARCH_TOOL for call in usable)
    thoughts = [call for call in usable if call.name == THINK_TOOL]
    position.thought = bool(thoughts)
    if thoughts:
        run.note("agent.thought", str(thoughts[0].arguments.get("reasoning", "")), sub_turn=position.turn)
        position.has_searched = False
        return [_of_thought(call, call.id == thoughts[0].id) for call in calls]
    sorted_calls = _Sorting(run, position, usable)
    known = {finding.id for finding in run.state.findings}
    await carry_out(run, sorted_calls.wanted)
    answers = sorted_calls.answers(known)
    reports = [call for call in usable if call.name == REPORT_TOOL]
    if reports and not sorted_calls.wanted.nodes and not sorted_calls.wanted.pages:
        position.open_questions = [
            text.strip()[:400] for text in AGENT_REPORT.read(reports[0]).open_questions if text.strip()
        ]
        position.finished = "it has reported"
        answers[reports[0].id] = ToolAnswer(call_id=reports[0].id, text="The report was handed over.")
    return [answers.get(call.id) or refusal_of(call) for call in calls]


def _of_thought(call: ToolCall, is_first: bool) -> ToolAnswer:
    if call.problem:
        return refusal_of(call)
    return ToolAnswer(call_id=call.id, text=THOUGHT if is_first else THINK_ALONE, is_error=not is_first)


class _Sorting:
    """What becomes of the calls of one turn: what they want, and what is refused of it."""

    def __init__(self, run: ResearchRun, position: AgentPosition, calls: list[ToolCall]) -> None:
        self._run = run
        self._position = position
        self._calls = calls
        self.wanted = WantedCalls()
        self._refused: dict[str, str] = {}
        self._of_call: dict[str, PlanNode | int] = {}
        self._left = {SEARCH_TOOL: searches_left(run.state), OPEN_TOOL: pages_left(run.state)}
        for call in calls:
            if call.name == SEARCH_TOOL:
                self._search(call)
            elif call.name == OPEN_TOOL:
                self._open(call)

    def _search(self, call: ToolCall) -> None:
        run, text = self._run, " ".join(SEARCH.read(call).query.split())
        made = [node for node in run.state.plan.nodes if same_query(node.text, text)]
        made += [node for node in self.wanted.nodes.values() if same_query(node.text, text)]
        if made:
            self._of_call[call.id] = made[0]  # its answer is told once more
            return
        if not self._left[SEARCH_TOOL]:
            self._refused[call.id] = "no search is left: open pages that were found, or report"
            return
        node = PlanNode(id=sub_query_id(text), text=text, iteration=run.state.iteration)
        self.wanted.nodes[node.id] = node
        self._of_call[call.id] = node
        self._position.searches += 1
        self._left[SEARCH_TOOL] -= 1

    def _open(self, call: ToolCall) -> None:
        run, number = self._run, OPEN_PAGE.read(call).index
        found = pages_found(run.state)
        if not 0 < number <= len(found):
            self._refused[call.id] = f"there is no page {number}: " + (
                f"pages are numbered from 1 to {len(found)}" if found else "search first"
            )
        elif number in self._position.opened or number in self.wanted.pages:
            self._refused[call.id] = f"page {number} was opened already: its notes stand above"
        elif run.is_excluded(found[number - 1].hit):
            self._refused[call.id] = f"page {number} is excluded by the request"
        elif not self._left[OPEN_TOOL]:
            self._refused[call.id] = "no page is left to open: report what was found"
        else:
            self.wanted.pages.append(number)
            self._of_call[call.id] = number
            self._left[OPEN_TOOL] -= 1

    def answers(self, known: set[str]) -> dict[str, ToolAnswer]:
        """By call: what came of it; `known` are findings of earlier turns."""
        state = self._run.state
        numbers = {finding.id: place for place, finding in enumerate(state.findings, start=1)}
        fresh: list[Finding] = [finding for finding in state.findings if finding.id not in known]
        found: dict[str, ToolAnswer] = {}
        for call in self._calls:
            of_call = self._of_call.get(call.id)
            if call.id in self._refused:
                found[call.id] = ToolAnswer(call_id=call.id, text=self._refused[call.id], is_error=True)
            elif isinstance(of_call, PlanNode):
                text = told_of_search(state, SEARCH.read(call).query, of_call)
                found[call.id] = ToolAnswer(call_id=call.id, text=text)
            elif isinstance(of_call, int):
                text, failed = told_of_page(state, of_call, fresh, numbers)
                found[call.id] = ToolAnswer(call_id=call.id, text=text, is_error=failed)
            else:
                found[call.id] = ToolAnswer(call_id=call.id, text=REPORT_AFTERWARDS, is_error=True)
        return found


def _subject(call: ToolCall) -> str:
    """What a call is about, in a few words."""
    if call.problem:
        return f"refused: {call.problem}"[:150]
    return " ".join(str(value) for value in call.arguments.values() if value)[:150]
