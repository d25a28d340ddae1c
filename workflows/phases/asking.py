"""Asking a person: what the question means, and whether the plan is the right one. Waiting costs the run no time."""

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
from contracts.vocabulary import RunStatus, StopReason
from workflows.rules.replies import phrase_for
from workflows.run.inbox import Answered, Approved, Interrupted, RejectedPlan, Revised, Said
from workflows.run.research_run import ResearchRun

CLARIFYING: Final = "clarification"
"""The phase in which it is found out what the question means."""
QUESTION_CHARACTERS: Final = 300
REMINDED_AFTER: Final = 0.5
"""Of the time for which a person is waited for."""
STATUS_OF: Final = {
    WaitKind.CLARIFICATION: RunStatus.AWAITING_CLARIFICATION,
    WaitKind.APPROVAL: RunStatus.AWAITING_APPROVAL,
}
EXPIRED: Final = {
    WaitKind.CLARIFICATION: StopReason.CLARIFICATION_EXPIRED,
    WaitKind.APPROVAL: StopReason.APPROVAL_EXPIRED,
}


async def _nothing() -> None:
    """Where nothing has to be done."""


@dataclass(frozen=True)
class AroundWaits:
    """What the workflow does around a wait, which only it can."""

    start_history_anew: Callable[[], Awaitable[None]] = _nothing
    """Called while a person is waited for; it may end this execution and begin another one."""
    take_turn: Callable[[], Awaitable[None]] = _nothing
    """Called after a wait: another run may have taken the place of this one."""
    check_providers: Callable[[], Awaitable[None]] = _nothing
    """Called once, when the plan is approved: whether its providers can be asked. Raises `Interrupted`."""


def approval_comes(state: ResearchState) -> bool:
    """Whether a person has yet to approve a plan, made or not."""
    wanted = state.resolved is not None and state.resolved.gates.approve is not Approve.NONE
    return wanted and state.approved_version is None


def approval_is_due(state: ResearchState) -> bool:
    """Whether there is a plan that a person has yet to approve."""
    return approval_comes(state) and bool(state.plan.nodes)


def clarification_is_due(state: ResearchState) -> bool:
    """Whether it has yet to be found out what the question means."""
    wanted = state.resolved is not None and state.resolved.gates.clarify is not Clarify.OFF
    return wanted and not state.clarification.done and not state.plan.nodes


