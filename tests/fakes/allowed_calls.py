"""The table of the design: which role of the strategy `recursive` may call which other one."""

from collections.abc import Mapping

from contracts.recursive_roles import SCANNER, TREE_PLANNER

ACTS_AS: Mapping[str, str] = {SCANNER.name: "extractor", TREE_PLANNER.name: "planner"}
"""Role of the design for a role whose name is another one; a scan is a task of the extractor."""
MAY_CALL: Mapping[str, frozenset[str]] = {
    "manager": frozenset(("planner", "executor", "synthesizer")),
    "planner": frozenset(("librarian",)),
    "librarian": frozenset(("extractor",)),
    "executor": frozenset(("executor", "extractor", "synthesizer", "librarian", "planner")),
    "extractor": frozenset(),
    "synthesizer": frozenset(),
}
"""Callers, and the roles that each may call; no other call is made."""


def may_call(caller: str, role: str) -> bool:
    """Return whether a role may call another one, both by their own names or those of the design."""
    return ACTS_AS.get(role, role) in MAY_CALL.get(ACTS_AS.get(caller, caller), frozenset())
