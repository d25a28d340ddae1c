"""Messages from people to a run, and queries about its state."""

import asyncio
from collections.abc import Callable
from typing import Any, Final

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from contracts import failures, names
from contracts.canary import without_canary
from contracts.evidence import Source
from contracts.outcome import EventPage, ResearchStatus
from contracts.plan import PlanAnswer, WaitKind
from contracts.state import ResearchState
from contracts.vocabulary import EngineKind, Phase, StopReason
from workflows.phases.checking import VERIFICATION
from workflows.run import inbox
from workflows.run.context import page_after
from workflows.run.host import Host, exceeds
from workflows.run.inbox import Inbox, Reply
from workflows.status import build_plan, build_status, details_markdown

MAX_STEERING_CHARACTERS: Final = 2_000
TOO_LATE: Final = "too late: the report is being written"
MAX_UPDATE_CHARACTERS: Final = 64_000
"""A plan with all its parts at their limits takes less; a larger message is refused before it is parsed."""


class StateQueries:
    """The part of a workflow that exposes its state: through queries, and as current details in the web UI."""

    def __init__(self) -> None:
        self._state = ResearchState()
        self._question = ""
        self._host = Host()
        self._queued: ResearchStatus | None = None
        """The status while the run is queued."""
        self._details_due = False

    def _shown_state(self) -> ResearchState:
        """Return the state that queries answer from."""
        return self._state

    @property
    def phase(self) -> str:
        """The current phase; empty before the first one."""
        return self._shown_state().work.phase or ""

    def _renew_details(self) -> None:
        """Schedule one update of the current details per burst of events; it adds no history event."""
        if not self._details_due:
            self._details_due = True
            asyncio.get_running_loop().call_soon(self._write_details)

    def _write_details(self) -> None:
        self._details_due = False
        now = workflow.now().timestamp()
        waits = self._host.awaiting()
        text = details_markdown(self._shown_state(), now, self._question, waits, self._queued)
        workflow.set_current_details(text)

    @workflow.query(name=names.STATUS)
    def status(self) -> ResearchStatus:
        """Return the status of the run or agent as of its latest event."""
        now = workflow.now()
        status = self._queued or build_status(self._shown_state(), now.timestamp())
        clock = now.isoformat(timespec="milliseconds")
        return status.with_fields(as_of=clock, awaiting=self._host.awaiting())

    @workflow.query(name=names.PLAN)
    def plan(self) -> PlanAnswer:
        """Return the plan, with its sub-queries and the open question to a person."""
        return build_plan(self._shown_state())

    @workflow.query(name=names.DECISIONS)
    def decisions(self) -> list[dict[str, Any]]:
        """Return the decision log."""
        return [decision.model_dump() for decision in self._shown_state().people.decisions]

    @workflow.query(name=names.SOURCES)
    def sources(self) -> list[Source]:
        """Return every source, read or skipped; once the run has ended, also those beyond its limits."""
        state = self._shown_state()
        return [*state.evidence.sources.values(), *state.not_fetched().values()]

    @workflow.query(name=names.SESSION)
    def session(self) -> dict[str, Any]:
        """Return the whole state, also of a closed run, without its canary."""
        return without_canary(self._shown_state().model_dump(mode="json"))

    @workflow.query(name=names.EVENTS)
    def events(self, after: int = 0) -> EventPage:
        """Return the events after a sequence number."""
        return page_after(self._shown_state(), after)


