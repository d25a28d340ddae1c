"""Asking a role: reserve, call, settle; repair once, then the deterministic fallback."""

from dataclasses import replace
from typing import Any, TypeVar

from temporalio.exceptions import ActivityError, ApplicationError

from contracts import failures
from contracts.call_sizes import worst_call
from contracts.canary import STEERED, STEERED_NOTE
from contracts.notebooks import by_reference
from contracts.outcome import Moment
from contracts.request import Verify
from contracts.resolved import ModelPrice
from contracts.roles import (
    ANALYZER,
    SUPERVISOR,
    SYNTHESIZER,
    RoleAnswer,
    RoleInput,
    RoleSpec,
    language_of_call,
    prompt_preferences,
)
from contracts.strategies import CLOSING_ROLES, writers
from contracts.vocabulary import AgentRole, EngineKind, Phase, StopReason
from workflows.run.budget import (
    NOTHING,
    Holdings,
    Reservation,
    account,
    account_failure,
    answer_key,
    check_reserve,
    forget_failures,
    refusal,
    report_reserve,
    reservation,
)
from workflows.run.calls import (
    describe_failure,
    details_of,
    is_given_up,
    is_outage,
    last_failure,
    reason_of,
    role_options,
    spent_by,
)
from workflows.run.context import RunContext
from workflows.run.inbox import Interrupted

I = TypeVar("I", bound=RoleInput)
O = TypeVar("O", bound=RoleAnswer)

GIVEN_UP_AFTER = 2
REPAIRABLE = (failures.INVALID_MODEL_OUTPUT, failures.ANSWER_CUT)
GIVEN_UP_NOTE = "a text that ended the processes that read it was left out"
UNUSABLE_NOTE = "the model's answer was unusable"
UNUSABLE = (*REPAIRABLE, failures.ANSWER_REFUSED)


class CallRefused(Interrupted):
    """A limit forbids the call, and no call under way can give back enough for it."""


class Unanswered(Exception):
    """A role that nothing stands in for gave no usable answer."""


