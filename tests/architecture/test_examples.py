"""The example that the demo rests on, and the scripts around it."""

import subprocess
import sys
from pathlib import Path

from tests.architecture.repository import ROOT

SCRIPT = ROOT / "examples" / "export_python_docs.py"


def export(folder: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *flags, str(SCRIPT), str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    pages = folder.rglob("*.txt")
    return {page.relative_to(folder).as_posix(): (page.read_bytes(), page.stat().st_mtime_ns) for page in pages}


def test_the_export_holds_the_language_and_the_library_and_is_repeated_without_a_trace(tmp_path: Path) -> None:
    """Both kinds of pages are there, with headings and with text that a question can be answered from.

    A second export leaves the files alone, so that an index stays valid, and removes a page that no longer belongs.
    """
    folder = tmp_path / "docs"
    made = export(folder, "-W", "error")
    assert made.returncode == 0, made.stderr
    before = contents(folder)
    assert f"{len(before)} documents" in made.stdout
    assert len(before) > 200
    statements = before["language/compound.txt"][0].decode()
    assert '\nThe "with" statement\n====' in statements
    assert "__exit__" in statements
    assert "class Condition\n-----" in before["library/threading.txt"][0].decode()
    (folder / "library" / "gone.txt").write_text("gone")
    assert export(folder).returncode == 0
    assert contents(folder) == before


def test_a_folder_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    """A folder with other files is refused: nothing in it is removed or overwritten."""
    own = tmp_path / "notes.txt"
    own.write_text("mine")
    result = export(tmp_path)
    assert result.returncode == 2
    assert "not made by this script" in result.stderr
    assert list(tmp_path.iterdir()) == [own]


def test_make_help_teaches_every_target() -> None:
    """`make` alone shows what there is; no target is hidden."""
    shown = subprocess.run(["make", "-s", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    makefile = (ROOT / "Makefile").read_text()
    phony = next(line for line in makefile.splitlines() if line.startswith(".PHONY: help"))
    assert all(f"make {target}" in shown for target in phony.split()[2:])
