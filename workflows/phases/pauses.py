"""The pauses of a run: answers and approval from a person, reflection by a model, the operator's hook.

Waiting for a person does not count against the run's time.
"""

import asyncio
from datetime import datetime, timedelta
from typing import Any, Final

from temporalio.exceptions import ActivityError

from contracts.lenient import distinct, to_line
from contracts.orchestrator_roles import ASK_PERSON
from contracts.outcome import HOOK, PERSON
from contracts.plan import APPROVAL_PHRASE, MAX_QUESTIONS, MAX_ROUNDS, Plan, QuestionRound, Waiting, WaitKind
from contracts.request import Approve, Clarify
from contracts.sentences import Message
from contracts.state import OpenPause, ResearchState
from contracts.strategies import declaration
from contracts.supervisor_roles import SUPERVISOR
from contracts.texts import plural, shorten
from contracts.vocabulary import AgentRole, RunStatus, StopReason
from workflows.run.calls import hook_options, is_cancelled, reason_of
from workflows.run.inbox import Interrupted, Reply
from workflows.run.research_run import ResearchRun

CLARIFICATION: Final = "clarification"
"""Name of the phase."""
QUESTION_CHARACTERS: Final = 1_000
MAX_KNOWN_ROUNDS: Final = 6
"""Rounds of questions in the state, as a plan can be answered any number of times; older answers remain guidance."""
MAX_SHOWN_ITEMS: Final = 20
"""Number of the latest sub-queries, findings and gaps, each, passed to a hook."""
SHOWN_CHARACTERS: Final = 200
NOT_IN_TIME: Final = "nobody approved it in time"
WAITS: Final = {
    WaitKind.CLARIFICATION: (RunStatus.AWAITING_CLARIFICATION, StopReason.CLARIFICATION_EXPIRED),
    WaitKind.APPROVAL: (RunStatus.AWAITING_APPROVAL, StopReason.APPROVAL_EXPIRED),
}
"""The status of a waiting run, and its stop reason if no one answers."""