class PersonMessages(StateQueries):
    """The part of a workflow that accepts messages: each is validated, put into the inbox, and answered.

    Arguments are typed Any so that a payload of the wrong type gets a readable error message.
    """

    def __init__(self) -> None:
        super().__init__()
        self._inbox = Inbox()

    @workflow.update(name=names.STEER)
    async def steer(self, text: str) -> str:
        """Accept a message for the next phase; a plan that waits for approval is made again.

        A model reads the message; without a model its text becomes a search.
        """
        if self._waits_for(WaitKind.APPROVAL):
            self._take(inbox.read_revision, text)
            return self._replanning_message()
        self._inbox.steering.append(text.strip())
        if self._state.work.resolved is None or self._state.work.resolved.engine is EngineKind.MODEL:
            return "taken for the next phase"
        return "taken for the next phase: without a model it is searched for as it is; --exclude leaves something out"

    @steer.validator
    def _check_steer(self, text: str) -> None:
        # A binary payload arrives as bytes despite the declared type.
        if not isinstance(text, str) or not text.strip() or len(text) > MAX_STEERING_CHARACTERS:
            message = f"say what to look at, in 1 to {MAX_STEERING_CHARACTERS} characters"
            raise ApplicationError(message, type=failures.INVALID_REQUEST)
        max_iterations = self._state.work.resolved.limits.max_iterations if self._state.work.resolved else 1
        writing = self._state.work.phase == Phase.SYNTHESIS and self._state.work.iteration >= max_iterations
        if self._inbox.closing or writing:
            raise ApplicationError(TOO_LATE, type=failures.INVALID_REQUEST)
        if self._waits_for(WaitKind.APPROVAL):
            self._check(inbox.read_revision, text)

    @workflow.update(name=names.STOP_AND_REPORT)
    async def stop_and_report(self) -> str:
        """End the research now and write the report from the results so far; acknowledged at once."""
        checking = self._inbox.closing and self._state.work.phase == VERIFICATION
        if self._inbox.interruption is not None or (self._inbox.closing and not checking):
            return "already stopping: the report is being written"
        self._inbox.interrupt(StopReason.USER_STOPPED)
        if checking:
            return "stopping: what was checked counts, and the report is written"
        if self._state.people.waiting is not None and not self._state.evidence.sources:
            return "stopping before any work: what was planned is kept"
        return "stopping: the report is written from the findings so far"

    @workflow.update(name=names.ANSWER_CLARIFICATION)
    async def answer_clarification(self, answers: Any, round: Any = None) -> str:  # noqa: A002  its name on the wire
        """Accept answers to the open questions, a list in question order; an empty list means: continue without.

        Answers to a plan's questions lead to a new plan; `round` is then the version of the plan they refer to.
        """
        reply = self._take(inbox.read_answers, answers, round)
        if self._waits_for(WaitKind.APPROVAL):
            return self._replanning_message()
        return f"taken: the run goes on {'with your answers' if any(reply.answers or ()) else 'without'}"

    @answer_clarification.validator
    def _check_answers(self, answers: Any, round: Any = None) -> None:  # noqa: A002
        self._check(inbox.read_answers, answers, round)

    @workflow.update(name=names.REPLY)
    async def reply(self, text: Any) -> str:
        """Accept a text for the current wait: an answer, the approval phrase, or guidance for the planner."""
        reply = self._take(inbox.read_reply, text)
        if reply.approved is not None:
            return _approval_message(reply.approved)
        answers = self._waits_for(WaitKind.CLARIFICATION)
        if answers:
            return "taken: the run goes on with your answer"
        return self._replanning_message()

    @reply.validator
    def _check_reply(self, text: Any) -> None:
        self._check(inbox.read_reply, text)

    @workflow.update(name=names.REVISE_PLAN)
    async def revise_plan(self, revision: Any, version: Any = None) -> str:
        """Accept planner guidance, or the parts to replace (`brief`, `sub_queries`, …), for the plan's `version`."""
        reply = self._take(inbox.read_revision, revision, version)
        is_waiting = self._state.people.waiting is not None
        if reply.plan is None:
            return self._replanning_message()
        if not is_waiting and self._state.resolution.gates.requires_approval:
            before = f"until then it goes by version {self._state.work.plan.version}"
            return (
                f"taken: at its next step the run waits for the approval of plan version {reply.plan.version}; {before}"
            )
        if not is_waiting:
            return f"taken: from its next step on the run goes by plan version {reply.plan.version}"
        if reply.plan.to_judge:
            return f"taken: plan version {reply.plan.version} is judged now; look at it with `research plan`"
        return f"taken: the plan is version {reply.plan.version} now; approve it to begin"

    @revise_plan.validator
    def _check_revision(self, revision: Any, version: Any = None) -> None:
        if self._inbox.closing:
            raise ApplicationError(TOO_LATE, type=failures.INVALID_REQUEST)
        self._check(inbox.read_revision, revision, version)

    @workflow.update(name=names.APPROVE_PLAN)
    async def approve_plan(self, version: Any, phrase: Any = None, overrule: Any = False) -> str:
        """Approve the latest plan, with `phrase` if the request requires one.

        `overrule` is true to overrule opinions against queries of the plan.
        """
        self._take(inbox.read_approval, version, phrase, overrule)
        return _approval_message(version)

    @approve_plan.validator
    def _check_approval(self, version: Any, phrase: Any = None, overrule: Any = False) -> None:
        self._check(inbox.read_approval, version, phrase, overrule)

    @workflow.update(name=names.REJECT_PLAN)
    async def reject_plan(self, reason: Any = "") -> str:
        """Reject the plan and end the run without research; the plan is saved.

        A run whose earlier version is approved continues with that instead.
        """
        self._take(inbox.read_rejection, reason)
        if self._state.people.approved_plan is not None or self._state.people.waiting is None:
            return "rejected: the run continues with the plan of before"
        return "rejected: the run ends, and its plan is kept"

    @reject_plan.validator
    def _check_rejection(self, reason: Any = "") -> None:
        self._check(inbox.read_rejection, reason)

    def _take(self, read: Callable[..., Reply], *arguments: Any) -> Reply:
        """Validate a message again and put it into the inbox."""
        reply = read(self._state, self._inbox.replies, *arguments)
        self._inbox.replies.append(reply)
        return reply

    def _check(self, read: Callable[..., Reply], *arguments: Any) -> None:
        if exceeds(arguments, MAX_UPDATE_CHARACTERS):
            message = f"message: larger than {MAX_UPDATE_CHARACTERS} characters; send less at once"
            raise ApplicationError(message, type=failures.INVALID_REQUEST)
        try:
            read(self._state, self._inbox.replies, *arguments)
        except inbox.NotReady as error:
            raise ApplicationError(str(error), type=failures.NOT_READY) from None
        except inbox.Unacceptable as error:
            raise ApplicationError(str(error), type=failures.INVALID_REQUEST) from None

    def _waits_for(self, kind: WaitKind) -> bool:
        return self._state.people.waiting is not None and self._state.people.waiting.kind is kind

    def _replanning_message(self) -> str:
        newest = self._state.work.plan.version + 1
        return f"taken: the planner makes version {newest}; look at it with `research plan`, and approve it to begin"


def _approval_message(version: int) -> str:
    return f"approved: the run follows plan version {version}"
