"""Wrong input at the command line: one message with the problem and the remedy, and nothing is started for it."""

import json
import os
from pathlib import Path

import pytest

from tests.unit.client.cli.command_line import research

NO_MODEL = ("--model", "m", "--model-url", "http://127.0.0.1:1")
"""An endpoint where nothing listens."""
RUN = ("run", "Why?", "--corpus", "manual")


@pytest.fixture
def folder(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a document and odd files, beside an empty home."""
    place = home.parent
    (place / "manual").mkdir()
    (place / "manual" / "vacuum.md").write_text("# Vacuum\n\nVacuum removes dead rows.\n")
    (place / os.fsdecode(b"m\xff")).mkdir()
    (place / "deep.json").write_text("[" * 100_000)
    (place / "bad.zip").write_text("no archive")
    (place / "odd.json").write_bytes(b"\xff\xfe\x00")
    (place / "margin.toml").write_text("[tokens]\ntoken_safety_margin = 1\n")
    (place / "misspelt.json").write_text('{"qury": "q"}')
    (place / "broken.json").write_text('{"query": "q",\n')
    (place / "address.json").write_text('{"query": "q", "models": {"base_url": "http://192.0.2.1"}}')
    with (place / "huge.json").open("wb") as file:
        file.truncate(1_000_000_000)
    monkeypatch.chdir(place)
    return place


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["run", ""], 2, "the question is empty"),
        (["run", "Why?", "--set", "web=false"], 7, "--corpus"),
        (["run", "Why?", "--set", "search.providers=tavily"], 7, "TAVILY_API_KEY"),
        (["run", "Why?", "--set", "search.providers=altavista"], 2, "altavista"),
        (["run", "Why?", "--corpus", "nowhere"], 2, "no folder and no corpus 'nowhere'"),
        (["run", "Why?", "--corpus", "manual/vacuum.md"], 2, "is a file"),
        ([*RUN, "--set", "limits.max_iteration=1"], 2, "limits.max_iteration: unknown key: is max_iterations meant?"),
        (["run", "--request", "misspelt.json"], 2, "qury: unknown key: is query meant?"),
        (["run", "--request", "broken.json"], 2, "broken.json is not valid JSON: expecting"),
        (["run", "--request", "broken.json"], 2, " at line 2, column 1"),
        ([*RUN, "--config", "manual"], 2, "manual: cannot be read: is a directory"),
        ([*RUN, "--set", "metadata={"], 2, "write the value as JSON"),
        ([*RUN, "--set", f"metadata={'[' * 50_000}"], 2, "write the value as JSON"),
        (["run", "--request", "nothing.json"], 2, "no such file"),
        (["run", "--request", "deep.json"], 2, "one JSON object"),
        (["run", "--request", "huge.json"], 2, "of at most"),
        (["run", "--request", "address.json"], 2, "models.base_url: unknown key"),
        ([*RUN, "--id", "../x"], 2, "up to 64 letters"),
        ([*RUN, "--out", "manual/vacuum.md/x"], 4, "choose another --out"),
        ([*RUN, "--model", "m"], 2, "name one with --model-url URL, or set ANTHROPIC_API_KEY"),
        ([*RUN, *NO_MODEL], 7, "no model endpoint answers: 127.0.0.1 is not reachable at port 1 ("),
        ([*RUN, "--config", "nothing.toml"], 2, "nothing.toml: there is no such file"),
        ([*RUN, "--config", "margin.toml"], 2, "tokens.token_safety_margin: Input should be less than 1"),
        (["report", "last", "--json"], 2, "--json needs --include-metadata"),
        (["run", "Why?", "--corpus", "x" * 100_000], 2, "…'; no corpus is registered"),
        (["run", "Why?", "--corpus", "m\udcff"], 2, "is not valid UTF-8"),
        (["corpus", "add", "/dev"], 2, "belongs to the system"),
        (["corpus", "add", "manual", "--name", "../x"], 2, "up to 64 letters"),
        (["corpus", "status", "unknown"], 2, "research corpus list"),
        (["status", "../../x"], 2, "research list"),
        (["status", "\x1b[2J"], 2, "\\x1b[2J"),
        (["status", "last"], 2, "there is no run yet"),
        (["refresh", "last"], 2, "there is no run yet"),
        (["refresh", "last", "--every", "9m"], 2, "--every takes a time from 10m to 366d"),
        (["refresh", "last", "--every", "daily"], 2, "--every takes a time from 10m to 366d"),
        (["diff", "deep.json", "deep.json"], 2, "deep.json is not a report.json"),
        (["diff", "bad.zip", "deep.json"], 2, "bad.zip is not a report.json: name one that `research run` has written"),
        (["diff", "nothing.json", "deep.json"], 2, "cannot be read"),
        (["diff", "huge.json", "deep.json"], 2, "is larger than"),
        (["audit", "deep.json"], 2, "is not a report.json"),
        (["audit", "bad.zip"], 2, "is no ZIP file"),
        (["audit", "huge.json"], 2, "is larger than"),
        (["doctor", "--search", "x", "--provider", "tavily"], 7, "set TAVILY_API_KEY"),
        (["serve", "--health-port", "99999"], 2, "--health-port"),
        (["worker", "--pool", "nonsense"], 2, "nonsense"),
        (["worker"], 4, "no server is running here"),
    ],
)
@pytest.mark.usefixtures("no_children")
def test_wrong_input_gets_one_clear_answer(folder: Path, arguments: list[str], code: int, words: str) -> None:
    """What to do next, the right exit code, nothing on standard output, no server, no traceback."""
    done = research(*arguments)
    assert (done.exit_code, done.stdout) == (code, ""), done.stderr
    assert words in done.stderr
    assert not (folder / "home" / "engine").exists()
    assert "Traceback" not in done.stderr


def test_a_bad_value_is_named_by_its_path_and_not_repeated(folder: Path) -> None:
    """Lines are `path: message`; the value of a person does not come back."""
    (folder / "bad.json").write_text('{"query": "q", "limits": {"max_iterations": "sesame"}, "colour": "sesame"}')
    problems = research("run", "--request", "bad.json").stderr
    assert "limits.max_iterations: " in problems
    assert "colour: unknown key" in problems
    assert "sesame" not in problems


def test_a_data_folder_that_cannot_be_written_is_named(folder: Path) -> None:
    """With the variable that chooses another one; nothing was started."""
    done = research("serve", RESEARCH_HOME=str(folder / "manual" / "vacuum.md" / "home"))
    assert (done.exit_code, done.stdout) == (4, "")
    assert "cannot be written: not a directory; set RESEARCH_HOME" in done.stderr


@pytest.mark.parametrize(("command", "code"), [(["list"], 0), ([*RUN], 4)])
@pytest.mark.usefixtures("folder")
def test_an_address_that_is_none_names_its_variable(command: list[str], code: int) -> None:
    """A port that no server can have is a mistake of the person, not a defect of the program."""
    done = research(*command, TEMPORAL_ADDRESS="server.example:99999")
    assert (done.exit_code, done.stdout) == (code, ""), done.stderr
    assert "no Temporal server answers at server.example:99999 (invalid target URL" in done.stderr
    assert "check TEMPORAL_ADDRESS" in done.stderr


@pytest.mark.parametrize("address", ["http://127.0.0.1:7233", "https://" + "x" * 5_000])
@pytest.mark.usefixtures("folder")
def test_an_address_of_a_page_is_no_address_of_temporal(address: str) -> None:
    """One line says how to write it, before anything is asked; of a long one it shows the beginning."""
    done = research(*RUN, TEMPORAL_ADDRESS=address)
    lines = [line for line in done.stderr.splitlines() if "the address of Temporal" in line]
    assert done.exit_code == 4
    assert lines
    assert all("write host:port, without http" in line for line in lines)
    assert max(map(len, lines)) < 400
    assert "Warning" not in done.stderr


@pytest.mark.usefixtures("folder")
def test_an_endless_address_is_not_printed_whole() -> None:
    """Its beginning is enough to find it."""
    done = research("list", TEMPORAL_ADDRESS="x" * 5_000 + ":7233")
    assert "check TEMPORAL_ADDRESS" in done.stderr
    assert len(done.stderr) < 1_000


def test_a_home_that_is_a_file_names_its_variable(folder: Path) -> None:
    """Also where nothing is started: the store of documents has no folder, and the line says how to choose another."""
    done = research("list", RESEARCH_HOME=str(folder / "manual" / "vacuum.md"))
    assert (done.exit_code, done.stdout) == (2, "")
    assert "cannot be used: not a directory; set RESEARCH_HOME" in done.stderr


def test_a_dry_run_starts_nothing(folder: Path, endpoint: str) -> None:
    """The effective request and what it may cost: for a person, and as one JSON document."""
    model = {"RESEARCH_MODEL": "unheard-of", "ANTHROPIC_BASE_URL": endpoint}
    arguments = [*RUN, "--set", "limits.max_iterations=2", "--exclude", "example.com", "--exclude", "MySQL"]
    shown = research(*arguments, "--dry-run", **model)
    assert shown.exit_code == 0, shown.stderr
    for words in ("cost unknown (no price for unheard-of", "2 iterations", "model unheard-of", "passages go to 127.0"):
        assert words in shown.stdout
    document = json.loads(research(*arguments, "--dry-run", "--json", **model).stdout)
    assert document["request"]["limits"] == {"max_iterations": 2}
    assert document["request"]["exclude"] == ["example.com", "MySQL"]
    assert (document["engine"], document["estimate"]["likely_usd"]) == ("model", None)
    assert not (folder / "home" / "engine").exists()


def test_an_estimate_follows_the_files_of_the_folder(folder: Path, endpoint: str) -> None:
    """They are counted before anything is read; a folder of hundreds of pages means a longer run."""
    model = {"RESEARCH_MODEL": "unheard-of", "ANTHROPIC_BASE_URL": endpoint}

    def tokens() -> float:
        shown = json.loads(research(*RUN, "--dry-run", "--json", **model).stdout)
        return float(shown["estimate"]["likely_tokens"])

    few = tokens()
    for number in range(300):
        (folder / "manual" / f"page-{number}.md").write_text(f"# Page {number}\n\n" + "It rains on the roof. " * 800)
    assert tokens() > 5 * few
