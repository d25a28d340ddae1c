"""What every finisher is given: the input, the draft, the texts, and a list for what it had to put right."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from contracts.base import Contract
from contracts.roles import RoleInput
from contracts.usage import CallAccount

I = TypeVar("I", bound=RoleInput)
D = TypeVar("D", bound=Contract)


@dataclass(frozen=True)
class Draft(Generic[I, D]):
    """An engine's draft on its way to the workflow."""

    request: I
    draft: D
    documents: Mapping[str, str]
    """Stored texts by hash."""
    account: CallAccount
    warnings: list[str] = field(default_factory=list)
    """One short line for each thing that was coerced or dropped; never with words of a page."""

    def accounted(self) -> CallAccount:
        """The account with all warnings, each once."""
        return self.account.model_copy(
            update={"warnings": list(dict.fromkeys([*self.account.warnings, *self.warnings]))}
        )
