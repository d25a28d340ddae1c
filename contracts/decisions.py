"""Decisions and gate results: why a run went the way it went."""

from typing import Any

from pydantic import Field

from contracts.base import Contract
from contracts.vocabulary import Action, GatePolicy


class AgentDecision(Contract):
    """One entry of the decision log."""

    seq: int
    agent: str
    """The decider: a role, `gatherer`, or another name that the strategy declares."""
    action: str
    phase: str | None = None
    iteration: int = 1
    rationale: str = ""
    inputs: dict[str, Any] = {}
    outputs: dict[str, Any] | None = None
    timestamp: str = ""
    """ISO 8601 with offset, from the workflow's own clock."""


class GateIssue(Contract):
    """One reason why a gate is not satisfied."""

    code: str
    message: str


class GateResult(Contract):
    """What a validator says of a phase."""

    phase: str
    valid: bool
    issues: list[GateIssue] = []
    quality_score: float = Field(ge=0, le=10)
    metrics: dict[str, float] = {}
    policy: GatePolicy = GatePolicy.STRICT


class Exclusion(Contract):
    """What a run leaves out: nothing is searched, quoted or reported about it."""

    subject: str
    """A few words, or the address of sources."""
    origin: str
    """`hook`, `person` or `request`."""


class Guidance(Contract):
    """What a think-pause, a hook or a person wants of the next phase."""

    origin: str
    """`model`, `rules`, `hook`, `person`, or `request` for its own prompt where no model reads it."""
    phase: str | None = None
    text: str = Field(max_length=2_000)
    left_out: list[str] = []
    """What it wants to be left out."""
    only_from: list[str] = []
    """Hosts, or paths in a folder, that it wants sources from, and no others."""
    look_at: list[str] = []
    """What it wants to be searched for."""
    answer: str = ""
    """What is understood of it, and what is done with it; empty for what no rules read."""


class Moment(Contract):
    """Where a run stood when something was asked or found out; later units must not change what that belongs to."""

    phase: str | None = None
    iteration: int = 1
    guidance: list[Guidance] = []
    """What had been said until then."""


class Pause(Contract):
    """What was decided after a unit of work (gate, reflection, hook, decision); the strategy's next unit obeys it."""

    phase: str
    action: Action
    rationale: str = ""
    score: float = 0.0
