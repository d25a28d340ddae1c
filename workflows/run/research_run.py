"""The run facade for strategies: call roles, take tool turns, start agents. Every model call is budgeted.

A role call reserves, calls and settles; an unusable answer is repaired once before the deterministic fallback.
"""

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeVar

from temporalio.exceptions import ActivityError, ApplicationError

from contracts import activities, failures, names
from contracts.agents import AT_ONCE, AgentTask, TaskResult
from contracts.call_sizes import CallSizes, pages_read_first
from contracts.canary import STEERED, STEERED_NOTE
from contracts.notebooks import replace_by_references
from contracts.outcome import Usage
from contracts.report_updates import REPORTER
from contracts.roles import AnalyzeInput, RoleAnswer, RoleInput, RoleSpec, resolved_fields
from contracts.sentences import Message
from contracts.state import ResearchState
from contracts.strategies import CLOSING_ROLES, declared_roles, writers
from contracts.summaries import SUMMARIZER, SummarizeInput, SummaryOrder
from contracts.texts import shorten
from contracts.tokens import TokenShare
from contracts.tool_turns import ToolTurnInput, TurnResult
from contracts.tools import ToolAnswer, ToolCall
from contracts.vocabulary import AgentRole, EngineKind, StopReason
from workflows.rules.duplicates import protected_ids
from workflows.run.agents import MAX_TASK_CHARACTERS, Agents
from workflows.run.budget import NOTHING, account, account_failure, note_repeated
from workflows.run.calls import (
    EXTRACTIVE_CALL_SECONDS,
    call_options,
    describe_failure,
    failure_details,
    is_given_up,
    is_outage,
    last_failure,
    note_failure,
    reason_of,
    spent_by,
)
from workflows.run.checkpoints import Checkpoints
from workflows.run.context import Hooks, RunContext, guidance_for
from workflows.run.host import Host, run_parallel
from workflows.run.inbox import Inbox, Interrupted
from workflows.run.run_budget import CallRefused, Measured, RunBudget

Request = TypeVar("Request", bound=RoleInput)
Result = TypeVar("Result", bound=RoleAnswer)
TurnRequest = TypeVar("TurnRequest", bound=ToolTurnInput)
Turn = TypeVar("Turn", bound=TurnResult)

MAX_UNUSABLE_ANSWERS = 2
"""After this many unusable answers, the role falls back without calling the model again."""
REPAIRABLE_FAILURES = (failures.INVALID_MODEL_OUTPUT, failures.ANSWER_CUT)
DONE_WITHOUT_MODEL: Final = Message("without_usable_answers")
UNUSABLE_FAILURES = (*REPAIRABLE_FAILURES, failures.ANSWER_REFUSED)
MAX_EVENT_TEXT: Final = 2_000
"""Characters of a tool call's arguments and of its answer in a run's log."""
LEAST_STEP: Final = 100
"""Tokens that are added to the least of a prompt that did not fit into it."""
MAX_MEASUREMENTS: Final = 5
"""A prompt that may not fit is measured, whole, then with its content shortened, then at its least; the last one fits
or is refused."""
NAME_DIGITS: Final = 8
"""Digits of a text's hash in the name of a call."""


def describe_call(call: ToolCall) -> str:
    """Return a call's arguments, or why it is refused, for watchers."""
    if call.problem:
        return f"refused: {call.problem}"[:MAX_TASK_CHARACTERS]
    return " ".join(str(value) for value in call.arguments.values() if value)[:MAX_TASK_CHARACTERS]


class Unanswered(Exception):
    """A role without a fallback gave no usable answer."""


class _TooSmall(Exception):
    """A prompt needs more than is reserved; nothing was paid."""

    def __init__(self, measured: Measured) -> None:
        super().__init__(measured)
        self.measured = measured


class _Unusable(Exception):
    """A paid call gave no usable answer; `problem` is for the repair call, None if a repair cannot help.

    `cut_at` is the output that was reserved for the call, if that cut its answer; else 0.
    """

    def __init__(self, problem: str | None, cut_at: int = 0) -> None:
        super().__init__(problem)
        self.cut_at = cut_at
        self.problem = problem


