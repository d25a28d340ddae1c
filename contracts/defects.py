"""Defects of the product: where an unforeseen error was raised, without its message, which may hold text of a page.

A frame is a line `package/file.py:123 in function`. Workflows, activities and child processes describe errors by these
lines; they are logged, stored in the session and listed by `research doctor`.
"""

import re
import traceback
from collections.abc import Collection, Iterator
from pathlib import PurePath
from typing import Final

from contracts.base import Contract
from contracts.names import MODULE_PREFIX, PACKAGES

OWN_PACKAGES: Final = frozenset(f"{MODULE_PREFIX}{name}".partition(".")[0] for name in PACKAGES)
FIRST_FRAMES = 15
LAST_FRAMES = 25
"""Frames that are listed of an error: endless recursion has thousands."""
MAX_DEFECTS: Final = 5
"""Defects that the session of a run lists: a defect in a loop has the same frames each time."""
FRAME: Final = re.compile(r"[\w.+/-]{1,300}:\d{1,7} in [\w<>.]{1,200}")


class Defect(Contract):
    """An unforeseen error: its type, the place in our code or the strategy's, and its frames, the innermost last."""

    error: str
    place: str
    frames: list[str] = []

    @property
    def text(self) -> str:
        """Return the error and its place, for people."""
        return f"internal error: {self.error} at {self.place}"


def describe_error(error: BaseException, packages: Collection[str] = ()) -> Defect:
    """Describe an error by its frames.

    The place is the innermost frame of the product or of `packages` (that of a strategy, for example); without any,
    the innermost frame of all.
    """
    frames = list(_frames(error))
    own = [line for package, line in frames if package in OWN_PACKAGES or package in packages]
    lines = [line for _, line in frames]
    if len(lines) > FIRST_FRAMES + LAST_FRAMES:
        lines = [*lines[:FIRST_FRAMES], *lines[-LAST_FRAMES:]]
    innermost = (own or lines or ["an unknown place"])[-1]
    return Defect(error=type(error).__name__, place=innermost, frames=lines)


def place_within(error: BaseException, package: str) -> str:
    """Return the innermost frame of an error within a package, without its function; empty if there is none."""
    places = [line.partition(" in ")[0] for name, line in _frames(error) if name == package]
    return places[-1] if places else ""


def checked_frames(lines: Collection[object]) -> list[str]:
    """Return the frames among lines from a process that a document may have taken over."""
    frames = [line for line in lines if isinstance(line, str) and FRAME.fullmatch(line)]
    return frames[: FIRST_FRAMES + LAST_FRAMES]


def _frames(error: BaseException) -> Iterator[tuple[str, str]]:
    """Yield the top package and the line of each frame, the outermost first."""
    for frame, number in traceback.walk_tb(error.__traceback__):
        # The module of a process started with `python -m` has its name only in its specification.
        spec = frame.f_globals.get("__spec__")
        package = str(getattr(spec, "name", None) or frame.f_globals.get("__name__", "")).partition(".")[0]
        parts = PurePath(frame.f_code.co_filename).parts
        start = max((place for place, part in enumerate(parts) if part == package), default=len(parts) - 2)
        path = "/".join(parts[max(0, start) :])
        yield package, f"{path}:{number} in {frame.f_code.co_name}"
