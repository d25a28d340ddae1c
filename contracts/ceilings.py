"""What an operator allows requests at most: of everybody, and of one tenant."""

from collections.abc import Mapping
from typing import Annotated, Final, Literal

from pydantic import ConfigDict, Field

from contracts.base import Given
from contracts.request import MAX_TOKENS, MAX_USD, Depth, Domain, Name
from contracts.texts import plural

DEPTHS: Final = (Depth.LIGHT, Depth.MEDIUM, Depth.EXTENDED)
"""From the least work to the most."""
NUMBERS: Final = (
    *("max_cost_usd", "max_tokens", "max_model_calls", "max_searches", "max_sources", "max_iterations"),
    "deadline_seconds",
)
"""Fields of a ceiling that bound the limit of the same name."""


class Ceiling(Given):
    """`[limits.ceiling]` and `[limits.tenants.NAME]`: the most that a request may ask for; None: no ceiling."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    max_cost_usd: float | None = Field(default=None, ge=0, le=MAX_USD)
    max_tokens: int | None = Field(default=None, ge=0, le=MAX_TOKENS)
    max_model_calls: int | None = Field(default=None, ge=0)
    max_searches: int | None = Field(default=None, ge=1)
    max_sources: int | None = Field(default=None, ge=1)
    max_iterations: int | None = Field(default=None, ge=1)
    deadline_seconds: float | None = Field(default=None, ge=1)
    depth: Depth | None = None
    """The deepest one."""
    models: list[str] | None = Field(default=None, min_length=1)
    """Models that runs may call, as `[models]` and requests write them; None: any."""
    strategies: list[Name] | None = Field(default=None, min_length=1)
    engines: list[Literal["model", "extractive"]] | None = Field(default=None, min_length=1)
    domains_deny: list[Domain] = []
    """Domains that no request can open, with everything below them, whatever it names."""

    def words(self) -> str:
        """Return the ceiling in one line; empty if there is none."""
        amounts = {"model call": self.max_model_calls, "token": self.max_tokens, "search": self.max_searches}
        amounts |= {"source": self.max_sources, "iteration": self.max_iterations}
        parts = []
        if self.max_cost_usd is not None:
            parts.append(f"{self.max_cost_usd:.2f} US dollars")
        parts += [plural(amount, noun) for noun, amount in amounts.items() if amount is not None]
        if self.deadline_seconds is not None:
            parts.append(f"{self.deadline_seconds / 60:.0f} min")
        if self.depth is not None:
            parts.append(f"depth {self.depth.value}")
        lists = {"strategies": self.strategies, "models": self.models, "engines": self.engines}
        parts += [f"{name} {', '.join(values)}" for name, values in lists.items() if values]
        if self.domains_deny:
            parts.append(f"{plural(len(self.domains_deny), 'domain')} denied")
        return ", ".join(parts)


class Ceilings(Given):
    """`[limits]`: the ceilings of all tenants."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    beyond: Literal["refuse", "cut"] = "refuse"
    """What becomes of a request that asks for more: it is refused, or it gets less and its report says so."""
    ceiling: Ceiling = Ceiling()
    """Of every tenant."""
    tenants: dict[Name, Ceiling] = {}
    """By tenant: each value that it names replaces that of `ceiling`; denied domains are added."""

    def of(self, tenant: str) -> Ceiling:
        """Return the ceiling of a tenant."""
        own = self.tenants.get(tenant)
        if own is None:
            return self.ceiling
        named = {name: getattr(own, name) for name in own.model_fields_set}
        return self.ceiling.with_fields(**{**named, "domains_deny": self.ceiling.domains_deny + own.domains_deny})

    def places(self, tenant: str) -> Mapping[str, str]:
        """Return the table of the configuration that sets each value for a tenant."""
        own = self.tenants.get(tenant, Ceiling()).model_fields_set
        return {
            name: f"limits.tenants.{tenant}.{name}" if name in own else f"limits.ceiling.{name}"
            for name in Ceiling.model_fields
        }


class Budgets(Given):
    """`[budgets]`: US dollars that runs may cost on a day (UTC); a run reserves its cost limit when it starts."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    usd_per_day: float | None = Field(default=None, ge=0, le=MAX_USD)
    """Of all tenants together; None: no budget."""
    tenants: dict[Name, Annotated[float, Field(ge=0, le=MAX_USD)]] = {}
    """By tenant, within that of all."""

    @property
    def is_set(self) -> bool:
        """Return true if there is a budget."""
        return self.usd_per_day is not None or bool(self.tenants)
