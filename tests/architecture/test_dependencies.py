"""What gets installed."""

import re
import tomllib

from tests.architecture.repository import ROOT

LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def normalized(name: str) -> str:
    """A package name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def locked() -> dict[str, str]:
    """Package → its whole entry in the lock file."""
    entries = re.split(r"\n(?=[A-Za-z0-9])", LOCK)
    return {normalized(entry.split("==")[0]): entry for entry in entries if re.match(r"[A-Za-z0-9._-]+==", entry)}


def version(text: str) -> tuple[int, ...]:
    """The numbers of a version."""
    return tuple(int(part) for part in re.findall(r"\d+", text)[:4])


def test_every_package_is_pinned_with_hashes() -> None:
    """What is installed is exactly what was locked: one version each, and the hashes of its files."""
    assert len(locked()) > 50
    assert [name for name, entry in locked().items() if "--hash=sha256:" not in entry] == []


def test_the_lock_file_names_no_index() -> None:
    """The lock file works with whatever index a machine is configured for."""
    assert re.findall(r"://|--(?:extra-)?index-url \S|--find-links", LOCK) == []


def test_the_lock_file_covers_what_the_project_asks_for() -> None:
    """Every dependency of pyproject.toml is locked at a version that satisfies it."""
    wanted = [*PROJECT["project"]["dependencies"], *PROJECT["project"]["optional-dependencies"]["dev"]]
    for requirement in wanted:
        name, _, least = requirement.partition(">=")
        entry = locked().get(normalized(name))
        assert entry is not None, f"{name} is not locked: run make lock"
        assert version(entry.split("==")[1].split()[0]) >= version(least), f"{name} is locked too old: run make lock"
