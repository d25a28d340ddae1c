"""The strategies that a run can follow, each declared as data in a file of its own."""

from contracts.strategies.closing_calls import closing_calls
from contracts.strategies.declared_strategies import (
    CLOSING_ROLES,
    ENTRY_POINTS,
    PLANNED,
    Needs,
    StrategyDeclaration,
    declaration,
    declare,
    declare_installed,
    declared_roles,
    list_declared,
    list_selectable,
    writer_engine,
    writers,
)
from contracts.strategies.orchestrator_declaration import AGENT_STRATEGY, ORCHESTRATOR_STRATEGY
from contracts.strategies.reflective_declaration import REFLECTIVE_STRATEGY
from contracts.strategies.supervisor_declaration import FEWEST_SUB_QUERIES, SUPERVISOR_STRATEGY

__all__ = [
    "CLOSING_ROLES",
    "ENTRY_POINTS",
    "FEWEST_SUB_QUERIES",
    "PLANNED",
    "Needs",
    "StrategyDeclaration",
    "closing_calls",
    "declaration",
    "declare",
    "declare_installed",
    "declared_roles",
    "list_declared",
    "list_selectable",
    "writer_engine",
    "writers",
]

for each in (SUPERVISOR_STRATEGY, REFLECTIVE_STRATEGY, ORCHESTRATOR_STRATEGY, AGENT_STRATEGY):
    declare(each)
