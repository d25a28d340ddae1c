"""Work that ends no more, for children; and calls of which some go to it."""

import os
from importlib import import_module
from pathlib import Path
from typing import Any

from providers.errors import ContentMissing


def die_once(mark: str) -> str:
    """Kill the process at the first call, which leaves a file as its mark."""
    if Path(mark).exists():
        return "alive"
    Path(mark).touch()
    os.abort()


def miss(message: str) -> None:
    raise ContentMissing(message)


class HereCalls:
    """`SubprocessPool` in this process: quick, and nothing can be killed."""

    async def call(self, function: str, *arguments: Any, seconds: float | None = None) -> Any:
        del seconds
        module, _, name = function.partition(":")
        return getattr(import_module(module), name)(*arguments)