class Person:
    """Who is asked before the work of a run, and waited for."""

    def __init__(self, run: ResearchRun, around: AroundWaits) -> None:
        self._run = run
        self._around = around
        self._checked = False

    async def has_agreed(self) -> bool:
        """Ask and wait where the request wants it; false where another plan is wanted, as the guidance says.

        Raises `Interrupted` when the run is stopped, the plan is rejected, or nobody answers in time.
        """
        while clarification_is_due(self._run.state):
            await self._clarify()
        while approval_is_due(self._run.state):
            said = await self._wait(self._run.state.waiting or self._approval())
            if isinstance(said, Revised):
                self._run.decide(PERSON, "revise_plan", said.guidance)
                self._run.guide(PERSON, said.guidance, self._run.state.phase)
                return False
            self._settle(said)
        await self._look_at_providers()
        return True

    async def _look_at_providers(self) -> None:
        if self._checked or self._run.state.approved_version is None:
            return
        self._checked = True
        with self._run.clock.stopped():
            await self._around.check_providers()

    # --- clarification -----------------------------------------------------------------------------------------------
    async def _clarify(self) -> None:
        """One round: questions, if there are any, and the answers to them."""
        run, known = self._run, self._run.state.clarification
        waiting = run.state.waiting or await self._questions()
        if waiting is None:
            run.state.clarification = known.model_copy(update={"done": True})
            return
        said = await self._wait(waiting)
        answers = said.answers if isinstance(said, Answered) else []
        rounds = [*known.rounds, QuestionRound(questions=waiting.questions, answers=answers)]
        done = len(rounds) >= MOST_ROUNDS or not any(answers)
        run.state.clarification = known.model_copy(update={"rounds": rounds, "done": done})
        outputs = {"answered": sum(map(bool, answers)), "asked": len(waiting.questions)}
        run.decide(PERSON, "answer_clarification", "", {"round": waiting.round}, outputs)
        for place, question in enumerate(waiting.questions):
            answer = answers[place] if place < len(answers) else ""
            if answer:
                run.guide(PERSON, f"{answer}\n(the answer to: {question})", CLARIFYING)
            else:
                run.degrade(f"the question was left open, so the run decided by itself: {question}")

    async def _questions(self) -> Waiting | None:
        run, known = self._run, self._run.state.clarification
        run.state.phase = CLARIFYING
        role = declaration(run.resolved.strategy).clarifier
        told = {
            "context": run.resolved.earlier_turns,
            "rounds": known.rounds,
            "required": run.resolved.gates.clarify is Clarify.REQUIRED and not known.rounds,
        }
        if role.tools:
            questions, reason = await self._unless_handed_over(role, told)
        else:
            output = await run.ask(role, "clarify", role.input(**told))
            questions, reason = output.questions, output.reason
        if not questions:
            run.decide(role.name, "question_is_clear", reason)
            return None
        run.decide(role.name, "ask_person", reason, {}, {"questions": questions})
        return self._waiting(WaitKind.CLARIFICATION, questions=questions, round=len(known.rounds) + 1)

    async def _unless_handed_over(self, role: RoleSpec[Any, Any], told: dict[str, Any]) -> tuple[list[str], str]:
        """The questions of a role that hands a clear question over by a call of its tool; all else it says asks."""
        output = await self._run.turn(role, "clarify", role.input(**told))
        if any(not call.problem for call in output.calls):
            return [], "it was handed over"
        lines = [" ".join(line.lstrip("-*•0123456789.) ").split()) for line in output.text.splitlines()]
        return [line[:QUESTION_CHARACTERS] for line in lines if line][:MOST_QUESTIONS], ""

    # --- approval ----------------------------------------------------------------------------------------------------
    def _approval(self) -> Waiting:
        run = self._run
        phrase = phrase_for(run.resolved.gates.approve)
        return self._waiting(WaitKind.APPROVAL, plan_version=run.state.plan.version, phrase=phrase)

    def _settle(self, said: Said) -> None:
        """An approval opens the way; a rejection ends the run. Raises `Interrupted`."""
        run = self._run
        if isinstance(said, Approved):
            run.state.approved_version = said.version
            run.decide(PERSON, "approve_plan", "", {"version": said.version})
            run.note("plan.approved", f"plan version {said.version} is approved", version=said.version)
        elif isinstance(said, RejectedPlan):
            run.decide(PERSON, "reject_plan", said.reason)
            run.note("plan.rejected", f"the plan is rejected: {said.reason}".removesuffix(": "))
            raise Interrupted(StopReason.APPROVAL_REJECTED)

    def _waiting(self, kind: WaitKind, **what: object) -> Waiting:
        now = self._run.host.now()
        until = now + timedelta(seconds=self._run.resolved.limits.max_wait_seconds)
        times = {"since": now, "expires_at": until}
        told = {name: at.isoformat(timespec="milliseconds") for name, at in times.items()}
        return Waiting.model_validate({"kind": kind, **told, **what})

    # --- waiting -----------------------------------------------------------------------------------------------------
    async def _wait(self, waiting: Waiting) -> Said:
        """What the person says; a plan that they edited takes the place of the one that waits. Raises `Interrupted`."""
        run, state = self._run, self._run.state
        with run.clock.stopped():
            if state.waiting is None:
                self._tell(waiting)
            run.checkpoints.save_in_background()
            said = await self._heard()
            while isinstance(said, Revised) and said.plan is not None:
                self._take_edited(said.plan)
                said = await self._heard()
            if isinstance(said, RejectedPlan):
                return said  # the run ends, and says what it waited for
            state.waiting, state.status = None, RunStatus.RUNNING
            run.note("wait.ended", "a person has answered", kind=waiting.kind.value)
            # A save of the time before would give away the place that is taken now.
            await run.checkpoints.settle()
            await self._around.take_turn()
        return said

    def _tell(self, waiting: Waiting) -> None:
        run = self._run
        run.state.waiting, run.state.status = waiting, STATUS_OF[waiting.kind]
        for question in waiting.questions:
            run.note("clarification.requested", f"question: {question}", question=question)
        self._call("wait.started", waiting)

    def _call(self, event: str, waiting: Waiting) -> None:
        """Say what is waited for, and the command that answers."""
        ways = waiting.ways(self._run.resolved.research_id)
        text = f"waiting for {waiting.describe()}: {ways[0]}"
        self._run.note(event, text, kind=waiting.kind.value, ways=ways, expires_at=waiting.expires_at)

    def _take_edited(self, plan: Plan) -> None:
        run, count = self._run, len(plan.parts)
        run.state.plan = plan
        if run.state.waiting is not None:
            run.state.waiting = run.state.waiting.model_copy(update={"plan_version": plan.version})
        run.decide(PERSON, "edit_plan", "", {"version": plan.version}, {"sub_queries": count})
        of = "steps" if plan.parts and not plan.parts[0].needs_search else "sub-queries"
        run.note("plan.revised", f"plan version {plan.version}: {count} {of}", version=plan.version)
        run.checkpoints.save_in_background()

    async def _heard(self) -> Said:
        """The next thing that the person says; one reminder on the way. Raises `Interrupted`."""
        run, inbox = self._run, self._run.inbox
        while True:
            if inbox.interruption is not None:
                raise Interrupted(inbox.interruption)
            if inbox.said:
                return inbox.said.pop(0)
            while inbox.steering:
                run.steer(inbox.steering.pop(0))
            await self._around.start_history_anew()
            await self._until_something_happens()

    async def _until_something_happens(self) -> None:
        """Wait for a message, or for the time of the reminder or of the end. Raises `Interrupted` at the end."""
        run, inbox, waiting = self._run, self._run.inbox, self._run.state.waiting
        if waiting is None:
            return
        seconds = _seconds_left(waiting, run.host.now())
        if seconds <= 0:
            run.note("wait.expired", f"nobody has answered: {waiting.describe()} was waited for")
            raise Interrupted(EXPIRED[waiting.kind])
        if not waiting.reminded:
            seconds -= (1 - REMINDED_AFTER) * run.resolved.limits.max_wait_seconds
        if seconds <= 0:
            run.state.waiting = waiting.model_copy(update={"reminded": True})
            self._call("wait.reminder", waiting)
            return
        summary = f"until {waiting.describe()} {'expires' if waiting.reminded else 'is reminded of'}"
        bell = asyncio.ensure_future(run.host.sleep(seconds, summary))
        try:
            await run.host.wait_until(lambda: inbox.holds_something or bell.done())
        finally:
            bell.cancel()


def _seconds_left(waiting: Waiting, now: datetime) -> float:
    return (datetime.fromisoformat(waiting.expires_at) - now).total_seconds()
