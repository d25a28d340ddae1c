"""Whether a role's model reasons by itself. Pure."""

from typing import Any

from contracts.resolved import ResolvedResearch
from contracts.roles import RoleSpec
from contracts.vocabulary import EngineKind


def reasons(resolved: ResolvedResearch, role: RoleSpec[Any, Any]) -> bool:
    """Whether it needs no tool to think with; rules that stand in for a model need none either."""
    return resolved.engine is EngineKind.EXTRACTIVE or role.tier.value in resolved.reasoning_tiers
