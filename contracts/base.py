"""The base of every value that travels between processes."""

from functools import cache
from typing import Annotated, Any, Final, TypeAlias, TypeVar

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
PLAIN: Final = frozenset({str, int, float, bool, type(None)})
"""Types of values without parts."""
T = TypeVar("T")
BoundedList: TypeAlias = Annotated[list[T], FailFast(), Field(max_length=50_000)]
"""A list that may come from a stranger: a million malformed items cost no more than the first one."""


class Contract(BaseModel):
    """A frozen value that is written into Temporal's history or into a stored session.

    Unknown fields are ignored, so that a process of an older version can read what a newer one wrote; new fields
    need a default, because old histories lack them.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)


class StrictContract(Contract):
    """A frozen value that a person or a program of theirs writes: an unknown key is refused by name."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class CompactModel(Contract):
    """A frozen value that is written without default values, in itself and in all its parts.

    Requests and results of activities are in every history, where no person relies on their shape.
    """

    @model_serializer(mode="wrap")
    def write_compactly(self, write: SerializerFunctionWrapHandler, info: SerializationInfo) -> dict[str, Any]:
        """Write the fields that differ from their defaults."""
        written: dict[str, Any] = write(self)
        return written if info.context == WHOLE else _compact(self, written)

    def whole(self) -> dict[str, Any]:
        """All fields as JSON, for people and programs of theirs."""
        return self.model_dump(mode="json", context=WHOLE)


def _compact(value: BaseModel, written: dict[str, Any]) -> dict[str, Any]:
    """Return the written fields of a model, without defaults and computed fields."""
    fields, defaults = type(value).model_fields, _defaults(type(value))
    values = {name: getattr(value, name) for name in written if name in fields}
    return {
        name: _within(each, written[name])
        for name, each in values.items()
        if name not in defaults or each != defaults[name]
    }


@cache
def _defaults(kind: type[BaseModel]) -> dict[str, Any]:
    """Return the defaults of a model's fields; a required one has none."""
    fields = kind.model_fields.items()
    return {name: field.get_default(call_default_factory=True) for name, field in fields if not field.is_required()}


def _within(value: Any, written: Any) -> Any:
    if type(value) in PLAIN:  # in workflows, asking with isinstance takes fifty times as long
        return written
    if isinstance(value, CompactModel):
        return written
    if isinstance(value, BaseModel):
        return _compact(value, written)
    if isinstance(value, dict):
        return {key: _within(item, each) for item, (key, each) in zip(value.values(), written.items(), strict=True)}
    if isinstance(value, (list, tuple)):
        return [_within(item, each) for item, each in zip(value, written, strict=True)]
    return written
