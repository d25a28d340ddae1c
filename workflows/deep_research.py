"""The entry workflow `deep-research`: a request in, a cited report out, through kills, deploys and outages."""

import asyncio
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from temporalio import workflow
from temporalio.common import RawValue, SearchAttributeKey
from temporalio.exceptions import ActivityError, ApplicationError, FailureError
from temporalio.workflow import ContinueAsNewVersioningBehavior

from contracts import activities, failures, names
from contracts.evidence import ReportDraft
from contracts.messages import CheckProvidersRequest, Prepared, PrepareRequest, QueueTurn, TurnRequest
from contracts.notices import ending_notice, waiting_notice
from contracts.outcome import ResearchResult
from contracts.parse_request import InvalidRequest, parse_request
from contracts.presets import effective_limits, preset
from contracts.request import ResearchRequest, run_memo
from contracts.resolved import ResolvedResearch
from contracts.state import PACKED_EVENTS, ResearchState, WorkState
from contracts.tenants import TENANT_HEADER
from contracts.texts import RESEARCH_ID
from contracts.vocabulary import Outcome, RunStatus, SourceStatus, StopReason
from workflows.driver import Driver
from workflows.messages import PersonMessages
from workflows.rules.endings import result_of
from workflows.run.calls import call_options, defects_of, describe_failure, describe_unstarted, is_cancelled, reason_of
from workflows.run.checkpoints import begin_refresh, resume_state
from workflows.run.context import Hooks, add_end, within_limits
from workflows.run.host import Host, log_defect, payload_json, tenant_proof
from workflows.run.inbox import Interrupted
from workflows.run.research_run import ResearchRun
from workflows.status import build_status
from workflows.strategies import Strategy, load_strategy

FAILURE_TYPES: Final = {
    Outcome.TIMED_OUT: failures.TIMED_OUT,
    Outcome.FAILED: failures.RESEARCH_FAILED,
    Outcome.REFUSED: failures.REFUSED,
}
"""Outcomes of a started run without a report, with their failure types."""

NO_PROVIDERS: Final = "no search provider can be asked: see `research doctor`, or name a folder with --corpus DIR"
WAY_OUT: Final = "`research doctor` lists its frames; resume goes on from the last checkpoint"
MILLION = 1_000_000
REASON_CHARACTERS: Final = 300
"""Longest failure reason in the log."""


