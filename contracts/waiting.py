"""Waiting for a person: what is asked, how it is answered, and until when."""

import shlex
from enum import StrEnum
from typing import Any, Final

from pydantic import Field, model_validator

from contracts.base import Contract, StrictContract

APPROVAL_PHRASE: Final = "Authorized to execute"
"""What a person repeats where a request says `gates.approve: phrase`."""
MOST_QUESTIONS: Final = 3
MOST_ROUNDS: Final = 3
ANSWER_CHARACTERS: Final = 2_000


class WaitKind(StrEnum):
    """What a person is waited for."""

    CLARIFICATION = "clarification"
    APPROVAL = "approval"


class QuestionRound(Contract):
    """One round of questions with a person's answers, in the same order; an answer may be empty."""

    questions: list[str]
    answers: list[str] = []


class Clarification(Contract):
    """What was asked about the question of a run, and answered."""

    rounds: list[QuestionRound] = []
    done: bool = False
    """Whether nothing more will be asked."""


class Waiting(Contract):
    """What a run waits for now."""

    kind: WaitKind
    questions: list[str] = []
    round: int = 0
    """Of the questions, from 1."""
    plan_version: int = 0
    """The version of the plan that is to be approved."""
    phrase: str | None = None
    """What must be repeated to approve it."""
    since: str = ""
    """ISO 8601, by the run's clock."""
    expires_at: str = ""
    """When the run ends unless it is answered, ISO 8601."""
    reminded: bool = False

    def describe(self) -> str:
        """What a person is waited for, as a clause."""
        if self.kind is WaitKind.CLARIFICATION:
            return "an answer to what the question means"
        return f"the approval of plan version {self.plan_version}"

    def ways(self, research_id: str) -> list[str]:
        """The commands that answer, the most usual first."""
        if self.kind is WaitKind.CLARIFICATION:
            return [f'research answer {research_id} "…"']
        phrase = f" --phrase {shlex.quote(self.phrase)}" if self.phrase else ""
        return [
            f"research approve {research_id} --version {self.plan_version}{phrase}",
            f"research plan {research_id} --edit",
            f'research steer {research_id} "…"',
            f"research reject {research_id}",
        ]


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


class PlanRevision(StrictContract):
    """What a person wants of a plan: words for the planner, or the plan itself."""

    guidance: str | None = Field(default=None, min_length=1, max_length=ANSWER_CHARACTERS)
    """The planner makes another plan by it."""
    brief: str | None = Field(default=None, min_length=1, max_length=2_000)
    sub_queries: list[PlannedQuery] | None = Field(default=None, min_length=1, max_length=20)
    """All of them, in the order of their importance: they take the place of those of the plan."""
