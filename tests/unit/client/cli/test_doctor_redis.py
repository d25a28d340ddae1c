"""What `doctor` says of a real Redis in each kind of trouble."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from client.cli.doctor import Check, Grade, shared_state
from tests.fakes.valkey import ValkeyServer, free_port, running_valkey
from workers.settings.loading import Settings

USER = ("ACL", "SETUSER", "worker", "reset", "on", ">secret")


@pytest.fixture
def valkey(tmp_path: Path) -> Iterator[ValkeyServer]:
    """A server of this test alone: it will not be the same afterwards."""
    with running_valkey(tmp_path) as server:
        yield server


async def checked(url: str) -> Check:
    """What is said of a server."""
    return await shared_state(Settings(redis_url=SecretStr(url)))


async def test_a_server_that_is_well_is_left_as_it_was(valkey: ValkeyServer) -> None:
    """What is written to find out whether it takes changes goes by itself."""
    assert await checked(valkey.url) == Check("shared", Grade.OK, "Redis (takes changes)")
    (key,) = await valkey.tell("KEYS", "*")
    assert 0 < await valkey.tell("PTTL", key) <= 5_000


@pytest.mark.parametrize(
    ("trouble", "found", "remedy"),
    [
        (("CONFIG", "SET", "maxmemory-policy", "noeviction", "maxmemory", "1"), "full", "research delete"),
        (("REPLICAOF", "127.0.0.1", "1"), "replica", "the primary"),
        (("CONFIG", "SET", "min-replicas-to-write", "1"), "too few replicas", "min-replicas-to-write"),
        (("CONFIG", "SET", "requirepass", "secret"), "password", "REDIS_URL"),
    ],
)
async def test_a_server_that_takes_no_changes_is_told_by_its_trouble(
    valkey: ValkeyServer, trouble: tuple[str, ...], found: str, remedy: str
) -> None:
    """It can be reached and read, and is of no use to workers all the same: what it is, and what to do (F16)."""
    await valkey.tell(*trouble)
    check = await checked(valkey.url)
    assert check.grade is Grade.FAIL
    assert found in check.found
    assert remedy in check.remedy


@pytest.mark.parametrize(
    "rights", [("~other:*", "+@all"), ("~research:*", "+@all", "-@scripting"), ("~research:*", "+@all", "-set")]
)
async def test_a_user_without_the_rights(valkey: ValkeyServer, rights: tuple[str, ...]) -> None:
    """A forbidden key, command, or command within a script: the remedy lists what to allow."""
    await valkey.tell(*USER, *rights)
    check = await checked(f"redis://worker:secret@127.0.0.1:{valkey.port}")
    assert check.grade is Grade.FAIL
    assert "forbids" in check.found
    assert "+eval" in check.remedy


async def test_the_rights_that_the_remedy_names_are_enough(valkey: ValkeyServer) -> None:
    """A user who may do no more than that, and so not ask for the eviction policy, is well off."""
    await valkey.tell(*USER, "~other:*")
    worker = f"redis://worker:secret@127.0.0.1:{valkey.port}"
    remedy = (await checked(worker)).remedy
    await valkey.tell(*USER, *(word.strip(";") for word in remedy.split() if word[0] in "~+"))
    assert (await checked(worker)).grade is Grade.OK


async def test_a_server_that_evicts(valkey: ValkeyServer) -> None:
    """What was paid for would be thrown away: a warning that names the setting."""
    await valkey.tell("CONFIG", "SET", "maxmemory-policy", "allkeys-lru", "maxmemory", "100mb")
    check = await checked(valkey.url)
    assert check.grade is Grade.WARN
    assert "allkeys-lru" in check.found
    assert "noeviction" in check.remedy


async def test_a_server_that_is_gone() -> None:
    """The address is what to look at."""
    check = await checked(f"redis://127.0.0.1:{free_port()}")
    assert (check.grade, check.found) == (Grade.FAIL, "Redis cannot be used: ConnectionError")
    assert "REDIS_URL" in check.remedy
