"""The child workflow `research-agent`: one agent, from its task to its findings."""

import asyncio
from functools import partial
from typing import cast

from temporalio import workflow
from temporalio.common import RawValue
from temporalio.exceptions import ActivityError, FailureError

from contracts import activities, names
from contracts.agents import AgentRequest, PrepareAgentRequest, TaskResult
from contracts.sentences import Message, why_stopped
from contracts.state import ResearchState, WorkState
from contracts.vocabulary import NATURAL_STOPS, RunStatus, StopReason
from workflows.driver import Driver
from workflows.messages import StateQueries
from workflows.phases.analysis import analyze_without_model
from workflows.rules.agents import scoped_state, task_result
from workflows.rules.endings import stop_reason_of
from workflows.rules.sub_queries import skip_unfinished
from workflows.run.calls import call_options, defects_of, is_cancelled, reason_of
from workflows.run.context import Hooks
from workflows.run.host import Host, beside, invalid_request, log_defect, parse_argument
from workflows.run.inbox import Inbox, Interrupted
from workflows.run.research_run import ResearchRun
from workflows.strategies import ScopedStrategy, load_strategy

STOPPED = "it was told to stop"
NO_TIME = "no time was left for its report"


@workflow.defn(name=names.RESEARCH_AGENT, failure_exception_types=[TypeError])
class ResearchAgentWorkflow(StateQueries):
    """Started only by its run; always ends with a result, a partial one if cancelled."""

    def __init__(self) -> None:
        super().__init__()
        self._driver: AgentDriver | None = None

    @workflow.run
    async def run(self, request: RawValue) -> TaskResult:
        """Do the task. An unforeseen error is reported in the result, and the run continues without this agent."""
        self._request = parse_argument(AgentRequest, request)
        if workflow.info().parent is None:  # its limits are part of its request, and nobody has bound those of a client
            raise invalid_request("agent: only a run starts its agents: start deep-research")
        resolved = self._request.resolved
        self._host = Host(resolved.priority, resolved.tenant, self._renew_details)
        hooks = Hooks(changed=self._renew_details)
        self._driver = driver = AgentDriver(self._request, self._host, hooks)
        try:
            return await driver.conduct()
        except FailureError:
            raise
        except Exception as error:  # noqa: BLE001  outermost handler of the workflow
            defect = log_defect(error, self._request.task.strategy)
            driver.state.work.note_defects([defect])
            return driver.result(StopReason.INTERNAL_ERROR, "", defect.text)

    def _shown_state(self) -> ResearchState:
        if self._driver:
            return self._driver.state
        return self._state


class AgentDriver:
    """One agent, from its request to its result, which it always returns."""

    def __init__(self, request: AgentRequest, host: Host, hooks: Hooks | None = None) -> None:
        self._request = request
        self._host = host
        self._hooks = hooks
        self.state = ResearchState(work=WorkState(resolved=request.resolved, task=request.task))
        """The agent's state; replaced once its resolution is stored."""
        self._strategy: ScopedStrategy | None = None

    async def conduct(self) -> TaskResult:
        """Work on the task. If cancelled, return a partial result and make no more calls."""
        try:
            return await self._conduct()
        except asyncio.CancelledError:
            return self.result(StopReason.USER_STOPPED, "", STOPPED)
        except ActivityError as error:
            if is_cancelled(error):
                return self.result(StopReason.USER_STOPPED, "", STOPPED)
            self.state.work.note_defects(defects_of(error))
            why = Message("activity_failed", work=error.activity_type, reason=reason_of(error))
            return self.result(StopReason.PROVIDER_OUTAGE, "", why)

    async def _conduct(self) -> TaskResult:
        self.state = scoped_state(self._request, self._host.now().timestamp())
        run = ResearchRun(self.state, Inbox(), self._host, self._hooks)
        self._strategy = strategy = cast("ScopedStrategy", load_strategy(self._request.task.strategy))
        run.clock.set_alarm()
        driver = Driver(run, strategy, stored=True)
        try:
            reason = await self._work(run, driver)
        finally:
            run.clock.cancel_alarm()
        run.inbox.closing = True
        run.inbox.clear()
        skip_unfinished(run.state, why_stopped(_cause(run.state, reason)))
        summary, problem = await self._conclude(run, strategy, reason)
        run.note("run.finished", problem or summary or reason.value, outcome=reason.value)
        return self.result(reason, summary, problem)

    async def _work(self, run: ResearchRun, driver: Driver) -> StopReason:
        """Work on the task, and store beside the first calls what later ones refer to."""
        if self._request.run_entry:
            run.is_prepared = False
            return await beside(self._host, driver.work, partial(self._prepare, run))
        await self._prepare(run)
        return await driver.work()

    async def _prepare(self, run: ResearchRun) -> None:
        """Store the agent's resolution. Raises `ActivityError`."""
        name = f"{self._request.task.id}/prepare"
        remaining = max(0.0, self._request.deadline_at - self._host.now().timestamp())
        options = call_options(names.RECORDS_QUEUE, name, "store the resolution of the agent", remaining)
        request = PrepareAgentRequest(resolved=self._request.resolved)
        run.take_resolution(await self._host.execute(activities.PREPARE_AGENT, request, options))

    async def _conclude(self, run: ResearchRun, strategy: ScopedStrategy, reason: StopReason) -> tuple[str, str]:
        """Return its summary, made within the reserved time, and the reason for an incomplete result."""
        problem = ""
        if reason not in NATURAL_STOPS:
            problem = why_stopped(_cause(run.state, reason))
        try:
            async with run.time_limit(run.clock.remaining_seconds()):
                if reason not in NATURAL_STOPS:
                    await analyze_without_model(run)
                return await strategy.conclude(run), problem
        except Interrupted:
            return "", f"{problem}; {NO_TIME}" if problem else NO_TIME

    def result(self, reason: StopReason, summary: str, problem: str) -> TaskResult:
        """Return the agent's result, from its current state."""
        self.state.work.status = RunStatus.PARTIAL if problem else RunStatus.COMPLETED
        node = None
        pages_read = {}
        if self._strategy:
            node = self._strategy.describe_node(self.state)
            pages_read = self._strategy.list_read(self.state)
        return task_result(self.state, reason, summary, problem, node, pages_read)


def _cause(state: ResearchState, reason: StopReason) -> StopReason:
    """Return the reason for the end of work as people are shown it: a limit that is not spent was not reached."""
    if reason in NATURAL_STOPS:
        return reason
    return stop_reason_of(state, reason)
