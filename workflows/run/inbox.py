"""Messages from people: the inbox of a run, and how a message is interpreted for the current wait."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import ValidationError

from contracts.addresses import normalized_text, short_hash, sub_query_id
from contracts.parse_request import error_lines
from contracts.plan import (
    ANSWER_CHARACTERS,
    APPROVAL_PHRASE,
    ObjectionKind,
    Plan,
    PlannedQuery,
    PlanNode,
    PlanRevision,
    Waiting,
    WaitKind,
    raise_limits,
)
from contracts.request import Approve
from contracts.resolved import EffectiveLimits
from contracts.sentences import Message
from contracts.state import ResearchState
from contracts.strategies import declaration
from contracts.vocabulary import NodeKind, NodeStatus, Phase, RunStatus, StopReason

OUTLINE_PARTS: Final = frozenset({"outline", "questions", "assumptions"})
"""Parts found only in plans with an outline."""
PLAN_PARTS: Final = OUTLINE_PARTS | {"brief", "sub_queries"}
MAX_SHOWN_OBJECTIONS: Final = 3
NEWER_PLAN: Final = "version: the plan is version {} by now; look at it with `research plan` first"


class Interrupted(Exception):
    """The research must end now, and the report be written from the results so far; never leaves the engine."""

    def __init__(self, reason: StopReason) -> None:
        super().__init__(reason.value)
        self.reason = reason


class CallNotAllowed(Interrupted):
    """One role may not call another; this ends its branch, and the run's research if there is no other branch."""

    def __init__(self, caller: str, role: str) -> None:
        super().__init__(StopReason.CALL_NOT_ALLOWED)
        self.note = Message("call_not_allowed", caller=caller, called=role)
        self.args = (str(self.note),)


@dataclass(frozen=True)
class Reply:
    """A person's reply to a wait; one field is set, `overruled` only together with `approved`."""

    answers: list[str] | None = None
    """Answers to the questions of a round or a plan, in order; empty texts for unanswered ones."""
    approved: int | None = None
    """The approved version of the plan."""
    overruled: bool = False
    """True if the approval overrules opinions against its queries."""
    rejected: str | None = None
    """The reason for a rejection, which ends the run."""
    guidance: str = ""
    """Guidance for a new plan by the planner."""
    plan: Plan | None = None
    """The plan as edited by the person."""


@dataclass
class Inbox:
    """Messages that the run has not handled yet."""

    interruption: StopReason | None = None
    steering: list[str] = field(default_factory=list)
    """Messages for the next unit."""
    replies: list[Reply] = field(default_factory=list)
    """Replies to the run's current wait, or a new version of an approved plan with the replies to that."""
    closing: bool = False
    """True once the final report is being written, when it is too late to steer."""
    moving: bool = False
    """True if the run was asked to move to the current version of the code."""

    @property
    def has_messages(self) -> bool:
        """Return true if the run has messages to handle."""
        return self.interruption is not None or bool(self.steering) or bool(self.replies)

    def interrupt(self, reason: StopReason) -> None:
        """Request the end of the research; the first reason counts."""
        self.interruption = self.interruption or reason

    def check_interruption(self) -> None:
        """Raise `Interrupted` if the research must end."""
        if self.interruption is not None:
            raise Interrupted(self.interruption)

    def clear(self) -> None:
        """Drop the interruption, so that the report can be written."""
        self.interruption = None


class Unacceptable(ValueError):
    """A message that cannot be accepted: its field, the problem, and the remedy."""


class NotReady(Unacceptable):
    """A message that comes before the run can read any; it can be sent again."""


