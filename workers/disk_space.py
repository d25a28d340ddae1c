"""How much room is left where a worker writes."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

LEAST_FREE_BYTES: Final = 64_000_000
"""With less, a worker is not ready: a few large pages, or the index of a corpus, would fill the rest."""

Room = Callable[[], int | None]
"""Free bytes; None where they cannot be told."""


def free_bytes(folder: Path) -> int | None:
    """What a process of ours may still write there. Blocks for a moment."""
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return None
