"""Work that ends no more, for children; and calls of which some go to it."""

import os
import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from providers.errors import InvalidOutput
from providers.isolation.pool import KillableCalls, SubprocessPool

BURN = f"{__name__}:burn"
"""Holds the interpreter for ever, as a pattern does that meets what it was not made for."""
CRASH = "os:abort"
ANYTHING = r"(a+)+$"
WALL_SECONDS = 1.0


def burn(*_: object) -> None:
    """Look for something that is not there, for longer than the world exists."""
    re.match(ANYTHING, "a" * 64 + "b")


class PoisonedCalls:
    """`KillableCalls`: what `is_poison` says goes to a killer in a real child, everything else runs here."""

    def __init__(
        self, pool: SubprocessPool, is_poison: Callable[[str, tuple[Any, ...]], bool], killer: str = CRASH
    ) -> None:
        self._killable = KillableCalls(pool)
        self._here = HereCalls()
        self._is_poison = is_poison
        self._killer = killer

    async def call(self, function: str, *arguments: Any, seconds: float | None = None) -> Any:
        """Run the function, or what kills its process."""
        if not self._is_poison(function, arguments):
            return await self._here.call(function, *arguments, seconds=seconds)
        return await self._killable.call(self._killer)


def die_once(mark: str) -> str:
    """Kill the process at the first call, which leaves a file as its mark."""
    if Path(mark).exists():
        return "alive"
    Path(mark).touch()
    os.abort()


def unusable(problem: str) -> None:
    """Refuse an answer."""
    raise InvalidOutput(problem)


class HereCalls:
    """`KillableCalls` in this process: quick, and nothing can be killed."""

    async def call(self, function: str, *arguments: Any, seconds: float | None = None) -> Any:
        """Run the function."""
        del seconds
        module, _, name = function.partition(":")
        return getattr(import_module(module), name)(*arguments)
