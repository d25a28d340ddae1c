"""Files of a report on disk."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from client.cli.report_files import default_folder, slug, write_all, write_atomically

TODAY = datetime(2026, 11, 21, tzinfo=UTC)


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("How does PostgreSQL prevent transaction ID wraparound?", "how-does-postgresql-prevent-transaction-id"),
        ("Über Äpfel & Öl?", "uber-apfel-ol"),
        ("什么是数据库?", "report"),
        ("../../etc/passwd", "etc-passwd"),
        ("x" * 80, "x" * 48),
    ],
)
def test_a_slug_is_a_plain_short_name(question: str, name: str) -> None:
    """Nothing of a question can leave the folder."""
    assert slug(question) == name


def test_another_runs_report_is_not_overwritten(tmp_path: Path) -> None:
    """The same question on the same day gets a folder of its own; the same run its own again."""
    first = default_folder("Why?", "r-20261121-aaaa", TODAY, tmp_path)
    write_all(first, {"json": json.dumps({"research_id": "r-20261121-aaaa"}).encode()})
    assert first == tmp_path / "reports" / "2026-11-21-why"
    assert default_folder("Why?", "r-20261121-aaaa", TODAY, tmp_path) == first
    assert default_folder("Why?", "r-20261121-bbbb", TODAY, tmp_path).name == "2026-11-21-why-bbbb"


def test_a_file_is_whole_or_not_there(tmp_path: Path) -> None:
    """A target that cannot be replaced leaves nothing half written beside it."""
    target = tmp_path / "report.md"
    target.mkdir()
    (target / "x").touch()
    with pytest.raises(OSError, match=r"report\.md"):
        write_atomically(target, b"text")
    assert [path.name for path in tmp_path.iterdir()] == ["report.md"]


def test_writing_replaces(tmp_path: Path) -> None:
    """A second report of the same run replaces the first, readable for others as any file of the person."""
    paths = write_all(tmp_path / "out", {"md": b"old", "html": b"h"})
    write_all(tmp_path / "out", {"md": b"new"})
    assert paths["md"].read_bytes() == b"new"
    assert paths["md"].stat().st_mode & 0o400
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["report.html", "report.md"]
