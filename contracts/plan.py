"""The plan of a run, and the questions to a person about it."""

import shlex
from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, Any, Final

from pydantic import Field, StringConstraints, model_validator

from contracts.base import BoundedList, Contract, StrictContract
from contracts.outlines import WrittenOutline
from contracts.request import Constraints
from contracts.texts import shorten
from contracts.vocabulary import NodeKind, NodeStatus

APPROVAL_PHRASE: Final = "Authorized to execute"
"""Words of approval where a request has `gates.approve: phrase`."""
AROUND_PHRASE: Final = " \t\r\n.!,:\"'“”„«»‘’‹›「」『』。！()"
"""Signs around the words of approval that change nothing; a question mark does."""
OTHER_FORM: Final = "form"
"""Facet of a query with the words of the question in another form."""
WITHOUT_SEARCH: Final = "analysis"
"""Origin of a query that is answered from what was read before: nothing is searched for it."""
CHOSEN_BY_AGENT: Final = "agent"
"""Origin of a query that an agent chose beside the plan: nobody was promised an answer to it."""
MOST_QUESTIONS: Final = 3
MOST_ROUNDS: Final = 3
ANSWER_CHARACTERS: Final = 2_000
MOST_ASSUMPTIONS: Final = 10


class WaitKind(StrEnum):
    """Kind of an open question to a person."""

    CLARIFICATION = "clarification"
    APPROVAL = "approval"


class ObjectionKind(StrEnum):
    """Kind of an objection to a query."""

    STRUCTURAL = "structural"
    """Computed: the work does not fit the limits of the run. It binds."""
    OPINION = "opinion"
    """A model's: a person may overrule it."""


class QuestionRound(Contract):
    """One round of questions with a person's answers, in the same order; an answer may be empty."""

    questions: list[str]
    answers: list[str] = []


class Clarification(Contract):
    """Questions about the question of a run, with answers."""

    rounds: list[QuestionRound] = []
    done: bool = False
    """True if there are no more questions."""


class Waiting(Contract):
    """Open question of a run."""

    kind: WaitKind
    questions: list[str] = []
    """About the question of the run, or those of the plan that is to be approved."""
    round: int = 0
    """Of the questions, from 1."""
    plan_version: int = 0
    """Version of the plan that is to be approved; 0 where none is."""
    phrase: str | None = None
    """Words that approve it; None where none are required."""
    objected: ObjectionKind | None = None
    """Kind of the objections to the plan, `structural` if one of them binds; None where there is none."""
    since: str = ""
    """ISO 8601, by the run's clock."""
    expires_at: str = ""
    """End of the run without an answer, ISO 8601."""

    def for_plan(self, plan: "Plan") -> "Waiting":
        """Return the wait for the approval of another version of the plan."""
        kinds = {objection.kind for objection in plan.open_objections}
        objected = next((kind for kind in ObjectionKind if kind in kinds), None)
        update = {"plan_version": plan.version, "questions": plan.questions, "objected": objected}
        return self.model_copy(update=update)

    def is_phrase(self, given: Any) -> bool:
        """Return true for the words that approve, in any case and between quotation marks; a sentence may deny them."""
        if not isinstance(given, str) or self.phrase is None:
            return False
        return " ".join(given.strip(AROUND_PHRASE).split()).casefold() == self.phrase.casefold()

    def describe(self) -> str:
        """Name the awaited act of a person, as a clause."""
        if self.kind is WaitKind.CLARIFICATION:
            return "an answer to what the question means"
        return f"the approval of plan version {self.plan_version}"

    def ways(self, research_id: str) -> list[str]:
        """The commands that answer, the most usual first."""
        if self.kind is WaitKind.CLARIFICATION:
            return [f'research answer {research_id} "…"']
        phrase = f" --phrase {shlex.quote(self.phrase)}" if self.phrase else ""
        answers = [f'research answer {research_id} "…"'] if self.questions else []
        approval = f"research approve {research_id} --version {self.plan_version}{phrase}"
        changes = [f"research plan {research_id} --edit", f'research steer {research_id} "…"']
        rejection = f"research reject {research_id}"
        if self.objected is None:
            return [approval, *answers, *changes, rejection]
        overruling = [f"{approval} --overrule"] if self.objected is ObjectionKind.OPINION else []
        return [*changes, *answers, *overruling, rejection]


