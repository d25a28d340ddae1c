"""Strategies decide the next unit. The driver owns all invariants."""

from contracts.strategies import declaration, list_declared
from workflows.strategies.protocol import Finished, ScopedStrategy, Strategy


def _load(implementation: str) -> type[Strategy]:
    """The class that a declaration names. The sandbox of the SDK controls `__import__`."""
    module, _, name = implementation.partition(":")
    found: type[Strategy] = getattr(__import__(module, fromlist=[name]), name)
    return found


_strategies: dict[str, type[Strategy]] = {strategy.name: _load(strategy.implementation) for strategy in list_declared()}
"""Loaded with the workflow module, so that nothing is imported while a run is going on."""


def strategy_of(name: str) -> Strategy:
    """A strategy by name. Raises KeyError for one that is not declared in this process."""
    if name not in _strategies:
        _strategies[name] = _load(declaration(name).implementation)
    return _strategies[name]()


__all__ = ["Finished", "ScopedStrategy", "Strategy", "strategy_of"]