class HumanGate:
    """Gets a person's clarification and approval before the research of a run."""

    def __init__(self, run: ResearchRun) -> None:
        self._run = run
        self._providers_checked = False

    async def wait_for_approval(self) -> bool:
        """Ask and wait as the request requires; return false if a person's reply calls for a new plan.

        Also false for a plan that was edited by a person and must be judged. A new version of an approved plan waits
        for its own approval; without one the run continues with the approved one.

        Raises `Interrupted` if the run is stopped, the plan is rejected, or no one answers in time.
        """
        run = self._run
        state = run.state
        gates = run.resolved.gates
        if state.work.plan.to_judge or not self._take_change():
            return False
        while gates.clarifies and not state.people.clarification.done and not state.work.plan.nodes:
            await self._clarify()
        while state.needs_approval and state.work.plan.nodes:
            phrase = APPROVAL_PHRASE if gates.approve is Approve.PHRASE else None
            waiting = state.people.waiting or self._waiting(WaitKind.APPROVAL, phrase=phrase).for_plan(state.work.plan)
            if not self._take_reply(await self._wait(waiting)):
                return False
        if state.people.approved_plan is not None and state.people.approved_plan.version != state.work.plan.version:
            state.people.approved_plan = None
        if run.is_permitted and not self._providers_checked:
            self._providers_checked = True
            with run.clock.stopped():
                await run.hooks.check_providers()
        return True

    def _take_reply(self, reply: Reply) -> bool:
        """Act on a reply to a plan that waits; return false if another plan is to be made, or this one judged.

        Raises `Interrupted` if the plan is rejected and the run has no approved one to go back to.
        """
        run = self._run
        state = run.state
        plan = state.work.plan
        if reply.plan is not None:
            return False
        if reply.rejected is not None:
            self._reject_plan(reply.rejected)
            return True
        if reply.answers is not None:
            self._take_answers(reply.answers, plan.questions, {"version": plan.version})
            return False
        if reply.approved is None:
            self._guide_planner(reply)
            return False
        if reply.overruled and plan.open_objections:
            self._overrule_objections(plan)
        state.people.approved_version = reply.approved
        run.decide(PERSON, "approve_plan", "", {"version": reply.approved})
        run.note("plan.approved", f"plan version {reply.approved} is approved", version=reply.approved)
        return True

    def _reject_plan(self, reason: str) -> None:
        """Go back to the approved plan. Raises `Interrupted` if there is none."""
        run = self._run
        approved = run.state.people.approved_plan
        if approved is not None:
            self._keep_approved_plan(approved, reason, by_person=reason != NOT_IN_TIME)
            return
        run.decide(PERSON, "reject_plan", reason)
        run.note("plan.rejected", f"the plan is rejected: {reason}".removesuffix(": "))
        raise Interrupted(StopReason.APPROVAL_REJECTED)

    def _overrule_objections(self, plan: Plan) -> None:
        """Record that a person begins although queries are called too wide."""
        run = self._run
        queries = [objection.query_id for objection in plan.open_objections]
        run.decide(PERSON, "overrule_objections", "", {"version": plan.version}, {"queries": queries})
        text = f"the objections to {plural(len(queries), 'query')} are overruled"
        run.note("plan.overruled", text, version=plan.version, queries=queries)
        overruled = [objection.with_fields(overruled=True) for objection in plan.objections]
        run.state.work.plan = plan.with_fields(objections=overruled)

    def end(self) -> None:
        """Have the report written by the approved plan, whatever version of it is not approved yet."""
        state = self._run.state
        approved = state.people.approved_plan
        if self._run.inbox.replies and state.people.waiting is None:
            self._run.degrade(Message("change_too_late"))
            self._run.inbox.replies.clear()
        if approved is not None and approved.version != state.work.plan.version:
            state.people.waiting = None
            self._keep_approved_plan(approved, "the research ended before it was approved", by_person=False)

    # --- changes of an approved plan ---------------------------------------------------------------------------------
    def _take_change(self) -> bool:
        """Make a person's version of an approved plan the plan; return false if the planner is to make it."""
        run = self._run
        state = run.state
        if state.people.waiting is not None or not run.inbox.replies:
            return True
        state.people.approved_plan = state.people.approved_plan or state.work.plan
        while run.inbox.replies and (plan := run.inbox.replies[0].plan) is not None:
            run.inbox.replies.pop(0)
            self._replace_plan(plan)
        if run.inbox.replies and run.inbox.replies[0].guidance:
            self._guide_planner(run.inbox.replies.pop(0))
            return False
        return True

    def _guide_planner(self, reply: Reply) -> None:
        self._run.decide(PERSON, "revise_plan", reply.guidance)
        self._run.guide(PERSON, reply.guidance, self._run.state.work.phase)

    def _replace_plan(self, plan: Plan) -> None:
        """Make a plan as edited by a person the plan of the run."""
        run = self._run
        count = len(plan.parts)
        run.state.work.plan = plan
        run.decide(PERSON, "edit_plan", "", {"version": plan.version}, {"sub_queries": count})
        parts = "steps" if count and not plan.parts[0].needs_search else "sub-queries"
        run.note("plan.revised", f"plan version {plan.version}: {count} {parts}", **plan.texts())

    def _keep_approved_plan(self, approved: Plan, reason: str, *, by_person: bool) -> None:
        """Return to the approved plan, under a version of its own, since the number of the other one was shown."""
        run = self._run
        state = run.state
        other = state.work.plan.version
        state.work.plan = approved.with_fields(version=other + 1)
        state.people.approved_version = state.work.plan.version if state.people.approved_version else None
        state.people.approved_plan = None
        agent = PERSON if by_person else AgentRole.SUPERVISOR
        run.decide(agent, "keep_plan", reason, {"version": other}, {"version": state.work.plan.version})
        text = f"plan version {other} is not approved: version {state.work.plan.version} is the plan of before"
        run.note("plan.rejected" if by_person else "status", text, level="info", version=state.work.plan.version)

    # --- clarification ---------------------------------------------------------------------------------------------
    async def _clarify(self) -> None:
        """Do one round of questions, if there are any, and wait for the answers."""
        run = self._run
        waiting = run.state.people.waiting or await self._ask_role()
        if waiting is None:
            run.state.people.clarification = run.state.people.clarification.with_fields(done=True)
            return
        reply = await self._wait(waiting)
        answers = reply.answers or []
        unanswered = self._take_answers(answers, waiting.questions, {"round": waiting.round})
        clarification = run.state.people.clarification
        done = len(clarification.rounds) >= MAX_ROUNDS or not any(answers)
        run.state.people.clarification = clarification.with_fields(done=done)
        for question in unanswered:
            run.degrade(Message("decided_by_itself", question=question))

    def _take_answers(self, answers: list[str], questions: list[str], inputs: dict[str, int]) -> list[str]:
        """Record answers to questions of the run or its plan as guidance, and return the unanswered questions.

        `inputs` name the round, or the version of the plan.
        """
        run = self._run
        clarification = run.state.people.clarification
        rounds = [*clarification.rounds, QuestionRound(questions=questions, answers=answers)][-MAX_KNOWN_ROUNDS:]
        run.state.people.clarification = clarification.with_fields(rounds=rounds)
        outputs = {"answered": sum(map(bool, answers)), "asked": len(questions)}
        run.decide(PERSON, "answer_clarification", "", inputs, outputs)
        for question, answer in zip(questions, answers, strict=False):
            run.guide(PERSON, f"{answer}\n(the answer to: {question})" if answer else "", CLARIFICATION)
        return [question for index, question in enumerate(questions) if not any(answers[index : index + 1])]

    async def _ask_role(self) -> Waiting | None:
        """Return the wait for the questions of the strategy's clarifier; None if it has none."""
        run = self._run
        clarification = run.state.people.clarification
        run.state.work.phase = CLARIFICATION
        role = declaration(run.resolved.strategy).clarifier
        request = role.input(
            rounds=clarification.rounds,
            required=run.resolved.gates.clarify is Clarify.REQUIRED and not clarification.rounds,
        )
        if role.tools:
            # The role calls the tool that asks or another one; text without a call is one question.
            turn = await run.turn(role, "clarify", request)
            calls = [call for call in turn.calls if not call.problem]
            asked = [text for call in calls if call.name == ASK_PERSON.name for text in ASK_PERSON.read(call).questions]
            questions = asked or [to_line(turn.text, QUESTION_CHARACTERS)]
            reason = ""
            questions = distinct(questions, str)[:MAX_QUESTIONS]
            if calls and not asked:
                questions = []
                reason = "it was handed over"
        else:
            output = await run.ask(role, "clarify", request)
            questions = output.questions
            reason = output.reason
        if not questions:
            run.decide(role.name, "question_is_clear", reason)
            return None
        run.decide(role.name, "ask_person", reason, {}, {"questions": questions})
        return self._waiting(WaitKind.CLARIFICATION, questions=questions, round=len(clarification.rounds) + 1)

    # --- waiting ---------------------------------------------------------------------------------------------------
    def _waiting(self, kind: WaitKind, **fields: object) -> Waiting:
        expires_at = self._run.host.now() + timedelta(seconds=self._run.resolved.limits.max_wait_seconds)
        times = {"since": self._run.now_text(), "expires_at": expires_at.isoformat(timespec="milliseconds")}
        return Waiting.model_validate({"kind": kind, **times, **fields})

    async def _wait(self, waiting: Waiting) -> Reply:
        """Wait for a reply; a plan edited by the person replaces the waiting one. Raises `Interrupted`."""
        run = self._run
        state = run.state
        with run.clock.stopped():
            if state.people.waiting is None:
                state.people.waiting = waiting
                state.work.status = WAITS[waiting.kind][0]
                for question in waiting.questions:
                    run.note("clarification.requested", f"question: {question}", question=question)
                ways = waiting.ways(run.resolved.research_id)
                text = f"waiting for {waiting.describe()}: {ways[0]}"
                run.note("wait.started", text, kind=waiting.kind.value, ways=ways, expires_at=waiting.expires_at)
                run.checkpoints.save_in_background()
                await run.hooks.notify_waiting()
            else:
                run.checkpoints.save_in_background()
            while (plan := (reply := await self._next_reply(waiting)).plan) is not None:
                state.people.waiting = state.people.waiting and state.people.waiting.for_plan(plan)
                self._replace_plan(plan)
                run.checkpoints.save_in_background()
                if plan.to_judge:
                    break
            if reply.rejected is not None and state.people.approved_plan is None:
                return reply  # `waiting` stays set, because the result names the plan
            state.people.waiting = None
            state.work.status = RunStatus.RUNNING
            run.note("wait.ended", "the wait for a person is over", kind=waiting.kind.value)
            # A late save of the waiting state would give up the slot that the run takes now.
            await run.checkpoints.settle()
            await run.hooks.wait_for_turn()
        return reply

    async def _next_reply(self, waiting: Waiting) -> Reply:
        """Return the person's next reply. Raises `Interrupted`, also when the time for it has expired."""
        run = self._run
        inbox = self._run.inbox
        while True:
            inbox.check_interruption()
            if inbox.replies:
                return inbox.replies.pop(0)
            run.take_steering()
            await run.hooks.continue_as_new()
            waiting = run.state.people.waiting or waiting
            seconds = (datetime.fromisoformat(waiting.expires_at) - run.host.now()).total_seconds()
            if seconds <= 0:
                run.note("wait.expired", f"{waiting.describe()} was not given in time")
                if run.state.people.approved_plan is not None:
                    return Reply(rejected=NOT_IN_TIME)
                raise Interrupted(WAITS[waiting.kind][1])
            alarm = asyncio.ensure_future(run.host.sleep(seconds, f"until {waiting.describe()} is due"))
            try:
                await run.host.wait_until(lambda: inbox.has_messages or inbox.moving or alarm.done())  # noqa: B023
            finally:
                alarm.cancel()


