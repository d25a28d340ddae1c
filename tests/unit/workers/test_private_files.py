"""Who may look into the home: its owner alone; what a person asked for keeps the person's own rights."""

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from client.cli.reports import write_atomically
from workers import private_files
from workers.private_files import files_of_person, restrict_files_to_owner, umask_of_person


def mode(path: Path) -> int:
    """The rights of a file."""
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def person(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A process of a person whose umask is 022."""
    monkeypatch.setattr(private_files, "_umask_of_person", None)
    before = os.umask(0o022)
    restrict_files_to_owner()
    yield
    os.umask(before)


def test_what_a_process_creates_is_private(tmp_path: Path, person: None) -> None:
    """Files and folders of the process and of its children are for the owner; calling it twice changes nothing."""
    restrict_files_to_owner()
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    subprocess.run([sys.executable, "-c", "open('child', 'w')"], cwd=tmp_path, check=True)
    assert (mode(tmp_path / "folder"), mode(tmp_path / "file"), mode(tmp_path / "child")) == (0o700, 0o600, 0o600)
    assert umask_of_person() == 0o022


def test_reports_have_the_rights_that_the_person_wants(tmp_path: Path, person: None) -> None:
    """What `--out` names is written as the person's other programs would, and what is ours is not."""
    with files_of_person():
        write_atomically(tmp_path / "out" / "report.md", b"text")
    write_atomically(tmp_path / "ours" / "note", b"text")
    assert (mode(tmp_path / "out"), mode(tmp_path / "out" / "report.md")) == (0o755, 0o644)
    assert (mode(tmp_path / "ours"), mode(tmp_path / "ours" / "note")) == (0o700, 0o600)
    with files_of_person():
        (tmp_path / "download").write_text("")
    assert mode(tmp_path / "download") == 0o644
