"""Work on texts from outside, in children that can be killed: twice at most, then the text is given up."""

from typing import Any, Final

from providers.errors import InputUnprocessable
from providers.isolation.pool import KillKind, SubprocessPool, TaskFailed, TaskKilled

MOST_KILLED: Final = 2
"""Once may be the machine: it stood still, or another process took the memory. Twice is the text."""
WHY: Final[dict[KillKind, str]] = {
    "timeout": "it took too long",
    "memory": "it needed too much memory",
    "crash": "it made its process crash",
}


class KillableCalls:
    """`IsolatedCalls` over a pool of children."""

    def __init__(self, pool: SubprocessPool) -> None:
        self._pool = pool

    async def call(self, function: str, *arguments: Any, seconds: float | None = None) -> Any:
        """Run `module:function`. Raises `InputUnprocessable`, and what the function raises of the pool's `RAISED`."""
        kinds: list[KillKind] = []
        while len(kinds) < MOST_KILLED:
            try:
                return await self._pool.call(function, *arguments, seconds=seconds)
            except TaskKilled as killed:
                kinds.append(killed.kind)
            except TaskFailed as failed:
                raise InputUnprocessable("crash", f"work on a text from outside failed: {failed}") from None
        raise InputUnprocessable(
            kinds[-1], f"a text from outside cannot be worked on: {len(kinds)} times {WHY[kinds[-1]]}"
        )
