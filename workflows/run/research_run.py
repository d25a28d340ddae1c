"""A run as strategies program against it: ask a role, take a turn, have agents work. Each model call has its budget.

A role call reserves, calls and settles; an answer of no use is repaired once, then the deterministic fallback works.
"""

import asyncio
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

from temporalio.exceptions import ActivityError, ApplicationError, CancelledError, ChildWorkflowError, TemporalError

from contracts import activities, failures, names
from contracts.agents import AT_ONCE, AgentRecord, AgentShare, AgentTask, TaskResult
from contracts.call_sizes import worst_call
from contracts.canary import STEERED, STEERED_NOTE
from contracts.notebooks import by_reference
from contracts.outcome import Usage
from contracts.report_updates import REPORTER
from contracts.request import Verify
from contracts.resolved import ModelPrice
from contracts.roles import (
    SUPERVISOR,
    SYNTHESIZER,
    AnalyzeInput,
    RoleAnswer,
    RoleInput,
    RoleSpec,
    language_of_call,
    prompt_preferences,
)
from contracts.state import ResearchState
from contracts.strategies import CLOSING_ROLES, declaration, declared_roles, usage_by_share, writers
from contracts.summaries import SUMMARIZER, SummarizeInput
from contracts.texts import plural, shorten
from contracts.tokens import TokenShare, tokens_left
from contracts.tool_turns import ToolTurnInput, TurnResult
from contracts.tools import ToolAnswer, ToolCall
from contracts.vocabulary import AgentRole, AgentStatus, EngineKind, NodeStatus, Phase, StopReason
from workflows.rules.agents import agent_request, merge_agent, shares_of
from workflows.rules.duplicates import protected_among
from workflows.rules.sub_queries import sources_left
from workflows.run.budget import (
    NOTHING,
    Holdings,
    Reservation,
    account,
    account_failure,
    check_reserve,
    refusal,
    report_reserve,
    reservation,
)
from workflows.run.calls import (
    EXTRACTIVE_CALL_SECONDS,
    call_options,
    describe_failure,
    details_of,
    explain,
    is_given_up,
    is_outage,
    last_failure,
    reason_of,
    spent_by,
)
from workflows.run.checkpoints import Checkpoints
from workflows.run.context import Hooks, RunContext, newest
from workflows.run.host import Host
from workflows.run.inbox import Inbox, Interrupted
from workflows.run.summaries import Summaries, orders_of

I = TypeVar("I", bound=RoleInput)
O = TypeVar("O", bound=RoleAnswer)
T = TypeVar("T", bound=ToolTurnInput)
U = TypeVar("U", bound=TurnResult)

GUIDANCE_OF_CALL: Final = 6
"""About the guidance that one round of think-pauses gives."""
GIVEN_UP_AFTER = 2
"""A model that so often gave a role nothing useful is not paid for it once more."""
REPAIRABLE = (failures.INVALID_MODEL_OUTPUT, failures.ANSWER_CUT)
DONE_WITHOUT_MODEL: Final = "done without the model, whose answers could not be used"
UNUSABLE = (*REPAIRABLE, failures.ANSWER_REFUSED)
DECIDER: Final = "agents"
"""The name under which decisions about agents are in the decision log."""
MARGIN_SECONDS: Final = 3.0
"""An agent has to answer so long before its run must write."""
MARGIN_SHARE: Final = 0.1
GRACE_SECONDS: Final = 3.0
"""Time for the answer of an agent of a run that is told to stop; then it is no longer waited for."""
LEAST_GRACE: Final = 0.5
"""The same for the agent of an agent, at whatever level."""
TASK_SHOWN: Final = 150
SHOWN_OF_CALL: Final = 2_000
"""Characters of the arguments of a call, and of its answer, in the log of a run."""


class CallRefused(Interrupted):
    """A limit forbids the call, and no call under way can give back enough for it.

    `share` names the share of the tokens that has no room for it; None where a limit of the whole run has none.
    """

    def __init__(self, reason: StopReason, share: TokenShare | None = None) -> None:
        super().__init__(reason)
        self.share = share

    @property
    def words(self) -> str:
        """The reason for a person: `budget_tokens`, `budget_tokens: share of planning`."""
        return self.reason.value + (f": share of {self.share.value}" if self.share else "")