# --- one function per message; `pending` are replies that the run has not handled yet; each raises Unacceptable -------
def read_answers(state: ResearchState, pending: Sequence[Reply], answers: Any, question_round: Any = None) -> Reply:
    """Return answers to the questions of this round, in order; an empty list lets the run decide.

    Answers to the questions of a plan that waits for approval lead to a new plan; `question_round` is then its version.
    """
    planned = (
        state.people.waiting is not None
        and state.people.waiting.kind is WaitKind.APPROVAL
        and bool(state.people.waiting.questions)
    )
    waiting = _current_wait(state, pending, WaitKind.APPROVAL if planned else WaitKind.CLARIFICATION)
    if planned and question_round not in (None, waiting.plan_version):
        raise Unacceptable(NEWER_PLAN.format(waiting.plan_version))
    if not planned and question_round not in (None, waiting.round):
        raise Unacceptable(f"round: the questions of round {waiting.round} are open; read them with `research status`")
    texts = [answers] if isinstance(answers, str) else answers
    count = len(waiting.questions)
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise Unacceptable(f"answers: expected a list of up to {count} texts, one for each question")
    if len(texts) > count:
        raise Unacceptable(f"answers: {len(texts)} were given to {count} question{'s' if count > 1 else ''}")
    for index, text in enumerate(texts):
        if len(text) > ANSWER_CHARACTERS:
            raise Unacceptable(f"answers.{index}: longer than {ANSWER_CHARACTERS} characters")
    if planned and not any(text.strip() for text in texts):
        raise Unacceptable("answers: none was given; approve the plan to go on without any")
    return Reply(answers=[" ".join(text.split()) for text in texts])


def read_approval(
    state: ResearchState, pending: Sequence[Reply], version: Any, phrase: Any = None, overrule: Any = False
) -> Reply:
    """Return the approval of the latest plan; `overrule` overrules opinions on its queries, not binding objections."""
    waiting = _current_wait(state, pending, WaitKind.APPROVAL)
    newest = waiting.plan_version
    if not isinstance(version, int) or isinstance(version, bool):
        raise Unacceptable(f"version: expected a whole number; the newest plan is version {newest}")
    if version != newest:
        issue = "is older than the plan that there is" if 0 < version < newest else "does not exist"
        raise Unacceptable(f"version: {version} {issue}; look at version {newest} with `research plan`, and approve it")
    _check_objections(state.resolution.research_id, _newest_plan(state, pending), overrule)
    if waiting.phrase is not None and not waiting.is_phrase(phrase):
        raise Unacceptable(f"phrase: this run wants exactly these words: {waiting.phrase}")
    return Reply(approved=version, overruled=bool(overrule))


def _check_objections(research_id: str, plan: Plan, overrule: Any) -> None:
    """Raise `Unacceptable` for a plan that is not judged yet, or whose objections block its approval."""
    if not isinstance(overrule, bool):
        raise Unacceptable("overrule: expected true or false")
    if plan.to_judge:
        raise Unacceptable(f"plan: version {plan.version} is being judged; look at it with `research plan` first")
    binding = [objection for objection in plan.open_objections if objection.kind is ObjectionKind.STRUCTURAL]
    if blocking := binding or ([] if overrule else plan.open_objections):
        lines = "\n".join(objection.line() for objection in blocking[:MAX_SHOWN_OBJECTIONS])
        remedy = "nothing overrules this" if binding else "or approve it with `--overrule`"
        if plan.short_limits:
            remedy = f"or raise the limit: {raise_limits(research_id, plan.short_limits)}; {remedy}"
        raise Unacceptable(f"plan: version {plan.version} cannot begin. {lines}\nEdit the plan; {remedy}")


def read_rejection(state: ResearchState, pending: Sequence[Reply], reason: Any = "") -> Reply:
    """Return the rejection of the plan."""
    _current_wait(state, pending, WaitKind.APPROVAL)
    if not isinstance(reason, str) or len(reason) > ANSWER_CHARACTERS:
        raise Unacceptable(f"reason: expected a text of at most {ANSWER_CHARACTERS} characters")
    return Reply(rejected=" ".join(reason.split()))


