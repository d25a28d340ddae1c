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
from workers.private_files import files_of_person, keep_files_private, repair_home, umask_of_person


def mode(path: Path) -> int:
    """The rights of a file."""
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def person(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A process of a person whose umask is 022."""
    monkeypatch.setattr(private_files, "_umask_of_person", None)
    before = os.umask(0o022)
    keep_files_private()
    yield
    os.umask(before)


def test_what_a_process_creates_is_private(tmp_path: Path, person: None) -> None:
    """Files and folders of the process and of its children are for the owner; calling it twice changes nothing."""
    keep_files_private()
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    subprocess.run([sys.executable, "-c", "open('child', 'w')"], cwd=tmp_path, check=True)
    assert (mode(tmp_path / "folder"), mode(tmp_path / "file"), mode(tmp_path / "child")) == (0o700, 0o600, 0o600)
    assert umask_of_person() == 0o022


def test_reports_have_the_rights_that_the_person_wants(tmp_path: Path, person: None) -> None:
    """What `--out` names is written as the person's other programs would, and what is ours is not."""
    write_atomically(tmp_path / "out" / "report.md", b"text", umask=umask_of_person())
    write_atomically(tmp_path / "ours" / "note", b"text")
    assert (mode(tmp_path / "out"), mode(tmp_path / "out" / "report.md")) == (0o755, 0o644)
    assert (mode(tmp_path / "ours"), mode(tmp_path / "ours" / "note")) == (0o700, 0o600)
    with files_of_person():
        (tmp_path / "download").write_text("")
    assert mode(tmp_path / "download") == 0o644


def old_home(tmp_path: Path) -> Path:
    """A home that everybody can look into, with a link that leads out of it."""
    home = tmp_path / "home"
    (home / "engine").mkdir(parents=True)
    (home / "content" / "ab").mkdir(parents=True)
    (tmp_path / "outside").write_text("")
    (home / "content" / "link").symlink_to(tmp_path / "outside")
    for name in ("engine/temporal.db-wal", "content/ab/cd", "shared.sqlite3", "shared.sqlite3-shm"):
        (home / name).write_text("")
    for path in (home, *home.rglob("*"), tmp_path / "outside"):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() else 0o644)
    return home


def test_an_old_home_is_closed_once(tmp_path: Path) -> None:
    """Everything of ours loses the rights of others, nothing outside does, and the second look finds nothing."""
    home = old_home(tmp_path)
    done = repair_home(home, os.geteuid())
    assert (done.closed, done.foreign, done.shared) == (8, 0, False)
    for path in (home, *home.rglob("*")):
        assert path.is_symlink() or not mode(path) & 0o077, path
    assert mode(tmp_path / "outside") == 0o644
    assert repair_home(home, os.geteuid()).closed == 0


def test_a_folder_with_other_uses_is_not_closed(tmp_path: Path) -> None:
    """Where other things lie, too, only what the product created there is closed."""
    home = old_home(tmp_path)
    (home / "notes.txt").write_text("")
    (home / "notes.txt").chmod(0o644)
    done = repair_home(home, os.geteuid())
    assert done.shared
    assert (mode(home), mode(home / "notes.txt"), mode(home / "engine")) == (0o755, 0o644, 0o700)


def test_a_home_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    """The owner is told, and nothing is changed."""
    home = old_home(tmp_path)
    done = repair_home(home, os.geteuid() + 1)
    assert (done.owner, done.closed) == (os.geteuid(), 0)
    assert mode(home / "engine") == 0o755
