"""What probes are told."""

from pathlib import Path

import pytest

from workers.health import LEAST_FREE_BYTES, free_bytes, respond
from workers.pools import PoolHealth


async def health() -> dict[str, PoolHealth]:
    """A pool that is well."""
    return {"reading": PoolHealth(alive=True, ready=True)}


@pytest.mark.parametrize(
    ("free", "ready"), [(LEAST_FREE_BYTES, 200), (LEAST_FREE_BYTES - 1, 503), (0, 503), (None, 200)]
)
async def test_a_full_disk_makes_a_worker_unready_and_not_dead(free: int | None, ready: int) -> None:
    """A restart would free no room, so only readiness says it, with the figure."""
    status, body = await respond("/healthz", health, lambda: free)
    assert (status, body["free_bytes"]) == (ready, free)
    assert (await respond("/livez", health, lambda: free))[0] == 200


def test_free_room_is_told_of_a_folder_that_is_there(tmp_path: Path) -> None:
    """What cannot be told is no full disk."""
    assert (free_bytes(tmp_path) or 0) > 0
    assert free_bytes(tmp_path / "none") is None
