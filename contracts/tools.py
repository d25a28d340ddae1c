"""Tools that a role may call: what is offered, what was called, what is answered.

A tool has no code of its own here. A model names one with arguments, the workflow decides what becomes of it and
answers each call by its id.
"""

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Generic, TypeVar

from pydantic import BaseModel

from contracts.base import Contract, Terse

A = TypeVar("A", bound=BaseModel)

MOST_CALLS: Final = 8
"""Calls of one turn that are carried out; those beyond get an error for an answer."""
ARGUMENT_CHARACTERS: Final = 8_000
"""Of one call's arguments as JSON."""
ANSWER_CHARACTERS: Final = 40_000
"""Of one answer; what is cut off is counted."""


@dataclass(frozen=True)
class ToolSpec(Generic[A]):
    """One tool: what a model is told of it, and the model of its arguments, from which its JSON schema is made."""

    name: str
    description: str
    arguments: type[A]

    def read(self, call: "ToolCall") -> A:
        """The arguments of a call of this tool. Raises ValueError for a call that has a problem."""
        if call.problem or call.name != self.name:
            raise ValueError(f"this is no call of {self.name} that can be carried out")
        return self.arguments.model_validate(call.arguments)

    def schema(self) -> dict[str, Any]:
        """The JSON schema of the arguments; whoever gets it may change it."""
        schema: dict[str, Any] = json.loads(_schema_text(self.arguments))
        return schema


@lru_cache(maxsize=128)
def _schema_text(arguments: type[BaseModel]) -> str:
    return json.dumps(arguments.model_json_schema())


class ToolCall(Terse):
    """A call as a model made it, checked: either its arguments fit the tool, or `problem` says why not."""

    id: str
    name: str
    arguments: dict[str, Any] = {}
    """Plain JSON of at most `ARGUMENT_CHARACTERS`; empty where there is a problem."""
    problem: str = ""
    """Why it cannot be carried out, in words for the model; empty if it can."""


class ToolAnswer(Terse):
    """What a call is answered: titles, notes, statements, numbers. Never the text of a page."""

    call_id: str
    text: str = ""
    is_error: bool = False
    entry: str = ""
    """Hash of the stored `AnswerEntry` that holds the text, for one that is too long for a history."""
    size: int = 0
    """Bytes of the text behind `entry`, for the ledger; 0: not known."""


class AnswerEntry(Terse):
    """A long answer as an activity stores it in the notebook."""

    answer: str


def refusal_of(call: ToolCall) -> ToolAnswer:
    """The answer to a call that cannot be carried out."""
    return ToolAnswer(call_id=call.id, text=call.problem, is_error=True)


class NoArguments(Contract):
    """The arguments of a tool that takes none."""
