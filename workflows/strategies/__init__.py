"""Strategies: what to do next. The driver owns everything that must always hold."""

from contracts.strategies import declared
from workflows.strategies.protocol import Finished, Strategy


def _loaded(implementation: str) -> type[Strategy]:
    """The class that a declaration names. `__import__` is what the sandbox of the SDK watches over."""
    module, _, name = implementation.partition(":")
    found: type[Strategy] = getattr(__import__(module, fromlist=[name]), name)
    return found


STRATEGIES: dict[str, type[Strategy]] = {strategy.name: _loaded(strategy.implementation) for strategy in declared()}
"""By name, loaded with the workflow module so that nothing is imported while a run is going on."""

__all__ = ["STRATEGIES", "Finished", "Strategy"]
