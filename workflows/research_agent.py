"""The child workflow `research-agent`: one agent, from its task to what it found."""

import asyncio

from temporalio import workflow
from temporalio.common import RawValue
from temporalio.exceptions import ActivityError, FailureError

from contracts import activities, names
from contracts.agents import AgentRequest, PrepareAgentRequest, TaskResult
from contracts.outcome import ResearchStatus
from contracts.state import ResearchState
from contracts.vocabulary import NATURAL_STOPS, STOP_REASON_TEXTS, RunStatus, StopReason
from workflows.driver import Driver
from workflows.messages import StateQueries
from workflows.phases.analysis import analyze_without_model
from workflows.phases.human_gate import WaitHooks
from workflows.rules.agents import scoped_state, task_result
from workflows.rules.sub_queries import skip_unfinished
from workflows.run.calls import describe_unforeseen, is_cancelled, reason_of, record_options
from workflows.run.context import Watchers
from workflows.run.host import Host, TemporalHost, parse_argument
from workflows.run.inbox import Inbox, Interrupted
from workflows.run.research_run import ResearchRun
from workflows.status import CurrentDetails, DetailsWatchers, details_markdown, status_of
from workflows.strategies import ScopedStrategy, scoped_strategy_of

STOPPED = "it was told to stop"
NO_TIME = "no time was left for its report"


@workflow.defn(name=names.RESEARCH_AGENT, failure_exception_types=[TypeError])
class ResearchAgentWorkflow(StateQueries):
    """Started by its run alone. It always ends with a result; cancelled, with what it has."""

    def __init__(self) -> None:
        self._host = TemporalHost()
        self._details = CurrentDetails(self._write_details)
        self._driver: AgentDriver | None = None
        self._asked: AgentRequest | None = None

    @workflow.run
    async def run(self, request: RawValue) -> TaskResult:
        """Do the task. An error that no code foresaw is told in the result: the run goes on without this agent."""
        asked = parse_argument(AgentRequest, request)
        resolved = asked.resolved
        self._host = TemporalHost(resolved.priority, resolved.tenant, self._details.renew)
        self._driver = driver = AgentDriver(
            asked, self._host, DetailsWatchers(self._details.renew), WaitHooks(self._continue_as_new)
        )
        self._asked = asked
        try:
            return await driver.conduct()
        except FailureError:
            raise
        except Exception as error:  # noqa: BLE001  the edge of the workflow
            return driver.result(StopReason.INTERNAL_ERROR, "", describe_unforeseen(error))

    @workflow.query(name=names.STATUS)
    def status(self) -> ResearchStatus:
        """Return where the agent stands; its query is its task."""
        now = workflow.now()
        shown = status_of(self._shown_state(), now.timestamp())
        clock = now.isoformat(timespec="milliseconds")
        return shown.model_copy(update={"as_of": clock, "awaiting": self._host.awaiting()})

    def _shown_state(self) -> ResearchState:
        return self._driver.state if self._driver else ResearchState()

    def _write_details(self) -> str:
        now = workflow.now().timestamp()
        return details_markdown(self._shown_state(), now, awaiting=self._host.awaiting())

    async def _continue_as_new(self) -> None:
        if self._asked is not None and workflow.info().is_continue_as_new_suggested():
            workflow.continue_as_new(self._asked.model_copy(update={"packed_state": self._shown_state().pack()}))


class AgentDriver:
    """One agent, from its request to its result. It ends with a result whatever happens."""

    def __init__(
        self, request: AgentRequest, host: Host, watchers: Watchers | None = None, around: WaitHooks | None = None
    ) -> None:
        """`around` begins a history anew where that is due."""
        self._request = request
        self._host = host
        self._watchers = watchers
        self._around = around
        self.state = ResearchState(resolved=request.resolved, task=request.task)
        """Its own state; the one to go by once it has begun."""

    async def conduct(self) -> TaskResult:
        """Work on the task. Cancelled, it returns what it has; no further call is made then."""
        try:
            return await self._conduct()
        except asyncio.CancelledError:
            return self.result(StopReason.USER_STOPPED, "", STOPPED)
        except ActivityError as error:
            if is_cancelled(error):
                return self.result(StopReason.USER_STOPPED, "", STOPPED)
            why = f"{error.activity_type} failed: {reason_of(error)}"
            return self.result(StopReason.PROVIDER_OUTAGE, "", why)

    async def _conduct(self) -> TaskResult:
        await self._begin()
        run = ResearchRun(self.state, Inbox(), self._host, self._watchers)
        strategy = scoped_strategy_of(self._request.task.strategy)
        await run.watchers.enter_phase(run)
        run.clock.set_alarm()
        driver = Driver(run, strategy, self._around, stored=True)
        try:
            reason = await driver.work()
        finally:
            run.clock.cancel_alarm()
        run.inbox.closing = True
        run.inbox.clear()
        skip_unfinished(run.state, STOP_REASON_TEXTS[reason])
        summary, problem = await self._conclude(run, strategy, reason)
        run.note("run.finished", problem or summary or reason.value, outcome=reason.value)
        return self.result(reason, summary, problem)

    async def _begin(self) -> None:
        now = self._host.now().timestamp()
        entry = ""
        if not self._request.packed_state:
            options = record_options(f"{self._request.task.id}/prepare", "keep what the agent was given")
            asked = PrepareAgentRequest(resolved=self._request.resolved)
            entry = await self._host.execute(activities.PREPARE_AGENT, asked, options)
        self.state = scoped_state(self._request, entry, now)

    async def _conclude(self, run: ResearchRun, strategy: ScopedStrategy, reason: StopReason) -> tuple[str, str]:
        """Its summary, within the time that is kept for it, and why there is less than there should be."""
        problem = "" if reason in NATURAL_STOPS else STOP_REASON_TEXTS[reason]
        alarm = asyncio.ensure_future(self._ring(run))
        try:
            if reason not in NATURAL_STOPS:
                await analyze_without_model(run)
            return await strategy.conclude(run, reason), problem
        except Interrupted:
            return "", f"{problem}; {NO_TIME}" if problem else NO_TIME
        finally:
            alarm.cancel()
            run.inbox.clear()

    async def _ring(self, run: ResearchRun) -> None:
        await self._host.sleep(max(0.0, run.clock.remaining_seconds()), "until the agent must have answered")
        run.inbox.interrupt(StopReason.BUDGET_TIME)

    def result(self, reason: StopReason, summary: str, problem: str) -> TaskResult:
        """Return what the agent brings back, made of what its state holds now."""
        self.state.status = RunStatus.PARTIAL if problem else RunStatus.COMPLETED
        return task_result(self.state, self.state.counts(), reason, summary, problem)
