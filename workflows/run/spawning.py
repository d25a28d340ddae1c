"""The agents of a run: tasks given, some at a time, waited for within limits, taken over in task order."""

import asyncio
from collections.abc import Sequence
from typing import Final

from temporalio.exceptions import ApplicationError, CancelledError, ChildWorkflowError, TemporalError

from contracts.agents import AgentRecord, AgentShare, AgentTask, TaskResult
from contracts.canary import STEERED_NOTE
from contracts.outcome import Usage
from contracts.strategies import declaration
from contracts.texts import plural
from contracts.vocabulary import AgentStatus, EngineKind, NodeStatus, StopReason
from workflows.rules.agents import agent_request, merge_agent, shares_of
from workflows.rules.sub_queries import sources_left
from workflows.run.budget import NOTHING, Reservation, account, total
from workflows.run.checkpoints import Checkpoints
from workflows.run.context import RunContext
from workflows.run.inbox import Interrupted
from workflows.run.role_calls import RoleCaller

DECIDER: Final = "agents"
"""The name under which what is decided about agents stands in the decision log."""
MARGIN_SECONDS: Final = 3.0
"""An agent is to have answered so long before its run must write."""
MARGIN_SHARE: Final = 0.1
GRACE_SECONDS: Final = 3.0
"""Time that what an agent has is waited for, once it is told to stop; then nobody waits any longer."""
TASK_SHOWN: Final = 150


