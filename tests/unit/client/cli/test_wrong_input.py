"""Wrong input at the command line: one clear answer each, nothing is started for it."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from client.cli.app import app

NO_MODEL = ("--model", "m", "--model-url", "http://127.0.0.1:1")
"""An endpoint that nobody serves."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a document, and a data folder of its own."""
    (tmp_path / "manual").mkdir()
    (tmp_path / "manual" / "vacuum.md").write_text("# Vacuum\n\nVacuum removes dead rows.\n")
    (tmp_path / "deep.json").write_text("[" * 100_000)
    with (tmp_path / "huge.json").open("wb") as file:
        file.truncate(1_000_000_000)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["run", ""], 2, "the question is empty"),
        (["run", "Why?", "--set", "web=false"], 7, "--corpus"),
        (["run", "Why?", "--set", "search.providers=tavily"], 7, "TAVILY_API_KEY"),
        (["run", "Why?", "--set", "search.providers=altavista"], 2, "no search provider is called altavista"),
        (["run", "Why?", "--set", "search.source_types=blogs"], 2, "search.source_types.0"),
        (["run", "Why?", "--set", "constraints.timeframe=recently"], 2, "such as 2023-05..2024"),
        (["run", "Why?", "--corpus", "nowhere"], 2, "no folder and no corpus 'nowhere'"),
        (["run", "Why?", "--corpus", "manual/vacuum.md"], 2, "is a file"),
        (
            ["run", "Why?", "--corpus", "manual", "--set", "output.language=German"],
            2,
            "output.language: must be `same as question`, or a language code",
        ),
        (["run", "Why?", "--corpus", "manual", "--strategy", "living"], 2, "strategy: not available yet"),
        (["run", "Why?", "--corpus", "manual", "--strategy", "living"], 2, "choose supervisor, reflective or orche"),
        (["run", "Why?", "--corpus", "manual", "--set", "limits.nothing=1"], 2, "limits.max_iterations"),
        (["run", "--request", "nothing.json"], 2, "no such file"),
        (["run", "Why?", "--corpus", "manual", "--id", "../x"], 2, "--id takes"),
        (["status", "unknown"], 2, "research list"),
        (["report", "unknown", "--format", "docx"], 2, "--format is one of"),
        (["corpus", "status", "unknown"], 2, "research corpus list"),
        (["search", "x"], 2, "--corpus NAME or --provider NAME"),
        (["search", " "], 2, "the query is empty"),
        (["search", "x" * 20_000, "--provider", "wikipedia"], 2, "at most 2,000 characters"),
        (["run", "Why?", "--corpus", "/"], 2, "root of the file system"),
        (["run", "Why?", "--corpus", "/proc/self"], 2, "kernel files and no documents"),
        (["corpus", "add", "/dev"], 2, "kernel files and no documents"),
        (["corpus", "add", "manual/vacuum.md"], 2, "is a file"),
        (["run", "Why?", "--corpus", "a\0b"], 2, "no folder and no corpus"),
        (["run", "Why?", "--corpus", "x" * 100_000], 2, "…'; no corpus is registered"),
        (["run", "Why?", "--corpus", "manual", "--out", "manual/vacuum.md/x"], 4, "choose another --out"),
        (["run", "--request", "deep.json"], 2, "nested too deeply"),
        (["run", "--request", "huge.json"], 2, "larger than"),
        (["run", "--request", "manual"], 2, "is a folder"),
        (["status", "../../x"], 2, "research list"),
        (["status", "\x1b[2J"], 2, "\\x1b[2J"),
        (["resume", ""], 2, "no run ''"),
        (["audit", ""], 2, "no run ''"),
        (["audit", "deep.json"], 2, "is not a report.json"),
        (["run", "Why?", "--corpus", "manual", "--model", "m"], 2, "set ANTHROPIC_API_KEY, or name its endpoint"),
        (["run", "Why?", "--corpus", "manual", *NO_MODEL], 7, "the model endpoint 127.0.0.1:1 cannot be used now"),
        (["run", "Why?", "--corpus", "manual", *NO_MODEL, "--quiet"], 7, "check --model-url or ANTHROPIC_BASE_URL"),
        (["run", "Why?", "--corpus", "manual", *NO_MODEL, "--dry-run"], 7, "or use no model: --engine extractive"),
        (["serve", "--health-port", "99999"], 2, "--health-port"),
        (["serve", "--log-format", "xml"], 2, "--log-format"),
        (["worker", "--log-format", "xml"], 2, "--log-format"),
        (["worker", "--pool", "nonsense"], 2, "no pool is called nonsense"),
    ],
)
def test_wrong_input_gets_one_clear_answer(folder: Path, arguments: list[str], code: int, words: str) -> None:
    """What to do next, the right exit code, nothing on standard output, no engine, no crash file."""
    home = folder / "home"
    done = CliRunner().invoke(app, arguments, env={"RESEARCH_HOME": str(home), "TEMPORAL_ADDRESS": ""})
    assert (done.exit_code, done.stdout) == (code, "")
    assert words in done.stderr
    assert not (home / "engine").exists()
    assert not (home / "crashes").exists()


