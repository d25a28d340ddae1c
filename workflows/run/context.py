"""What every part of a run works with: its state, inbox, host, clock and records."""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

from contracts.canary import holds_private, repeats
from contracts.evidence import SearchHit, Source
from contracts.exclusions import find_about
from contracts.outcome import AgentDecision, GateIssue, Guidance, Moment
from contracts.plan import Plan, PlanNode
from contracts.request import Depth
from contracts.resolved import Permission, ResolvedResearch, permission_of
from contracts.roles import GapDraft
from contracts.state import ResearchState
from contracts.texts import plural
from contracts.vocabulary import Action, AgentRole, EngineKind, StopReason
from workflows.rules.gaps import STEER, open_gaps
from workflows.rules.guidance_reading import read_guidance
from workflows.rules.leaving_out import (
    asked_words,
    drop_left_out,
    keeps_out,
    skip_left_out,
    take_exclusions,
    why_left_out,
)
from workflows.run.clock import Clock
from workflows.run.event_ring import add_event
from workflows.run.guidance import HEARD, HOOK, PERSON, REQUEST, newest, with_guidance
from workflows.run.host import Host
from workflows.run.inbox import Inbox, Interrupted

T = TypeVar("T")

MAX_DECISIONS = 500


class RunContext:
    """State, inbox, host and resolved request of one run, and what is recorded of it."""

    def __init__(self, state: ResearchState, inbox: Inbox, host: Host, watchers: "Watchers | None" = None) -> None:
        self.state = state
        self.inbox = inbox
        self.host = host
        self.clock = Clock(state, inbox, host)
        self.watchers = watchers or Watchers()

    @property
    def resolved(self) -> ResolvedResearch:
        """What the run was given."""
        return self.state.resolution

    def permission(self) -> Permission | None:
        """What searches and reads are asked with; None while a person has yet to approve the plan."""
        return permission_of(self.resolved.gates, self.state.approved_version)

    # --- time ------------------------------------------------------------------------------------------------------
    def now_text(self) -> str:
        """The workflow's clock as ISO 8601."""
        return self.host.now().isoformat(timespec="milliseconds")

    def remaining_seconds(self) -> float:
        """Seconds until the report must be there."""
        return self.clock.remaining_seconds()

    def choose_limits(self, choice: str) -> None:
        """Go on under the limits of a choice that the request left open; the deadline counts from the start.

        Nothing happens for a choice that the request does not leave open, or once one was made.
        """
        chosen = self.resolved.choices.get(choice)
        if chosen is None:
            return
        depth = Depth(choice) if choice in set(Depth) else self.resolved.depth
        if not self.state.limits_fixed:
            self.clock.fix_limits(chosen)
        # A history that started anew was given the request's own limits again, and keeps its deadline.
        self.state.resolved = self.resolved.model_copy(update={"limits": chosen, "depth": depth, "choices": {}})

    def elapsed_seconds(self) -> float:
        """Active seconds of this session so far."""
        return self.clock.elapsed_seconds()

    def remaining_work_seconds(self) -> float:
        """Seconds until the work must give way to writing: the reserve is kept for the report."""
        return self.clock.remaining_work_seconds()

    # --- calls -----------------------------------------------------------------------------------------------------
    def moment(self) -> Moment:
        """Where the run stands now, with what a role that is asked now would hear."""
        state = self.state
        return Moment(phase=state.phase, iteration=state.iteration, guidance=newest(state.guidance, HEARD))

    def operation(self, step: str, iteration: int | None = None) -> str:
        """A logical operation id: `step/iteration`, with its repetition in this session."""
        base = f"{step}/{iteration or self.state.iteration}"
        count = self.state.operations.get(base, 0)
        return self.scoped(base if count == 0 else f"{base}/again-{count + 1}")

    def scoped(self, name: str) -> str:
        """The name of a call: an agent's begins with the agent's own, so that no two agents have one operation."""
        return f"{self.state.scope}/{name}" if self.state.scope else name

    def operation_done(self, step: str, iteration: int | None = None) -> None:
        """The step was carried out: asking for it once more is another operation.

        A step that was cut off keeps its id, so that a resumed run finds the answer in the call store.
        """
        base = f"{step}/{iteration or self.state.iteration}"
        self.state.operations[base] = self.state.operations.get(base, 0) + 1

    async def within_limits(self, work: Coroutine[Any, Any, T]) -> T:
        """Await work until it is done, the time for work is over or a person stops the run.

        Raises `Interrupted` after the work has been cancelled; a cancelled run cancels the work, too.
        """
        task = asyncio.ensure_future(work)
        try:
            await self.host.wait_until(lambda: task.done() or self.inbox.interruption is not None)
        except asyncio.CancelledError:
            await self.abandon([task])
            raise
        if task.done():
            return task.result()
        await self.abandon([task])
        raise Interrupted(self.inbox.interruption or StopReason.INTERNAL_ERROR)

    async def abandon(self, tasks: list["asyncio.Task[Any]"]) -> None:
        """Cancel tasks and wait until they are gone; what they raise is of no interest any more."""
        for task in tasks:
            task.cancel()
        await self.host.settle(tasks)
        for task in tasks:
            if not task.cancelled():
                task.exception()

    # --- guidance --------------------------------------------------------------------------------------------------
    def guide(self, origin: str, text: str, phase: str | None) -> None:
        """Give the next phase something to go by."""
        if text.strip():
            self._keep_guidance(Guidance(origin=origin, phase=phase, text=text.strip()[:2_000]))

    def _keep_guidance(self, said: Guidance) -> None:
        self.state.guidance = with_guidance(self.state.guidance, said)
        done = f" → {said.answer}" if said.answer else ""
        self.note("guidance.given", f"{said.origin}: {said.text}{done}", origin=said.origin)

    def steer(self, text: str) -> None:
        """A person's wish: left out or searched for at once, told to the roles from the next phase on."""
        self._obey(read_guidance(PERSON, text, self.state))

    def revise_plan(self, text: str) -> None:
        """A person's words for the planner: what they leave out is left out at once, the rest the planner hears."""
        said = read_guidance(PERSON, text, self.state, for_planner=True)
        self._obey(said.model_copy(update={"look_at": []}))

    def obey_request(self) -> None:
        """What the request's own prompt leaves out or keeps to: a model is told it, without one rules must read it."""
        prompt, known = self.resolved.system_prompt, any(one.origin == REQUEST for one in self.state.guidance)
        if prompt and not known and self.resolved.engine is EngineKind.EXTRACTIVE:
            said = read_guidance(REQUEST, prompt, self.state)
            self._obey(said.model_copy(update={"look_at": said.look_at[:1]}))

    def obey_hook(self, text: str, phase: str) -> None:
        """What the operator's hook wants; to a model its emphasis is advice, without one it is searched for."""
        if text.strip():
            said = read_guidance(HOOK, text, self.state).model_copy(update={"phase": phase})
            by_model = self.resolved.engine is EngineKind.MODEL
            self._obey(said.model_copy(update={"look_at": []}) if by_model else said)

    def _obey(self, said: Guidance) -> None:
        state = self.state
        self._keep_guidance(said)
        if said.answer:
            did = {name: value for name in ("left_out", "only_from", "look_at") if (value := getattr(said, name))}
            self.decide(AgentRole.SUPERVISOR, "guidance_read", said.answer, {"origin": said.origin}, did)
        take_exclusions(state, said)
        if said.left_out or said.only_from:
            self._leave_out(said)
        # Old histories have nobody who reads guidance: a person's is searched for as it is.
        wanted = said.look_at if said.answer else [said.text] * (said.origin == PERSON)
        drafts = [
            GapDraft(description=f"Asked while running: {text[:300]}", suggested_queries=[text], kind="question")
            for text in (wanted if state.plan.nodes else [])
        ]
        fresh = open_gaps(state, drafts, STEER)
        state.gaps = [*state.gaps, *fresh]
        for gap in fresh:
            self.decide(
                AgentRole.SUPERVISOR, "gap_opened", gap.description, {"gap_id": gap.id}, {"status": gap.status.value}
            )

    def _leave_out(self, said: Guidance) -> None:
        """Skip what is planned, close what is open and drop what was found of the things that are left out."""
        state = self.state
        state.plan = state.plan.with_nodes(*skip_left_out(state, state.plan.nodes))
        asked = asked_words(state)
        # A unit that was going on when it was said may have skipped them already.
        self.record_left_out([node for node in state.plan.nodes if find_about(node.text, said.left_out, asked)])
        for gap in drop_left_out(state):
            outputs = {"status": gap.status.value}
            self.decide(AgentRole.SUPERVISOR, "gap_superseded", gap.description, {"gap_id": gap.id}, outputs)

    def record_left_out(self, nodes: Iterable[PlanNode]) -> None:
        """A decision for each sub-query that is skipped because nobody wants it."""
        for node in nodes:
            inputs, outputs = {"sub_query_id": node.id}, {"status": node.status.value}
            self.decide(AgentRole.SUPERVISOR, "sub_query_left_out", node.text, inputs, outputs)

    def why_left_out(self, text: str) -> str | None:
        """Why a query or a gap is left out, also by guidance that is not taken up yet; None for one that is not."""
        return why_left_out(self.state, text, self.inbox.steering)

    def keeps_out(self, source: Source | SearchHit) -> bool:
        """Whether guidance, taken up or not, keeps a source out of the run."""
        return keeps_out(self.state, source, self.inbox.steering)

    # --- plan ------------------------------------------------------------------------------------------------------
    def draft_plan(self, brief: str, nodes: list[PlanNode]) -> None:
        """Put a new version of the plan in the place of the one that there is."""
        self.state.plan = Plan(version=self.state.plan.version + 1, brief=brief, nodes=nodes)
        count = len(self.state.plan.sub_queries)
        self.note("plan.drafted", plural(count, "sub-query"), count=count, version=self.state.plan.version)

    def retries(self, phase: str) -> bool:
        """Whether the last pause wants a phase done again."""
        pause = self.state.pause
        return pause is not None and pause.phase == phase and pause.action is Action.RETRY

    def issues(self, phase: str) -> list[GateIssue]:
        """Why a phase is done again, by its gate or else by the reflection on it; empty the first time."""
        if not self.retries(phase) or self.state.pause is None:
            return []
        gates = [gate for gate in self.state.gates if gate.phase == phase]
        found = gates[-1].issues if gates else []
        return found or [GateIssue(code="reflection", message=self.state.pause.rationale)]

    # --- records ---------------------------------------------------------------------------------------------------
    def note(self, kind: str, text: str, /, **data: Any) -> None:
        """Tell those who watch. What an agent does has the agent's place in its run."""
        if self.state.task is not None:
            data = {"scope": self.state.scope, **self.state.task.placement, **data}
        add_event(self.state, kind, self.now_text(), text, data)
        self.watchers.changed(self)

    def decide(
        self,
        agent: str,
        action: str,
        rationale: str = "",
        inputs: dict[str, Any] | None = None,
        outputs: dict[str, Any] | None = None,
        at: Moment | None = None,
    ) -> int:
        """Append to the decision log; `at` is where the run stood when what is decided upon was found out.

        The number of the entry. A full log counts what it does not take.
        """
        number = len(self.state.decisions) + self.state.decisions_dropped + 1
        decision = AgentDecision(
            seq=number,
            agent=agent,
            action=action,
            phase=at.phase if at else self.state.phase,
            iteration=at.iteration if at else self.state.iteration,
            rationale=rationale[:500],
            inputs=inputs or {},
            outputs=outputs,
            timestamp=self.now_text(),
        )
        if len(self.state.decisions) < MAX_DECISIONS:
            self.state.decisions.append(decision)
        else:
            self.state.decisions_dropped += 1
        self.note("decision.recorded", f"{agent}: {action} {rationale}".strip(), agent=agent, action=action)
        return number

    def decided(self, number: int, outputs: dict[str, Any]) -> None:
        """Add to a decision what came of it."""
        log = self.state.decisions
        if number <= len(log):
            log[number - 1] = log[number - 1].model_copy(update={"outputs": outputs})

    def holds_private(self, url: str) -> bool:
        """Whether an address carries words that only this run knows: its canary, or what a person told it alone."""
        told = [turn_text for turn in self.resolved.context for turn_text in (turn.question, turn.answer)]
        private = [self.resolved.system_prompt or "", *told]
        public = [self.resolved.query, *(query.text for query in self.state.plan.nodes)]
        return holds_private(url, self.resolved.canary, private, public)

    def gives_away(self, query: str) -> bool:
        """Whether a query carries the canary, or the piece of it that the queries before left out."""
        canary, told = self.resolved.canary, [one.text for one in self.state.plan.nodes]
        if not repeats("\n".join([*told, query]), canary):
            return False
        said: list[str] = []
        for text in [*told, query]:
            if not repeats("\n".join([*said, text]), canary):
                said.append(text)
            elif text == query:
                return True
        return False

    def degrade(self, note: str) -> None:
        """Record that something is less good than asked for; the report says so."""
        if note not in self.state.degraded:
            self.state.degraded.append(note[:300])
            self.note("status", f"degraded: {note}", level="warning")

    def branch_failed(self, note: str) -> None:
        """Record that a part of the work failed: the outcome cannot be `completed` any more."""
        if note not in self.state.failed_branches:
            self.state.failed_branches.append(note[:300])
        self.state.last_failure = note[:300]


class Watchers:
    """Told after every event; the workflow shows details and search attributes, tests need nothing."""

    def changed(self, run: "RunContext") -> None:
        """Something happened."""

    async def enter_phase(self, run: "RunContext") -> None:
        """A new phase began."""
