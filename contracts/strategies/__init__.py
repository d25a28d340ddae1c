"""The strategies that a run can follow, declared as data."""

from contracts.strategies.built_in import (
    AGENT_STRATEGY,
    EXECUTOR_STRATEGY,
    FEWEST_SUB_QUERIES,
    LIVING_STRATEGY,
    ORCHESTRATOR_STRATEGY,
    RECURSIVE_STRATEGY,
    REFLECTIVE_STRATEGY,
    SUPERVISOR_STRATEGY,
    calls_by_role,
    closing_calls,
)
from contracts.strategies.declared_strategies import (
    CLOSING_ROLES,
    StrategyDeclaration,
    declaration,
    declare,
    declare_installed,
    declared_roles,
    list_declared,
    list_selectable,
    usage_by_share,
    writer_engine,
    writers,
)

__all__ = [
    "CLOSING_ROLES",
    "FEWEST_SUB_QUERIES",
    "LIVING_STRATEGY",
    "StrategyDeclaration",
    "calls_by_role",
    "closing_calls",
    "declaration",
    "declare",
    "declare_installed",
    "declared_roles",
    "list_declared",
    "list_selectable",
    "usage_by_share",
    "writer_engine",
    "writers",
]

BUILT_IN = (
    SUPERVISOR_STRATEGY,
    REFLECTIVE_STRATEGY,
    ORCHESTRATOR_STRATEGY,
    AGENT_STRATEGY,
    LIVING_STRATEGY,
    RECURSIVE_STRATEGY,
    EXECUTOR_STRATEGY,
)
for each in BUILT_IN:
    declare(each)
