"""The human gate: clarification of the question and approval of the plan. Waiting costs the run no time."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from contracts.outcome import PERSON
from contracts.plan import MOST_QUESTIONS, MOST_ROUNDS, Plan, QuestionRound, Waiting, WaitKind
from contracts.request import Approve, Clarify
from contracts.roles import RoleSpec
from contracts.state import ResearchState
from contracts.strategies import declaration
from contracts.texts import shorten
from contracts.vocabulary import RunStatus, StopReason
from workflows.run.inbox import Answered, Approved, Interrupted, RejectedPlan, Reply, Revised, phrase_for
from workflows.run.research_run import ResearchRun

CLARIFICATION: Final = "clarification"
"""Name of the phase."""
TEXT_CHARACTERS: Final = 1_000
"""Longest question that is no argument of a tool."""
REMINDER_SHARE: Final = 0.5
"""Share of the waiting time after which a person is reminded."""
STATUS_OF: Final = {
    WaitKind.CLARIFICATION: RunStatus.AWAITING_CLARIFICATION,
    WaitKind.APPROVAL: RunStatus.AWAITING_APPROVAL,
}
EXPIRED: Final = {
    WaitKind.CLARIFICATION: StopReason.CLARIFICATION_EXPIRED,
    WaitKind.APPROVAL: StopReason.APPROVAL_EXPIRED,
}


async def _do_nothing() -> None:
    """Stand in for a hook that a host without workflows does not need."""


@dataclass(frozen=True)
class WaitHooks:
    """The steps around a wait that only the workflow can do."""

    continue_as_new: Callable[[], Awaitable[None]] = _do_nothing
    """Called before each wait: may end this execution and start another one."""
    wait_for_turn: Callable[[], Awaitable[None]] = _do_nothing
    """Called after a wait: another run may have taken the place of this one."""
    check_providers: Callable[[], Awaitable[None]] = _do_nothing
    """Called once, when the plan is approved. Raises `Interrupted` or a failure if no provider can be asked."""


def needs_approval(state: ResearchState) -> bool:
    """Return true if a person has yet to approve a plan, made or not."""
    return state.resolution.gates.approve is not Approve.NONE and state.approved_version is None


def approval_is_due(state: ResearchState) -> bool:
    """Return true if there is a plan that a person has yet to approve."""
    return state.resolved is not None and needs_approval(state) and bool(state.plan.nodes)


def clarification_is_due(state: ResearchState) -> bool:
    """Return true if the meaning of the question has yet to be clarified."""
    return state.resolution.gates.clarify is not Clarify.OFF and not state.clarification.done and not state.plan.nodes


class HumanGate:
    """Asks a person before the work of a run, and waits for the reply."""

    def __init__(self, run: ResearchRun, hooks: WaitHooks) -> None:
        self._run = run
        self._hooks = hooks
        self._providers_checked = False

    async def wait_for_approval(self) -> bool:
        """Ask and wait as the request demands; false if the person wants another plan, by the new guidance.

        Raises `Interrupted` when the run is stopped, the plan is rejected, or nobody answers in time.
        """
        run = self._run
        while clarification_is_due(run.state):
            await self._clarify()
        while approval_is_due(run.state):
            phrase = phrase_for(run.resolved.gates.approve)
            version = run.state.plan.version
            waiting = run.state.waiting or self._waiting(WaitKind.APPROVAL, plan_version=version, phrase=phrase)
            reply = await self._wait(waiting)
            if isinstance(reply, Revised):
                run.decide(PERSON, "revise_plan", reply.guidance)
                run.guide(PERSON, reply.guidance, run.state.phase)
                return False
            self._take_decision(reply)
        if run.state.approved_version is not None and not self._providers_checked:
            self._providers_checked = True
            with run.clock.stopped():
                await self._hooks.check_providers()
        return True

    def _take_decision(self, reply: Reply) -> None:
        run = self._run
        if isinstance(reply, Approved):
            run.state.approved_version = reply.version
            run.decide(PERSON, "approve_plan", "", {"version": reply.version})
            run.note("plan.approved", f"plan version {reply.version} is approved", version=reply.version)
        elif isinstance(reply, RejectedPlan):
            run.decide(PERSON, "reject_plan", reply.reason)
            run.note("plan.rejected", f"the plan is rejected: {reply.reason}".removesuffix(": "))
            raise Interrupted(StopReason.APPROVAL_REJECTED)

    # --- clarification ---------------------------------------------------------------------------------------------
    async def _clarify(self) -> None:
        """Do one round: questions, if there are any, and the answers to them."""
        run, known = self._run, self._run.state.clarification
        waiting = run.state.waiting or await self._ask_role()
        if waiting is None:
            run.state.clarification = known.model_copy(update={"done": True})
            return
        reply = await self._wait(waiting)
        answers = reply.answers if isinstance(reply, Answered) else []
        rounds = [*known.rounds, QuestionRound(questions=waiting.questions, answers=answers)]
        done = len(rounds) >= MOST_ROUNDS or not any(answers)
        run.state.clarification = known.model_copy(update={"rounds": rounds, "done": done})
        outputs = {"answered": sum(map(bool, answers)), "asked": len(waiting.questions)}
        run.decide(PERSON, "answer_clarification", "", {"round": waiting.round}, outputs)
        answers = [*answers, *[""] * len(waiting.questions)]
        for question, answer in zip(waiting.questions, answers, strict=False):
            if answer:
                run.guide(PERSON, f"{answer}\n(the answer to: {question})", CLARIFICATION)
            else:
                run.degrade(f"the question was left open, so the run decided by itself: {question}")

    async def _ask_role(self) -> Waiting | None:
        """Have the strategy's clarifier find questions; None if it has none."""
        run, known = self._run, self._run.state.clarification
        run.state.phase = CLARIFICATION
        role = declaration(run.resolved.strategy).clarifier
        request = role.input(
            context=run.resolved.earlier_turns,
            rounds=known.rounds,
            required=run.resolved.gates.clarify is Clarify.REQUIRED and not known.rounds,
        )
        if role.tools:
            questions, reason = await self._ask_role_with_tools(role, request)
        else:
            output = await run.ask(role, "clarify", request)
            questions, reason = output.questions, output.reason
        if not questions:
            run.decide(role.name, "question_is_clear", reason)
            return None
        run.decide(role.name, "ask_person", reason, {}, {"questions": questions})
        return self._waiting(WaitKind.CLARIFICATION, questions=questions, round=len(known.rounds) + 1)

    async def _ask_role_with_tools(self, role: RoleSpec[Any, Any], request: Any) -> tuple[list[str], str]:
        """Return the questions of a role that hands a clear question over; words without a call are one question."""
        output = await self._run.turn(role, "clarify", request)
        usable = [call for call in output.calls if not call.problem]
        if usable:
            questions = [text for call in usable for text in call.arguments.get("questions", [])]
            return questions[:MOST_QUESTIONS], "" if questions else "it was handed over"
        words = shorten(" ".join(output.text.split()), TEXT_CHARACTERS)
        return [words] if words else [], ""

    # --- waiting ---------------------------------------------------------------------------------------------------
    def _waiting(self, kind: WaitKind, **fields: object) -> Waiting:
        now = self._run.host.now()
        expires_at = now + timedelta(seconds=self._run.resolved.limits.max_wait_seconds)
        times = {
            "since": now.isoformat(timespec="milliseconds"),
            "expires_at": expires_at.isoformat(timespec="milliseconds"),
        }
        return Waiting.model_validate({"kind": kind, **times, **fields})

    async def _wait(self, waiting: Waiting) -> Reply:
        """Wait for a reply; a plan that the person edited replaces the one that waits. Raises `Interrupted`."""
        run, state = self._run, self._run.state
        with run.clock.stopped():
            if state.waiting is None:
                self._announce(waiting)
            run.checkpoints.save_in_background()
            reply = await self._next_reply()
            while isinstance(reply, Revised) and reply.plan is not None:
                self._take_edited_plan(reply.plan)
                reply = await self._next_reply()
            if isinstance(reply, RejectedPlan):
                return reply  # the result names the plan that waited
            state.waiting, state.status = None, RunStatus.RUNNING
            run.note("wait.ended", "a person has answered", kind=waiting.kind.value)
            # A late save of the state before would give up the place that the run takes now.
            await run.checkpoints.settle()
            await self._hooks.wait_for_turn()
        return reply

    def _announce(self, waiting: Waiting) -> None:
        run = self._run
        run.state.waiting, run.state.status = waiting, STATUS_OF[waiting.kind]
        for question in waiting.questions:
            run.note("clarification.requested", f"question: {question}", question=question)
        self._note_wait("wait.started", waiting)

    def _note_wait(self, event: str, waiting: Waiting) -> None:
        ways = waiting.ways(self._run.resolved.research_id)
        text = f"waiting for {waiting.describe()}: {ways[0]}"
        self._run.note(event, text, kind=waiting.kind.value, ways=ways, expires_at=waiting.expires_at)

    def _take_edited_plan(self, plan: Plan) -> None:
        run, count = self._run, len(plan.parts)
        run.state.plan = plan
        if run.state.waiting is not None:
            run.state.waiting = run.state.waiting.model_copy(update={"plan_version": plan.version})
        run.decide(PERSON, "edit_plan", "", {"version": plan.version}, {"sub_queries": count})
        parts = "steps" if plan.parts and not plan.parts[0].needs_search else "sub-queries"
        run.note("plan.revised", f"plan version {plan.version}: {count} {parts}", version=plan.version)
        run.checkpoints.save_in_background()

    async def _next_reply(self) -> Reply:
        """Return the person's next reply, with one reminder on the way. Raises `Interrupted`."""
        run, inbox = self._run, self._run.inbox
        while True:
            if inbox.interruption is not None:
                raise Interrupted(inbox.interruption)
            if inbox.replies:
                return inbox.replies.pop(0)
            while inbox.steering:
                run.steer(inbox.steering.pop(0))
            await self._hooks.continue_as_new()
            await self._wait_for_message()

    async def _wait_for_message(self) -> None:
        """Wait for a message, or for the time of the reminder or of the end. Raises `Interrupted` at the end."""
        run, waiting = self._run, self._run.state.waiting
        if waiting is None:
            return
        seconds = (datetime.fromisoformat(waiting.expires_at) - run.host.now()).total_seconds()
        if seconds <= 0:
            run.note("wait.expired", f"nobody has answered: {waiting.describe()} was waited for")
            raise Interrupted(EXPIRED[waiting.kind])
        if not waiting.reminded:
            seconds -= (1 - REMINDER_SHARE) * run.resolved.limits.max_wait_seconds
        if seconds <= 0:
            run.state.waiting = waiting.model_copy(update={"reminded": True})
            self._note_wait("wait.reminder", waiting)
            return
        summary = f"until {waiting.describe()} {'expires' if waiting.reminded else 'is reminded of'}"
        alarm = asyncio.ensure_future(run.host.sleep(seconds, summary))
        try:
            await run.host.wait_until(lambda: run.inbox.has_messages or alarm.done())
        finally:
            alarm.cancel()
