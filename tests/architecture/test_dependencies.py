"""What gets installed: by developers, by the image, and by the tools around both; and what is known against it."""

import ast
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.architecture.repository import ROOT, load_script

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
ALL = "requirements.lock"
PARTS = (
    "requirements-runtime.lock",
    "requirements-semantic.lock",
    "requirements-tracing.lock",
    "requirements-build.lock",
)
LOCKS = (ALL, *PARTS, "requirements-tools.lock")


def normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def locked(file: str) -> dict[str, str]:
    entries = re.split(r"\n(?=[A-Za-z0-9])", (ROOT / file).read_text(encoding="utf-8"))
    return {normalized(entry.split("==")[0]): entry for entry in entries if re.match(r"[A-Za-z0-9._-]+==", entry)}


def pinned(file: str) -> dict[str, str]:
    return {name: entry.split("==")[1].split()[0] for name, entry in locked(file).items()}


def version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text)[:4])


@pytest.mark.parametrize("file", LOCKS)
def test_every_package_is_pinned_with_hashes(file: str) -> None:
    """What is installed is exactly what was locked, with the hashes of its files, from whatever index a machine has."""
    assert [name for name, entry in locked(file).items() if "--hash=sha256:" not in entry] == []
    text = (ROOT / file).read_text(encoding="utf-8")
    assert re.findall(r"://|--(?:extra-)?index-url \S|--find-links", text) == []


def test_the_lock_files_cover_what_the_project_asks_for() -> None:
    """Every dependency is locked at a version that satisfies it, and the image installs the versions that were tested."""
    users = PROJECT["project"]["dependencies"]
    extras = PROJECT["project"]["optional-dependencies"]
    developers = [*users, *extras["dev"], *extras["semantic"], *extras["tracing"]]
    for file, requirements in (
        (ALL, developers),
        (PARTS[1], [*users, *extras["semantic"]]),
        (PARTS[2], [*users, *extras["tracing"]]),
        (LOCKS[-1], PROJECT["dependency-groups"]["tools"]),
    ):
        for requirement in requirements:
            name, _, least = requirement.partition(">=")
            found = pinned(file).get(normalized(name))
            assert found is not None, f"{name} is not locked: run make lock"
            assert version(found) >= version(least), f"{name} is locked too old: run make lock"
    only = [*extras["semantic"], *extras["tracing"]]
    assert not {normalized(one.partition(">=")[0]) for one in only} & pinned(PARTS[0]).keys()
    for part in PARTS:
        assert pinned(part).items() <= pinned(ALL).items(), "run make lock"


@pytest.mark.parametrize("file", ["Makefile", "deploy/Dockerfile"])
def test_everything_is_installed_by_hash(file: str) -> None:
    """No recipe takes a package that was not locked; the project itself is installed without its dependencies."""
    lines = (ROOT / file).read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    installs = [part for line in lines for part in line.split("&&") if re.search(r"\bpip\b.* install ", part)]
    assert installs
    assert [part for part in installs if not re.search(r"--require-hashes|--no-index|--no-deps -e \.", part)] == []


CLEAN = {"name": "a", "version": "1", "vulns": []}
FLAWED = {"name": "a", "version": "1", "vulns": [{"id": "ADVISORY-1", "fix_versions": ["2.0"]}]}
UNKNOWN = [{"name": name, "skip_reason": "x"} for name in "abcdefgh"]
NO_DATABASE = "not reachable: Name or service not known"


@pytest.mark.parametrize(
    ("answer", "code", "words"),
    [
        ({"dependencies": [CLEAN]}, 0, "nothing is known against its 1 packages"),
        ({"dependencies": [FLAWED]}, 1, "a 1: ADVISORY-1, mended in 2.0"),
        ({"dependencies": [FLAWED, UNKNOWN[0]]}, 1, "ADVISORY-1"),
        ({"dependencies": [CLEAN, UNKNOWN[0]]}, 3, "1 of 2 packages"),
        ({"dependencies": UNKNOWN}, 3, "(a, b, c, d, e …)"),
        ({"dependencies": []}, 3, "0 of 0 packages"),
        ({}, 3, NO_DATABASE),
        ([], 3, NO_DATABASE),
        (None, 3, NO_DATABASE),
    ],
)
def test_only_what_was_looked_up_and_is_clean_counts_as_clean(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    answer: Any,
    code: int,
    words: str,
) -> None:
    """pip-audit calls packages clean that it could not look up, also without its database: `make audit-dependencies`
    calls them unknown, with an exit code of their own.
    """
    script, program = load_script(ROOT / "deploy" / "audit_dependencies.py"), tmp_path / "pip-audit"
    monkeypatch.setattr(script, "PROGRAM", program)
    (tmp_path / "output").write_text("" if answer is None else json.dumps(answer))
    (tmp_path / "error").write_text("Traceback\nName or service not known" if words == NO_DATABASE else "")
    ending = 0 if code != 1 and words != NO_DATABASE else 1
    program.write_text(f'#!/bin/sh\ncd "$(dirname "$0")" && cat output && cat error >&2\nexit {ending}\n')
    program.chmod(0o755)
    assert script.audit("some.lock", []) == code
    shown = capsys.readouterr()
    assert words in (shown.err if code else shown.out)


def test_commands_import_what_does_the_work_only_when_they_do_it() -> None:
    """The pools' composition takes half a second, so of all commands only those that always need it import it at once."""
    importers = set()
    for path in sorted((ROOT / "client").rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ImportFrom) and node.module == "workers.composition":
                importers.add(path.stem)
    assert importers == {"doctor", "trials"}
