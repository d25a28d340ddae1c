"""The plan of a run, and the questions about it to a person."""

import math
import shlex
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Annotated, Any, Final, Self

from pydantic import Field, StringConstraints, model_validator

from contracts.base import BoundedList, Contract, StrictContract
from contracts.evidence import SectionRef
from contracts.outlines import WrittenOutline
from contracts.request import Constraints
from contracts.sentences import Text
from contracts.texts import shorten
from contracts.vocabulary import NodeKind, NodeStatus

APPROVAL_PHRASE: Final = "Authorized to execute"
"""Approval phrase for requests with `gates.approve: phrase`."""
PHRASE_PUNCTUATION: Final = " \t\r\n.!,:\"'“”„«»‘’‹›「」『』。！()"
"""Characters ignored around the approval phrase; a question mark is not one of them."""
OTHER_FORM: Final = "form"
"""Facet of a query that is the question itself, reworded."""
WITHOUT_SEARCH: Final = "analysis"
"""Origin of a query answered from sources already read, without a search."""
CHOSEN_BY_AGENT: Final = "agent"
"""Origin of a query that an agent added to the plan; the approved plan does not promise an answer."""
MAX_QUESTIONS: Final = 3
MAX_ROUNDS: Final = 3
ANSWER_CHARACTERS: Final = 2_000
MAX_ASSUMPTIONS: Final = 10


class WaitKind(StrEnum):
    """Kind of open question to a person."""

    CLARIFICATION = "clarification"
    APPROVAL = "approval"


class ObjectionKind(StrEnum):
    """Kind of objection to a query."""

    STRUCTURAL = "structural"
    """Computed: the work exceeds the run's limits. Binding."""
    OPINION = "opinion"
    """A model's opinion, which a person may overrule."""


class QuestionRound(Contract):
    """One round of questions with a person's answers in the same order; answers may be empty."""

    questions: list[str]
    answers: list[str] = []


class Clarification(Contract):
    """Clarifying questions about a run's query, with answers."""

    rounds: list[QuestionRound] = []
    done: bool = False
    """True if there are no more questions."""


class Waiting(Contract):
    """An open question of a run."""

    kind: WaitKind
    questions: list[str] = []
    """Clarifying questions, or the questions of the plan to approve."""
    round: int = 0
    """Round of questions, from 1."""
    plan_version: int = 0
    """Version of the plan to approve; 0 if there is none."""
    phrase: str | None = None
    """Required approval phrase; None if none is required."""
    objected: ObjectionKind | None = None
    """Kind of the open objections to the plan, `structural` if any is; None if there are none."""
    short_limits: dict[str, float] = {}
    """Limits of the run that the least work of the plan exceeds → what it takes; a resumed run may have higher ones."""
    since: str = ""
    """ISO 8601, by the run's clock."""
    expires_at: str = ""
    """Time at which the run ends without an answer, ISO 8601."""

    def for_plan(self, plan: "Plan") -> "Waiting":
        """Return the wait for approval of another version of the plan."""
        kinds = {objection.kind for objection in plan.open_objections}
        objected = next((kind for kind in ObjectionKind if kind in kinds), None)
        return self.with_fields(
            plan_version=plan.version, questions=plan.questions, objected=objected, short_limits=plan.short_limits
        )

    def is_phrase(self, text: Any) -> bool:
        """Return true for the bare approval phrase, in any case or quotes; in a longer sentence it may be negated."""
        if not isinstance(text, str) or self.phrase is None:
            return False
        return " ".join(text.strip(PHRASE_PUNCTUATION).split()).casefold() == self.phrase.casefold()

    def describe(self) -> str:
        """Name the awaited action of a person, as a noun phrase."""
        if self.kind is WaitKind.CLARIFICATION:
            return "an answer to what the question means"
        return f"the approval of plan version {self.plan_version}"

    def ways(self, research_id: str) -> list[str]:
        """Return the commands that answer, most common first; that which raises a limit, where one is too low."""
        if self.kind is WaitKind.CLARIFICATION:
            return [f'research answer {research_id} "…"']
        phrase = ""
        if self.phrase:
            phrase = f" --phrase {shlex.quote(self.phrase)}"
        answers = [f'research answer {research_id} "…"'] if self.questions else []
        approval = f"research approve {research_id} --version {self.plan_version}{phrase}"
        changes = [f"research plan {research_id} --edit", f'research steer {research_id} "…"']
        rejection = f"research reject {research_id}"
        if self.objected is None:
            return [approval, *answers, *changes, rejection]
        overruling = [f"{approval} --overrule"] if self.objected is ObjectionKind.OPINION else []
        raising = []
        if self.short_limits:
            raising = [raise_limits(research_id, self.short_limits)]
        return [*raising, *changes, *answers, *overruling, rejection]


