"""Commands that read, while a cluster is configured and does not answer."""

from pathlib import Path

import pytest
from pydantic import SecretStr

from client.cli.command_context import CommandContext
from client.cli.listing import _rows
from client.cli.show import _status
from client.cli.stores import open_stores
from contracts.vocabulary import RunStatus
from tests.unit.client.cli.test_context import state
from workers.settings.loading import Settings
from workers.temporal import ServerUnreachableError

NOBODY = "127.0.0.1:1"


def settings(home: Path) -> Settings:
    """A cluster at an address where nothing listens."""
    return Settings(home=home, temporal_variables={"TEMPORAL_ADDRESS": SecretStr(NOBODY)})


async def test_what_is_stored_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run that may go on is of unknown status, never called interrupted; the silence is told of once."""
    async with open_stores(settings(tmp_path)) as stores:
        going_on = state(status=RunStatus.RUNNING)
        await stores.sessions.save("r", going_on.model_dump_json(), closed=False)
        context = CommandContext(settings(tmp_path), stores, reads_only=True)
        (row,) = await _rows(context)
        status, note = await _status(context, await context.resolve("r"))
    assert (row.status, row.query) == ("unknown", "Why?")
    assert (status.status, note) == (RunStatus.RUNNING, "")
    assert capsys.readouterr().err.count(NOBODY) == 1


async def test_a_command_that_needs_the_server_says_that_it_is_away(tmp_path: Path) -> None:
    """Nothing is done by halves."""
    async with open_stores(settings(tmp_path)) as stores:
        with pytest.raises(ServerUnreachableError, match=NOBODY):
            await CommandContext(settings(tmp_path), stores).server_runs()
