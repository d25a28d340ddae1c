"""The roles of the strategy `reflective`: coordinator, investigator, step planner, researcher, reflector, responder.

Who analyzes sources and who writes the report are the roles of the supervisor.
"""

from enum import StrEnum
from typing import Final

from pydantic import Field

from contracts.base import Contract
from contracts.request import Turn
from contracts.roles import (
    BriefedInput,
    ReportTextDraft,
    RoleInput,
    RoleOutput,
    RoleSpec,
    WriteInput,
    WriteOutput,
    words_of,
)
from contracts.vocabulary import NodeStatus, Tier


class Route(StrEnum):
    """How much ceremony the question gets."""

    DIRECT = "direct"
    QUICK = "quick"
    DEEP = "deep"


class Complexity(StrEnum):
    """How much there is to find out."""

    SIMPLE = "simple"
    MODERATE = "moderate"
    COMPLEX = "complex"


class FollowUpType(StrEnum):
    """How the question stands to what was asked before."""

    NEW_TOPIC = "new_topic"
    CLARIFICATION = "clarification"
    COMPLEX_FOLLOW_UP = "complex_follow_up"


class StepKind(StrEnum):
    """What a step does: look something up, or think about what was found."""

    RESEARCH = "research"
    ANALYSIS = "analysis"


class ReflectionDecision(StrEnum):
    """What a reflection decides."""

    CONTINUE = "continue"
    ADJUST = "adjust"
    COMPLETE = "complete"


# --- coordinator ---------------------------------------------------------------------------------------------------
class ClassifyInput(BriefedInput):
    """Hand-off to the coordinator: the question and at most five earlier turns."""

    may_answer: bool = True
    """Whether a question that needs no research may be answered directly."""


class ClassificationDraft(Contract):
    """What a coordinator returns."""

    complexity: str = Field(default="moderate", json_schema_extra=words_of(Complexity))
    follow_up_type: str = Field(default="new_topic", json_schema_extra=words_of(FollowUpType))
    route: str = Field(default="deep", json_schema_extra=words_of(Route))
    recommended_depth: str = Field(default="auto", json_schema_extra={"enum": ["auto", "light", "medium", "extended"]})
    is_ambiguous: bool = False
    clarifying_questions: list[str] = []
    reasoning: str = ""


class ClassificationOutput(RoleOutput):
    """A classification in known words."""

    complexity: Complexity = Complexity.MODERATE
    follow_up_type: FollowUpType = FollowUpType.NEW_TOPIC
    route: Route = Route.DEEP
    recommended_depth: str = "auto"
    is_ambiguous: bool = False
    clarifying_questions: list[str] = []
    reasoning: str = ""


# --- background investigator ---------------------------------------------------------------------------------------
class InvestigateInput(BriefedInput):
    """Hand-off to the background investigator."""

    most_queries: int = 3


class QueriesDraft(Contract):
    """Searches that an investigator or a researcher proposes."""

    queries: list[str] = Field(description="each can be searched for by itself")


class QueriesOutput(RoleOutput):
    """The same: distinct, none of them asked before, not more than allowed."""

    queries: list[str] = []


# --- step planner --------------------------------------------------------------------------------------------------
class StepSummary(Contract):
    """A step as planner and reflector are told of it."""

    title: str
    status: NodeStatus = NodeStatus.PENDING
    observations: list[str] = []
    """Statements of its findings."""
    finding_count: int = 0
    """Findings that answer it, also those that an earlier step had found."""


class PlanStepsInput(BriefedInput):
    """Hand-off to the step planner: what is known, and how many steps may be added. `hits` are of the background."""

    steps: list[StepSummary] = []
    """Steps that are done: they stay as they are."""
    feedback: str = ""
    """Why the plan is adjusted."""
    suggested_changes: list[str] = []
    """What other steps should find out, as the reflector suggests."""
    fewest: int = 1
    most: int = 3


class StepDraft(Contract):
    """A step as a planner proposes it."""

    title: str = Field(description="what is researched: “Research …”")
    description: str = Field(default="", description="what whoever does the step is to find out")
    step_type: str = Field(default="research", json_schema_extra=words_of(StepKind))
    needs_search: bool = True


class StepsDraft(Contract):
    """What a step planner returns."""

    title: str = ""
    thought: str = Field(default="", description="how the steps lead to an answer")
    has_enough_context: bool = False
    steps: list[StepDraft] = []


