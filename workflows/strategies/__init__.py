"""Strategies: what to do next. The engine owns everything that must always hold."""

from contracts.request import Strategy as StrategyName
from workflows.strategies.protocol import Next, Strategy
from workflows.strategies.supervisor.strategy import SupervisorStrategy

STRATEGIES: dict[StrategyName, type[Strategy]] = {StrategyName.SUPERVISOR: SupervisorStrategy}

__all__ = ["STRATEGIES", "Next", "Strategy", "SupervisorStrategy"]
