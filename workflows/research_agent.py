"""The child workflow `research-agent`: one agent, from its task to what it found."""

from pydantic import ValidationError
from temporalio import workflow
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError, FailureError

from contracts import failures, names
from contracts.agents import AgentReport, AgentRequest, TaskResult
from contracts.outcome import ResearchStatus
from contracts.parse_request import error_lines
from contracts.state import ResearchState
from contracts.vocabulary import StopReason
from workflows.agent_driver import AgentDriver
from workflows.phases.human_gate import WaitHooks
from workflows.run.call_errors import describe_unforeseen
from workflows.run.host import TemporalHost
from workflows.run.payloads import json_of
from workflows.run.state_queries import StateQueries
from workflows.run.web_ui_details import CurrentDetails, DetailsWatchers, details_markdown
from workflows.run_status import status_of


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
        asked = _parse(request)
        resolved = asked.resolved
        self._host = TemporalHost(resolved.priority, resolved.tenant, self._details.renew)
        self._driver = driver = AgentDriver(
            asked, self._host, DetailsWatchers(self._details.renew), WaitHooks(self._start_history_anew)
        )
        self._asked = asked
        try:
            return await driver.conduct()
        except FailureError:
            raise
        except Exception as error:  # noqa: BLE001  the edge of the workflow
            return driver.result(StopReason.INTERNAL_ERROR, AgentReport(), describe_unforeseen(error))

    @workflow.query(name=names.STATUS)
    def status(self) -> ResearchStatus:
        """Where the agent stands; its query is its task."""
        now = workflow.now()
        shown = status_of(self._shown_state(), now.timestamp())
        clock = now.isoformat(timespec="milliseconds")
        return shown.model_copy(update={"as_of": clock, "awaiting": self._host.awaiting()})

    def _shown_state(self) -> ResearchState:
        return self._driver.state if self._driver else ResearchState()

    def _write_details(self) -> str:
        now = workflow.now().timestamp()
        return details_markdown(self._shown_state(), now, awaiting=self._host.awaiting())

    async def _start_history_anew(self) -> None:
        if self._asked is not None and workflow.info().is_continue_as_new_suggested():
            workflow.continue_as_new(self._asked.model_copy(update={"packed_state": self._shown_state().pack()}))


def _parse(request: RawValue) -> AgentRequest:
    try:
        return AgentRequest.model_validate_json(json_of(request))
    except ValidationError as error:
        lines = error_lines(error)
        raise ApplicationError(
            "\n".join(lines), {"lines": lines}, type=failures.INVALID_REQUEST, non_retryable=True
        ) from None
