"""The base of every value that travels between processes."""

from typing import Annotated, Any, Final, Generic, TypeAlias, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    FailFast,
    Field,
    SerializationInfo,
    SerializerFunctionWrapHandler,
    model_serializer,
)

WHOLE: Final = "whole"
"""Context of serialization with all defaults."""
T = TypeVar("T")
BoundedList: TypeAlias = Annotated[list[T], FailFast(), Field(max_length=50_000)]
"""A list that may come from a stranger: a million malformed items cost no more than the first one."""
BoundedMap: TypeAlias = Annotated[dict[str, T], Field(max_length=1_000)]
"""The same for values by name."""


class Contract(BaseModel):
    """A frozen value that is written into Temporal's history or into a stored session.

    Unknown fields are ignored, so that a process of an older version can read values of a newer one; new fields
    need a default, because old histories lack them.
    """

    # Errors of validation are logged with their tracebacks: they show no values, which may be a user's text.
    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False, hide_input_in_errors=True)


class StrictContract(Contract):
    """A frozen value that a person or a program of theirs writes: an unknown key is refused by name."""

    model_config = ConfigDict(extra="forbid")


class CompactModel(Contract):
    """A frozen value that is written without default values, in itself and in all its parts.

    Requests and results of activities are in every history, where no person relies on their shape.
    """

    @model_serializer(mode="wrap")
    def write_compactly(self, write: SerializerFunctionWrapHandler, info: SerializationInfo) -> dict[str, Any]:
        """Write the fields that differ from their defaults."""
        if info.context == WHOLE or info.exclude_defaults:
            whole: dict[str, Any] = write(self)
            return whole
        chosen: dict[str, Any] = {"mode": info.mode, "include": info.include, "exclude": info.exclude}
        return self.model_dump(**chosen, exclude_defaults=True, exclude_computed_fields=True)

    def whole(self) -> dict[str, Any]:
        """All fields as JSON, for people and programs of theirs."""
        return self.model_dump(mode="json", context=WHOLE)


class ListEntry(CompactModel, Generic[T]):
    """Items of one kind, as an entry of a run's notebook."""

    items: list[T] = []