def grace_seconds(level: int) -> float:
    """Return the time that a run (level 0) or an agent waits for the answers of its agents, once they are to end.

    It is a second shorter at each level, so that what the lowest agents have found arrives at the top in time.
    """
    return max(LEAST_GRACE, GRACE_SECONDS - level)


def describe_call(call: ToolCall) -> str:
    """Return what a call is about, or why it is refused, for a person who watches."""
    if call.problem:
        return f"refused: {call.problem}"[:TASK_SHOWN]
    return " ".join(str(value) for value in call.arguments.values() if value)[:TASK_SHOWN]


class Unanswered(Exception):
    """A role without a fallback gave no usable answer."""


class _Unusable(Exception):
    """A paid call gave no usable answer; `problem` is for the repair, None if a repair cannot help."""

    def __init__(self, problem: str | None) -> None:
        super().__init__(problem)
        self.problem = problem


class ResearchRun(RunContext):
    """One run, with the roles that work for it."""

    def __init__(
        self,
        state: ResearchState,
        inbox: Inbox,
        host: Host,
        hooks: Hooks | None = None,
        stored: dict[str, Any] | None = None,
    ) -> None:
        """`stored` is the snapshot of the state that the session store has already."""
        super().__init__(state, inbox, host, hooks)
        self.checkpoints = Checkpoints(self, stored)
        self.holdings = Holdings()
        self.agents = Agents(self)
        self._summaries = Summaries(self, self._summarize)

    async def ask(self, role: RoleSpec[I, O], step: str, fields: I, engine: EngineKind | None = None) -> O:
        """Have a role do its work: repaired once, then done by the deterministic fallback (marked `degraded`).

        `step` is the logical operation without the iteration (`plan`, `analyze/sq-…`). `fields` holds what this role
        needs; ids, engine, model, date, language, guidance and canary are added here.
        Raises `Interrupted`, and `Unanswered` for a role without a fallback.
        """
        # A model that often gave a role nothing useful is not paid for it again.
        given_up = self.state.fallbacks.get(role.name, 0) >= GIVEN_UP_AFTER
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
                raise  # a failed analysis costs its own branch
            self.branch_failed(f"{role.name}: {explain(error)}: {describe_failure(error)}")
            reason = StopReason.PROVIDER_OUTAGE if is_outage(error) else StopReason.INTERNAL_ERROR
            raise Interrupted(reason) from None
        self.operation_done(step)
        outputs = {"engine": output.account.engine.value, "model": output.account.model}
        self.decided(number, {name: value for name, value in outputs.items() if value})
        return output

    async def turn(self, role: RoleSpec[T, U], step: str, request: T, **place: Any) -> U:
        """Have a role with tools take one turn: as `ask`, with a longer transcript and checked calls for an answer.

        The first turn has no transcript and the fields that the role's prompt opens with; each later one has the
        transcript of the turn before and an answer to each of its calls. Watchers see what it said and called, with
        the fields of `place`.
        Raises as `ask` does.
        """
        output = await self.ask(role, step, request)
        self.state.note_entry(output.transcript.hash)
        if output.steered:
            self.degrade(STEERED_NOTE)
        place = {"role": role.name, "step": step, **place}
        if output.text:
            self.note("agent.said", output.text, **place, text=output.text[:SHOWN_OF_CALL])
        for call in output.calls:
            arguments = json.dumps(call.arguments, ensure_ascii=False)[:SHOWN_OF_CALL]
            text = f"{call.name.replace('_', ' ')}: {describe_call(call)}".removesuffix(": ")
            self.note("tool.called", text, **place, tool=call.name, call_id=call.id, arguments=arguments)
        return output

    def note_answers(
        self,
        role: RoleSpec[T, U],
        step: str,
        calls: Sequence[ToolCall],
        answers: Sequence[ToolAnswer],
        results: Mapping[str, Mapping[str, Any]] | None = None,
        **place: Any,
    ) -> None:
        """Inform the watchers about the answers to the calls of a turn; `results` are further fields by call."""
        tools = {call.id: call.name for call in calls}
        for answer in answers:
            data: dict[str, Any] = {"role": role.name, "step": step, **place}
            data |= {"tool": tools[answer.call_id], "call_id": answer.call_id, "is_error": answer.is_error}
            data |= {"result": answer.text[:SHOWN_OF_CALL], **(results or {}).get(answer.call_id, {})}
            self.note("tool.returned", shorten(answer.text, TASK_SHOWN), **data)

    async def spawn(self, tasks: Sequence[AgentTask], at_once: int = AT_ONCE, *, caller: str = "") -> list[TaskResult]:
        """Have agents work on tasks, so many side by side as `at_once`; what each brought back, in task order.

        `caller` is the role that they work for, where one role calls another. Their findings are in the state
        afterwards. A task is given once. An agent never raises: one that failed, was cut off or is late has a result
        that reports it. Raises `Interrupted` once the run is to end, and `asyncio.CancelledError` where it is
        cancelled, after the agents' findings were taken over.
        """
        return await self.agents.spawn(tasks, at_once, caller)

    # --- one answer --------------------------------------------------------------------------------------------------
    async def _answer(self, role: RoleSpec[I, O], operation: str, fields: I, kind: EngineKind) -> O:
        """Return the output by the model, repaired once, or by the fallback."""
        state, problem = self.state, None
        for repair in ("", "/repair") if kind is EngineKind.MODEL else ():
            try:
                output = await self._paid_call(role, f"{operation}{repair}", fields, problem)
            except CallRefused as refused:
                spared = refused.share in (TokenShare.PLANNING, TokenShare.REFINEMENT)
                if not role.has_fallback or ((state.fetched_sources() or role.writes_report) and not spared):
                    raise
                # Nothing was read yet, so there is nothing to report from, or the other shares have tokens for it:
                # research goes on without paying for this.
                self.degrade(f"{role.name}: done without the model ({refused.words})")
                state.fallbacks.setdefault(role.name, 0)
                break
            except _Unusable as unusable:
                problem = unusable.problem
                if problem is None or repair:
                    state.fallbacks[role.name] = state.fallbacks.get(role.name, 0) + 1
                    if not role.has_fallback:
                        raise Unanswered(role.name) from None
                    self.degrade(f"{role.name}: {DONE_WITHOUT_MODEL}")
                    break
            else:
                if repair:
                    self.note("status", f"{role.name}: an unusable answer was repaired", level="info", role=role.name)
                return output
        operation = f"{operation}/fallback" if kind is EngineKind.MODEL else operation
        output = await self._execute(role, self._request(role, operation, fields, EngineKind.EXTRACTIVE, None))
        self._settle(role, output)
        return output

    async def _paid_call(self, role: RoleSpec[I, O], operation: str, fields: I, repair: str | None) -> O:
        """Reserve, call and settle, once more with summaries if the call needs any.

        Raises `_Unusable`, `CallRefused`, `Interrupted`, `ActivityError` for an outage.
        """
        request = self._request(role, operation, fields, EngineKind.MODEL, repair)
        try:
            return await self._reserved_call(role, request)
        except ActivityError as error:
            if not (orders := orders_of(error)):
                raise
            number, _ = await self._reserve(role, request)  # no summary takes the room of the call itself
            try:
                summaries = await self._summaries.gather(operation, orders)
            finally:
                self.holdings.close(number, NOTHING)
            return await self._reserved_call(role, request.model_copy(update={"summaries": summaries}))

    async def _summarize(self, operation: str, fields: SummarizeInput) -> str | None:
        """Have one model make a summary, and return its entry; None if it gave none, or a limit forbids the call."""
        try:
            return (await self._paid_call(SUMMARIZER, operation, fields, None)).entry
        except (CallRefused, _Unusable, ActivityError):
            return None

    async def _reserved_call(self, role: RoleSpec[I, O], request: I) -> O:
        """Reserve, call and settle. Raises as `_paid_call`, and `ActivityError` for a call that needs summaries."""
        number, left = await self._reserve(role, request)
        try:
            output = await self._execute(role, request)
            left = left.unexplained_by(output.account.usage)
        except ActivityError as error:
            if isinstance(error.cause, ApplicationError):
                left = left.unexplained_by(spent_by(error))
            if orders_of(error):
                raise
            raise _Unusable(self._problem(role, error, request)) from error
        else:
            self._settle(role, output)
            return output
        finally:
            self.holdings.close(number, left)

    def _request(self, role: RoleSpec[I, O], operation: str, fields: I, kind: EngineKind, repair: str | None) -> I:
        """Return the role's own fields with the envelope of every call."""
        resolved = self.resolved
        return fields.model_copy(
            update={
                "research_id": resolved.research_id,
                "tenant": resolved.tenant,
                "operation": operation,
                "engine": kind,
                "model": resolved.models.get(role.tier.value) if kind is EngineKind.MODEL else None,
                "date": self.state.started_at[:10],
                "query": resolved.query,
                "language": language_of_call(role, resolved, kind),
                "preferences": prompt_preferences(role, resolved),
                "iteration": self.state.iteration,
                "max_iterations": resolved.limits.max_iterations,
                "guidance": newest(self.state.guidance, GUIDANCE_OF_CALL),
                "exclude": resolved.exclude,
                "protected_source_ids": protected_among(self.state, getattr(fields, "sources", ())),
                "canary": resolved.canary,
                "tokens": resolved.tokens,
                "repair": repair,
            }
        )

    async def _execute(self, role: RoleSpec[I, O], request: I) -> O:
        """Schedule the activity with the time that is left now: a call may have waited for its room."""
        summary, remaining = summary_of(role, request), self.clock.remaining_work_seconds()
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
        timed = by_reference(request, self.state.resolved_entry).model_copy(
            update={"time_limit_seconds": round(options.start_to_close.total_seconds(), 1)}
        )
        spec = activities.ActivitySpec(role.activity, role.input, role.result)
        return await self.within_limits(self.host.execute(spec, timed, options))

    def _settle(self, role: RoleSpec[I, O], output: O) -> None:
        """Account for an answer."""
        answer, state = output.account, self.state
        account(state, role.name, answer.usage)
        if answer.content is not None:
            state.note_content(answer.content)
            if answer.content.archive_problem:
                self.degrade(answer.content.archive_problem)
        if role.writes_report:
            # Of several that may have written, the last one wrote the report that there is.
            others = writers() - {role.name}
            state.engine_by_role = {name: kind for name, kind in state.engine_by_role.items() if name not in others}
        # Of a report that grows by updates a model wrote a part, whoever wrote the newest one.
        if role.name != REPORTER.name or state.engine_by_role.get(role.name) != EngineKind.MODEL.value:
            state.engine_by_role[role.name] = answer.engine.value
        if answer.model and answer.model not in state.models_used:
            state.models_used.append(answer.model)
        if answer.prompt_version:
            state.prompt_versions[role.name] = answer.prompt_version
        for warning in answer.warnings[:5]:
            self.note("status", f"{role.name}: {warning}", level="info")

    def _problem(self, role: RoleSpec[I, O], error: ActivityError, request: I) -> str | None:
        """Account for a failed call, and return the problem for a repair; None if only the fallback can help.

        Raises an outage again, and `Interrupted` if the run cannot continue.
        """
        account_failure(self.state, role.name, request, spent_by(error))
        if is_outage(error):
            raise error
        cause = last_failure(error)
        kind = (cause.type if isinstance(cause, ApplicationError) else type(cause).__name__) or "failed"
        problem = details_of(cause).get("problem")
        if role.name == SUMMARIZER.name:  # the next model makes the summary, or none
            self.note("task.failed", f"{role.name}: {describe_failure(error)}", role=role.name, error=kind)
            if problem == STEERED:
                self.degrade(STEERED_NOTE)
            return None
        why = describe_failure(error).removeprefix("$: ")
        if kind in UNUSABLE:
            why = DONE_WITHOUT_MODEL if role.has_fallback else failures.WORDS[kind]
        note = f"{role.name}: {why}"
        if kind not in REPAIRABLE or request.repair is not None:
            # A role that only looks at the report takes nothing away from it by failing.
            (self.branch_failed if role.has_fallback else self.degrade)(note)
        told = describe_failure(error).removeprefix("$: ")
        self.note("task.failed", f"{role.name}: {told}", role=role.name, error=kind)
        if problem == STEERED:
            self.degrade(STEERED_NOTE)
        if kind in REPAIRABLE:
            return str(problem or "the answer was cut at the output limit: answer more briefly")[:600]
        if is_given_up(error):
            self.degrade(f"{role.name}: a text ended the processes that worked on it ({reason_of(error)})")
        elif details_of(cause).get("kind") == failures.CONTEXT_TOO_LONG:
            if request.protected_source_ids:
                # No model can be shown what the person protects: nothing more is paid for.
                replaceable = (one for one in declared_roles() if one.has_fallback or one in CLOSING_ROLES)
                given_up = dict.fromkeys((one.name for one in replaceable), GIVEN_UP_AFTER)
                self.state.fallbacks = given_up | self.state.fallbacks
                self.degrade("no model has room for the protected sources: the rest was done without it")
        elif kind not in UNUSABLE and not role.writes_report and not self.state.plan.nodes:
            self.branch_failed(note)
            raise Interrupted(StopReason.PROVIDER_OUTAGE) from None
        return None

    # --- the budget --------------------------------------------------------------------------------------------------
    async def _reserve(self, role: RoleSpec[I, O], request: I) -> tuple[int, Reservation]:
        """Return the reservation of a call, under its number. Waits while calls under way may give back enough.

        Raises `CallRefused`, or `Interrupted` if the run is to end.
        """
        resolved, holdings = self.resolved, self.holdings
        wanted = reservation(worst_call(role, request, resolved.reasoning_tokens), self._price(role))
        reflects_on_report = role.name == SUPERVISOR.name and self.state.phase == Phase.SYNTHESIS
        closes = role.writes_report or reflects_on_report or role in CLOSING_ROLES
        kept = NOTHING if closes else self.reserved_for_report()
        while refused := self._refusal(role, holdings.held, holdings.held_tokens, wanted, kept):
            if role.name == SUMMARIZER.name:
                raise refused  # its call has a reservation, and is made without the summary
            refused = self._refusal(role, holdings.unexplained, holdings.unexplained_tokens, wanted, kept)
            if refused is not None:
                why = f"{refused.reason.text} ({refused.words})"
                self.note("budget.exhausted", f"no further model call: {why}", reason=refused.reason.value)
                raise refused
            before = holdings.changes
            await self.host.wait_until(
                lambda: holdings.changes != before or self.inbox.interruption is not None  # noqa: B023
            )
            self.inbox.check_interruption()
        return holdings.open(wanted, role.share), wanted

    def _refusal(
        self,
        role: RoleSpec[I, O],
        held: Reservation,
        held_tokens: Mapping[TokenShare, int],
        wanted: Reservation,
        kept: Reservation,
    ) -> CallRefused | None:
        """Return the refusal of a call by a limit of the run, or by the share of its role in the tokens."""
        left = self.tokens_left(role.share, held_tokens)
        # Shares keep tokens for the report already.
        kept = kept if left is None else Reservation(kept.calls, 0, kept.cost_usd)
        reason = refusal(self.resolved.limits, self.state.usage, held, wanted, kept)
        if reason is not None:
            return CallRefused(reason)
        return None if left is None or wanted.tokens <= left else CallRefused(StopReason.BUDGET_TOKENS, role.share)

    def tokens_left(self, share: TokenShare, held: Mapping[TokenShare, int]) -> int | None:
        """Return what a share may still use; None where the tokens of the run are not divided.

        An agent has a part of its run's share and does not divide it again.
        """
        most = self.resolved.limits.max_tokens
        if most is None or not self.resolved.tokens.token_management_enabled or self.state.task is not None:
            return None
        taken = Counter(usage_by_share(self.state.usage_by_role)) + Counter(held)
        return tokens_left(share, most, taken, written=self.state.draft is not None)

    def reserved_for_report(self) -> Reservation:
        """Return the reservation that only the report and its checks may use."""
        resolved = self.resolved
        sub_queries = len(self.state.plan.sub_queries) or resolved.limits.max_sub_queries
        kept = report_reserve(resolved.limits, sub_queries, self._price(SYNTHESIZER), resolved.reasoning_tokens)
        return kept + check_reserve(resolved.limits) if resolved.verify is Verify.FULL else kept

    def _price(self, role: RoleSpec[Any, Any]) -> ModelPrice | None:
        prices = self.resolved.model_prices.values()
        if role.name == SUMMARIZER.name and prices:  # its models may be those of any tier
            return ModelPrice(input=max(one.input for one in prices), output=max(one.output for one in prices))
        return self.resolved.model_prices.get(role.tier.value)