class StepsOutput(RoleOutput):
    """New steps, clamped and distinct."""

    title: str = ""
    thought: str = ""
    has_enough_context: bool = False
    steps: list[StepDraft] = []


# --- researcher ----------------------------------------------------------------------------------------------------
class ResearchStepInput(RoleInput):
    """Hand-off to the researcher of one step."""

    step_title: str = ""
    description: str = ""
    most_queries: int = 2
    asked: list[str] = []
    """Every query of the run so far."""
    observations: list[str] = []
    """What this step has found so far; empty in its first turn."""
    titles: list[str] = []
    """Titles of what this step has read so far."""
    turn: int = 1

    def subject(self) -> str:
        """The step."""
        return self.step_title


class ResearchTurnDraft(QueriesDraft):
    """What a researcher returns: what to search for next, or that nothing more is needed."""

    queries: list[str] = Field(default=[], description="empty: the step is done")
    reasoning: str = ""


# --- reflector -----------------------------------------------------------------------------------------------------
class ReflectOnStepInput(RoleInput):
    """Hand-off to the reflector: the plan with statuses, what was observed, what is left."""

    steps: list[StepSummary] = []
    pending: list[str] = []
    source_titles: list[str] = []
    open_gaps: list[str] = []
    completed: int = 0
    fewest_steps: int = 1
    may_adjust: bool = True

    def subject(self) -> str:
        """The step that was just done."""
        return next((step.title for step in reversed(self.steps) if step.status is NodeStatus.COMPLETED), "")


class StepReflectionDraft(Contract):
    """What a reflector returns."""

    decision: str = Field(json_schema_extra=words_of(ReflectionDecision))
    reasoning: str = ""
    suggested_changes: list[str] | None = None


class StepReflectionOutput(RoleOutput):
    """A reflection in known words."""

    decision: ReflectionDecision
    reasoning: str = ""
    suggested_changes: list[str] = []


# --- responder -----------------------------------------------------------------------------------------------------
class RespondInput(WriteInput):
    """Hand-off to the responder: the question and earlier turns. No source is read, so there is nothing to cite."""

    context: list[Turn] = []


MODULES: Final = "activities.roles.reflective"
COORDINATOR: Final = RoleSpec(
    "coordinator",
    "classify_question",
    Tier.SIMPLE,
    "coordinator",
    ClassifyInput,
    ClassificationDraft,
    ClassificationOutput,
    1_000,
    expected_output_tokens=400,
    work="coordination",
    module=f"{MODULES}.coordinator",
)
INVESTIGATOR: Final = RoleSpec(
    "investigator",
    "investigate_background",
    Tier.SIMPLE,
    "investigator",
    InvestigateInput,
    QueriesDraft,
    QueriesOutput,
    600,
    expected_output_tokens=200,
    work="background",
    module=f"{MODULES}.investigator",
)
STEP_PLANNER: Final = RoleSpec(
    "step_planner",
    "plan_steps",
    Tier.ANALYTICAL,
    "step_planner",
    PlanStepsInput,
    StepsDraft,
    StepsOutput,
    3_000,
    expected_output_tokens=1_000,
    work="planning",
    module=f"{MODULES}.step_planner",
)
RESEARCHER: Final = RoleSpec(
    "researcher",
    "choose_searches",
    Tier.ANALYTICAL,
    "researcher",
    ResearchStepInput,
    ResearchTurnDraft,
    QueriesOutput,
    1_000,
    expected_output_tokens=250,
    work="research",
    module=f"{MODULES}.researcher",
)
REFLECTOR: Final = RoleSpec(
    "reflector",
    "reflect_on_step",
    Tier.SIMPLE,
    "reflector",
    ReflectOnStepInput,
    StepReflectionDraft,
    StepReflectionOutput,
    1_024,
    expected_output_tokens=400,
    work="reflection",
    module=f"{MODULES}.reflector",
)
RESPONDER: Final = RoleSpec(
    "responder",
    "answer_directly",
    Tier.COMPLEX,
    "responder",
    RespondInput,
    ReportTextDraft,
    WriteOutput,
    4_000,
    True,
    expected_output_tokens=800,
    work="answer",
    module=f"{MODULES}.responder",
)
ROLES: Final = (COORDINATOR, INVESTIGATOR, STEP_PLANNER, RESEARCHER, REFLECTOR, RESPONDER)