def raise_limits(research_id: str, least: Mapping[str, float]) -> str:
    """Return the command that has a waiting plan judged again under higher limits, at least those that its work takes.

    The plan stays; the run is ended and resumed, because a running one keeps its limits.
    """
    settings = " ".join(f"--set limits.{name}={_rounded_up(amount)}" for name, amount in sorted(least.items()))
    return f"research cancel {research_id} && research resume {research_id} {settings}"


def _rounded_up(amount: float) -> str:
    if amount.is_integer():
        return str(int(amount))
    return f"{math.ceil(amount * 100) / 100:.2f}"


class PlannedQuery(StrictContract):
    """A sub-query written by a person; a plain string has no rationale."""

    query: str = Field(min_length=1, max_length=500)
    rationale: str = Field(default="", max_length=300)

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: Any) -> Any:
        if not isinstance(value, str | dict | PlannedQuery):
            raise ValueError('expected a text, or {"query": "…", "rationale": "…"}')  # noqa: TRY004  # pydantic takes no other
        if isinstance(value, str):
            return {"query": value}
        return value


PlanLine = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=300)]


class PlanRevision(StrictContract):
    """Revision of a plan by a person: guidance for the planner, or parts of the plan itself."""

    guidance: str | None = Field(default=None, min_length=1, max_length=ANSWER_CHARACTERS)
    brief: str | None = Field(default=None, min_length=1, max_length=2_000)
    sub_queries: list[PlannedQuery] | None = Field(default=None, min_length=1, max_length=20)
    """All sub-queries, most important first; they replace those of the plan."""
    outline: WrittenOutline | None = None
    """All headings of the report, in order."""
    questions: list[PlanLine] | None = Field(default=None, max_length=MAX_QUESTIONS)
    assumptions: list[PlanLine] | None = Field(default=None, max_length=MAX_ASSUMPTIONS)


class PlanNode(Contract):
    """One part of the work: a sub-query to search, or work on its children's findings."""

    id: str
    text: str
    parent: str | None = None
    """The node that it belongs to or whose gap it closes; None at the top."""
    depth: int = Field(default=0, ge=0)
    kind: NodeKind = NodeKind.QUERY
    needs_search: bool = True
    rationale: str = ""
    priority: int = Field(default=1, ge=1, description="1 is the most important")
    origin: str = "plan"
    """`plan`, `gap:<gap id>` of a refinement, or `analysis`.

    For searches outside the plan: `task:<id>` of an agent, or `background`.
    """
    facet: str = ""
    """Aspect of the answer it serves (`problem`, `mechanism`, `settings`, …); free text from a model."""
    expected_contribution: str = ""
    source_id: str | None = None
    """Source of a leaf; None for any other node."""
    task_type: str = ""
    """Task of a leaf; empty for any other node."""
    sections: list[SectionRef] = []
    """Sections of pages already read that answer it; if there are any, nothing is searched."""
    iteration: int = 1
    status: NodeStatus = NodeStatus.PENDING
    status_reason: Text = ""
    """Reason for skipping it; empty if not skipped."""
    error: Text | None = None
    provider: str | None = None
    result_count: int = 0
    new_source_count: int = 0
    duplicate_count: int = 0
    """Hits for known sources, from earlier searches, other sub-queries or other providers."""
    stated_gaps: list[str] = []
    """Ids of the gaps in its answer, including those shared with other sub-queries."""
    finding_count: int = 0
    """Number of findings that answer it, including those of earlier sub-queries."""

    @property
    def gap_id(self) -> str | None:
        """Return the id of the gap that this sub-query is meant to close, if any."""
        if not self.origin.startswith("gap:"):
            return None
        return self.origin.removeprefix("gap:")

    def executing(self) -> Self:
        """Return the node while its work is done."""
        return self.with_fields(status=NodeStatus.EXECUTING)

    def completed(self) -> Self:
        """Return the node with its work done."""
        return self.with_fields(status=NodeStatus.COMPLETED)

    def failed(self, reason: Text | None) -> Self:
        """Return the node as failed, with the error that people read."""
        return self.with_fields(status=NodeStatus.FAILED, error=reason)

    def skipped(self, reason: Text) -> Self:
        """Return the node as not worked on, with the reason."""
        return self.with_fields(status=NodeStatus.SKIPPED, status_reason=reason)

    def reopened(self) -> Self:
        """Return the node as still to be done, without the end of an earlier attempt."""
        return self.with_fields(status=NodeStatus.PENDING, error=None, status_reason="")


class Objection(Contract):
    """Reason against a query of the plan; an open objection blocks approval."""

    query_id: str = ""
    """Id of the plan's node; empty: all queries together."""
    query: str = ""
    """Text of the node; empty: all queries together."""
    kind: ObjectionKind
    text: str
    """The reason, in one sentence."""
    splits: list[str] = []
    """Narrower queries that could replace it."""
    figures: dict[str, tuple[float, float]] = {}
    """For a structural objection: name of an exceeded limit → estimate and limit."""
    overruled: bool = False
    followed: bool = False
    """True if the narrower queries replaced it without asking a person."""

    def line(self) -> str:
        """Return query, reason and narrower queries in one line."""
        subject = "all queries together"
        if self.query:
            subject = f"“{shorten(self.query, 200)}”"
        splits = " · ".join(f"“{shorten(text, 150)}”" for text in self.splits)
        remedy = f"; split it, for example into {splits}" if splits else ""
        return f"{subject}: {self.text.removesuffix('.') if remedy else self.text}{remedy}"