class RoleCaller:
    """Does one role call after another for a run."""

    def __init__(self, run: RunContext) -> None:
        self._run = run
        self.holdings = Holdings()

    async def ask(self, role: RoleSpec[I, O], step: str, fields: I, engine: EngineKind | None, at: Moment) -> O:
        """The role's output: from the engine of the run, repaired once, else from the fallback.

        Raises `Interrupted` also where not even the fallback can work on what it is given, and `Unanswered` for a role
        that has none.
        """
        kind = engine or self._engine_for(role)
        if kind is EngineKind.EXTRACTIVE and not role.has_fallback:
            raise Unanswered(role.name)
        operation = self._run.operation(step, at.iteration)
        number = self._record_dispatch(role, operation, at)
        try:
            output = await self._answer(role, operation, fields, kind, at)
        except ActivityError as error:
            if is_outage(error):
                self._run.branch_failed(f"{role.name}: {reason_of(error)}: {describe_failure(error)}")
                raise Interrupted(StopReason.PROVIDER_OUTAGE) from None
            if role.name == ANALYZER.name or not is_given_up(error):
                raise  # a failed analysis costs its own branch
            self._run.branch_failed(f"{role.name}: {reason_of(error)}: {describe_failure(error)}")
            raise Interrupted(StopReason.INTERNAL_ERROR) from None
        self._run.operation_done(step, at.iteration)
        forget_failures(self._run.state, operation)
        if number:
            outputs = {"engine": output.account.engine.value, "model": output.account.model}
            self._run.decided(number, {name: value for name, value in outputs.items() if value})
        return output

    async def _answer(self, role: RoleSpec[I, O], operation: str, fields: I, kind: EngineKind, at: Moment) -> O:
        if kind is EngineKind.EXTRACTIVE:
            return await self._call(role, operation, fields, kind, None, at)
        try:
            output = await self._answer_of_model(role, operation, fields, at)
        except CallRefused as refused:
            if self._run.state.sources or role.writes_report or not role.has_fallback:
                raise
            # Nothing was read yet, so there is nothing to report from: research goes on without paying for this.
            self._run.degrade(f"{role.name}: done without the model ({refused.reason.value})")
            self._run.state.fallbacks.setdefault(role.name, 0)
        else:
            if output is not None:
                return output
            self._run.state.fallbacks[role.name] = self._run.state.fallbacks.get(role.name, 0) + 1
            if not role.has_fallback:
                raise Unanswered(role.name)
            self._run.degrade(f"{role.name}: done without the model, whose answers could not be used")
        return await self._call(role, f"{operation}/fallback", fields, EngineKind.EXTRACTIVE, None, at)

    async def _answer_of_model(self, role: RoleSpec[I, O], operation: str, fields: I, at: Moment) -> O | None:
        """The model's answer, repaired once; null if neither could be used."""
        try:
            return await self._call(role, operation, fields, EngineKind.MODEL, None, at)
        except _Unusable as unusable:
            problem = unusable.problem
        if problem is None:
            return None
        try:
            output = await self._call(role, f"{operation}/repair", fields, EngineKind.MODEL, problem, at)
        except _Unusable:
            return None
        self._run.note("status", f"{role.name}: {UNUSABLE_NOTE}: asked again", level="info", role=role.name)
        return output

    def _engine_for(self, role: RoleSpec[I, O]) -> EngineKind:
        """The run's engine; a model that twice gave a role nothing useful is not paid for it a third time."""
        given_up = self._run.state.fallbacks.get(role.name, 0) >= GIVEN_UP_AFTER
        return EngineKind.EXTRACTIVE if given_up else self._run.resolved.engine

    async def _call(
        self, role: RoleSpec[I, O], operation: str, fields: I, kind: EngineKind, repair: str | None, at: Moment
    ) -> O:
        request = self._request(role, operation, fields, kind, repair, at)
        summary = _summary(role, fields)
        if kind is not EngineKind.MODEL:
            output = await self._execute(role, request, summary)
            self._settle(role, output, at)
            return output
        number, left = await self._reserve(role, request, at)
        try:
            output = await self._execute(role, request, summary)
            left = left.unexplained_by(output.account.usage)
            self._settle(role, output, at)
        except ActivityError as error:
            if isinstance(error.cause, ApplicationError):
                left = left.unexplained_by(spent_by(error))
            raise _Unusable(self._problem(role, error, request, at)) from error
        finally:
            self.holdings.close(number, left)
        return output

    def _request(
        self, role: RoleSpec[I, O], operation: str, fields: I, kind: EngineKind, repair: str | None, at: Moment
    ) -> I:
        """The role's own fields with the envelope that every call carries."""
        run = self._run
        return fields.model_copy(
            update={
                "research_id": run.resolved.research_id,
                "tenant": run.resolved.tenant,
                "operation": operation,
                "engine": kind,
                "model": run.resolved.models.get(role.tier.value) if kind is EngineKind.MODEL else None,
                "date": run.state.started_at[:10],
                "query": run.resolved.query,
                "language": language_of_call(role, run.resolved, kind),
                "preferences": prompt_preferences(role, run.resolved),
                "iteration": at.iteration,
                "max_iterations": run.resolved.limits.max_iterations,
                "guidance": at.guidance,
                "exclude": run.resolved.exclude,
                "canary": run.resolved.canary,
                "repair": repair,
            }
        )

    async def _execute(self, role: RoleSpec[I, O], request: I, summary: str) -> O:
        """Schedule the activity with the time that is left now: a call may have waited for its room."""
        run = self._run
        options = role_options(request.operation, summary, request.engine, run.clock.remaining_work_seconds())
        options = replace(options, first=run.inbox.closing)
        timed = by_reference(request, run.state.resolved_entry).model_copy(
            update={"time_limit_seconds": round(options.start_to_close.total_seconds(), 1)}
        )
        return await run.within_limits(run.host.execute_role(role, timed, options))

    async def _reserve(self, role: RoleSpec[I, O], request: I, at: Moment) -> tuple[int, Reservation]:
        """Return what is reserved for a call, under its number. Waits while calls under way may give back enough.

        Raises `CallRefused`, or `Interrupted` if the run is to end meanwhile.
        """
        run, holdings = self._run, self.holdings
        size = worst_call(role, request, run.resolved.reasoning_tokens)
        wanted = reservation(size, self._price(role))
        kept = self._reserved_for_report(role, at)
        limits = run.resolved.limits
        while refusal(limits, run.state.usage, holdings.held, wanted, kept):
            reason = refusal(limits, run.state.usage, holdings.unexplained, wanted, kept)
            if reason is not None:
                run.note("budget.exhausted", f"no further model call: {reason.text}", reason=reason.value)
                raise CallRefused(reason)
            await self._room_given_back()
        return holdings.open(wanted), wanted

    async def _room_given_back(self) -> None:
        run, before = self._run, self.holdings.changes
        await run.host.wait_until(lambda: self.holdings.changes != before or run.inbox.interruption is not None)
        if run.inbox.interruption is not None:
            raise Interrupted(run.inbox.interruption)

    def _reserved_for_report(self, role: RoleSpec[I, O], at: Moment) -> Reservation:
        reflects_on_report = role.name == SUPERVISOR.name and at.phase == Phase.SYNTHESIS
        if role.writes_report or reflects_on_report or role in CLOSING_ROLES:
            return NOTHING
        return self.reserved_for_report()

    def reserved_for_report(self) -> Reservation:
        """Return what nothing but the report, and who checks it, may use."""
        run = self._run
        sub_queries = len(run.state.plan.sub_queries) or run.resolved.limits.max_sub_queries
        resolved = run.resolved
        kept = report_reserve(resolved.limits, sub_queries, self._price(SYNTHESIZER), resolved.reasoning_tokens)
        return kept.plus(check_reserve(resolved.limits)) if resolved.verify is Verify.FULL else kept

    def _price(self, role: RoleSpec[Any, Any]) -> ModelPrice | None:
        return self._run.resolved.model_prices.get(role.tier.value)

    def _settle(self, role: RoleSpec[I, O], output: O, at: Moment) -> None:
        answer, state = output.account, self._run.state
        account(state, role.name, answer.usage, at.phase)
        if role.writes_report:
            # Of several that may have written, the last one wrote the report that there is.
            others = writers() - {role.name}
            state.engine_by_role = {name: kind for name, kind in state.engine_by_role.items() if name not in others}
        state.engine_by_role[role.name] = answer.engine.value
        if answer.model and answer.model not in state.models_used:
            state.models_used.append(answer.model)
        if answer.prompt_version:
            state.prompt_versions[role.name] = answer.prompt_version
        for warning in answer.warnings[:5]:
            self._run.note("status", f"{role.name}: {warning}", level="info")

    def _problem(self, role: RoleSpec[I, O], error: ActivityError, request: I, at: Moment) -> str | None:
        """Account for a failed call. One that can be repaired is no failed branch yet.

        Returns a text if a repair may help, None if only the fallback can; raises an outage, and what ends the run.
        """
        cause = last_failure(error)
        account_failure(self._run.state, role.name, answer_key(request.operation, request), spent_by(error), at.phase)
        if is_outage(error):
            raise error
        kind = cause.type if isinstance(cause, ApplicationError) else type(cause).__name__
        problem = details_of(cause).get("problem")
        note = f"{role.name}: {UNUSABLE_NOTE if kind in UNUSABLE else describe_failure(error)}"
        if kind not in REPAIRABLE or request.repair is not None:
            # What only looks at the report takes nothing away from it by failing.
            (self._run.branch_failed if role.has_fallback else self._run.degrade)(note)
        self._run.note("task.failed", f"{role.name}: {describe_failure(error)}", role=role.name, error=kind)
        if problem == STEERED:
            self._run.degrade(STEERED_NOTE)
        if kind in REPAIRABLE:
            return str(problem or "the answer was cut at the output limit: answer more briefly")[:600]
        if is_given_up(error):
            self._run.degrade(f"{role.name}: {GIVEN_UP_NOTE} ({reason_of(error)})")
        if kind in UNUSABLE or is_given_up(error):
            return None
        if not role.writes_report and not self._run.state.plan.nodes:
            self._run.branch_failed(note)
            raise Interrupted(StopReason.PROVIDER_OUTAGE) from None
        return None

    def _record_dispatch(self, role: RoleSpec[I, O], operation: str, at: Moment) -> int:
        """Record the dispatch as a decision of its own, without outputs until it is done. Its number, 0 if none."""
        if role.name == AgentRole.SUPERVISOR:
            return 0
        return self._run.decide(role.name, f"execute_{role.work or role.name}", "", {"operation": operation}, at=at)


class _Unusable(Exception):
    """A paid call brought nothing that can be used; `problem` is for the repair, null if none can help."""

    def __init__(self, problem: str | None) -> None:
        super().__init__(problem)
        self.problem = problem


def _summary(role: RoleSpec[Any, Any], request: RoleInput) -> str:
    """Return what the web UI shows beside the activity's name."""
    subject = request.subject()
    return f"{role.activity.split('_', maxsplit=1)[0]}: {subject}" if subject else role.activity.replace("_", " ")