def read_revision(state: ResearchState, pending: Sequence[Reply], revision: Any, version: Any = None) -> Reply:
    """Return guidance for the planner, or the plan as edited by a person.

    The plan waits for approval, or it has an outline and the run works by it: then the new version waits for its own.
    """
    is_late = _is_at_work(state)
    if is_late:
        _check_late_revision(state, pending)
    else:
        _current_wait(state, pending, WaitKind.APPROVAL)
    plan = _newest_plan(state, pending)
    resolved = state.resolution
    if version is not None and version != plan.version:
        raise Unacceptable(NEWER_PLAN.format(plan.version))
    data = {"guidance": revision} if isinstance(revision, str) else revision
    if not isinstance(data, dict) or ("guidance" in data) == bool(PLAN_PARTS & set(data)):
        parts = "brief, sub_queries and, if the plan has an outline, outline, questions and assumptions"
        raise Unacceptable(f"revision: expected either guidance, or parts of the plan: {parts}")
    try:
        parsed = PlanRevision.model_validate(data)
    except ValidationError as error:
        raise Unacceptable("\n".join(f"revision.{line}" for line in error_lines(error))) from None
    if parsed.guidance is not None:
        if not parsed.guidance.strip():
            raise Unacceptable("revision.guidance: the text is empty; say what to look into, or leave out")
        return Reply(guidance=parsed.guidance.strip())
    if not plan.outline and (named := sorted(OUTLINE_PARTS & parsed.model_fields_set)):
        raise Unacceptable(f"revision.{named[0]}: the plan of this run has none; leave it out")
    revised = plan.with_fields(
        version=plan.version + 1,
        brief=plan.brief if parsed.brief is None else parsed.brief,
        outline=plan.outline if parsed.outline is None else parsed.outline,
        questions=plan.questions if parsed.questions is None else parsed.questions,
        assumptions=plan.assumptions if parsed.assumptions is None else parsed.assumptions,
        objections=[],
        to_judge=declaration(resolved.strategy).judges_edits,
    )
    if parsed.sub_queries is not None:
        nodes = _replace_parts(plan, parsed.sub_queries, resolved.limits)
        revised = revised.with_fields(nodes=with_searched(plan, nodes) if is_late else nodes)
    return Reply(plan=revised)


def read_reply(state: ResearchState, pending: Sequence[Reply], text: Any) -> Reply:
    """Interpret a text for the current wait: as an answer, the approval phrase, or guidance for the planner."""
    if not isinstance(text, str) or not text.strip():
        raise Unacceptable(f"text: expected 1 to {ANSWER_CHARACTERS} characters")
    if state.people.waiting is None:
        _current_wait(state, pending, WaitKind.CLARIFICATION)
    if state.people.waiting is not None and state.people.waiting.kind is WaitKind.CLARIFICATION:
        return read_answers(state, pending, [text])
    if state.people.waiting is not None and state.people.waiting.is_phrase(text):
        return read_approval(state, pending, _newest_plan(state, pending).version, text)
    return read_revision(state, pending, text)


# --- a plan that the run works by ------------------------------------------------------------------------------------
def _is_at_work(state: ResearchState) -> bool:
    """Return true for a run that works by a plan with an outline, approved or in no need of it."""
    is_running = state.work.status is RunStatus.RUNNING and state.work.resolved is not None
    return is_running and state.people.waiting is None and bool(state.work.plan.outline) and not state.needs_approval


def _check_late_revision(state: ResearchState, pending: Sequence[Reply]) -> None:
    """Raise `Unacceptable` while an earlier change is made; the plan itself may be changed any number of times."""
    if state.work.phase == Phase.PLANNING:
        raise Unacceptable("plan: a new version is being made: look at it with `research plan` in a moment")
    if any(reply.plan is None for reply in pending):
        raise Unacceptable("an earlier message is being taken up: look at the run, and send this again")


