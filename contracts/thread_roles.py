"""The archivist: decides which sub-queries the sources of the thread above a run already answer."""

from collections.abc import Sequence
from typing import Annotated, Any, Final, Self

from pydantic import BeforeValidator, Field

from contracts.evidence import Gap
from contracts.roles import GapsInput, RoleAnswer, RoleSpec
from contracts.tokens import TokenShare
from contracts.vocabulary import Tier

NUMBER_TOKENS: Final = 20
"""Output tokens of the number of an answered question, and of one that is not."""


class RecallInput(GapsInput):
    """Hand-off to the archivist: sub-queries in place of gaps, and the sources that the thread has archived."""

    @classmethod
    def of(cls, questions: Sequence[tuple[str, str]], **fields: Any) -> Self:
        """Return the input for questions, each with its id."""
        return cls(gaps=[Gap(id=key, description=text[:400]) for key, text in questions], **fields)

    @property
    def asked_output_tokens(self) -> int:
        """Return the tokens of a number for each question."""
        return (len(self.gaps) + 1) * NUMBER_TOKENS


def _numbers(value: Any) -> list[int]:
    """Return the numbers of a list; anything else in it is left out."""
    items = value if isinstance(value, list) else []
    return [int(item) for item in items if isinstance(item, int | str) and str(item).isdecimal()]


class RecallAnswer(RoleAnswer):
    """The questions that the archived passages answer, by their numbers from 1."""

    answered: Annotated[list[int], BeforeValidator(_numbers)] = Field(
        default=[], description="numbers of the questions that the listed passages answer completely"
    )

    def fitted(self, request: RecallInput, notes: list[str]) -> Self:
        """Return the answer without numbers of no question."""
        known = sorted({number for number in self.answered if 1 <= number <= len(request.gaps)})
        if len(known) < len(set(self.answered)):
            notes.append("numbers of questions that were not asked were ignored")
        return self.with_fields(answered=known)


ARCHIVIST: Final = RoleSpec(
    "archivist", "consult_thread", Tier.SIMPLE, RecallInput, RecallAnswer, RecallAnswer,
    share=TokenShare.PLANNING, output_tokens=400, expected_output_tokens=60, work="recall",
)  # fmt: skip
"""Works before the searches of a follow-up question, whatever the strategy."""