def summary_of(role: RoleSpec[Any, Any], request: RoleInput) -> str:
    """Return the text beside the activity's name in the web UI."""
    subject = request.subject()
    return f"{role.activity.split('_', maxsplit=1)[0]}: {subject}" if subject else role.activity.replace("_", " ")


# --- agents: tasks given, some at a time, waited for within limits, taken over in task order -------------------------
class Agents:
    """Gives tasks to agents and takes over their results."""

    def __init__(self, run: ResearchRun) -> None:
        self._run = run
        self._calls: dict[str, asyncio.Task[TaskResult]] = {}
        """By agent: calls that have begun and not ended, waited for or not."""

    @property
    def under_way(self) -> bool:
        """True if an agent is at work, waited for or not: no new history may start then."""
        return bool(self._calls)

    async def spawn(self, tasks: Sequence[AgentTask], at_once: int, caller: str) -> list[TaskResult]:
        """See `ResearchRun.spawn`. Raises ValueError for two tasks of one id, or a strategy that is not for agents."""
        if len({task.id for task in tasks}) != len(tasks):
            raise ValueError("two tasks of agents have one id")
        for task in tasks:
            if not declaration(task.strategy).scoped:
                raise ValueError(f"the strategy {task.strategy} does not work on tasks of agents")
            self._record(task)
        todo = [task.id for task in tasks if not self._of(task.id).is_over]
        if todo:
            await self._carry_out(todo, max(1, at_once), caller)
        return [result for task in tasks if (result := self._of(task.id).result)]

    # --- work --------------------------------------------------------------------------------------------------------
    async def _carry_out(self, todo: list[str], at_once: int, caller: str) -> None:
        """Have all of them work; each is merged as soon as those before it are.

        When the run is to end, those at work are stopped, and their partial results merged in the same order.
        """
        run = self._run
        self._share_out(todo)
        queued = max(0, len(todo) - at_once)
        outputs = {"agents": todo, "at_once": at_once, "queued": queued}
        inputs = {"caller": caller} if caller else {}
        text = f"{plural(len(todo), 'task')}, {min(at_once, len(todo))} at once"
        run.decide(DECIDER, "dispatch", text, inputs, outputs)
        for agent in todo:
            run.count_calls(caller, self._of(agent).task.strategy)
        data = {"turn": run.state.iteration, "branches": len(todo), "queued": queued}
        waits = f", {queued} of them when others are done" if queued else ""
        run.note("agents.branching", f"{plural(len(todo), 'agent')} begin{waits}", **data)
        for agent in todo:
            self._change(agent, status=AgentStatus.QUEUED)
        turns = asyncio.Semaphore(at_once)
        work = {agent: asyncio.ensure_future(self._one(agent, branch, turns)) for branch, agent in enumerate(todo)}
        merged = 0
        try:
            while merged < len(todo):
                task = work[todo[merged]]
                await run.host.wait_until(lambda: task.done() or run.inbox.interruption is not None)  # noqa: B023
                if run.inbox.interruption is not None:
                    break
                self._take_over(todo[merged], task.result())
                merged += 1
                if merged < len(todo):
                    run.checkpoints.save_in_background()
        except asyncio.CancelledError:
            await self._end(todo[merged:], work, StopReason.USER_CANCELLED)
            raise
        if merged < len(todo):
            reason = run.inbox.interruption or StopReason.INTERNAL_ERROR
            await self._end(todo[merged:], work, reason)
            raise Interrupted(reason)

    async def _end(self, agents: list[str], work: dict[str, "asyncio.Task[TaskResult]"], reason: StopReason) -> None:
        """Stop agents, wait a moment for their partial results, and take these over in the order of their tasks."""
        run = self._run
        pending = [agent for agent in agents if not work[agent].done()]
        for agent in pending:
            # One without a call waits for its turn.
            self._calls.get(agent, work[agent]).cancel()
        grace = grace_seconds(run.state.level)
        alarm = asyncio.ensure_future(run.host.sleep(grace, "until the agents have answered"))
        await run.host.wait_until(lambda: alarm.done() or all(work[agent].done() for agent in pending))
        alarm.cancel()
        for agent in agents:
            task = work[agent]
            if not task.done() or task.cancelled():
                task.cancel()
                waits = self._of(agent).status is AgentStatus.QUEUED
                why = "its turn had not come" if waits else "it had not answered"
                stub = _stub(self._of(agent), reason, f"{why} when the run was to end")
                self._change(agent, status=AgentStatus.CUT_OFF, result=stub, ended_at=run.now_text())
                self._note("agent.finished", agent, stub.problem)
            elif agent in pending:
                self._take_over(agent, task.result().model_copy(update={"stop_reason": reason}))
                self._mark(self._change(agent, status=AgentStatus.CUT_OFF).task, NodeStatus.EXECUTING)
            else:
                self._take_over(agent, task.result())

    async def _one(self, agent: str, branch: int, turns: asyncio.Semaphore) -> TaskResult:
        """Return the answer of one agent, when its turn has come, or a stub."""
        run = self._run
        async with turns:
            record = self._of(agent)
            share = record.share or AgentShare()
            if run.contains_canary(record.task.text):
                run.degrade(STEERED_NOTE)
                return _stub(record, StopReason.INTERNAL_ERROR, "its task repeats what only this run knows")
            refused = _refusal(share) if run.resolved.engine is EngineKind.MODEL else None
            if refused is not None:
                return _stub(record, refused, f"nothing is left for it to use: {refused.value}")
            left = run.clock.remaining_work_seconds()
            left -= min(MARGIN_SECONDS, MARGIN_SHARE * max(0.0, left))
            number = run.holdings.open(_reservation(share), TokenShare.ANALYSIS)
            again = f"/again-{record.starts + 1}" if record.starts else ""
            record = self._change(
                agent,
                status=AgentStatus.RUNNING,
                starts=record.starts + 1,
                workflow_id=f"{run.resolved.research_id}/{agent}{again}",
                started_at=run.now_text(),
            )
            self._mark(record.task, NodeStatus.EXECUTING)
            request = agent_request(run.state, record, run.host.now().timestamp(), left)
            self._note("agent.started", agent, record.task.text, branch)
            call = self._calls[agent] = asyncio.ensure_future(run.host.run_agent(request, record.workflow_id))
            call.add_done_callback(lambda ended: self._settle(record, ended, number))
            seconds = request.deadline_at - run.host.now().timestamp() + grace_seconds(run.state.level)
            alarm = asyncio.ensure_future(run.host.sleep(seconds, f"until {agent} is not waited for any longer"))
            await run.host.wait_until(lambda: call.done() or alarm.done())
            alarm.cancel()
            if not call.done():
                call.cancel()
                why = f"it had not answered after {seconds:.0f} s, the most that is waited for"
                return _stub(record, StopReason.BUDGET_TIME, why)
            return _result_of(record, call)

    def _settle(self, record: AgentRecord, call: "asyncio.Task[TaskResult]", number: int) -> None:
        """Count the usage of an agent in place of its reservation, also if it answers too late."""
        del self._calls[record.task.id]
        result = _result_of(record, call)
        if result.is_stub:
            # Nobody knows what it paid for: that stays reserved.
            self._run.holdings.close(number, _reservation(record.share or AgentShare()))
            return
        before = record.result.usage_by_role if record.result else {}
        for role, usage in result.usage_by_role.items():
            # The journal gives answers of an earlier start again: they were added then.
            account(self._run.state, role, usage.beyond(before.get(role, Usage())))
        self._run.holdings.close(number, NOTHING)

    def _take_over(self, agent: str, result: TaskResult) -> None:
        """Put the findings of an agent into the state of the run."""
        run = self._run
        record = self._of(agent)
        for caller, calls in result.calls.items():
            # An agent that was started again makes the calls of its earlier start again.
            before = record.result.calls.get(caller, {}) if record.result else {}
            for role, number in calls.items():
                run.count_calls(caller, role, max(0, number - before.get(role, 0)))
        for decision in merge_agent(run.state, record.task, result):
            run.decide(decision.agent, decision.action, decision.rationale, decision.inputs, decision.outputs)
        status = AgentStatus.FAILED if result.is_stub else AgentStatus.DONE
        self._change(agent, status=status, result=result.model_copy(update={"packed": ""}), ended_at=run.now_text())
        if result.is_stub:
            run.branch_failed(f"{agent}: {result.problem}")
        elif result.problem:
            run.degrade(f"{agent}: {result.problem}")
        outputs = {"stop_reason": result.stop_reason.value, "findings": len(result.finding_ids)}
        summary = result.problem or result.summary
        run.decide(DECIDER, "merge", summary, {"agent": agent}, outputs | {"sources": len(result.source_ids)})
        self._note("agent.finished", agent, result.problem or plural(len(result.finding_ids), "finding"))

    # --- records -----------------------------------------------------------------------------------------------------
    def _of(self, agent: str) -> AgentRecord:
        return next(record for record in self._run.state.agents if record.task.id == agent)

    def _record(self, task: AgentTask) -> None:
        """Write a task down; the same one, given before, keeps its share and its ledger."""
        state = self._run.state
        if state.level:
            task = task.model_copy(update={"given": {"level": state.level + 1, **task.given}})
        if all(record.task.id != task.id for record in state.agents):
            known = {"known_queries": len(state.query_ledger), "known_sources": len(state.sources)}
            state.agents = [*state.agents, AgentRecord(task=task, **known)]

    def _change(self, agent: str, **update: object) -> AgentRecord:
        state = self._run.state
        state.agents = [
            record.model_copy(update=update) if record.task.id == agent else record for record in state.agents
        ]
        return self._of(agent)

    def _share_out(self, todo: list[str]) -> None:
        """Fix the share of each agent, without a reservation: those without one share the rest of the budget."""
        fresh = [agent for agent in todo if self._of(agent).share is None]
        if not fresh:
            return
        run, limits, used = self._run, self._run.resolved.limits, self._run.state.usage
        taken = [share for agent in todo if (share := self._of(agent).share)]
        protected = sum(self._of(agent).task.protects for agent in todo)
        kept = sum(map(_reservation, taken), run.holdings.held + run.reserved_for_report())
        cost = limits.max_cost_usd
        tokens = _left_of(limits.max_tokens, used.tokens + kept.tokens)
        of_share = run.tokens_left(TokenShare.ANALYSIS, run.holdings.held_tokens)
        if of_share is not None:
            tokens = max(0, of_share - sum(share.tokens or 0 for share in taken))
        left = AgentShare(
            sources=max(0, sources_left(run.state, limits) - protected - sum(share.sources for share in taken)),
            model_calls=_left_of(limits.max_model_calls, used.model_calls + kept.calls),
            tokens=tokens,
            cost_usd=None if cost is None else max(0.0, cost - used.known_cost_usd - kept.cost_usd),
        )
        for agent, share in zip(fresh, shares_of(left, len(fresh)), strict=True):
            self._change(agent, share=share)

    def _mark(self, task: AgentTask, status: NodeStatus) -> None:
        """Show in the plan how far a task is; one that was cut off is unfinished work of the run."""
        plan = self._run.state.plan
        mine = [node.model_copy(update={"status": status}) for node in plan.nodes if node.id == task.id]
        self._run.state.plan = plan.with_nodes(*mine)

    def _note(self, kind: str, agent: str, text: str, branch: int | None = None) -> None:
        place = {"turn": self._run.state.iteration} | ({} if branch is None else {"branch": branch})
        self._run.note(kind, f"{agent}: {text[:TASK_SHOWN]}", agent=agent, **place)


