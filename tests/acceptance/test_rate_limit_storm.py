"""Many workers against a service that can do less than they want: nobody floods it, and every call is answered."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.storm import Storm, storm
from tests.fakes.throttled_api import Kind, ThrottledApi
from tests.fakes.valkey import running_valkey

pytestmark = pytest.mark.acceptance

RETRY_AFTER = 2
CALLS = 200


@pytest.fixture(params=["sqlite", "valkey"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """One store that all worker processes share."""
    if request.param == "sqlite":
        yield str(tmp_path / "shared.sqlite")
        return
    with running_valkey(tmp_path) as server:
        yield server.url


@pytest.mark.parametrize(
    ("kind", "capacity", "service_seconds"), [("concurrent", 20, 0.5), ("window", 25, 0.2)], ids=["at once", "a second"]
)
async def test_a_storm_of_refusals_is_over_after_one(
    store: str, kind: Kind, capacity: int, service_seconds: float
) -> None:
    """Four processes of ten slots, no limit known: at most a fifth more requests than calls, none in a pause (F7)."""
    async with ThrottledApi(kind, capacity, service_seconds, RETRY_AFTER) as api:
        seen = await storm(api, store, calls=CALLS)
    assert_polite(seen, RETRY_AFTER)


def assert_polite(seen: Storm, retry_after: float) -> None:
    """What has to be true of every storm."""
    assert seen.answered == seen.needed, seen
    assert seen.refused > 0, f"the service was never asked too much: {seen}"
    assert seen.requests <= 1.2 * seen.needed, seen
    assert not seen.too_early, seen
    assert max(seen.probes) <= retry_after + max(0.1 * retry_after, 1.1), seen
