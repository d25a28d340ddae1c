"""The base of every value that travels between processes."""

from functools import cache
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, SerializationInfo, SerializerFunctionWrapHandler, model_serializer

WHOLE: Final = "whole"
"""Context of serialization in which nothing is left out."""
PLAIN: Final = frozenset({str, int, float, bool, type(None)})
"""Types of values that hold no others."""


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
    """A frozen value that is written without what has its default value, in itself and in all that it holds.

    What one activity or another is asked and answers stands in every history; no person relies on its shape.
    """

    @model_serializer(mode="wrap")
    def write_compactly(self, write: SerializerFunctionWrapHandler, info: SerializationInfo) -> dict[str, Any]:
        """The fields that say something."""
        written: dict[str, Any] = write(self)
        return written if info.context == WHOLE else _compact(self, written)

    def whole(self) -> dict[str, Any]:
        """All fields as JSON, for people and programs of theirs."""
        return self.model_dump(mode="json", context=WHOLE)


def _compact(value: BaseModel, written: dict[str, Any]) -> dict[str, Any]:
    """Return what was written of a model, without its defaults and without what is computed from its fields."""
    fields, defaults = type(value).model_fields, _defaults(type(value))
    held = {name: getattr(value, name) for name in written if name in fields}
    return {
        name: _within(each, written[name])
        for name, each in held.items()
        if name not in defaults or each != defaults[name]
    }


@cache
def _defaults(kind: type[BaseModel]) -> dict[str, Any]:
    """Return what the fields of a model hold that nobody has set; one that must be set has no default."""
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