class Agents:
    """Gives tasks to agents and takes over what they bring back."""

    def __init__(self, run: RunContext, caller: RoleCaller, checkpoints: Checkpoints) -> None:
        self._run = run
        self._caller = caller
        self._checkpoints = checkpoints
        self._calls: dict[str, asyncio.Task[TaskResult]] = {}
        """By agent: what was begun and has not ended, waited for or not."""
        self._late: list[asyncio.Task[None]] = []
        """Tasks that receive answers after their time."""

    @property
    def under_way(self) -> bool:
        """True if an agent is at work, waited for or not: no history may start anew then."""
        return bool(self._calls)

    async def spawn(self, tasks: Sequence[AgentTask], at_once: int) -> list[TaskResult]:
        """See `ResearchRun.spawn`. Raises ValueError for two tasks of one id, or a strategy that is not for agents."""
        if len({task.id for task in tasks}) != len(tasks):
            raise ValueError("two tasks of agents have one id")
        for task in tasks:
            if not declaration(task.strategy).scoped:
                raise ValueError(f"the strategy {task.strategy} does not work on tasks of agents")
            self._record(task)
        todo = [task.id for task in tasks if not self._of(task.id).is_over]
        if todo:
            await self._carry_out(todo, max(1, at_once))
        return [result for task in tasks if (result := self._of(task.id).result)]

    # --- records -----------------------------------------------------------------------------------------------------
    def _of(self, agent: str) -> AgentRecord:
        return next(record for record in self._run.state.agents if record.task.id == agent)

    def _record(self, task: AgentTask) -> None:
        """Write a task down; the same one, given before, keeps its share and what it knew then."""
        state = self._run.state
        known = {"known_queries": len(state.query_ledger), "known_sources": len(state.sources)}
        given = next((record for record in state.agents if record.task.id == task.id), None)
        if given is None:
            state.agents = [*state.agents, AgentRecord(task=task, **known)]
        elif given.task != task:
            # A resumed run may have decided otherwise: another task under a name that was used.
            again = {"status": AgentStatus.QUEUED, "share": None, "result": None}
            self._change(task.id, task=task, **known, **again)

    def _change(self, agent: str, **update: object) -> AgentRecord:
        state = self._run.state
        state.agents = [
            record.model_copy(update=update) if record.task.id == agent else record for record in state.agents
        ]
        return self._of(agent)

    def _share_out(self, todo: list[str]) -> None:
        """Reserve nothing yet, but fix what each agent may use: what is left is shared among those that have none."""
        fresh = [agent for agent in todo if self._of(agent).share is None]
        if fresh:
            taken = [share for agent in todo if (share := self._of(agent).share)]
            for agent, share in zip(fresh, shares_of(self._left(taken), len(fresh)), strict=True):
                self._change(agent, share=share)

    def _left(self, taken: Sequence[AgentShare]) -> AgentShare:
        """Return what nobody has used, and nothing under way, the report or a share that was given before may use."""
        run, limits = self._run, self._run.resolved.limits
        kept = self._caller.holdings.held.plus(self._caller.reserved_for_report()).plus(total(map(_reservation, taken)))
        used = run.state.usage
        cost = None if limits.max_cost_usd is None else limits.max_cost_usd - used.known_cost_usd - kept.cost_usd
        return AgentShare(
            sources=max(0, sources_left(run.state, limits) - sum(share.sources for share in taken)),
            model_calls=_left_of(limits.max_model_calls, used.model_calls + kept.calls),
            tokens=_left_of(limits.max_tokens, used.tokens + kept.tokens),
            cost_usd=None if cost is None else max(0.0, cost),
        )

    # --- work --------------------------------------------------------------------------------------------------------
    async def _carry_out(self, todo: list[str], at_once: int) -> None:
        """All of them, merged in their order as soon as that is possible."""
        run = self._run
        self._share_out(todo)
        queued = max(0, len(todo) - at_once)
        outputs = {"agents": todo, "at_once": at_once, "queued": queued}
        run.decide(DECIDER, "dispatch", f"{len(todo)} tasks, {min(at_once, len(todo))} at once", {}, outputs)
        data = {"turn": run.state.iteration, "branches": len(todo), "queued": queued}
        run.note("agents.branching", f"{plural(len(todo), 'agent')}, {queued} of them queued", **data)
        for branch, agent in enumerate(todo):
            self._change(agent, status=AgentStatus.QUEUED)
            if branch >= at_once:
                self._note("agent.queued", agent, "queued", branch)
        turns = asyncio.Semaphore(at_once)
        work = {agent: asyncio.ensure_future(self._one(agent, branch, turns)) for branch, agent in enumerate(todo)}
        merged = 0
        try:
            while merged < len(todo):
                await run.host.wait_until(
                    lambda: work[todo[merged]].done() or run.inbox.interruption is not None  # noqa: B023
                )
                if run.inbox.interruption is not None:
                    break
                self._take_over(todo[merged], work[todo[merged]].result())
                merged += 1
                if merged < len(todo):
                    self._checkpoints.save_in_background()
        except asyncio.CancelledError:
            await self._end(todo[merged:], work, StopReason.USER_CANCELLED)
            raise
        if merged < len(todo):
            reason = run.inbox.interruption or StopReason.INTERNAL_ERROR
            await self._end(todo[merged:], work, reason)
            raise Interrupted(reason)

    async def _end(self, agents: list[str], work: dict[str, "asyncio.Task[TaskResult]"], reason: StopReason) -> None:
        """Have agents stop, wait a moment for what they have, and take it over in the order of their tasks."""
        run = self._run
        pending = [agent for agent in agents if not work[agent].done()]
        for agent in pending:
            if agent in self._calls:
                self._calls[agent].cancel()
            else:
                work[agent].cancel()  # it waits for its turn
        alarm = asyncio.ensure_future(run.host.sleep(GRACE_SECONDS, "until the agents have answered"))
        await run.host.wait_until(lambda: alarm.done() or all(work[agent].done() for agent in pending))
        alarm.cancel()
        for agent in agents:
            task = work[agent]
            if task.done() and not task.cancelled():
                result = task.result()
                was_cut = agent in pending
                self._take_over(agent, result.model_copy(update={"stop_reason": reason}) if was_cut else result)
                if was_cut:
                    self._mark(self._change(agent, status=AgentStatus.CUT_OFF).task, NodeStatus.EXECUTING)
            else:
                task.cancel()
                waits = self._of(agent).status is AgentStatus.QUEUED
                why = "its turn had not come" if waits else "it had not answered"
                stub = _stub(self._of(agent), reason, f"{why} when the run was to end")
                self._change(agent, status=AgentStatus.CUT_OFF, result=stub, ended_at=run.now_text())
                self._note("agent.finished", agent, stub.problem)

    async def _one(self, agent: str, branch: int, turns: asyncio.Semaphore) -> TaskResult:
        """One agent: its turn, its reservation, its answer or a stub."""
        run = self._run
        async with turns:
            record = self._of(agent)
            share = record.share or AgentShare()
            if run.contains_canary(record.task.text):
                run.degrade(STEERED_NOTE)
                return _stub(record, StopReason.INTERNAL_ERROR, "its task repeats what only this run knows")
            refused = self._refusal(share)
            if refused is not None:
                return _stub(record, refused, f"nothing is left for it to use: {refused.value}")
            left = run.clock.remaining_work_seconds()
            left -= min(MARGIN_SECONDS, MARGIN_SHARE * max(0.0, left))
            number = self._caller.holdings.open(_reservation(share))
            record = self._change(
                agent,
                status=AgentStatus.RUNNING,
                starts=record.starts + 1,
                workflow_id=self._workflow_id(agent, record.starts),
                started_at=run.now_text(),
            )
            self._mark(record.task, NodeStatus.EXECUTING)
            request = agent_request(run.state, record, run.host.now().timestamp(), left)
            self._note("agent.started", agent, record.task.text, branch)
            call = asyncio.ensure_future(run.host.run_agent(request, record.workflow_id))
            self._calls[agent] = call
            seconds = request.deadline_at - run.host.now().timestamp() + GRACE_SECONDS
            alarm = asyncio.ensure_future(run.host.sleep(seconds, f"until {agent} is not waited for any longer"))
            await run.host.wait_until(lambda: call.done() or alarm.done())
            alarm.cancel()
            if not call.done():
                call.cancel()
                self._late.append(asyncio.ensure_future(self._hear_late(record, call, number)))
                why = f"it had not answered after {seconds:.0f} s, the most that is waited for"
                return _stub(record, StopReason.BUDGET_TIME, why)
            del self._calls[agent]
            return self._settle(record, call, number)

    def _settle(self, record: AgentRecord, call: "asyncio.Task[TaskResult]", number: int) -> TaskResult:
        """Return what the agent answered; what it used is in the budget now, instead of what was reserved for it."""
        try:
            result = call.result()
        except (asyncio.CancelledError, TemporalError) as error:
            # Nobody knows what it paid for: that stays reserved.
            self._caller.holdings.close(number, _reservation(record.share or AgentShare()))
            return _stub(record, StopReason.INTERNAL_ERROR, _why(error))
        before = record.result.usage_by_role if record.result else {}
        for role, usage in result.usage_by_role.items():
            # Answers of an earlier start are told once more by the journal: they were added then.
            account(self._run.state, role, usage.beyond(before.get(role, Usage())))
        self._caller.holdings.close(number, NOTHING)
        return result

    async def _hear_late(self, record: AgentRecord, call: "asyncio.Task[TaskResult]", number: int) -> None:
        """Return what comes too late is not taken over, but what it cost counts."""
        await self._run.host.settle([call])
        agent = record.task.id
        del self._calls[agent]
        result = self._settle(record, call, number)
        if not result.is_stub:
            self._note(
                "agent.late", agent, f"came too late and was left out: {plural(len(result.finding_ids), 'finding')}"
            )

    def _take_over(self, agent: str, result: TaskResult) -> None:
        """Put what an agent found into the state of the run."""
        run = self._run
        for decision in merge_agent(run.state, self._of(agent).task, result):
            run.decide(agent, decision.action, decision.rationale, decision.inputs, decision.outputs)
        status = AgentStatus.FAILED if result.is_stub else AgentStatus.DONE
        kept = result.model_copy(update={"packed": ""})
        self._change(agent, status=status, result=kept, ended_at=run.now_text())
        if result.is_stub:
            run.branch_failed(f"{agent}: {result.problem}")
        elif result.problem:
            run.degrade(f"{agent}: {result.problem}")
        outputs = {"stop_reason": result.stop_reason.value, "findings": len(result.finding_ids)}
        summary = result.problem or result.summary
        run.decide(DECIDER, "merge", summary, {"agent": agent}, outputs | {"sources": len(result.source_ids)})
        self._note("agent.finished", agent, result.problem or plural(len(result.finding_ids), "finding"))

    def _mark(self, task: AgentTask, status: NodeStatus) -> None:
        """Show in the plan how far a task is; one that was cut off is unfinished work of the run."""
        plan = self._run.state.plan
        mine = [node.model_copy(update={"status": status}) for node in plan.nodes if node.id == task.id]
        self._run.state.plan = plan.with_nodes(*mine)

    def _refusal(self, share: AgentShare) -> StopReason | None:
        """Return why an agent need not begin: nothing is left of what a model's work takes."""
        if self._run.resolved.engine is not EngineKind.MODEL:
            return None
        if share.model_calls == 0:
            return StopReason.BUDGET_CALLS
        if share.tokens == 0:
            return StopReason.BUDGET_TOKENS
        return StopReason.BUDGET_COST if share.cost_usd == 0 else None

    def _workflow_id(self, agent: str, starts: int) -> str:
        base = f"{self._run.resolved.research_id}/{agent}"
        return base if not starts else f"{base}/again-{starts + 1}"

    def _note(self, kind: str, agent: str, text: str, branch: int | None = None) -> None:
        place = {"turn": self._run.state.iteration} | ({} if branch is None else {"branch": branch})
        self._run.note(kind, f"{agent}: {text[:TASK_SHOWN]}", agent=agent, **place)


def _stub(record: AgentRecord, reason: StopReason, problem: str) -> TaskResult:
    """A result in the place of one; what an earlier start of the agent had used stays known."""
    used = record.result
    return TaskResult(
        stop_reason=reason,
        problem=problem,
        is_stub=True,
        usage=used.usage if used else Usage(),
        usage_by_role=used.usage_by_role if used else {},
    )


def _reservation(share: AgentShare) -> Reservation:
    return Reservation(share.model_calls or 0, share.tokens or 0, share.cost_usd or 0.0)


def _left_of(limit: int | None, used: int) -> int | None:
    return None if limit is None else max(0, limit - used)


def _why(error: BaseException) -> str:
    """Return why nothing came from an agent, in one line."""
    cause = error.cause if isinstance(error, ChildWorkflowError) else error
    if isinstance(cause, ApplicationError):
        return f"it failed: {cause.message}"[:300]
    if isinstance(cause, (CancelledError, asyncio.CancelledError)):
        return "it was stopped before it had anything"
    return f"it failed: {type(cause).__name__}"
