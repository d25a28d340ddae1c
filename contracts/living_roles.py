"""The roles of the strategy `living`: decomposer."""

from typing import Annotated, Final, Self

from pydantic import Field

from contracts.lenient import UnfitAnswer, distinct, first, one_line
from contracts.outlines import fitted_outline
from contracts.plan import MOST_ASSUMPTIONS, MOST_QUESTIONS, QuestionRound
from contracts.request import Constraints
from contracts.roles import BriefedInput, RoleAnswer, RoleSpec
from contracts.tokens import TokenShare
from contracts.vocabulary import Tier


# --- decomposer ----------------------------------------------------------------------------------------------------
class DecomposeInput(BriefedInput):
    """Hand-off to the decomposer: the question, its constraints, and the plan that is replaced."""

    constraints: Constraints = Constraints()
    most_queries: int = 6
    rounds: list[QuestionRound] = []
    """Earlier questions to the person, with the answers."""
    previous: list[str] = []
    """Queries of the plan that is replaced."""
    previous_outline: list[str] = []
    """Headings of the plan that is replaced."""


class DecomposerAnswer(RoleAnswer):
    """A plan: queries, the headings of the report, open questions and assumptions."""

    brief: Annotated[str, one_line(800)] = Field(
        default="", description="one or two sentences: what the report will answer, and for whom"
    )
    clarifying_questions: list[Annotated[str, one_line(300)]] = Field(
        default=[], description="at most three questions whose answers would change the plan; none if it is clear"
    )
    expanded_queries: list[Annotated[str, one_line(400)]] = Field(
        description="what to search for, the most important first; each can be understood by itself"
    )
    outline: list[str] = Field(description="headings of the report in their order, in plain words")
    assumptions: list[Annotated[str, one_line(300)]] = Field(
        default=[], description="what the plan takes for granted where the question leaves something open"
    )

    def fitted(self, request: DecomposeInput, notes: list[str]) -> Self:
        """Keep distinct queries and headings within their limits, and questions that were not asked before.

        Raises `UnfitAnswer` for a plan without a query or without a heading.
        """
        queries = distinct(self.expanded_queries, str)
        if not queries:
            raise UnfitAnswer("expanded_queries: at least one query with words is needed")
        if len(queries) < len(self.expanded_queries):
            notes.append("queries that were empty or repeated were dropped")
        asked = [question for one in request.rounds for question in one.questions]
        questions = distinct(self.clarifying_questions, str, asked)
        update = {
            "expanded_queries": first(queries, request.most_queries, notes, "queries"),
            "outline": fitted_outline(self.outline, notes),
            "clarifying_questions": first(questions, MOST_QUESTIONS, notes, "questions"),
            "assumptions": first(distinct(self.assumptions, str), MOST_ASSUMPTIONS, notes, "assumptions"),
        }
        return self.model_copy(update=update)


DECOMPOSER: Final = RoleSpec(
    "decomposer", "decompose_query", Tier.ANALYTICAL, DecomposeInput, DecomposerAnswer, DecomposerAnswer,
    share=TokenShare.PLANNING, output_tokens=2_000, expected_output_tokens=700, work="planning",
)  # fmt: skip