@workflow.defn(name=names.DEEP_RESEARCH, failure_exception_types=[TypeError])
class DeepResearchWorkflow(PersonMessages):
    """One research run. Workflow id = research id."""

    def __init__(self) -> None:
        super().__init__()
        self._shown_phase = ""
        self._turns: dict[str, QueueTurn] = {}
        """Signals about this run's place in the queue: the latest of each ticket, or the one that gave a place."""
        self._run: ResearchRun | None = None
        """The run; None before its work begins."""

    @property
    def _active_run(self) -> ResearchRun:
        """Return the run. Raises RuntimeError before its work begins."""
        if self._run is None:
            raise RuntimeError("the work of this run has not begun")
        return self._run

    @workflow.run
    async def run(self, request: RawValue) -> ResearchResult:
        """Parse, prepare, conduct, deliver. Invalid input ends the run at once with the problem.

        An unforeseen error fails the run, because the server would retry the workflow task forever. Non-determinism
        errors are raised outside this method, so a bad deploy blocks its runs but does not fail them.
        """
        try:
            result = await self._conduct(request)
        except asyncio.CancelledError:
            await self._notify_ended()
            raise
        except FailureError as error:
            self._note_early_end(error)
            await self._notify_ended()
            raise
        except Exception as error:  # noqa: BLE001  outermost handler of the workflow
            failure = self._internal_error(error)
            self._note_early_end(failure)
            await self._notify_ended()
            raise failure from None
        await self._notify_ended()
        return result

    async def _conduct(self, request: RawValue) -> ResearchResult:
        """Prepare a run, wait for its place in the queue, and begin its work. Raises a failure for an early end."""
        started = workflow.now()
        if not _goes_on():
            workflow.logger.info("run.started", extra={"research_id": workflow.info().workflow_id})
        parsed = _parse(request)
        self._question = parsed.query
        self._host = Host(parsed.priority, parsed.tenant, self._renew_details)
        self._state.work.status = _status_before()
        if names.QUESTION_MEMO not in workflow.info().raw_memo:  # a plain client gave none
            workflow.upsert_memo(run_memo(parsed))
        prepared = await self._prepare(parsed)
        if prepared.resolved.tenant != parsed.tenant:  # what a request names need not be so
            parsed = parsed.with_fields(tenant=prepared.resolved.tenant)
            self._host = Host(parsed.priority, parsed.tenant, self._renew_details)
        if prepared.stored_result is not None:
            return prepared.stored_result
        is_queued = self._inbox.interruption is None and not prepared.has_turn and not _goes_on()
        if is_queued and await self._take_turn(parsed, prepared.resolved, prepared.packed_state, prepared.turn):
            started = workflow.now()
        strategy = load_strategy(prepared.resolved.strategy)
        stored = self._begin(prepared, started, strategy, refresh=parsed.refresh)
        hooks = Hooks(
            changed=self._renew_details,
            enter_phase=self._show_phase,
            continue_as_new=lambda: self._continue_as_new(parsed),
            wait_for_turn=lambda: self._take_turn(parsed, self._active_run.resolved),
            check_providers=self._check_providers,
            notify_waiting=self._notify_waiting,
        )
        self._run = run = ResearchRun(self._state, self._inbox, self._host, hooks, stored)
        if not _goes_on():
            providers = prepared.resolved.providers
            _note_unavailable(run, {choice.name: choice.reason for choice in providers if not choice.available})
        stored_already = prepared.has_turn or prepared.packed_state is not None
        return await self._drive(run, Driver(run, strategy, stored=stored_already))

    async def _drive(self, run: ResearchRun, driver: Driver) -> ResearchResult:
        """Carry out the work of a run, and deliver its result. Raises a failure; the session is saved before."""
        try:
            outcome = await driver.conduct()
        except ActivityError as error:
            if is_cancelled(error):
                raise
            defects = defects_of(error)
            self._state.work.note_defects(defects)
            problem = f"{error.activity_type} failed: {reason_of(error)}: {describe_failure(error)}"
            if defects:
                problem = f"{error.activity_type} failed: {defects[0].text}; {WAY_OUT}"
        except FailureError:
            raise
        except Exception as error:  # noqa: BLE001  an unforeseen error: the session is saved and can be resumed
            problem = self._internal_error(error).message
        else:
            return await self._deliver(outcome)
        failure = self._fail(run, problem)
        await driver.save_at_the_end()
        raise failure

    @workflow.signal(name=names.UPGRADE)
    def upgrade(self) -> None:
        """Move to the version of the code that new runs get, at the next pause."""
        self._inbox.moving = True

    @workflow.signal(name=names.TURN)
    def turn(self, turn: QueueTurn) -> None:
        """Take news of this run's place in the queue; a place that was given stays given."""
        known = self._turns.get(turn.ticket)
        if known is None or known.place:
            self._turns[turn.ticket] = turn

    @workflow.query(name=names.REPORT)
    def report(self) -> ResearchResult | ReportDraft | None:
        """Return the result if there is one, else the description of the latest draft."""
        return self._state.work.result or self._state.evidence.draft

    # --- before the run starts -------------------------------------------------------------------------------------
    async def _prepare(self, request: ResearchRequest) -> Prepared:
        argument = PrepareRequest(
            research_id=workflow.info().workflow_id,
            request_json=request.model_dump_json(exclude_unset=True),
            continued=_goes_on(),
            tenant_proof=tenant_proof(),
            started_by=parent.workflow_id if (parent := workflow.info().parent) else "",
        )
        # It may wait for workers as long as the run may last.
        seconds = effective_limits(preset(request.strategy, request.depth), request.limits).deadline_seconds
        options = replace(
            call_options(names.RECORDS_QUEUE, "prepare", "prepare the run"),
            schedule_to_close=timedelta(seconds=seconds),
        )
        try:
            work = self._host.execute(activities.PREPARE_RESEARCH, argument, options)
            # A stored session is loaded even after a stop, because there is something to report from.
            return await (work if request.continue_from else within_limits(self._host, self._inbox, work))
        except Interrupted:
            raise _stopped_before_work() from None
        except ActivityError as error:
            if is_cancelled(error):
                raise
            raise _start_failure(error) from None

    async def _take_turn(
        self,
        request: ResearchRequest,
        resolved: ResolvedResearch,
        packed_state: str | None = None,
        turn: QueueTurn | None = None,
    ) -> bool:
        """Wait for a place; return true if the run had to wait. A stop ends the wait of a run that has started.

        `turn` is the run's place in line; None: it is asked for.
        """
        had_to_wait = False
        try:
            while True:
                if turn is None:
                    turn = await within_limits(self._host, self._inbox, self._ask_for_turn(request, resolved))
                if not turn.place:
                    break
                had_to_wait = True
                self._show_place(resolved, turn)
                turn = await within_limits(self._host, self._inbox, self._await_turn(request, turn))
        except Interrupted:
            if packed_state is None and self._run is None:
                raise _stopped_before_work() from None
        self._queued = None
        return had_to_wait

    async def _ask_for_turn(self, request: ResearchRequest, resolved: ResolvedResearch) -> QueueTurn:
        argument = TurnRequest(research_id=resolved.research_id, tenant=resolved.tenant, priority=request.priority)
        options = call_options(names.RECORDS_QUEUE, "turn", "wait for a turn")
        return await self._host.execute(activities.TAKE_TURN, argument, options)

    async def _await_turn(self, request: ResearchRequest, known: QueueTurn) -> QueueTurn | None:
        """Wait for news of a place in line; None if the queue has lost its list and the run must ask again.

        A run whose work has not begun moves to another version of the code meanwhile, if it is asked to.
        """
        turns = self._turns
        while True:
            await self._host.wait_until(
                lambda: "" in turns or turns.get(known.ticket, known) != known or (self._inbox.moving and not self._run)
            )
            if turns.pop("", None) is not None:
                return None
            if (turn := turns.get(known.ticket, known)) != known:
                return turn
            await self._move_queued(request)

    async def _move_queued(self, request: ResearchRequest) -> None:
        """Continue as new on the current version, before any work: the next execution asks for the same place."""
        await workflow.wait_condition(workflow.all_handlers_finished)
        self._inbox.moving = False
        if self._inbox.has_messages:
            return  # they would be lost with this history
        memo = {**workflow.memo(), names.QUEUED_MEMO: True}
        if proof := tenant_proof():  # a header does not come along
            memo[TENANT_HEADER] = proof
        workflow.continue_as_new(
            request.model_dump(mode="json", exclude_none=True, exclude_defaults=True),
            memo=memo,
            initial_versioning_behavior=ContinueAsNewVersioningBehavior.AUTO_UPGRADE,
        )

    def _show_place(self, resolved: ResolvedResearch, turn: QueueTurn) -> None:
        status = build_status(ResearchState(work=WorkState(resolved=resolved)), 0.0)
        self._queued = status.with_fields(status=RunStatus.QUEUED, queue_place=turn.place, queue_length=turn.waiting)
        self._renew_details()

    def _begin(
        self, prepared: Prepared, started: datetime, strategy: Strategy, *, refresh: bool
    ) -> dict[str, Any] | None:
        """Load the stored session or start a new one; return the store's content, None without a session.

        The run's clock starts at `started`, the time of the first workflow task or of the end of the queue wait.
        """
        resolved = prepared.resolved
        started_at = started.isoformat(timespec="milliseconds")
        state = self._state
        stored = None
        if prepared.packed_state:
            state = ResearchState.unpack(prepared.packed_state)
            stored = state.snapshot(PACKED_EVENTS)
        if prepared.packed_state and not _goes_on():
            begin_refresh(state, requested=refresh)
            state = resume_state(state, resolved, started_at, strategy.resume)
        state.take_resolution(resolved, prepared.resolved_entry)
        state.clock.started_at = state.clock.started_at or started_at
        if not _goes_on() or not state.clock.deadline_at:
            state.clock.clock_started_at = started.timestamp()
            state.clock.deadline_at = started.timestamp() + resolved.limits.deadline_seconds
        self._state = state
        return stored

    # --- around the work of the run (`Hooks`) ------------------------------------------------------------------------
    async def _continue_as_new(self, parsed: ResearchRequest) -> None:
        info = workflow.info()
        moves = self._inbox.moving or info.is_target_worker_deployment_version_changed()
        self._inbox.moving = False
        if not (moves or info.is_continue_as_new_suggested()) or self._active_run.agents.under_way:
            return
        saved = await self._active_run.checkpoints.save_with_events()
        await workflow.wait_condition(workflow.all_handlers_finished)
        if not saved or self._inbox.has_messages:
            # Messages since the save would be lost with this history; the next boundary tries again.
            return
        request = parsed.with_fields(continue_from=workflow.info().workflow_id)
        memo = {**workflow.memo(), names.STATUS_MEMO: self._state.work.status.value}
        memo.pop(names.QUEUED_MEMO, None)
        workflow.continue_as_new(
            request.model_dump(mode="json", exclude_none=True, exclude_defaults=True),
            memo=memo,
            # Else the next execution would stay pinned to the version of this one.
            initial_versioning_behavior=ContinueAsNewVersioningBehavior.AUTO_UPGRADE if moves else None,
        )

    async def _check_providers(self) -> None:
        """Have the search workers check the web providers before anything is paid.

        Refuses the run if no search provider is left. Raises `Interrupted`.
        """
        run = self._active_run
        resolved = run.resolved
        web = [
            provider.name
            for provider in resolved.providers
            if provider.available and provider.name != names.CORPUS_PROVIDER
        ]
        if not web or _goes_on():
            return
        owner = {"research_id": resolved.research_id, "tenant": resolved.tenant}
        argument = CheckProvidersRequest(providers=web, permitted=run.is_permitted, **owner)
        operation = run.operation("check-providers")
        remaining = run.clock.remaining_work_seconds()
        options = call_options(names.SEARCH_QUEUE, operation, "check the search providers", remaining)
        try:
            unavailable = await run.within_limits(run.host.execute(activities.CHECK_PROVIDERS, argument, options))
        except ActivityError as error:
            if is_cancelled(error):
                raise
            run.state.work.status = RunStatus.FAILED
            await run.checkpoints.save(closed=True)
            raise _start_failure(error, resumable=True) from None
        run.state.work.resolved = resolved = resolved.without_providers(unavailable)
        if not any(choice.available for choice in resolved.providers):
            reasons = [
                NO_PROVIDERS,
                *(f"{provider.name}: {provider.reason}" for provider in resolved.providers),
                *resolved.advice,
            ]
            run.state.work.status = RunStatus.REFUSED
            run.state.work.last_failure = "; ".join(reasons)
            await run.checkpoints.save(closed=True)
            raise _end_early(Outcome.REFUSED, StopReason.NO_PROVIDERS, "\n".join(reasons), resumable=True)
        _note_unavailable(run, unavailable)

    def _show_phase(self) -> None:
        """Update the search attributes, if the namespace has them; a change costs the server half an activity."""
        state = self._state
        resolved = self._active_run.resolved
        phase = state.work.result.outcome.value if state.work.result else (state.work.phase or "")
        if not resolved.search_attributes or phase == self._shown_phase:
            return
        self._shown_phase = phase
        values = {
            names.PHASE_ATTRIBUTE: phase,
            names.STRATEGY_ATTRIBUTE: resolved.strategy,
            names.TENANT_ATTRIBUTE: resolved.tenant,
        }
        if state.work.result is not None:
            values[names.OUTCOME_ATTRIBUTE] = state.work.result.outcome.value
        updates = [SearchAttributeKey.for_keyword(name).value_set(value) for name, value in values.items()]
        cost = state.accounts.usage.cost_usd
        attribute = SearchAttributeKey.for_float(names.COST_ATTRIBUTE)
        if cost is None:
            known = attribute.value_unset()
        else:
            known = attribute.value_set(cost)
        workflow.upsert_search_attributes([*updates, known])

    # --- notices to the operator -------------------------------------------------------------------------------------
    async def _notify_waiting(self) -> None:
        """Start the delivery of a notice that the run waits for a person, if the operator wants it."""
        resolved = self._active_run.resolved
        waiting = self._state.people.waiting
        if resolved.notices is not None and waiting is not None:
            await self._host.start_notice(waiting_notice(resolved, self._state.work.status, waiting))

    async def _notify_ended(self) -> None:
        """Start the delivery of a notice that the run has ended, if it began and the operator wants it."""
        work = self._state.work
        if self._run is not None and work.resolved is not None and work.resolved.notices is not None:
            await self._host.start_notice(ending_notice(work.resolved, work.status, work.result, workflow.now()))

    # --- the end -----------------------------------------------------------------------------------------------------
    def _note_early_end(self, error: FailureError) -> None:
        """Add the final event of a run that failed before it had a driver, for watchers."""
        if isinstance(error, ApplicationError) and not any(
            event.type == "run.finished" for event in self._state.people.events
        ):
            kind = next((outcome for outcome, name in FAILURE_TYPES.items() if name == error.type), Outcome.REFUSED)
            add_end(self._state, workflow.now().isoformat(timespec="milliseconds"), kind, error.message)

    def _internal_error(self, error: Exception) -> ApplicationError:
        """Log an unforeseen error, record its frames in the state, and return the failure of the run."""
        resolved = self._state.work.resolved
        defect = log_defect(error, resolved.strategy if resolved else None)
        self._state.work.note_defects([defect])
        message = f"{defect.text}; {WAY_OUT}"
        return ApplicationError(message, type=failures.RESEARCH_FAILED, non_retryable=True)

    def _fail(self, run: ResearchRun, message: str) -> ApplicationError:
        """Return the failure of a run; its session can be resumed from the last checkpoint."""
        result = self._result(Outcome.FAILED).with_fields(stop_reason=StopReason.INTERNAL_ERROR)
        record_ending(result, self._state, message)
        run.state.work.last_failure = message
        run.state.work.status = RunStatus.FAILED
        run.note_end(Outcome.FAILED, f"failed: {message}")
        detail = result.with_fields(limitations=[message]).model_dump(mode="json")
        return ApplicationError(message, detail, type=failures.RESEARCH_FAILED, non_retryable=True)

    async def _deliver(self, outcome: Outcome) -> ResearchResult:
        """Return the result, or raise it in the details of a failure if the outcome counts as one."""
        self._show_phase()
        workflow.upsert_memo({names.OUTCOME_MEMO: outcome.value})
        await workflow.wait_condition(workflow.all_handlers_finished)
        result = self._result(outcome)
        failure = self._state.work.last_failure
        record_ending(result, self._state, failure)
        if outcome not in FAILURE_TYPES:
            return result
        kind = result.stop_reason.value if outcome is Outcome.REFUSED else FAILURE_TYPES[outcome]
        why = f" ({failure})" if failure else ""
        remedy = result.advice or f"`research resume {result.research_id}` goes on"
        message = f"{outcome.value}: {result.stop_reason.value}{why}; {remedy}"
        raise ApplicationError(message, result.model_dump(mode="json"), type=kind, non_retryable=True)

    def _result(self, outcome: Outcome) -> ResearchResult:
        if self._state.work.result is not None:
            return self._state.work.result
        state = self._state
        reason = StopReason.BUDGET_TIME if outcome is Outcome.TIMED_OUT else StopReason.PROVIDER_OUTAGE
        return result_of(state, outcome, reason, workflow.now().isoformat(timespec="milliseconds"))


