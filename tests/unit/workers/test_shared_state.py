"""What all workers share, opened from the configuration."""

import asyncio
from pathlib import Path

import pytest
from pydantic import SecretStr

from providers.errors import SharedStateUnavailable
from providers.shared.stores.redis_store import RedisSharedStore
from providers.shared.stores.sqlite_store import SqliteSharedStore
from tests.fakes.valkey import running_valkey
from workers.settings.loading import Settings
from workers.shared_state import SHARED_FILE, SharedState, open_shared_state


def settings(home: Path, redis_url: str | None = None) -> Settings:
    """A configuration with a home."""
    return Settings(home=home, redis_url=None if redis_url is None else SecretStr(redis_url))


async def journalled(state: SharedState, key: str) -> str | None:
    """Make a call through the journal; its answer if it was made before."""
    begun = await state.calls.begin(key, "r-1", 60.0)
    if isinstance(begun, str):
        return begun
    await state.calls.finish(begun, f"answer of {key}")
    return None


async def test_one_file_without_redis(tmp_path: Path) -> None:
    """Two workers of a machine share calls and limits through a file in RESEARCH_HOME, the journal durably (invariant 12)."""
    async with (
        open_shared_state(settings(tmp_path / "home")) as one,
        open_shared_state(settings(tmp_path / "home")) as other,
    ):
        assert await journalled(one, "k") is None
        assert await journalled(other, "k") == "answer of k"
        await one.store.swap("limit", None, b"1")
        assert (await other.store.get("limit")).value == b"1"
        assert isinstance(one.store, SqliteSharedStore)
        assert one.store.path == tmp_path / "home" / SHARED_FILE
    async with open_shared_state(settings(tmp_path / "home")) as again:
        assert await journalled(again, "k") == "answer of k"


async def test_redis_where_it_is_configured(tmp_path: Path) -> None:
    """Workers of several machines, each with its own home, share through Redis; while it is away paid calls wait (F16)."""
    with running_valkey(tmp_path) as valkey:
        one_home, other_home = settings(tmp_path / "one", valkey.url), settings(tmp_path / "other", valkey.url)
        async with open_shared_state(one_home) as one, open_shared_state(other_home) as other:
            assert isinstance(one.store, RedisSharedStore)
            assert await journalled(one, "k") is None
            assert await journalled(other, "k") == "answer of k"
            await asyncio.to_thread(valkey.kill)
            with pytest.raises(SharedStateUnavailable):
                await journalled(one, "l")
