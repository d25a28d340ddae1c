"""Agents of a run: started with limited concurrency, awaited within time limits, merged in task order."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final

from temporalio.exceptions import ApplicationError, CancelledError, ChildWorkflowError, TemporalError

from contracts.agents import AgentRecord, AgentShare, AgentTask, TaskResult
from contracts.call_sizes import USUAL_READING, CallSizes, likely_call, likely_cost_share, worst_call
from contracts.canary import STEERED_NOTE
from contracts.outcome import Usage
from contracts.plan import PlanNode
from contracts.roles import ANALYZER, RoleInput, RoleSpec
from contracts.sentences import Message
from contracts.strategies import declaration
from contracts.texts import plural
from contracts.tokens import TokenShare
from contracts.vocabulary import AgentStatus, EngineKind, NodeKind, StopReason
from workflows.rules.agents import (
    Room,
    add_earlier_usage,
    agent_request,
    agents_at_once,
    divide_shares,
    merge_agent,
    readings_paid,
    with_part,
)
from workflows.rules.sub_queries import sources_left
from workflows.run.budget import NOTHING, Reservation, account
from workflows.run.checkpoints import Checkpoints
from workflows.run.context import RunContext
from workflows.run.inbox import Interrupted
from workflows.run.run_budget import RunBudget

DECIDER: Final = "agents"
"""Author of decisions about agents."""
MARGIN_SECONDS: Final = 3.0
"""Time between an agent's deadline and that of its run's work."""
MARGIN_SHARE: Final = 0.1
GRACE_SECONDS: Final = 3.0
"""Grace period for agents to return partial results when their run must end."""
MIN_GRACE_SECONDS: Final = 0.5
"""Shortest grace period for agents of agents, at any level."""
FINDINGS_OF_AGENT: Final = 15
"""Findings that an agent likely brings, for which room in the report is reserved: 7 agents of a real run had 174."""
USUAL_AGENTS: Final = 5
"""Most agents of one turn that are counted on: real orchestrators sent four to seven at first, then one or two."""
READINGS_OF_AGENT: Final = 3
"""Pages that one agent likely has read: seven real ones had one to five."""
MAX_TASK_CHARACTERS: Final = 150
"""Characters of a task, or of a call's subject, shown in a run's log."""


def grace_seconds(level: int) -> float:
    """Return the time that a run (level 0) or an agent waits for its agents once they must end.

    It is a second shorter per level, so that findings of the lowest agents reach the top in time.
    """
    return max(MIN_GRACE_SECONDS, GRACE_SECONDS - level)


class Agents:
    """Starts agents with tasks and merges their results."""

    def __init__(self, run: RunContext, budget: RunBudget, checkpoints: Checkpoints) -> None:
        self._run = run
        self._budget = budget
        self._checkpoints = checkpoints
        self._branches: dict[str, int] = {}
        """Number of each agent among those started together, from 0."""
        self._calls: dict[str, asyncio.Task[TaskResult]] = {}
        """Calls in flight by agent, awaited or not."""
        self._shared_at = 0
        """Number of ended reservations when shares were fixed last."""

    @property
    def under_way(self) -> bool:
        """Return true if an agent is working, awaited or not; continue-as-new must then wait."""
        return bool(self._calls)

    async def spawn(self, tasks: Sequence[AgentTask], at_once: int, caller: str) -> list[TaskResult]:
        """See `ResearchRun.spawn`. Raises ValueError for duplicate task ids, or a strategy that is not for agents."""
        if len({task.id for task in tasks}) != len(tasks):
            raise ValueError("two tasks of agents have one id")
        for task in tasks:
            self._run.check_call(caller, task.strategy)
            if not declaration(task.strategy).scoped:
                raise ValueError(f"the strategy {task.strategy} does not work on tasks of agents")
            self._record(task)
        todo = [task.id for task in tasks if not self._find(task.id).is_over]
        if todo:
            await self._carry_out(todo, max(1, at_once), caller)
        return [result for task in tasks if (result := self._find(task.id).result)]

    # --- work --------------------------------------------------------------------------------------------------------
    async def _carry_out(self, todo: list[str], at_once: int, caller: str) -> None:
        """Run the agents, and merge each as soon as those before it are merged.

        If the run must end, working agents are stopped, and their partial results merged in the same order.
        """
        run = self._run
        at_once = self._share_out(todo, at_once)
        queued = max(0, len(todo) - at_once)
        outputs = {"agents": todo, "at_once": at_once, "queued": queued}
        text = f"{plural(len(todo), 'task')}, {min(at_once, len(todo))} at once"
        run.decide(DECIDER, "dispatch", text, {"caller": caller} if caller else {}, outputs)
        waits = f", {queued} of them when others are done" if queued else ""
        data = {"turn": run.state.work.iteration, "branches": len(todo), "queued": queued}
        run.note("agents.branching", f"starting {plural(len(todo), 'agent')}{waits}", **data)
        for agent in todo:
            run.count_calls(caller, self._find(agent).task.strategy)
            self._replace(self._find(agent).with_fields(status=AgentStatus.QUEUED))
        turns = asyncio.Semaphore(at_once)
        self._branches |= {agent: branch for branch, agent in enumerate(todo)}
        work = {agent: asyncio.ensure_future(self._run_task(agent, turns)) for agent in todo}
        merged = 0
        try:
            while merged < len(todo):
                task = work[todo[merged]]
                await run.host.wait_until(lambda: task.done() or run.inbox.interruption is not None)  # noqa: B023
                if run.inbox.interruption is not None:
                    break
                self._merge(todo[merged], task.result())
                merged += 1
                if merged < len(todo):
                    self._checkpoints.save_in_background()
        except asyncio.CancelledError:
            await self._end(todo[merged:], work, StopReason.USER_CANCELLED)
            raise
        if merged < len(todo) and (reason := run.inbox.interruption) is not None:
            await self._end(todo[merged:], work, reason)
            raise Interrupted(reason)

    async def _end(self, agents: list[str], work: dict[str, "asyncio.Task[TaskResult]"], reason: StopReason) -> None:
        """Stop agents, wait briefly for their partial results, and merge these in task order."""
        run = self._run
        pending = [agent for agent in agents if not work[agent].done()]
        for agent in pending:
            # An agent without a call is still queued.
            self._calls.get(agent, work[agent]).cancel()
        grace = grace_seconds(run.state.level)
        await self._wait(lambda: all(work[agent].done() for agent in pending), grace, "until the agents have answered")
        for agent in agents:
            task = work[agent]
            if not task.done() or task.cancelled():
                task.cancel()
                waits = self._find(agent).status is AgentStatus.QUEUED
                if waits:
                    why = Message("agent_turn_not_come")
                else:
                    why = Message("agent_unanswered")
                record = self._find(agent)
                stub = _stub(record, reason, why)
                self._replace(record.with_fields(status=AgentStatus.CUT_OFF, result=stub, ended_at=run.now_text()))
                self._note("agent.finished", agent, stub.problem)
            elif agent in pending:
                self._merge(agent, task.result().with_fields(stop_reason=reason))
                record = self._find(agent).with_fields(status=AgentStatus.CUT_OFF)
                self._replace(record)
                self._mark_unfinished(record.task)
            else:
                self._merge(agent, task.result())

    async def _run_task(self, agent: str, turns: asyncio.Semaphore) -> TaskResult:
        """Run one agent when there is a free slot; return its result or a stub."""
        run = self._run
        async with turns:
            self._share_out([agent], 1)
            self._top_up(agent)
            record = self._find(agent)
            share = record.share or AgentShare()
            if run.contains_canary(record.task.text):
                run.degrade(STEERED_NOTE)
                return _stub(record, StopReason.INTERNAL_ERROR, Message("agent_repeats"))
            refused = None
            if run.resolved.engine is EngineKind.MODEL:
                refused = _refusal(share)
            if refused is not None:
                return _stub(record, refused, Message("agent_nothing_left", why=refused.value))
            left = run.clock.remaining_work_seconds()
            left -= min(MARGIN_SECONDS, MARGIN_SHARE * max(0.0, left))
            number = self._budget.reservations.open(_reservation(share), TokenShare.ANALYSIS)
            suffix = f"/again-{record.starts + 1}" if record.starts else ""
            record = self._find(agent).with_fields(
                status=AgentStatus.RUNNING,
                starts=record.starts + 1,
                workflow_id=f"{run.resolved.research_id}/{agent}{suffix}",
                started_at=run.now_text(),
            )
            self._replace(record)
            self._mark_unfinished(record.task)
            request = agent_request(run.state, record, run.host.now().timestamp(), left)
            self._note("agent.started", agent, record.task.text)
            call = self._calls[agent] = asyncio.ensure_future(run.host.run_agent(request, record.workflow_id))
            call.add_done_callback(lambda ended: self._settle(record, ended, number))
            seconds = request.deadline_at - run.host.now().timestamp() + grace_seconds(run.state.level)
            await self._wait(call.done, seconds, f"deadline of {agent}")
            if not call.done():
                call.cancel()
                why = Message("agent_late", seconds=f"{seconds:.0f}")
                return _stub(record, StopReason.BUDGET_TIME, why)
            return _call_result(record, call)

    async def _wait(self, is_over: Callable[[], bool], seconds: float, why: str) -> None:
        """Wait for a condition, at most `seconds` seconds."""
        alarm = asyncio.ensure_future(self._run.host.sleep(seconds, why))
        await self._run.host.wait_until(lambda: is_over() or alarm.done())
        alarm.cancel()

    def _settle(self, record: AgentRecord, call: "asyncio.Task[TaskResult]", number: int) -> None:
        """Replace an agent's reservation with its actual usage, even if it answers too late."""
        del self._calls[record.task.id]
        result = _call_result(record, call)
        if result.is_stub:
            # Its usage is unknown, so it stays reserved.
            self._budget.reservations.close(number, _reservation(record.share or AgentShare()))
            return
        self._account(result)
        self._budget.reservations.close(number, NOTHING)

    def _account(self, result: TaskResult) -> None:
        """Count what an agent used, but what the journal gave it again: that is counted already.

        An agent that has agents itself counts all, and says what of it came again.
        """
        state = self._run.state
        again = result.repeated_by_role
        if state.work.task is None:
            for role, usage in result.usage_by_role.items():
                account(state, role, usage.beyond(again.get(role, Usage())))
            return
        for role, usage in result.usage_by_role.items():
            account(state, role, usage)
        accounts = state.accounts
        accounts.answers_counted = list(dict.fromkeys([*accounts.answers_counted, *result.answers_counted]))
        for role, usage in again.items():
            accounts.repeated_by_role[role] = accounts.repeated_by_role.get(role, Usage()).plus(usage)

    def _merge(self, agent: str, result: TaskResult) -> None:
        """Merge an agent's results into the run's state."""
        run = self._run
        record = self._find(agent)
        for caller, calls in result.calls.items():
            # A restarted agent repeats the calls of its earlier start.
            counted = {}
            if record.result:
                counted = record.result.calls.get(caller, {})
            for role, number in calls.items():
                run.count_calls(caller, role, max(0, number - counted.get(role, 0)))
        for decision in merge_agent(run.state, record.task, result):
            run.decide(decision.agent, decision.action, decision.rationale, decision.inputs, decision.outputs)
        sizes = run.state.accounts.call_sizes
        merged = {role: own.merged(sizes.get(role, CallSizes())) for role, own in result.call_sizes.items()}
        run.state.accounts.call_sizes = sizes | merged
        status = AgentStatus.FAILED if result.is_stub else AgentStatus.DONE
        result = add_earlier_usage(result, record.result).with_fields(packed="", call_sizes={})
        self._replace(self._find(agent).with_fields(status=status, result=result, ended_at=run.now_text()))
        run.state.work.note_defects(result.defects)
        if result.problem:
            note = Message("of_agent", agent=agent, note=result.problem)
            (run.branch_failed if result.is_stub else run.degrade)(note)
        outputs = {"stop_reason": result.stop_reason.value, "findings": len(result.finding_ids)}
        summary = result.problem or result.summary
        run.decide(DECIDER, "merge", summary, {"agent": agent}, outputs | {"sources": len(result.source_ids)})
        self._note("agent.finished", agent, result.problem or plural(len(result.finding_ids), "finding"))

    # --- records -----------------------------------------------------------------------------------------------------
    def _find(self, agent: str) -> AgentRecord:
        return next(record for record in self._run.state.work.agents if record.task.id == agent)

    def _record(self, task: AgentTask) -> None:
        """Record a task; one recorded before retains its share and ledger."""
        state = self._run.state
        if state.level:
            task = task.with_fields(level=state.level + 1)
        if state.level and all(node.id != task.id for node in state.work.plan.nodes):
            node = PlanNode(id=task.id, text=task.text, kind=NodeKind.TASK, parent=state.scope, needs_search=False)
            state.work.plan = state.work.plan.with_nodes(node)
        if all(record.task.id != task.id for record in state.work.agents):
            record = AgentRecord(
                task=task,
                known_queries=len(state.evidence.query_ledger),
                known_sources=len(state.evidence.sources),
                known_findings=len(state.evidence.findings),
            )
            state.work.agents = [*state.work.agents, record]

    def _replace(self, changed: AgentRecord) -> None:
        """Put a changed record in the place of the one of the same agent."""
        state = self._run.state
        agent = changed.task.id
        state.work.agents = [changed if record.task.id == agent else record for record in state.work.agents]

    def _share_out(self, todo: list[str], at_once: int) -> int:
        """Fix the shares of agents without reserving them; new agents divide the rest of the budget.

        Where that is too little for all of them, the others get theirs when one of the first is done, from what it has
        left; an agent that waits for its turn also gets a part of that. Returns how many may work at once.
        """
        fresh = [agent for agent in todo if self._find(agent).share is None]
        if not fresh:
            return at_once
        waiting = [agent for agent in self._waiting() if self._find(agent).share is None]
        left = self._left(todo)
        # What is left is not the first one's alone: those that still wait for a share get as much.
        count = self._count_at_once(left, len({*fresh, *waiting}))
        for agent, share in zip(fresh, divide_shares(left, count), strict=False):
            self._replace(self._find(agent).with_fields(share=share))
        self._shared_at = self._budget.reservations.changes
        if count >= len(fresh):
            return at_once
        return min(at_once, count)

    def _top_up(self, agent: str) -> None:
        """Add to the share of an agent that starts its part of what agents before it gave back; the rest waits too."""
        record = self._find(agent)
        share = record.share
        if share is None or record.starts or self._budget.reservations.changes == self._shared_at:
            return
        waiting = self._waiting()
        part = divide_shares(self._left(waiting), len(waiting))[0]
        self._replace(record.with_fields(share=with_part(share, part)))

    def _waiting(self) -> list[str]:
        """Return the agents that have not started and whose turn is still to come."""
        records = self._run.state.work.agents
        return [record.task.id for record in records if record.status is AgentStatus.QUEUED and not record.starts]

    def _left(self, todo: Sequence[str], expected: int = 0) -> AgentShare:
        """Return what is left for agents, beside the shares of those to do and what a report of all findings needs.

        `expected` is the least number of findings still to come.
        """
        run = self._run
        limits = run.resolved.limits
        used = run.state.accounts.usage
        taken = [share for agent in todo if (share := self._find(agent).share)]
        protected = sum(self._find(agent).task.protects for agent in todo)
        at_work = [record.task.id for record in run.state.work.agents if record.status is AgentStatus.RUNNING]
        of_agents = FINDINGS_OF_AGENT * len({*todo, *self._waiting(), *at_work})
        report = self._budget.reserved_for_report(max(expected, of_agents))
        reserved = sum(map(_reservation, taken), self._budget.reservations.total + report)
        cost = limits.max_cost_usd
        tokens = _remaining(limits.max_tokens, used.tokens + reserved.tokens)
        of_share = self._budget.tokens_left(TokenShare.ANALYSIS, self._budget.reservations.total_tokens)
        if of_share is not None:
            tokens = max(0, of_share - sum(share.tokens or 0 for share in taken))
        return AgentShare(
            sources=max(0, sources_left(run.state, limits) - protected - sum(share.sources for share in taken)),
            model_calls=_remaining(limits.max_model_calls, used.model_calls + reserved.calls),
            tokens=tokens,
            cost_usd=None if cost is None else max(0.0, cost - used.known_cost_usd - reserved.cost_usd),
            searches=_remaining(limits.max_searches, used.searches + self._searches_shared_out()),
        )

    def _count_at_once(self, left: AgentShare, number: int) -> int:
        """Return among how many of a number of agents the rest is divided, so that each can read."""
        if self._run.resolved.engine is not EngineKind.MODEL:
            return number
        reader, size = self._budget.likely_reading()
        usd = None
        if reader is not None:
            usd = size.max_usd(self._budget.price(reader))
        return agents_at_once(left, size, usd, number)

    def room_for_reading(self, role: RoleSpec[Any, Any], request: RoleInput, turns: int = 1) -> Room:
        """Return what is left for pages to read after `turns` of a role, that of the request included.

        It is what a report of what was found leaves, and of what these readings likely bring.
        """
        run = self._run
        if run.resolved.engine is not EngineKind.MODEL:
            return Room(None)
        sizes = run.state.accounts.call_sizes
        price = self._budget.price(ANALYZER)
        reserved_usd = USUAL_READING.max_usd(price)
        own = sizes.get(ANALYZER.name)
        usd = own.usd / own.calls if own is not None and own.usd else reserved_usd
        spent = self._likely_turns(role, request, turns)
        best = Room(0)
        for agents in range(1, USUAL_AGENTS + 1):  # what more agents find takes more of the budget for its report
            room = readings_paid(self._left([], FINDINGS_OF_AGENT * agents), spent, USUAL_READING, reserved_usd, usd)
            if room.readings is None:
                return room
            most = READINGS_OF_AGENT * agents if agents < USUAL_AGENTS else room.readings
            if agents == 1 or min(room.readings, most) > (best.readings or 0):
                best = Room(min(room.readings, most), room.limit)
        return best

    def _likely_turns(self, role: RoleSpec[Any, Any], request: RoleInput, turns: int) -> Usage:
        """Return what so many turns of a role likely use: each is sent the whole conversation."""
        run = self._run
        sizes = run.state.accounts.call_sizes
        bound = worst_call(role, request, run.resolved.reasoning_tokens)
        turn = likely_call(role, bound, sizes, run.resolved.reasoning_tokens)
        usd = turn.max_usd(self._budget.price(role)) or 0.0
        return Usage(
            model_calls=turns,
            input_tokens=turns * turn.input_tokens,
            output_tokens=turns * turn.output_tokens,
            cost_usd=turns * usd * likely_cost_share(sizes),
        )

    def _searches_shared_out(self) -> int:
        """Return the searches that agents at work may still make."""
        records = self._run.state.work.agents
        shares = [record.share for record in records if record.share and record.status is AgentStatus.RUNNING]
        return sum(share.searches or 0 for share in shares)

    def _mark_unfinished(self, task: AgentTask) -> None:
        """Set a task's status in the plan to executing; a task that was cut off is unfinished work of the run."""
        plan = self._run.state.work.plan
        nodes = [node.executing() for node in plan.nodes if node.id == task.id]
        self._run.state.work.plan = plan.with_nodes(*nodes)

    def _note(self, kind: str, agent: str, text: str) -> None:
        """Add an event of an agent, with the turn that started it and its number among the agents of that turn."""
        location = {"turn": self._run.state.work.iteration, "branch": self._branches[agent]}
        self._run.note(kind, f"{agent}: {text[:MAX_TASK_CHARACTERS]}", agent=agent, **location)


