"""A fake as a process of its own: what it takes of the machine is not taken for the product's."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any, Final, Self

from workers.dev_server import QUICK

ROOT = Path(__file__).resolve().parents[2]


class FakeProcess:
    """`python -m MODULE OPTIONS` for the time of a block; its first line is JSON and says where it is."""

    def __init__(self, module: str, *options: str) -> None:
        self._command = ("-m", module, *options)
        self._process: asyncio.subprocess.Process | None = None
        self._said: dict[str, Any] = {}

    async def __aenter__(self) -> Self:
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, *self._command, cwd=ROOT, stdout=asyncio.subprocess.PIPE
        )
        assert self._process.stdout is not None
        self._said = json.loads(await self._process.stdout.readline())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._process is not None
        self._process.terminate()
        await self._process.wait()

    @property
    def base_url(self) -> str:
        return str(self._said["base_url"])

    def variables(self) -> dict[str, str]:
        return {name: str(value) for name, value in self._said.items()}


FAST: Final = [part for setting in QUICK for part in ("--dynamic-config-value", setting)]