def _result_of(record: AgentRecord, call: "asyncio.Task[TaskResult]") -> TaskResult:
    """Return the answer of a call that has ended, or a stub with the reason there is none."""
    try:
        return call.result()
    except (asyncio.CancelledError, TemporalError) as error:
        cause = error.cause if isinstance(error, ChildWorkflowError) else error
        if isinstance(cause, ApplicationError):
            problem = f"it failed: {cause.message}"[:300]
        elif isinstance(cause, (CancelledError, asyncio.CancelledError)):
            problem = "it was stopped before it had anything"
        else:
            problem = f"it failed: {type(cause).__name__}"
        return _stub(record, StopReason.INTERNAL_ERROR, problem)


def _stub(record: AgentRecord, reason: StopReason, problem: str) -> TaskResult:
    """Return a result in the place of one; the usage of an earlier start of the agent stays counted."""
    used = record.result
    return TaskResult(
        stop_reason=reason,
        problem=problem,
        is_stub=True,
        lost=record.task.lost,
        usage=used.usage if used else Usage(),
        usage_by_role=used.usage_by_role if used else {},
    )


def _refusal(share: AgentShare) -> StopReason | None:
    """Return why an agent need not start: a limit leaves no room for the work of a model."""
    shares = {
        StopReason.BUDGET_CALLS: share.model_calls,
        StopReason.BUDGET_TOKENS: share.tokens,
        StopReason.BUDGET_COST: share.cost_usd,
    }
    return next((reason for reason, left in shares.items() if left == 0), None)


def _reservation(share: AgentShare) -> Reservation:
    return Reservation(share.model_calls or 0, share.tokens or 0, share.cost_usd or 0.0)


def _left_of(limit: int | None, used: int) -> int | None:
    return None if limit is None else max(0, limit - used)
