"""Histories that were deleted: the engine goes on listing them for up to half a minute."""

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

KEPT_SECONDS: Final = 3_600.0


def bury(home: Path, run_ids: Iterable[str]) -> None:
    """Remember deleted histories by the engine's run id; forget those of long ago."""
    folder = _folder(home)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for run_id in run_ids:
        (folder / run_id).touch()
    oldest = time.time() - KEPT_SECONDS
    for path in folder.iterdir():
        if path.stat().st_mtime < oldest:
            path.unlink(missing_ok=True)


def buried(home: Path) -> set[str]:
    """Run ids of histories that were deleted a short while ago."""
    folder = _folder(home)
    return {path.name for path in folder.iterdir()} if folder.is_dir() else set()


def _folder(home: Path) -> Path:
    return home / "deleted"
