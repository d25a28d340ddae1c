"""Base classes of every value that crosses a process boundary."""

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
"""Serialization context that includes all defaults."""
T = TypeVar("T")
BoundedList: TypeAlias = Annotated[list[T], FailFast(), Field(max_length=50_000)]
"""A list from an untrusted source: validation stops at the first malformed item."""
BoundedMap: TypeAlias = Annotated[dict[str, T], Field(max_length=1_000)]
"""A string-keyed map from an untrusted source."""


class Contract(BaseModel):
    """A frozen value stored in Temporal's history or in a session.

    Unknown fields are ignored, so older processes can read newer values; new fields need a default, because old
    histories lack them.
    """

    # Validation errors are logged with their tracebacks, so they must not show values, which may be user text.
    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False, hide_input_in_errors=True)


class StrictContract(Contract):
    """A frozen value written by a user or a user's program: unknown keys are rejected by name."""

    model_config = ConfigDict(extra="forbid")


class CompactModel(Contract):
    """A frozen value serialized without defaults, at every level.

    Activity requests and results are in every history, and no user depends on their shape there.
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
        """Return all fields as JSON, for users and their programs."""
        return self.model_dump(mode="json", context=WHOLE)


class ListEntry(CompactModel, Generic[T]):
    """A list of items of one kind, stored as an entry of a run's notebook."""

    items: list[T] = []
