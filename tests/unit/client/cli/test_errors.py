"""Errors at the edge of the command."""

from pathlib import Path

import pytest

from client.cli.command_errors import CommandError, explain, run_guarded, write_crash_file
from client.client_errors import NoWorker, RunClosed, RunUnknown
from providers.errors import CorpusUnknown, StorageFull
from workers.dev_server import ServerError
from workers.settings.loading import SettingsError


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (CommandError("x"), 2),
        (RunUnknown("x"), 2),
        (RunClosed("x"), 2),
        (NoWorker("x"), 4),
        (SettingsError("x"), 2),
        (ServerError("x"), 4),
        (CorpusUnknown("x"), 2),
        (StorageFull("x"), 4),
        (PermissionError(13, "Permission denied", "/some/where"), 4),
    ],
)
def test_expected_errors_have_a_line_and_a_code(error: Exception, code: int) -> None:
    """No traceback, no crash file."""
    explained = explain(error)
    assert explained is not None
    assert explained[1] == code
    assert explained[0]


def test_an_unforeseen_error_writes_a_crash_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line with the path on standard error, the traceback in the file, exit code 1."""

    def broken() -> int:
        raise KeyError("surprise")

    assert run_guarded(broken, lambda: tmp_path) == 1
    captured = capsys.readouterr()
    (path,) = (tmp_path / "crashes").iterdir()
    assert captured.err.splitlines() == [f"research: internal error (KeyError); details: {path}"]
    assert "surprise" in path.read_text()
    assert captured.out == ""


def test_a_crash_file_that_cannot_be_written_is_no_second_crash(tmp_path: Path) -> None:
    """The home may be the very problem."""
    blocked = tmp_path / "file"
    blocked.touch()
    assert write_crash_file(ValueError("x"), blocked) is None


def test_ctrl_c_outside_of_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 5 and no traceback."""

    def interrupted() -> int:
        raise KeyboardInterrupt

    assert run_guarded(interrupted, lambda: tmp_path) == 5
    assert "Traceback" not in capsys.readouterr().err
