"""Base classes of every value that crosses a process boundary."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Annotated, Any, Generic, Literal, Self, TypeAlias, TypeVar, get_args, get_origin

from pydantic import BaseModel, ConfigDict, FailFast, Field, ValidationInfo, field_validator

from contracts.sentences import AS_DATA

T = TypeVar("T")
BoundedList: TypeAlias = Annotated[list[T], FailFast(), Field(max_length=50_000)]
"""A list from an untrusted source: validation stops at the first malformed item."""
BoundedMap: TypeAlias = Annotated[dict[str, T], Field(max_length=1_000)]
"""A string-keyed map from an untrusted source."""


class CheckedModel(BaseModel):
    """A model whose copies with other values are checked by mypy, and whose validators are made at first use.

    A command uses few of these models, and making all validators took half of its start.
    """

    model_config = ConfigDict(defer_build=True)

    def with_fields(self, **fields: object) -> Self:
        """Return a copy with other values in these fields; the values are not validated again.

        mypy checks names and types of the fields as it does for a constructor (`tests/architecture/mypy_changes.py`).
        Raises TypeError for a name that is not a field.
        """
        unknown = fields.keys() - type(self).model_fields.keys()
        if unknown:
            raise TypeError(f"{type(self).__name__} has no field {min(unknown)}")
        return self.model_copy(update=fields)


class Given(CheckedModel):
    """A value that a person writes, in which true and false are no numbers; pydantic takes them for 1 and 0."""

    @field_validator("*", mode="before")
    @classmethod
    def _refuse_booleans(cls, value: object, info: ValidationInfo) -> object:
        kinds = _kinds_of(cls.model_fields[str(info.field_name)].annotation)
        if _has_boolean(value) and not kinds.isdisjoint({int, float}) and kinds.isdisjoint({bool, object}):
            raise ValueError("must be a number, not true or false")
        return value


def _kinds_of(annotation: object) -> set[object]:
    """Return the types in an annotation, `object` for any value."""
    parts = get_args(annotation)
    if get_origin(annotation) is Annotated:
        return _kinds_of(parts[0])
    if get_origin(annotation) is Literal:
        return set(map(type, parts))
    if parts:
        return set().union(*map(_kinds_of, parts))
    return {object if annotation is Any else annotation}


def _has_boolean(value: object) -> bool:
    """Return whether a value is true or false, or a list or table with such a value in it."""
    if isinstance(value, Mapping):
        return any(map(_has_boolean, value.values()))
    if isinstance(value, list | tuple):
        return any(map(_has_boolean, value))
    return isinstance(value, bool)


class Contract(CheckedModel):
    """A frozen value stored in Temporal's history or in a session.

    Unknown fields are ignored, so older processes can read newer values; new fields need a default, because old
    histories lack them.
    """

    # Validation errors are logged with their tracebacks, so they must not show values, which may be user text.
    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False, hide_input_in_errors=True)


class StrictContract(Contract, Given):
    """A frozen value written by a user or a user's program: unknown keys are rejected by name."""

    model_config = ConfigDict(extra="forbid")


class CompactModel(Contract):
    """A frozen value that is stored and sent without its defaults, at every level, by `compact_json`.

    Activity requests and results are in every history, and no user depends on their shape there. `model_dump` writes
    all fields, for users and their programs.
    """

    def compact_json(self, *, exclude: AbstractSet[str] = frozenset()) -> str:
        """Return JSON of the fields that differ from their defaults, without those of `exclude`.

        Messages are written with their ids and values, as this JSON is read back. Pydantic's own options write the
        whole tree at once; a serializer of ours would be called for each value in it.
        """
        return self.model_dump_json(
            exclude=set(exclude), exclude_defaults=True, exclude_computed_fields=True, context=AS_DATA
        )


def build_validators() -> None:
    """Make the validators of all imported models now, so that no workflow task has to wait for one."""
    kinds: list[type[CheckedModel]] = [CheckedModel]
    for kind in kinds:
        kinds += kind.__subclasses__()
        kind.model_rebuild()


class ListEntry(CompactModel, Generic[T]):
    """A list of items of one kind, stored as an entry of a run's notebook."""

    items: list[T] = []