def _note_unavailable(run: ResearchRun, providers: Mapping[str, str]) -> None:
    for name, why in providers.items():
        run.note("status", f"not searching with {name}: {why}", level="warning")


def _goes_on() -> bool:
    """Return true after a continue-as-new of a run whose work has begun."""
    return workflow.info().continued_run_id is not None and not workflow.memo_value(names.QUEUED_MEMO, default=False)


def _status_before() -> RunStatus:
    """Return the status in which the history before ended; that of a new run if there was none."""
    return RunStatus(workflow.memo_value(names.STATUS_MEMO, default=RunStatus.CREATED.value))


def _parse(request: RawValue) -> ResearchRequest:
    if not re.fullmatch(RESEARCH_ID.pattern, workflow.info().workflow_id):
        raise _end_early(Outcome.REFUSED, StopReason.INVALID_INPUT, f"research_id: must be {RESEARCH_ID.expected}")
    try:
        return parse_request(payload_json(request))
    except InvalidRequest as error:
        raise _end_early(Outcome.REFUSED, StopReason.INVALID_INPUT, str(error)) from None


def _start_failure(error: ActivityError, *, resumable: bool = False) -> ApplicationError:
    """Return the failure of a run that cannot start; `resumable` means that it has a session."""
    cause = error.cause
    if not isinstance(cause, ApplicationError):
        return _end_early(Outcome.FAILED, StopReason.INTERNAL_ERROR, describe_unstarted(error), resumable=resumable)
    reason = StopReason.INTERNAL_ERROR
    if cause.details and isinstance(cause.details[0], dict):
        reason = StopReason(cause.details[0].get("stop_reason", reason))
    outcome = Outcome.REFUSED if cause.type == failures.REFUSED else Outcome.FAILED
    return _end_early(outcome, reason, cause.message, resumable=resumable)