def _call_result(record: AgentRecord, call: "asyncio.Task[TaskResult]") -> TaskResult:
    """Return the result of an ended call, or a stub with the reason for a missing one."""
    try:
        return call.result()
    except (asyncio.CancelledError, TemporalError) as error:
        cause = error.cause if isinstance(error, ChildWorkflowError) else error
        if isinstance(cause, ApplicationError):
            why = cause.message
        else:
            why = type(cause).__name__
        problem = Message("agent_failed", why=why[:280])
        if isinstance(cause, (CancelledError, asyncio.CancelledError)):
            problem = Message("agent_stopped")
        return _stub(record, StopReason.INTERNAL_ERROR, problem)


def _stub(record: AgentRecord, reason: StopReason, problem: str) -> TaskResult:
    """Return a placeholder result; the usage of an earlier start of the agent stays counted."""
    used = record.result
    known = {}
    if used:
        known = {name: getattr(used, name) for name in ("usage", "usage_by_role", "answers_counted")}
    return TaskResult(stop_reason=reason, problem=problem, is_stub=True, lost=record.task.lost, **known)


def _refusal(share: AgentShare) -> StopReason | None:
    """Return the exhausted limit that keeps an agent with a model from starting; None if there is none."""
    left = (share.model_calls, share.tokens, share.cost_usd)
    reasons = (StopReason.BUDGET_CALLS, StopReason.BUDGET_TOKENS, StopReason.BUDGET_COST)
    return next((reason for reason, amount in zip(reasons, left, strict=True) if amount == 0), None)


def _reservation(share: AgentShare) -> Reservation:
    return Reservation(share.model_calls or 0, share.tokens or 0, share.cost_usd or 0.0)


def _remaining(limit: int | None, used: int) -> int | None:
    if limit is None:
        return None
    return max(0, limit - used)