def with_searched(plan: Plan, nodes: Sequence[PlanNode]) -> list[PlanNode]:
    """Return the nodes of a new version: those searched for by now stay, whether the version names them or not."""
    searched = {node.id: node for node in plan.nodes if node.status is not NodeStatus.PENDING}
    named = {node.id for node in nodes}
    unnamed = [node for node in searched.values() if node.id not in named]
    return [*unnamed, *(searched.get(node.id, node) for node in nodes)]


# --- the wait ------------------------------------------------------------------------------------------------------
def _current_wait(state: ResearchState, pending: Sequence[Reply], kind: WaitKind) -> Waiting:
    waiting = state.people.waiting
    if waiting is None and pending and pending[0].plan and state.resolution.gates.requires_approval:
        # A version of an approved plan that the run presents at its next step.
        phrase = APPROVAL_PHRASE if state.resolution.gates.approve is Approve.PHRASE else None
        waiting = Waiting(kind=WaitKind.APPROVAL, phrase=phrase).for_plan(_newest_plan(state, pending))
    if waiting is None and kind is WaitKind.APPROVAL and state.people.approved_version:
        remedy = "say what else to look for with `research steer`"
        raise Unacceptable(f"plan: version {state.people.approved_version} is approved already; {remedy}")
    if waiting is None and state.work.resolved is None:
        # Also true for a moment after a continue-as-new of a waiting run.
        raise NotReady("the run is getting ready: send this again in a moment")
    if waiting is None and state.work.plan.to_judge:
        raise Unacceptable(f"plan version {state.work.plan.version} is being judged: send this again in a moment")
    if waiting is None:
        raise Unacceptable(f"the run asks nothing now, it is {state.work.status.value}: see `research status`")
    if waiting.kind is not kind:
        raise Unacceptable(f"the run waits for {waiting.describe()}: see `research status`")
    if any(reply.plan is None for reply in pending):
        raise Unacceptable("an earlier message is being taken up: look at the run, and send this again")
    if pending:
        return waiting.for_plan(_newest_plan(state, pending))
    return waiting


def _newest_plan(state: ResearchState, pending: Sequence[Reply]) -> Plan:
    edited = [reply.plan for reply in pending if reply.plan is not None]
    return edited[-1] if edited else state.work.plan


def _replace_parts(plan: Plan, queries: Sequence[PlannedQuery], limits: EffectiveLimits) -> list[PlanNode]:
    """Return the nodes of a plan with the parts written by a person; unchanged parts reuse their nodes."""
    parts = plan.parts
    known = {normalized_text(node.text): node for node in parts}
    if parts:
        first = parts[0]
    else:
        first = PlanNode(id="", text="", kind=NodeKind.QUERY)
    limit = "max_sub_queries" if first.needs_search or not limits.max_steps else "max_steps"
    searched = {key for key, node in known.items() if node.status is not NodeStatus.PENDING}
    count = sum(normalized_text(query.query) not in searched for query in queries)
    if count > (maximum := getattr(limits, limit)):
        message = f"revision.sub_queries: {count} were given; at most {maximum} are allowed"
        raise Unacceptable(f"{message} (limits.{limit})")
    nodes: dict[str, PlanNode] = {}
    for index, query in enumerate(queries):
        text = " ".join(query.query.split())
        if not (key := normalized_text(text)):
            raise Unacceptable(f"revision.sub_queries.{index}.query: there are no words in it")
        if key in nodes:
            raise Unacceptable(f"revision.sub_queries.{index}.query: it repeats an earlier one; leave it out")
        step_id = f"{first.kind.value}-{short_hash(first.iteration, text)}"
        # A new part gets the kind and position of the others.
        new = {
            "id": sub_query_id(text) if first.needs_search else step_id,
            "text": text,
            "rationale": query.rationale,
            "expected_contribution": "" if first.needs_search else text,
        }
        shared = first.model_dump(include={"parent", "depth", "kind", "iteration", "needs_search"})
        nodes[key] = (known.get(key) or PlanNode(**shared | new)).with_fields(priority=index + 1)
    return [*(node for node in plan.nodes if node not in parts), *nodes.values()]