def test_a_data_folder_that_cannot_be_written_is_told(folder: Path) -> None:
    """One line that names the folder and the variable; nothing was started."""
    home = folder / "manual" / "vacuum.md" / "home"
    done = CliRunner().invoke(app, ["serve"], env={"RESEARCH_HOME": str(home), "TEMPORAL_ADDRESS": ""})
    assert (done.exit_code, done.stdout) == (4, "")
    assert "cannot be written: not a directory; set RESEARCH_HOME" in done.stderr


@pytest.fixture
def endpoint() -> Iterator[str]:
    """The address of a model endpoint that takes connections; it is asked nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


def test_a_dry_run_starts_nothing(folder: Path, endpoint: str) -> None:
    """The effective request and what it may cost: for a person, and as one JSON document."""
    environment = {
        "RESEARCH_HOME": str(folder / "home"),
        "TEMPORAL_ADDRESS": "",
        "RESEARCH_MODEL": "unheard-of",
        "ANTHROPIC_BASE_URL": endpoint,
    }
    arguments = ["run", "Why?", "--corpus", "manual", "--set", "limits.max_iterations=2", "--dry-run"]
    told = CliRunner().invoke(app, arguments, env=environment)
    assert told.exit_code == 0
    assert "cost unknown (no price for unheard-of)" in told.stdout
    assert "2 iterations" in told.stdout
    assert "model unheard-of" in told.stdout
    document = json.loads(CliRunner().invoke(app, [*arguments, "--json"], env=environment).stdout)
    assert document["request"]["limits"] == {"max_iterations": 2}
    assert (document["engine"], document["estimate"]["cost_usd"]) == ("model", None)
    assert not (folder / "home" / "engine").exists()


@pytest.mark.parametrize("arguments", [["run", "Why?"], ["run", "Why?", "--dry-run"], ["run", "Why?", "--quiet"]])
def test_nobody_to_search_with_is_found_out_before_anything_starts(folder: Path, arguments: list[str]) -> None:
    """Providers that cannot be reached are named with the reason, and what else could be set up (S0-102)."""
    home = folder / "home"
    silent = dict.fromkeys(("WIKIPEDIA_BASE_URL", "SEMANTIC_SCHOLAR_BASE_URL", "SEARXNG_URL"), "http://127.0.0.1:1")
    environment = {"RESEARCH_HOME": str(home), "TEMPORAL_ADDRESS": "", **silent}
    done = CliRunner().invoke(app, arguments, env=environment)
    assert (done.exit_code, done.stdout) == (7, "")
    for words in ("searxng: 127.0.0.1 is not reachable at port 1", "wikipedia: ", "set TAVILY_API_KEY", "--corpus DIR"):
        assert words in done.stderr
    assert "searching with" not in done.stderr
    assert not (home / "engine").exists()
