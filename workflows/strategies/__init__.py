"""Strategies decide the next unit; the driver owns all invariants."""

from importlib import import_module
from typing import Final

from contracts.packages import load_class
from contracts.strategies import BUILT_IN, StrategyDeclaration, declaration, list_declared, packages_of_strategies
from workflows.strategies.protocol import Finished, ScopedStrategy, Strategy

METHODS: Final = ("advance", "evaluate", "take_reflection", "pause", "resume", "replan", "progress", "write_early")
"""What the driver calls of each strategy."""
OF_AGENTS: Final = ("conclude", "describe_node", "list_read")
"""What it also calls of one that works on agents' tasks."""


def load_declared(strategy: StrategyDeclaration) -> type[Strategy]:
    """Load the class that a declaration names. Raises `PackageFault` for one of a package that cannot be used."""
    if strategy in BUILT_IN:
        module, _, name = strategy.implementation.partition(":")
        own: type[Strategy] = getattr(import_module(module), name)
        return own
    package = packages_of_strategies().get(strategy.name)
    what = " of ".join(filter(None, [f"the strategy {strategy.name}", package]))
    methods = (*METHODS, *OF_AGENTS) if strategy.scoped else METHODS
    return load_class(what, strategy.implementation, methods)


_strategies: dict[str, type[Strategy]] = {strategy.name: load_declared(strategy) for strategy in list_declared()}
"""Loaded with the workflow module, so that nothing is imported during a run."""


def load_strategy(name: str) -> Strategy:
    """Return a strategy by name. Raises KeyError if it is not declared in this process, and `PackageFault`."""
    if name not in _strategies:
        _strategies[name] = load_declared(declaration(name))
    return _strategies[name]()


__all__ = ["Finished", "ScopedStrategy", "Strategy", "load_declared", "load_strategy"]