class PlannedQuery(StrictContract):
    """A sub-query as a person writes it; a mere text is one without a rationale."""

    query: str = Field(min_length=1, max_length=500)
    rationale: str = Field(default="", max_length=300)

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, written: Any) -> Any:
        if not isinstance(written, str | dict | PlannedQuery):
            raise ValueError('expected a text, or {"query": "…", "rationale": "…"}')  # noqa: TRY004  # pydantic takes no other
        return {"query": written} if isinstance(written, str) else written


PlanLine = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=300)]


class PlanRevision(StrictContract):
    """Revision of a plan by a person: words for the planner, or parts of the plan itself."""

    guidance: str | None = Field(default=None, min_length=1, max_length=ANSWER_CHARACTERS)
    brief: str | None = Field(default=None, min_length=1, max_length=2_000)
    sub_queries: list[PlannedQuery] | None = Field(default=None, min_length=1, max_length=20)
    """All sub-queries in the order of importance, in place of those of the plan."""
    outline: WrittenOutline | None = None
    """All headings of the report in their order."""
    questions: list[PlanLine] | None = Field(default=None, max_length=MOST_QUESTIONS)
    assumptions: list[PlanLine] | None = Field(default=None, max_length=MOST_ASSUMPTIONS)


class PlanNode(Contract):
    """One part of the work: a sub-query that is searched for, or work on the findings of its children."""

    id: str
    text: str
    parent: str | None = None
    """The node that it is a part of, or whose gap it is to close; None at the top."""
    depth: int = Field(default=0, ge=0)
    kind: NodeKind = NodeKind.QUERY
    needs_search: bool = True
    rationale: str = ""
    priority: int = Field(default=1, ge=1, description="1 is the most important")
    origin: str = "plan"
    """`plan`, `gap:<gap id>` of a refinement, or `analysis`.

    Of searches outside of the plan it is `task:<id>` of an agent, or `background`.
    """
    facet: str = ""
    """Part of the answer that it serves (`problem`, `mechanism`, `settings`, …); free text for a model."""
    expected_contribution: str = ""
    source_id: str | None = None
    """The source that a leaf is about; None for any other node."""
    task_type: str = ""
    """The task of a leaf; empty for any other node."""
    iteration: int = 1
    status: NodeStatus = NodeStatus.PENDING
    status_reason: str = ""
    """Reason for skipping it; else empty."""
    error: str | None = None
    provider: str | None = None
    result_count: int = 0
    new_source_count: int = 0
    duplicate_count: int = 0
    """Hits of known sources: of earlier searches, other sub-queries or several providers."""
    stated_gaps: list[str] = []
    """Ids of the gaps in its answer, also those of another sub-query."""
    finding_count: int = 0
    """Number of findings that answer it, also those of earlier sub-queries."""

    @property
    def gap_id(self) -> str | None:
        """The gap that this sub-query is to close, if any."""
        return self.origin.removeprefix("gap:") if self.origin.startswith("gap:") else None


class Objection(Contract):
    """Reason against a query of the plan: while there is one, the plan cannot be approved."""

    query_id: str = ""
    """The node of the plan; empty: all queries together."""
    query: str = ""
    """Text of the node; empty: all queries together."""
    kind: ObjectionKind
    text: str
    """The reason, in one sentence."""
    splits: list[str] = []
    """Narrower queries that could take its place."""
    figures: dict[str, tuple[float, float]] = {}
    """Limit that is exceeded → the estimate and the limit; of a structural objection."""
    overruled: bool = False
    followed: bool = False
    """True if the narrower queries took its place, where nobody was asked."""

    def line(self) -> str:
        """Return query, reason and narrower queries in one line."""
        subject = f"“{shorten(self.query, 200)}”" if self.query else "all queries together"
        splits = " · ".join(f"“{shorten(text, 150)}”" for text in self.splits)
        remedy = f"; split it, for example into {splits}" if splits else ""
        return f"{subject}: {self.text.removesuffix('.') if remedy else self.text}{remedy}"


