"""Many workers against a service that can do less than they want: nobody floods it, and every call is answered."""

from pathlib import Path

import pytest

from tests.acceptance.storm import assert_polite, storm
from tests.fakes.throttled_api import ThrottledApi
from tests.fakes.valkey import running_valkey

pytestmark = [pytest.mark.acceptance, pytest.mark.soak]

RETRY_AFTER = 2
CALLS = 180
CAPACITY = 30


async def test_a_storm_of_refusals_is_over_soon(tmp_path: Path) -> None:
    """Four processes of ten slots, no limit known: at most a fifth more requests than calls, none in a pause.

    The service takes thirty at once; the workers share one SQLite file (F7).
    """
    async with ThrottledApi("concurrent", CAPACITY, 0.5, RETRY_AFTER) as api:
        seen = await storm(api, str(tmp_path / "shared.sqlite"), calls=CALLS)
    assert_polite(seen, RETRY_AFTER)


async def test_a_storm_is_over_soon_in_a_cluster_too(tmp_path: Path) -> None:
    """The same with a service that takes thirty a second, and workers that share a Redis (F7)."""
    with running_valkey(tmp_path) as server:
        async with ThrottledApi("window", CAPACITY, 0.2, RETRY_AFTER) as api:
            seen = await storm(api, server.url, calls=CALLS)
    assert_polite(seen, RETRY_AFTER)