class ResearchRun(RunContext):
    """One run, with its role calls, agents and budget."""

    def __init__(
        self,
        state: ResearchState,
        inbox: Inbox,
        host: Host,
        hooks: Hooks | None = None,
        stored: dict[str, Any] | None = None,
    ) -> None:
        """`stored` is the state snapshot that the session store already has."""
        super().__init__(state, inbox, host, hooks)
        self.checkpoints = Checkpoints(self, stored)
        self.budget = RunBudget(self)
        self.agents = Agents(self, self.budget, self.checkpoints)
        self.searches_under_way = 0
        self._summaries: dict[str, str] = {}
        """Order key → entry hash of the summary; empty if no model made one."""

    async def ask(
        self, role: RoleSpec[Request, Result], step: str, fields: Request, engine: EngineKind | None = None
    ) -> Result:
        """Call a role; an unusable answer is repaired once, then the deterministic fallback works (marked `degraded`).

        `step` is the logical operation without the iteration (`plan`, `analyze/sq-…`), `fields` the role's own part of
        the request. Raises `Interrupted`, `CallNotAllowed`, and `Unanswered` for a role without a fallback.
        """
        self.check_call(fields.caller, role.name)
        given_up = self.state.accounts.fallbacks.get(role.name, 0) >= MAX_UNUSABLE_ANSWERS
        kind = engine or (EngineKind.EXTRACTIVE if given_up else self.resolved.engine)
        if kind is EngineKind.EXTRACTIVE and not role.has_fallback:
            raise Unanswered(role.name)
        operation = self.operation(step)
        number = 0
        if role.name != AgentRole.SUPERVISOR:
            inputs = {"operation": operation} | ({"caller": fields.caller} if fields.caller else {})
            number = self.decide(role.name, f"execute_{role.work or role.name}", "", inputs)
        self.count_calls(fields.caller, role.name)
        try:
            output = await self._answer(role, operation, fields, kind)
        except ActivityError as error:
            if not is_outage(error) and (issubclass(role.input, AnalyzeInput) or not is_given_up(error)):
                raise  # a failed analysis fails only its branch
            self.branch_failed(note_failure(role.name, error))
            reason = StopReason.PROVIDER_OUTAGE if is_outage(error) else StopReason.INTERNAL_ERROR
            raise Interrupted(reason) from None
        self.operation_done(step)
        model = {"model": output.account.model} if output.account.model else {}
        self.decided(number, {"engine": output.account.engine.value} | model)
        return output

    async def turn(self, role: RoleSpec[TurnRequest, Turn], step: str, request: TurnRequest, **extra: Any) -> Turn:
        """Have a role with tools take one turn: like `ask`, but the answer is a longer transcript and checked calls.

        Each turn after the first gets the previous transcript and an answer to each of its calls. Watchers see its text
        and calls, with the fields of `extra`. Raises the same errors as `ask`.
        """
        output = await self.ask(role, step, request)
        self.state.evidence.note_entry(output.transcript.hash)
        if output.steered:
            self.degrade(STEERED_NOTE)
        extra = {"role": role.name, "step": step, **extra}
        if output.text:
            self.note("agent.said", output.text, **extra, text=output.text[:MAX_EVENT_TEXT])
        for call in output.calls:
            arguments = json.dumps(call.arguments, ensure_ascii=False)[:MAX_EVENT_TEXT]
            text = f"{call.name.replace('_', ' ')}: {describe_call(call)}".removesuffix(": ")
            self.note("tool.called", text, **extra, tool=call.name, call_id=call.id, arguments=arguments)
        return output

    def note_answers(
        self,
        role: RoleSpec[TurnRequest, Turn],
        step: str,
        calls: Sequence[ToolCall],
        answers: Sequence[ToolAnswer],
        results: Mapping[str, Mapping[str, Any]] | None = None,
        **extra: Any,
    ) -> None:
        """Add events for the answers to a turn's calls; `results` are additional fields by call id."""
        tools = {call.id: call.name for call in calls}
        for answer in answers:
            call = {"tool": tools[answer.call_id], "call_id": answer.call_id, "is_error": answer.is_error}
            data = extra | call | {"result": answer.whole[:MAX_EVENT_TEXT], **(results or {}).get(answer.call_id, {})}
            self.note("tool.returned", shorten(answer.text, MAX_TASK_CHARACTERS), role=role.name, step=step, **data)

    async def spawn(self, tasks: Sequence[AgentTask], at_once: int = AT_ONCE, *, caller: str = "") -> list[TaskResult]:
        """Run agents, `at_once` at a time; return their results in task order, with their findings in the state.

        `caller` is the calling role, if one role calls another. The result of an agent that failed, was cut off or is
        late says so. Raises `CallNotAllowed`, `Interrupted` if the run must end, and `asyncio.CancelledError` if it is
        cancelled, both after the agents' findings were merged.
        """
        return await self.agents.spawn(tasks, at_once, caller)

    # --- one answer --------------------------------------------------------------------------------------------------
    async def _answer(
        self, role: RoleSpec[Request, Result], operation: str, fields: Request, kind: EngineKind
    ) -> Result:
        """Return the output of the model, repaired at most once, or of the fallback."""
        state = self.state
        problem: str | None = None
        for repair in ("", "/repair") if kind is EngineKind.MODEL else ():
            try:
                output = await self._paid_call(role, f"{operation}{repair}", fields, problem)
            except CallRefused as refused:
                spared = refused.share in (TokenShare.PLANNING, TokenShare.REFINEMENT) or self.budget.can_still_read(
                    role
                )
                if not role.has_fallback or ((state.evidence.fetched_sources() or role.writes_report) and not spared):
                    raise
                # Either nothing was read yet, so there is nothing to report from, or there is enough for calls that
                # read: the run continues without a model for this one.
                self.degrade(Message("degraded_refused", role=role.name, reason=refused.words))
                state.accounts.fallbacks.setdefault(role.name, 0)
                break
            except _Unusable as unusable:
                problem = unusable.problem
                if problem is None or repair:
                    state.accounts.fallbacks[role.name] = state.accounts.fallbacks.get(role.name, 0) + 1
                    if not role.has_fallback:
                        raise Unanswered(role.name) from None
                    self.degrade(Message("degraded_steered", role=role.name))
                    break
            else:
                if repair:
                    self.note("status", f"{role.name}: an unusable answer was repaired", level="info", role=role.name)
                return output
        operation = f"{operation}/fallback" if kind is EngineKind.MODEL else operation
        output = await self._execute(role, self._request(role, operation, fields, EngineKind.EXTRACTIVE, None))
        self._settle(role, output)
        return output

    async def _paid_call(
        self, role: RoleSpec[Request, Result], operation: str, fields: Request, repair: str | None
    ) -> Result:
        """Make one call; an answer that was cut at its reserved output is asked for once more, with more.

        Raises `_Unusable`, `CallRefused`, `Interrupted`, and `ActivityError` for an outage.
        """
        request = self._request(role, operation, fields, EngineKind.MODEL, repair)
        try:
            return await self._prepared_call(role, request)
        except _Unusable as unusable:
            if not unusable.cut_at:
                raise
            again = request.with_fields(operation=f"{operation}/more", more=True)
            return await self._prepared_call(role, again, 2 * unusable.cut_at)

    async def _prepared_call(self, role: RoleSpec[Request, Result], request: Request, least_output: int = 0) -> Result:
        """Make one call; if it needs summaries, make them first. Raises like `_paid_call`."""
        try:
            return await self._measured_call(role, request, least_output)
        except ActivityError as error:
            if not (orders := summary_orders(error)):
                raise
            # Summaries must not use its budget up.
            granted = await self.budget.reserve(role, request, None, least_output)
            try:
                calls = [partial(self._summarize, request.operation, order) for order in orders]
                for call in await run_parallel(self.host, calls, max(1, self.resolved.limits.max_parallel)):
                    call.result()  # raises if the run must end
            finally:
                self.budget.reservations.close(granted.number, NOTHING)
            summaries = [entry for order in orders if (entry := self._summaries[order.key])]
            return await self._measured_call(role, request.with_fields(summaries=summaries), least_output)

    async def _measured_call(self, role: RoleSpec[Request, Result], request: Request, least_output: int) -> Result:
        """Make one call; if its prompt turns out larger than what is reserved, reserve its measured size instead."""
        measured: Measured | None = None
        for _ in range(MAX_MEASUREMENTS):
            try:
                return await self._reserved_call(role, request, measured, least_output)
            except _TooSmall as refused:
                measured = refused.measured
        limits_tokens = self.resolved.limits.max_tokens is not None
        raise CallRefused(StopReason.BUDGET_TOKENS if limits_tokens else StopReason.BUDGET_COST)

    async def _summarize(self, operation: str, order: SummaryOrder) -> None:
        """Have a text summarised by the first configured model that succeeds."""
        tokens = self.resolved.tokens
        models = dict.fromkeys([tokens.summarization_provider, *tokens.summarization_providers])
        for number, model in enumerate(filter(None, models), start=1):
            if order.key in self._summaries:
                return
            name = f"{operation}/summary/{order.text.hash[-NAME_DIGITS:]}/{order.level.value}/{number}"
            fields = SummarizeInput(text=order.text, level=order.level, summarizer=model)
            with suppress(CallRefused, _Unusable, ActivityError):
                if entry := (await self._paid_call(SUMMARIZER, name, fields, None)).entry:
                    self.state.evidence.note_entry(entry)
                    self._summaries[order.key] = entry
        if not self._summaries.setdefault(order.key, ""):
            self.degrade(Message("shortened_by_sentences", role=SUMMARIZER.name))

    async def _reserved_call(
        self, role: RoleSpec[Request, Result], request: Request, measured: Measured | None, least_output: int
    ) -> Result:
        """Reserve, call and settle; `measured` is the input that the prompt was found to need.

        Raises like `_paid_call`, `ActivityError` for a call that needs summaries, and `_TooSmall`.
        """
        granted = await self.budget.reserve(role, request, measured, least_output)
        left = granted.reservation
        if granted.is_limited:
            request = request.with_reservation(granted.size, shorten=granted.shortens)
        try:
            output = await self._execute(role, request)
            left = left.unexplained_by(output.account.usage)
        except ActivityError as error:
            spent = spent_by(error)
            if isinstance(error.cause, ApplicationError):
                left = left.unexplained_by(spent)
            if summary_orders(error):
                raise
            if (tokens := input_needed(error)) is not None:
                # The least that a prompt needs is known to within its marks.
                if granted.shortens:
                    tokens = max(tokens, granted.size.input_tokens + LEAST_STEP)
                raise _TooSmall(Measured(tokens, is_least=granted.shortens)) from None
            self._note_size(role, request, granted.bound, 0, spent)
            problem = self._problem(role, error, request)
            is_short = granted.is_limited and granted.size.output_tokens < granted.bound.output_tokens
            cut = is_short and not request.more and reason_of(error) == failures.ANSWER_CUT
            raise _Unusable(problem, granted.size.output_tokens if cut else 0) from error
        else:
            usage = output.account.usage
            estimate = output.account.estimated_input_tokens or usage.input_tokens
            self._note_size(role, request, granted.bound, estimate, usage)
            self._settle(role, output)
            note_repeated(self.state, role.name, request, usage)
            return output
        finally:
            self.budget.reservations.close(granted.number, left)

    def _note_size(
        self, role: RoleSpec[Request, Result], request: Request, bound: Usage, estimate: int, used: Usage
    ) -> None:
        """Remember the size of a paid call; an answer from the journal that another call paid for has none."""
        if used.output_tokens:
            sizes = self.state.accounts.call_sizes
            price = self.budget.price(role)
            asked = request.asked_output_tokens
            pages = pages_read_first(request)
            own = sizes.get(role.name, CallSizes()).with_call(role, bound, estimate, used, price, asked, pages)
            self.state.accounts.call_sizes = {**sizes, role.name: own}

    def _request(
        self, role: RoleSpec[Request, Result], operation: str, fields: Request, kind: EngineKind, repair: str | None
    ) -> Request:
        """Return the role's own fields with those common to all calls."""
        source_ids = {source.id for source in getattr(fields, "sources", ())}
        request = fields.with_fields(
            research_id=self.resolved.research_id,
            operation=operation,
            engine=kind,
            date=self.state.clock.started_at[:10],
            iteration=self.state.work.iteration,
            guidance=guidance_for(self.state.people.guidance, role.name, self.state.work.iteration),
            protected_source_ids=[name for name in protected_ids(self.state).values() if name in source_ids],
            repair=repair,
        )
        return request.model_copy(update=resolved_fields(role, request, self.resolved))

    async def _execute(self, role: RoleSpec[Request, Result], request: Request) -> Result:
        """Schedule the activity within the time left now, which is less if the call waited for budget."""
        summary = call_summary(role, request)
        remaining = self.clock.remaining_work_seconds()
        attempt = math.inf if request.engine is EngineKind.MODEL else EXTRACTIVE_CALL_SECONDS
        options = call_options(
            names.MODELS_QUEUE,
            request.operation,
            summary,
            remaining,
            attempt_seconds=attempt,
            first=self.inbox.closing,
        )
        if isinstance(request, SummarizeInput):
            options = options.within(self.resolved.tokens.summarization_timeout)
        timed = replace_by_references(role, request, self.state, resolution=self.is_prepared).with_fields(
            time_limit_seconds=round(options.start_to_close.total_seconds(), 1)
        )
        spec = activities.ActivitySpec(role.activity, role.input, role.result)
        return await self.within_limits(self.host.execute(spec, timed, options))

    def _settle(self, role: RoleSpec[Request, Result], output: Result) -> None:
        """Account for an answer: usage, content, engine, model and warnings."""
        answer = output.account
        state = self.state
        account(state, role.name, answer.usage)
        if answer.content is not None:
            state.note_content(answer.content)
            if answer.content.archive_problem:
                self.degrade(answer.content.archive_problem)
        if role.writes_report:
            # If several roles wrote, the last one wrote the current report.
            others = writers() - {role.name}
            state.accounts.engine_by_role = {
                name: kind for name, kind in state.accounts.engine_by_role.items() if name not in others
            }
        # A role counts as a model's once a model has answered it, and so does a live report; any other report is the
        # work of the last engine that wrote it.
        is_last = role.writes_report and role.name != REPORTER.name
        if is_last or state.accounts.engine_by_role.get(role.name) != EngineKind.MODEL.value:
            state.accounts.engine_by_role[role.name] = answer.engine.value
        if answer.engine is not EngineKind.MODEL and self.resolved.engine is EngineKind.MODEL:
            state.accounts.rule_answers[role.name] = state.accounts.rule_answers.get(role.name, 0) + 1
        if answer.model and answer.model not in state.accounts.models_used:
            state.accounts.models_used.append(answer.model)
        if answer.prompt_version:
            state.accounts.prompt_versions[role.name] = answer.prompt_version
        for warning in answer.warnings[:5]:
            self.note("status", f"{role.name}: {warning}", level="info")

    def _problem(self, role: RoleSpec[Request, Result], error: ActivityError, request: Request) -> str | None:
        """Account for a failed call, and return the problem for a repair; None if only the fallback can help.

        Re-raises an outage, and raises `Interrupted` if the run cannot continue.
        """
        account_failure(self.state, role.name, request, spent_by(error))
        if is_outage(error):
            raise error
        cause = last_failure(error)
        kind = (cause.type if isinstance(cause, ApplicationError) else type(cause).__name__) or "failed"
        problem = failure_details(cause).get("problem")
        if problem == STEERED:
            self.degrade(STEERED_NOTE)
        if role.name == SUMMARIZER.name:  # the next model is tried, if there is one
            self.note("task.failed", f"{role.name}: {describe_failure(error)}", role=role.name, error=kind)
            return None
        why = failure = describe_failure(error).removeprefix("$: ")
        if kind in UNUSABLE_FAILURES:
            why = DONE_WITHOUT_MODEL if role.has_fallback else failures.EXPLANATIONS[kind]
        note = Message("role_failed", role=role.name, reason=why)
        if kind not in REPAIRABLE_FAILURES or request.repair is not None:
            # The failure of a role that only checks the report loses no content.
            (self.branch_failed if role.has_fallback else self.degrade)(note)
        self.note("task.failed", f"{role.name}: {failure}", role=role.name, error=kind)
        if kind in REPAIRABLE_FAILURES:
            return str(problem or "the answer was cut at the output limit: answer more briefly")[:600]
        if is_given_up(error):
            self.degrade(Message("role_ended_processes", role=role.name, reason=reason_of(error)))
        elif failure_details(cause).get("kind") == failures.CONTEXT_TOO_LONG:
            if request.protected_source_ids:
                # No model has room for the protected sources, so no more model calls are made.
                replaceable = (other for other in declared_roles() if other.has_fallback or other in CLOSING_ROLES)
                given_up = dict.fromkeys((other.name for other in replaceable), MAX_UNUSABLE_ANSWERS)
                self.state.accounts.fallbacks = given_up | self.state.accounts.fallbacks
                self.degrade(Message("no_room_for_protected"))
        elif kind not in UNUSABLE_FAILURES and not role.writes_report and not self.state.work.plan.nodes:
            self.branch_failed(note)
            raise Interrupted(StopReason.PROVIDER_OUTAGE) from None
        return None


def input_needed(error: ActivityError) -> int | None:
    """Return the input tokens that a call must have reserved; None if it failed for another reason."""
    cause = error.cause
    if not isinstance(cause, ApplicationError) or cause.type != failures.RESERVATION_TOO_SMALL:
        return None
    return int(failure_details(cause)["input_tokens"])


def summary_orders(error: ActivityError) -> list[SummaryOrder]:
    """Return the summaries that a call needs first; empty if the call failed for another reason."""
    cause = error.cause
    if not isinstance(cause, ApplicationError) or cause.type != failures.SUMMARIES_NEEDED:
        return []
    return [SummaryOrder.model_validate(order) for order in failure_details(cause)["orders"]]


def call_summary(role: RoleSpec[Any, Any], request: RoleInput) -> str:
    """Return the summary shown next to the activity's name in the web UI."""
    subject = request.subject()
    if subject:
        return f"{role.activity.split('_', maxsplit=1)[0]}: {subject}"
    return role.activity.replace("_", " ")