class PlanContent(Contract):
    """Content of a plan, for its readers."""

    brief: str = ""
    nodes: BoundedList[PlanNode] = []
    """Parents before their children, otherwise in the order of the work."""
    outline: BoundedList[str] = []
    """Headings of the report in their order; empty where the plan does not fix them."""
    questions: BoundedList[str] = []
    """Questions to the person, which may be answered before the approval."""
    assumptions: BoundedList[str] = []
    """Answers to its questions that the plan assumes."""


class Plan(PlanContent):
    """Plan of the work: a flat list of sub-queries, or a tree."""

    version: int = 0
    objections: list[Objection] = []
    """Reasons against its queries, by a strategy that judges whether they can be answered within the limits."""
    to_judge: bool = False
    """True for a plan that a person edited, until the unit that makes plans has judged it."""

    def texts(self) -> dict[str, Any]:
        """Return all that a person approves of it, as events of the log have it."""
        objections = {"objections": [one.line() for one in self.open_objections]} if self.objections else {}
        return objections | {
            "version": self.version,
            "clarifying_questions": self.questions,
            "expanded_queries": [node.text for node in self.parts],
            "outline": self.outline,
            "assumptions": self.assumptions,
        }

    @property
    def open_objections(self) -> list[Objection]:
        """The objections that no person has overruled, and that no split has settled."""
        return [objection for objection in self.objections if not (objection.overruled or objection.followed)]

    @property
    def sub_queries(self) -> list[PlanNode]:
        """The nodes that are searched for."""
        return [node for node in self.nodes if node.needs_search]

    @property
    def steps(self) -> list[PlanNode]:
        """The steps in their order."""
        return [node for node in self.nodes if node.kind is NodeKind.STEP]

    @property
    def parts(self) -> list[PlanNode]:
        """Return the parts that a person reads and edits: sub-queries, and steps without any below them."""
        broken_down = {node.parent for node in self.nodes}
        return [node for node in self.nodes if node.needs_search or node.id not in broken_down]

    def children(self, node: PlanNode) -> list[PlanNode]:
        """The nodes below one."""
        return [other for other in self.nodes if other.parent == node.id]

    def newest(self, node: PlanNode) -> PlanNode:
        """The node as the plan has it by now; the given one where the plan has none with its id."""
        return next((one for one in self.nodes if one.id == node.id), node)

    def with_nodes(self, *changed: PlanNode) -> "Plan":
        """The plan with these nodes: each in the place of the one with its id, or at the end."""
        nodes = {node.id: node for node in self.nodes} | {node.id: node for node in changed}
        return self.model_copy(update={"nodes": list(nodes.values())})


def nodes_of_agent(nodes: Iterable[PlanNode], known: Iterable[PlanNode], task: str) -> list[PlanNode]:
    """Return the leaves and tasks of an agent's plan as nodes below that of its task, which is among the known ones."""
    depths = {node.id: node.depth for node in known if node.id == task}
    found = []
    for node in nodes:
        if node.kind in (NodeKind.LEAF, NodeKind.TASK) and node.id != task:
            parent = node.parent if node.parent in depths else task
            depths[node.id] = depths.get(parent or "", 0) + 1
            found.append(node.model_copy(update={"parent": parent, "depth": depths[node.id]}))
    return found


class PlanAnswer(PlanContent):
    """Answer of the query `plan`."""

    version: int = 0
    approved_version: int | None = None
    """Version that a person approved; None where none was."""
    waiting: Waiting | None = None
    sub_queries: list[PlanNode] = []
    """Nodes that are searched for, and steps without searches yet."""
    objections: list[Objection] = []
    constraints: Constraints = Constraints()

    def with_agent(self, task: str, nodes: Iterable[PlanNode]) -> "PlanAnswer":
        """Return the plan with the leaves and tasks of an agent's plan, in the place of what it had of them."""
        known = {node.id: node for node in self.nodes}
        known |= {node.id: node for node in nodes_of_agent(nodes, self.nodes, task)}
        return self.model_copy(update={"nodes": list(known.values())})
