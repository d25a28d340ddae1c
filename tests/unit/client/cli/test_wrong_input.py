"""Wrong input at the command line: one clear answer each, nothing is started for it."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from client.cli.app import app


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a document, and a data folder of its own."""
    (tmp_path / "manual").mkdir()
    (tmp_path / "manual" / "vacuum.md").write_text("# Vacuum\n\nVacuum removes dead rows.\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["run", ""], 2, "the question is empty"),
        (["run", "Why?"], 7, "--corpus"),
        (["run", "Why?", "--corpus", "nowhere"], 2, "no folder and no corpus 'nowhere'"),
        (["run", "Why?", "--corpus", "manual/vacuum.md"], 2, "is a file"),
        (["run", "Why?", "--corpus", "manual", "--web"], 2, "web: not available yet"),
        (["run", "Why?", "--corpus", "manual", "--strategy", "living"], 2, "strategy: not available yet"),
        (["run", "Why?", "--corpus", "manual", "--set", "limits.nothing=1"], 2, "limits.max_iterations"),
        (["run", "--request", "nothing.json"], 2, "no such file"),
        (["run", "Why?", "--corpus", "manual", "--id", "../x"], 2, "--id takes"),
        (["status", "unknown"], 2, "research list"),
        (["report", "unknown", "--format", "docx"], 2, "--format knows"),
        (["corpus", "status", "unknown"], 2, "research corpus list"),
        (["search", "x"], 2, "--corpus"),
        (["worker", "--pool", "nonsense"], 2, "no pool is called nonsense"),
    ],
)
def test_wrong_input_gets_one_clear_answer(folder: Path, arguments: list[str], code: int, words: str) -> None:
    """What to do next, the right exit code, nothing on standard output, no engine, no crash file (X-1)."""
    home = folder / "home"
    done = CliRunner().invoke(app, arguments, env={"RESEARCH_HOME": str(home), "TEMPORAL_ADDRESS": ""})
    assert (done.exit_code, done.stdout) == (code, "")
    assert words in done.stderr
    assert not (home / "engine").exists()
    assert not (home / "crashes").exists()
