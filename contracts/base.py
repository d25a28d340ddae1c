"""The base of every value that travels between processes."""

from pydantic import BaseModel, ConfigDict


class Contract(BaseModel):
    """A frozen value that is written into Temporal's history or into a stored session.

    Unknown fields are ignored, so that a process of an older version can read what a newer one wrote; new fields
    need a default, because old histories lack them.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)


class StrictContract(Contract):
    """A frozen value that a person or a program of theirs writes: an unknown key is refused by name."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
