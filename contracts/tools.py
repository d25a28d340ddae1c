"""Tools that a role may call: specification, call and answer; the workflow executes them."""

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Final, Generic, Self, TypeVar

from pydantic import BaseModel, Field

from contracts.base import CompactModel, Contract

A = TypeVar("A", bound=BaseModel)

LINES_SHOWN_ONCE: Final = "[a list that stood here is left out now; another reading of the page shows it again]"
MAX_CALLS: Final = 8
"""Calls executed per turn; the others are answered with an error."""
ARGUMENT_CHARACTERS: Final = 8_000
"""Longest arguments of a call, in characters of JSON."""
ANSWER_CHARACTERS: Final = 40_000
"""Longest answer; the rest is cut off, and its length reported."""


@dataclass(frozen=True)
class ToolSpec(Generic[A]):
    """One tool: its name and description for the model, and the type of its arguments."""

    name: str
    description: str
    arguments: type[A]

    def read(self, call: "ToolCall") -> A:
        """Validate the arguments of a call of this tool. Raises ValueError for a call with a problem."""
        if call.problem or call.name != self.name:
            raise ValueError(f"this is no call of {self.name} that can be carried out")
        return self.arguments.model_validate(call.arguments)

    @cached_property
    def schema(self) -> dict[str, Any]:
        """Return the JSON schema of the arguments; callers must not modify it."""
        return self.arguments.model_json_schema()


class ToolCall(CompactModel):
    """A validated call: either its arguments fit the tool, or `problem` gives the reason."""

    id: str
    name: str
    arguments: dict[str, Any] = {}
    """Plain JSON of at most `ARGUMENT_CHARACTERS`; empty if there is a problem."""
    problem: str = ""
    """Reason why it cannot be executed, worded for the model; empty if it can."""


class ToolAnswer(CompactModel):
    """Answer to a call: titles, notes, statements, numbers; never page text."""

    call_id: str
    text: str = ""
    passing: list[str] = []
    """Lines below the text that only the turn after the call is shown, such as a list to choose from."""
    is_error: bool = False

    @property
    def whole(self) -> str:
        """Return the text with the lines below it."""
        return "\n".join(filter(None, [self.text, *self.passing]))

    def seen(self) -> Self:
        """Return the answer as later turns are shown it."""
        if not self.passing:
            return self
        return self.with_fields(text="\n".join(filter(None, [self.text, LINES_SHOWN_ONCE])), passing=[])


def refuse_call(call: ToolCall) -> ToolAnswer:
    """Return the answer to a call that cannot be executed."""
    return ToolAnswer(call_id=call.id, text=call.problem, is_error=True)


class NoArguments(Contract):
    """The arguments of a tool that takes none."""


class ReadingArguments(Contract):
    """The purpose of a reading."""

    focus: str = Field(
        default="",
        description="what to look for in it, as a question that makes sense on its own; empty: the whole task",
        max_length=400,
    )
    section: int | None = Field(
        default=None, description="number of one section that an earlier reading was not shown", ge=1
    )


Place = Annotated[
    str,
    Field(
        description="instead of the number, for a document of the collection that no search has listed: its place, as "
        "a task, a note or a list of links names it, such as folder/page.html",
        max_length=300,
    ),
]


class SearchArguments(Contract):
    """A search."""

    query: str = Field(
        description="what to search for, in words that make sense on their own", min_length=1, max_length=500
    )
