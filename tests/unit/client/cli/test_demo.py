"""The documents of the demo, and the commands that it names at its end."""

import platform
from pathlib import Path

import pytest

from client.cli.demo import DOCUMENTS, _next_commands
from client.cli.output import CommandError
from client.cli.python_documents import MARKER, write_documents
from workers.settings.loading import load_settings


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    pages = folder.rglob("*.txt")
    return {page.relative_to(folder).as_posix(): (page.read_bytes(), page.stat().st_mtime_ns) for page in pages}


@pytest.mark.soak
def test_the_documents_hold_the_language_and_the_library_and_are_repeated_without_a_trace(tmp_path: Path) -> None:
    """Both kinds of pages are there, with headings and with text that a question can be answered from.

    A second call writes nothing; that of another Python leaves equal files alone, so that an index stays valid, and
    removes a page that no longer belongs.
    """
    folder = tmp_path / DOCUMENTS
    assert write_documents(folder)
    before = contents(folder)
    assert len(before) > 200
    statements = before["language/compound.txt"][0].decode()
    assert '\nThe "with" statement\n====' in statements
    assert "__exit__" in statements
    assert "class Condition\n-----" in before["library/threading.txt"][0].decode()
    (folder / "library" / "gone.txt").write_text("gone")
    assert not write_documents(folder)
    (folder / MARKER).write_text("Python 3.0\n")
    assert write_documents(folder)
    assert contents(folder) == before
    assert (folder / MARKER).read_text() == f"Python {platform.python_version()}\n"


def test_a_folder_of_another_account_is_not_changed(tmp_path: Path) -> None:
    """A folder with other files is refused: nothing in it is removed or overwritten."""
    own = tmp_path / "notes.txt"
    own.write_text("mine")
    with pytest.raises(CommandError, match="has other files"):
        write_documents(tmp_path)
    assert list(tmp_path.iterdir()) == [own]


def test_the_commands_to_type_next_work_where_the_runs_of_the_demo_are_stored(tmp_path: Path) -> None:
    """With a cluster or a store that hosts share, the demo's runs are not in it, so no command names their id."""
    home = {"RESEARCH_HOME": str(tmp_path)}
    here = load_settings(environment=home, user_folder=tmp_path)
    assert [command for command, _ in _next_commands(here, "r-1", tmp_path)][:2] == [
        "research open r-1",
        "research audit r-1",
    ]
    for elsewhere in ({"TEMPORAL_ADDRESS": "example.org:7233"}, {"RESEARCH_CONTENT_URL": "s3://bucket"}):
        shared = load_settings(environment=home | elsewhere, user_folder=tmp_path)
        commands = [command for command, _ in _next_commands(shared, "r-1", tmp_path)]
        assert len(commands) == 3
        assert not any("r-1" in command for command in commands)
