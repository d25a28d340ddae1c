"""Functions for killable children, run where the test is."""

from importlib import import_module
from typing import Any


class HereCalls:
    """`IsolatedCalls` in this process: quick, and nothing can be killed. `called` are the functions, in order."""

    def __init__(self) -> None:
        self.called: list[str] = []

    async def call(self, function: str, *arguments: Any, seconds: float | None = None) -> Any:
        """Run the function."""
        del seconds
        self.called.append(function)
        module, _, name = function.partition(":")
        return getattr(import_module(module), name)(*arguments)