class PlanContent(Contract):
    """The readable content of a plan."""

    brief: str = ""
    title: str = ""
    """Title of the report; empty: it begins with the question."""
    nodes: BoundedList[PlanNode] = []
    """Parents before their children, otherwise in execution order."""
    outline: BoundedList[str] = []
    """Headings of the report, in order; empty if the plan does not fix them."""
    questions: BoundedList[str] = []
    """Questions that a person may answer before approving."""
    assumptions: BoundedList[str] = []
    """Answers to its questions, assumed by the plan."""


class Plan(PlanContent):
    """Plan of a run: a flat list of sub-queries, or a tree."""

    version: int = 0
    objections: list[Objection] = []
    """Objections to its queries, from a strategy that judges feasibility within the limits."""
    to_judge: bool = False
    """True for a plan edited by a person, until the planning unit has judged it."""

    def texts(self) -> dict[str, Any]:
        """Return everything that a person approves, in the form of log events."""
        texts: dict[str, Any] = {
            "version": self.version,
            "clarifying_questions": self.questions,
            "expanded_queries": [node.text for node in self.parts],
            "outline": self.outline,
            "assumptions": self.assumptions,
        }
        if self.title:
            texts["title"] = self.title
        if self.objections:
            texts["objections"] = [objection.line() for objection in self.open_objections]
        return texts

    @property
    def short_limits(self) -> dict[str, float]:
        """Return the limits that open objections say are too low, with what the work takes at least."""
        figures = [figure for objection in self.open_objections for figure in objection.figures.items()]
        return {name: max(least for other, (least, _) in figures if other == name) for name, _ in figures}

    @property
    def open_objections(self) -> list[Objection]:
        """Return the objections that are neither overruled nor resolved by a split."""
        return [objection for objection in self.objections if not (objection.overruled or objection.followed)]

    @property
    def sub_queries(self) -> list[PlanNode]:
        """Return the nodes that need a search."""
        return [node for node in self.nodes if node.needs_search]

    @property
    def steps(self) -> list[PlanNode]:
        """Return the steps, in order."""
        return [node for node in self.nodes if node.kind is NodeKind.STEP]

    @property
    def parts(self) -> list[PlanNode]:
        """Return the parts that a person reads and edits: sub-queries, and nodes without children."""
        parents = {node.parent for node in self.nodes}
        return [node for node in self.nodes if node.needs_search or node.id not in parents]

    def children(self, node: PlanNode) -> list[PlanNode]:
        """Return the children of a node."""
        return [child for child in self.nodes if child.parent == node.id]

    def newest(self, node: PlanNode) -> PlanNode:
        """Return the plan's current version of a node; the given one if the plan has none with its id."""
        return next((current for current in self.nodes if current.id == node.id), node)

    def with_nodes(self, *changed: PlanNode) -> "Plan":
        """Return the plan with these nodes, each replacing the one with its id or appended."""
        nodes = {node.id: node for node in self.nodes} | {node.id: node for node in changed}
        return self.with_fields(nodes=list(nodes.values()))


def agent_nodes(nodes: Iterable[PlanNode], known: Iterable[PlanNode], task: str) -> list[PlanNode]:
    """Return the leaves and tasks of an agent's plan as descendants of the node of its task, one of the known nodes."""
    depths = {node.id: node.depth for node in known if node.id == task}
    descendants = []
    for node in nodes:
        if node.kind in (NodeKind.LEAF, NodeKind.TASK) and node.id != task:
            parent = node.parent if node.parent in depths else task
            depths[node.id] = depths.get(parent or "", 0) + 1
            descendants.append(node.with_fields(parent=parent, depth=depths[node.id]))
    return descendants


class PlanAnswer(PlanContent):
    """Answer of the query `plan`."""

    version: int = 0
    approved_version: int | None = None
    """Version that a person approved; None if none was approved."""
    waiting: Waiting | None = None
    sub_queries: list[PlanNode] = []
    """Nodes that need a search, and steps without searches yet."""
    objections: list[Objection] = []
    constraints: Constraints = Constraints()
    estimate: str = ""
    """What the run likely uses, and its limits; empty without paid calls."""

    def with_agent(self, task: str, nodes: Iterable[PlanNode]) -> "PlanAnswer":
        """Return the plan with an agent's leaves and tasks added or replaced."""
        merged = {node.id: node for node in self.nodes}
        merged |= {node.id: node for node in agent_nodes(nodes, self.nodes, task)}
        return self.with_fields(nodes=list(merged.values()))
