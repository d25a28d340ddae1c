"""A strategy from outside the product, as another package would bring it: no product file knows it."""

from collections.abc import Iterator
from contextlib import contextmanager

from durable_research.contracts import strategies
from durable_research.contracts.strategies import StrategyDeclaration


@contextmanager
def declared(*chosen: StrategyDeclaration) -> Iterator[None]:
    """Declare strategies for the block, which may lie in another one."""
    fresh = [strategy for strategy in chosen if strategy.name not in strategies._declared]
    for strategy in fresh:
        strategies.declare(strategy)
    try:
        yield
    finally:
        for strategy in fresh:
            del strategies._declared[strategy.name]