# --- after a unit -----------------------------------------------------------------------------------------------------
async def reflect(run: ResearchRun, opened: OpenPause) -> None:
    """Have a model answer the question of an open pause, and store the answer until the pause is concluded."""
    if opened.question is None or opened.reflection is not None:
        return
    step = f"reflect/{opened.question.phase}"
    opened.reflection = await run.ask(SUPERVISOR, step, opened.question)


async def call_hook(run: ResearchRun, phase: str, prompt: str) -> None:
    """Call the operator's hook with (state, prompt), and adopt a text that it returns as guidance.

    A hook that fails or returns something else is noted under `degraded`. Raises `Interrupted`.
    """
    hook = run.resolved.hook
    if hook is None:
        return
    options = hook_options(run.operation(f"hook/{phase}"), hook.task_queue, run.clock.remaining_work_seconds())
    arguments = [state_for_hook(run.state), prompt]
    try:
        answer = await run.within_limits(run.host.execute_hook(hook.activity, arguments, options))
    except ActivityError as error:
        if is_cancelled(error):
            raise
        run.degrade(Message("hook_failed", name=hook.name, phase=phase, reason=reason_of(error)))
        return
    except ValueError:  # the answer is not JSON
        answer = b""
    if answer is not None and not isinstance(answer, str):
        run.degrade(Message("hook_malformed", name=hook.name, phase=phase))
        return
    run.decide(AgentRole.SUPERVISOR, "think_pause_hook", hook.name, {"phase": phase}, {"answered": bool(answer)})
    run.steer(answer or "", HOOK, phase)


def state_for_hook(state: ResearchState) -> dict[str, Any]:
    """Return the part of a state passed to a hook: at most about 20 kB, however large the run."""
    latest = slice(-MAX_SHOWN_ITEMS, None)
    limit = SHOWN_CHARACTERS
    queries = state.work.plan.sub_queries[latest]
    findings = state.evidence.findings[latest]
    return {
        "research_id": state.resolution.research_id,
        "query": shorten(state.resolution.query, 10 * limit),
        "phase": state.work.phase,
        "iteration": state.work.iteration,
        "plan": {
            "brief": shorten(state.work.plan.brief, 5 * limit),
            "sub_queries": [{"text": shorten(query.text, limit), "status": query.status.value} for query in queries],
        },
        "findings": [
            {"statement": shorten(finding.statement, limit), "confidence": finding.confidence.value}
            for finding in findings
        ],
        "open_gaps": [shorten(gap.description, limit) for gap in state.evidence.unaddressed_gaps()[latest]],
        "usage": state.accounts.usage.model_dump(mode="json"),
        "counts": state.counts().model_dump(mode="json"),
    }
