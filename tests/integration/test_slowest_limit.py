"""The least rate that the settings accept, on every kind of store."""

from pathlib import Path

import pytest

from providers.errors import RateLimited
from providers.interfaces import SharedStore
from providers.shared.limiter import SharedLimiter
from providers.shared.rates import limits_for_one
from providers.shared.stores.redis_store import RedisSharedStore
from providers.shared.stores.sqlite_store import SqliteSharedStore
from tests.fakes.valkey import running_valkey
from workers.searching import search_limits
from workers.settings.loading import Settings
from workers.settings.sections import SLOWEST_PER_MINUTE, SearchSettings

pytestmark = pytest.mark.integration

LEAST_SHARE = 0.01


async def assert_kept(store: SharedStore, tmp_path: Path) -> None:
    """One call goes, and the next is told to wait, also with the share of one who is alone."""
    searching = SearchSettings(requests_per_minute={"tavily": SLOWEST_PER_MINUTE})
    configured = search_limits(Settings(home=tmp_path, search=searching))
    alone = {f"alone-{name}": limits_for_one(limits, LEAST_SHARE) for name, limits in configured.items()}
    limiter = SharedLimiter(store, {**configured, **alone})
    for service in ("search/tavily", "alone-search/tavily"):
        async with limiter.permit(service, "first") as permit:
            assert not permit.among.alone
        with pytest.raises(RateLimited):
            async with limiter.permit(service, "second"):
                pass
    await store.close()


async def test_a_request_a_week_is_a_limit_like_any_other(tmp_path: Path) -> None:
    """A store keeps the least rate that may be configured, and stays usable for everything else (F16)."""
    await assert_kept(SqliteSharedStore(tmp_path / "shared.sqlite3", durable=False), tmp_path)
    with running_valkey(tmp_path) as server:
        await assert_kept(RedisSharedStore(server.url), tmp_path)
