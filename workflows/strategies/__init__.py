"""Strategies decide the next unit; the driver owns all invariants."""

from contracts.strategies import declaration, list_declared
from workflows.strategies.protocol import Finished, ScopedStrategy, Strategy


def _load(implementation: str) -> type[Strategy]:
    """Load the class named by a declaration. `__import__` is used because the SDK's sandbox controls it."""
    module, _, name = implementation.partition(":")
    strategy: type[Strategy] = getattr(__import__(module, fromlist=[name]), name)
    return strategy


_strategies: dict[str, type[Strategy]] = {strategy.name: _load(strategy.implementation) for strategy in list_declared()}
"""Loaded with the workflow module, so that nothing is imported during a run."""


def load_strategy(name: str) -> Strategy:
    """Return a strategy by name. Raises KeyError if it is not declared in this process."""
    if name not in _strategies:
        _strategies[name] = _load(declaration(name).implementation)
    return _strategies[name]()


__all__ = ["Finished", "ScopedStrategy", "Strategy", "load_strategy"]
