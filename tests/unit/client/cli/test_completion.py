"""Completion as shells ask for it: the protocol of typer, over the stored runs and the configuration of a home."""

import ast
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from client.cli import completion
from client.cli.app import app
from client.cli.completion import STRATEGIES, TABLE
from contracts.strategies import ENTRY_POINTS
from tests.architecture.repository import ROOT, load_script
from tests.fakes.states import resolved, state
from tests.toy import declared
from tests.toy.roles import TOY
from tests.unit.client.cli.command_line import save_run
from workers.settings.loading import child_environment
from workers.settings.places import find_places, join_split_words

HOSTILE = "Is `touch a` $(touch b) \\$(touch c) 'd' \"e\" [bold]f[/bold] \x1b[2J; g?"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with two runs, and a configuration with a corpus, a model and a server of documents."""
    file = tmp_path / "research.toml"
    file.write_text(
        'home = "kept"\n[models]\ndefault = ["small", "other:large"]\n'
        '[corpus.handbook]\npath = "x"\n[search.mcp.wiki]\nurl = "http://127.0.0.1:9/mcp"\n'
    )
    monkeypatch.setenv("RESEARCH_CONFIG", str(file))
    folder = tmp_path / "kept"
    for name, query in (("r-20261121-aaaa", "How are backups made?"), ("r-20261122-bbbb", HOSTILE)):
        save_run(folder, name, state(resolved=resolved(research_id=name, query=query)), closed=True)
        time.sleep(0.01)  # the newest comes first
    registered = folder / "corpora" / "registered"
    registered.mkdir(parents=True)
    (registered / "manual.json").write_text("{}")
    return folder


def offered(*words: str, shell: str = "bash") -> str:
    """What the shell gets for a line whose last word is completed."""
    line = " ".join(words)
    variables = {
        "_RESEARCH_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": "\n".join(words),
        "COMP_CWORD": str(len(words) - 1),
        "_TYPER_COMPLETE_ARGS": line,
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    return CliRunner().invoke(app, [], prog_name="research", env=variables).stdout


@pytest.mark.usefixtures("home")
def test_ids_are_offered_newest_first_with_their_questions() -> None:
    """In each command that takes an id; bash shows words alone."""
    assert offered("research", "open", "").split() == ["last", "r-20261122-bbbb", "r-20261121-aaaa"]
    assert offered("research", "audit", "r-20261121").split() == ["r-20261121-aaaa"]
    fish = offered("research", "cancel ", shell="fish").splitlines()
    assert fish[0] == "last\tthe newest run"
    assert fish[2] == "r-20261121-aaaa\tHow are backups made?"


@pytest.mark.usefixtures("home")
def test_no_question_is_evaluated_by_a_shell() -> None:
    """Zsh evaluates what it gets, so that of a question only letters, digits and plain signs are left."""
    (line,) = [line for line in offered("research", "open ", shell="zsh").splitlines() if "bbbb" in line]
    shown = line.partition(":")[2]
    assert "touch a touch b touch c d e bold f bold 2J g?" in shown
    assert not set("`$\\\x1b;[") & set(line)


@pytest.mark.usefixtures("home")
def test_corpora_strategies_models_providers_and_formats_are_offered() -> None:
    """Those of the configuration and of the home, beside what the program itself has."""
    assert offered("research", "corpus", "status", "").split() == ["handbook", "manual"]
    assert offered("research", "run", "--corpus", "man").split() == ["manual"]
    assert {"supervisor", "living"} <= set(offered("research", "run", "--strategy", "").split())
    assert offered("research", "run", "--model", "").split() == ["small", "other:large"]
    assert offered("research", "doctor", "--provider", "mcp").split() == ["mcp.wiki"]
    assert offered("research", "report", "--format", "").split() == ["md", "html", "json"]
    assert offered("research", "run", "--depth", "e").split() == ["extended"]
    assert {"--corpus", "--set"} <= set(offered("research", "run", "--").split())
    assert "--again" not in offered("research", "run", "--")
    assert "resume" in offered("research", "re").split()


@pytest.mark.usefixtures("home")
def test_settings_are_offered_with_their_values() -> None:
    """A name ends with its sign; one that is unique, or typed in full, is offered with each value."""
    names = offered("research", "run", "x", "--set", "limits.max_s").split()
    assert {"limits.max_sources=", "limits.max_steps="} <= set(names)
    assert offered("research", "run", "x", "--set", "verif").split() == ["verify=off", "verify=light", "verify=full"]
    assert offered("research", "run", "x", "--set", "gates.clarify=a").split() == ["gates.clarify=auto"]
    assert "strategy=living" in offered("research", "run", "x", "--set", "strategy=").split()


def test_words_that_bash_has_split_at_the_sign_are_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last one is completed without the name before it, because bash replaces only what follows the sign."""
    monkeypatch.setenv("_RESEARCH_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "research\nrun\n--set\na\n=\n1\n--set\nverify\n=\nl")
    monkeypatch.setenv("COMP_CWORD", "9")
    assert join_split_words()
    import os

    assert os.environ["COMP_WORDS"].split("\n") == ["research", "run", "--set", "a=1", "--set", "verify=l"]
    assert os.environ["COMP_CWORD"] == "5"
    assert not join_split_words()


def test_ids_of_other_tenants_are_not_offered(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a tenant is set, by the environment or by a file."""
    own = state(resolved=resolved(research_id="r-20261123-cccc", query="Mine?", tenant="ada"))
    save_run(home, "r-20261123-cccc", own, closed=True)
    assert len(offered("research", "open", "r-").split()) == 3
    monkeypatch.setenv("RESEARCH_TENANT", "ada")
    assert offered("research", "open", "r-").split() == ["r-20261123-cccc"]


def test_a_damaged_configuration_or_a_missing_home_offers_less_and_fails_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A press of a key is no place for an error."""
    file = tmp_path / "research.toml"
    file.write_text("[models\ndefault = 1")
    monkeypatch.setenv("RESEARCH_CONFIG", str(file))
    monkeypatch.setenv("RESEARCH_HOME", str(tmp_path / "gone"))
    assert offered("research", "open", "").split() == ["last"]
    assert find_places().models == []


def test_runs_of_an_object_store_are_not_looked_for(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    """Their sessions are elsewhere, and what is in the home may be old."""
    monkeypatch.setenv("RESEARCH_CONTENT_URL", "s3://bucket")
    assert offered("research", "open", "").split() == ["last"]


def test_the_table_describes_the_commands_as_they_are() -> None:
    """A new option or setting is completed as soon as `make generate` has run."""
    with declared(TOY):  # a package's strategy is none of the product's
        assert load_script(ROOT / "docs" / "generate_completions.py").table() == TABLE.read_text(encoding="utf-8")
    assert STRATEGIES == ENTRY_POINTS


def test_nothing_heavy_is_imported() -> None:
    """The modules of a completion import the standard library, typer and platformdirs alone; a shell waits for them."""
    light = {"typer", "platformdirs", *sys.stdlib_module_names}
    own = {"client.cli", "client.cli.app", "client.cli.completion", "workers.settings.places"}
    for module in own:
        path = ROOT / (module.replace(".", "/") + ".py")
        tree = ast.parse((path if path.exists() else ROOT / module.replace(".", "/") / "__init__.py").read_text())
        for node in tree.body:  # what functions import is imported where it is needed
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert {name for name in names if name.partition(".")[0] not in light} <= own, module
    for package in ("client", "workers", "workers/settings"):
        assert not [
            node
            for node in ast.parse((ROOT / package / "__init__.py").read_text()).body
            if "import" in ast.dump(node).lower()
        ]


@pytest.mark.soak
def test_a_completion_of_ids_takes_a_third_of_a_second(home: Path) -> None:
    """As a process, with a thousand stored runs: its processor time, because other processes may run beside it."""
    one = home / "sessions" / "r-20261121-aaaa.json"
    for number in range(1_000):
        (home / "sessions" / f"r-20261120-{number:04}.json").write_bytes(one.read_bytes())
    command = [sys.executable, "-c", "from client.cli import main; main()"]
    words = ["research", "open", "r-"]
    variables = {"COMP_WORDS": "\n".join(words), "COMP_CWORD": "2", "_RESEARCH_COMPLETE": "complete_bash"}
    environment = child_environment() | variables | {"RESEARCH_HOME": str(home), "PYTHONPATH": str(ROOT)}
    seconds = []
    for _ in range(5):
        began = resource.getrusage(resource.RUSAGE_CHILDREN)
        script = f"import sys; sys.argv[0] = 'research'; {command[2]}"
        done = subprocess.run([command[0], "-c", script], env=environment, capture_output=True, text=True, check=True)
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime)
        assert len(done.stdout.split()) == completion.MAX_RUNS
    assert min(seconds) <= 0.3, json.dumps(seconds)