def _stopped_before_work() -> ApplicationError:
    message = "stopped before the run began: there is nothing to report"
    return _end_early(Outcome.FAILED, StopReason.USER_STOPPED, message)


def _end_early(outcome: Outcome, reason: StopReason, message: str, *, resumable: bool = False) -> ApplicationError:
    """Return the failure of a run that did not start; the type of a refusal is its stop reason."""
    kind = reason.value if outcome is Outcome.REFUSED else failures.RESEARCH_FAILED
    now = workflow.now().isoformat(timespec="milliseconds")
    result = ResearchResult(
        research_id=workflow.info().workflow_id,
        outcome=outcome,
        stop_reason=reason,
        limitations=[message],
        resumable=resumable,
        started_at=now,
        ended_at=now,
    )
    record_ending(result, failure=message)
    return ApplicationError(message, result.model_dump(mode="json"), type=kind, non_retryable=True)


def record_ending(result: ResearchResult, state: ResearchState | None = None, failure: str = "") -> None:
    """Log the end of a run, and count it with its usage and its unreadable sources by reason."""
    fields: dict[str, str | float | None] = {
        "research_id": result.research_id,
        "outcome": result.outcome.value,
        "stop_reason": result.stop_reason.value,
        "seconds": round(result.usage.active_seconds, 1),
        "cost_usd": result.usage.cost_usd,
        "model_calls": result.usage.model_calls,
    }
    if result.outcome in FAILURE_TYPES:
        fields["reason"] = "; ".join(failure.splitlines())[:REASON_CHARACTERS]
    workflow.logger.info("run.ended", extra=fields)
    meter = workflow.metric_meter()
    ending = {"outcome": result.outcome.value, "stop_reason": result.stop_reason.value}
    meter.create_counter("research_runs", "Runs that ended, by outcome and stop reason").add(1, ending)
    meter.create_counter("research_tokens", "Tokens that runs used").add(result.usage.tokens)
    cost = round(result.usage.known_cost_usd * MILLION)
    meter.create_counter("research_cost_micro_usd", "What runs cost, as far as prices are known").add(cost)
    seconds = meter.create_histogram_float("research_run_seconds", "How long runs worked", "s")
    seconds.record(result.usage.active_seconds, {"outcome": result.outcome.value})
    dropped = meter.create_counter("research_sources_dropped", "Sources that could not be read, by reason")
    if state is not None:
        lost = [source for source in state.evidence.sources.values() if source.status is SourceStatus.FAILED]
        for reason, number in Counter(source.status_reason for source in lost).items():
            dropped.add(number, {"reason": reason})
