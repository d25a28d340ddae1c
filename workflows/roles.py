"""Asking a role: reserve, call, settle; repair once, then the deterministic fallback."""

from typing import TYPE_CHECKING, Any, TypeVar

from temporalio.exceptions import ActivityError, ApplicationError

from contracts import failures
from contracts.roles import PLANNER, SYNTHESIZER, RoleInput, RoleOutput, RoleSpec
from contracts.usage import Usage
from contracts.vocabulary import AgentRole, EngineKind, StopReason
from workflows.activity_options import role_options
from workflows.desk import Interrupted
from workflows.gathering import must_stop
from workflows.ledger import exhausted

if TYPE_CHECKING:
    from workflows.run import ResearchRun

I = TypeVar("I", bound=RoleInput)
O = TypeVar("O", bound=RoleOutput)

GIVEN_UP_AFTER = 2
NEWEST_GUIDANCE = 6
"""What a role is told: the last round of think-pauses and what people asked for."""
REPAIRABLE = (failures.INVALID_MODEL_OUTPUT, failures.ANSWER_CUT)
UNUSABLE = (*REPAIRABLE, failures.ANSWER_REFUSED)


class RoleCaller:
    """Does one role call after another for a run."""

    def __init__(self, run: "ResearchRun") -> None:
        self._run = run
        self._in_flight = 0

    async def ask(self, role: RoleSpec[I, O], step: str, fields: dict[str, Any], engine: EngineKind | None) -> O:
        """The role's output: from the engine of the run, repaired once, else from the fallback."""
        kind = engine or self._engine_for(role)
        operation = self._run.operation(step)
        self._dispatched(role, operation)
        output = await self._answer(role, operation, fields, kind)
        self._run.operation_done(step)
        return output

    async def _answer(self, role: RoleSpec[I, O], operation: str, fields: dict[str, Any], kind: EngineKind) -> O:
        if kind is EngineKind.EXTRACTIVE:
            return await self._call(role, operation, fields, kind, None)
        try:
            return await self._call(role, operation, fields, kind, None)
        except ActivityError as error:
            problem = self._problem(role, error)
        if problem is not None:
            try:
                return await self._call(role, f"{operation}/repair", fields, kind, problem)
            except ActivityError as error:
                self._problem(role, error)
        self._run.state.fallbacks[role.name] = self._run.state.fallbacks.get(role.name, 0) + 1
        self._run.degrade(f"{role.name}: done without the model, whose answers could not be used")
        return await self._call(role, f"{operation}/fallback", fields, EngineKind.EXTRACTIVE, None)

    def _engine_for(self, role: RoleSpec[I, O]) -> EngineKind:
        """The run's engine; a model that twice gave a role nothing useful is not paid for it a third time."""
        given_up = self._run.state.fallbacks.get(role.name, 0) >= GIVEN_UP_AFTER
        return EngineKind.EXTRACTIVE if given_up else self._run.resolved.engine

    async def _call(
        self, role: RoleSpec[I, O], operation: str, fields: dict[str, Any], kind: EngineKind, repair: str | None
    ) -> O:
        run = self._run
        self._reserve(role, kind)
        remaining = run.remaining_work_seconds()
        options = role_options(operation, self._summary(role, fields), kind, remaining)
        argument = role.input(
            research_id=run.resolved.research_id,
            tenant=run.resolved.tenant,
            operation=operation,
            engine=kind,
            model=run.resolved.models.get(role.tier.value) if kind is EngineKind.MODEL else None,
            date=run.state.started_at[:10],
            query=run.resolved.query,
            language=run.resolved.language,
            iteration=run.state.iteration,
            max_iterations=run.resolved.limits.max_iterations,
            guidance=run.state.guidance[-NEWEST_GUIDANCE:],
            repair=repair,
            time_limit_seconds=options.start_to_close.total_seconds(),
            **fields,
        )
        paid = kind is EngineKind.MODEL
        self._in_flight += paid
        try:
            output = await run.within_limits(run.host.execute(role.activity, argument, role.output, options))
        finally:
            self._in_flight -= paid
        self._settle(role, output)
        return output

    def _reserve(self, role: RoleSpec[I, O], kind: EngineKind) -> None:
        if kind is not EngineKind.MODEL:
            return
        run = self._run
        for_report = role.name == SYNTHESIZER.name
        if reason := exhausted(run.resolved.limits, run.state.usage, self._in_flight, for_report=for_report):
            run.note("budget.exhausted", f"no further model call: {reason.value}", reason=reason.value)
            raise Interrupted(reason)

    def _settle(self, role: RoleSpec[I, O], output: O) -> None:
        account, state = output.account, self._run.state
        state.usage = state.usage.plus(account.usage)
        state.engine_by_role[role.name] = account.engine.value
        if account.model and account.model not in state.models_used:
            state.models_used.append(account.model)
        if account.prompt_version:
            state.prompt_versions[role.name] = account.prompt_version
        for warning in account.warnings[:5]:
            self._run.note("status", f"{role.name}: {warning}", level="info")

    def _problem(self, role: RoleSpec[I, O], error: ActivityError) -> str | None:
        """Account for a failed call. A text if a repair may help, null if only the fallback can; else raises."""
        if must_stop(error):
            raise error
        cause = error.cause
        kind = cause.type if isinstance(cause, ApplicationError) else type(cause).__name__
        detail = _details(cause)
        self._run.state.usage = self._run.state.usage.plus(Usage.model_validate(detail.get("usage") or {}))
        note = f"{role.name}: {kind}"
        self._run.branch_failed(note)
        self._run.note("task.failed", f"{note}: {_short(cause)}", role=role.name, error=kind)
        if kind in REPAIRABLE:
            return str(detail.get("problem") or "the answer was cut at the output limit: answer more briefly")[:600]
        if kind in UNUSABLE:
            return None
        if role.name == PLANNER.name and not self._run.state.plan.sub_queries:
            raise Interrupted(StopReason.PROVIDER_OUTAGE) from None
        return None

    def _dispatched(self, role: RoleSpec[I, O], operation: str) -> None:
        """S0-086: the dispatch is a decision of its own, without outputs until it is executed."""
        run = self._run
        phase = run.state.phase
        if role.name != AgentRole.SUPERVISOR.value:
            run.decide(
                AgentRole(role.name), f"execute_{phase.value if phase else role.name}", "", {"operation": operation}
            )

    def _summary(self, role: RoleSpec[I, O], fields: dict[str, Any]) -> str:
        sub_query = fields.get("sub_query")
        verb = role.activity.split("_", maxsplit=1)[0]
        return f"{verb}: {sub_query.text}" if sub_query is not None else role.activity.replace("_", " ")


def _details(cause: BaseException | None) -> dict[str, Any]:
    details = cause.details if isinstance(cause, ApplicationError) else ()
    return details[0] if details and isinstance(details[0], dict) else {}


def _short(cause: BaseException | None) -> str:
    return (cause.message if isinstance(cause, ApplicationError) else str(cause))[:200]
