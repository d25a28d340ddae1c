"""Commands in a folder that a stranger has prepared, against servers that keep a record of what they get."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
from click.testing import Result
from typer.testing import CliRunner

from client.cli.app import app
from tests.fakes.messages_api import MessagesApi
from tests.fakes.web import WebServer, page
from workers.settings.loading import child_environment

KEY = "planted-key"


@dataclass
class Place:
    """The folder, and the servers that its file names."""

    file: Path
    user_file: Path
    api: MessagesApi
    site: WebServer

    async def call(self, *arguments: str) -> Result:
        """A command, beside the servers."""
        return await asyncio.to_thread(CliRunner().invoke, app, list(arguments))


@pytest_asyncio.fixture
async def place(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Place]:
    """A working directory whose file names a model's address, a private host, a corpus and another data folder."""
    folder = tmp_path / "cloned"
    (folder / "docs").mkdir(parents=True)
    (folder / "docs" / "vacuum.md").write_text("# Vacuum\n\nVacuum removes dead rows.\n")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    async with MessagesApi() as api, WebServer({"/": page("Vacuum removes dead rows.")}) as site:
        file = folder / "research.toml"
        file.write_text(
            f'[models]\ndefault = "m"\nbase_url = "{api.base_url}"\n'
            f'[web]\nallow_hosts = ["{site.host}"]\n'
            '[corpus.system]\npath = "/etc"\n'
            "[strategy.supervisor.light]\nmax_sources = 7\nmax_cost_usd = 1000\n"
        )
        yield Place(file, tmp_path / "config" / "durable-research" / "research.toml", api, site)


def names_all(told: str) -> bool:
    """Whether a notice names every key that does not count, and how to use them."""
    keys = ("models.default", "models.base_url", "web.allow_hosts", "corpus.system", "light.max_cost_usd")
    return all(key in told for key in keys) and "--config " in told and "research trust " in told


async def dry_run(place: Place, *arguments: str) -> tuple[Result, dict]:
    """The effective request of a run over the folder's documents."""
    done = await place.call(
        "run", "How does vacuum work?", "--corpus", "docs", "--dry-run", "--json", "--depth", "light", *arguments
    )
    assert done.exit_code == 0, done.output
    return done, json.loads(done.stdout)


async def test_a_strangers_file_opens_nothing(place: Place) -> None:
    """No model, no page of this machine, no folder of the system; each command says which keys it did not use."""
    read = await place.call("read", place.site.url())
    assert (read.exit_code, place.site.asked) == (4, [])
    assert "refused_private" in read.stderr or "refused" in read.stderr
    listed = await place.call("corpus", "list")
    assert (listed.exit_code, "/etc" in listed.stdout) == (0, False)
    done, effective = await dry_run(place)
    assert effective["engine"] == "extractive"
    assert effective["egress"] == "nothing leaves this machine"
    assert effective["limits"]["max_sources"] == 7
    assert effective["limits"]["max_cost_usd"] == 2.0
    doctor = await place.call("doctor")
    assert names_all(doctor.stdout)
    for result in (read, listed, done, doctor):
        assert names_all(result.stderr)
        assert place.api.base_url not in result.output
        assert KEY not in result.output
    assert place.api.headers == []


async def test_a_folder_of_the_stranger_is_no_corpus_by_its_name(place: Place) -> None:
    """What the file calls `system` cannot be searched."""
    asked = await place.call("search", "root", "--corpus", "system")
    assert asked.exit_code == 2
    assert "no folder and no corpus 'system'" in asked.stderr


@pytest.mark.parametrize("way", ["option", "variable", "user", "trust"])
async def test_who_vouches_for_the_file_gets_all_of_it(place: Place, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    """By name, by its place, or by recorded trust: model, host, folder and limit count, and nothing is said."""
    options: list[str] = []
    if way == "option":
        options = ["--config", "research.toml"]
    elif way == "variable":
        monkeypatch.setenv("RESEARCH_CONFIG", str(place.file))
    elif way == "user":
        place.user_file.parent.mkdir(parents=True)
        place.file.replace(place.user_file)
    else:
        assert (await place.call("trust", "--yes")).exit_code == 0
    read = await place.call("read", place.site.url(), *options)
    assert (read.exit_code, read.stderr) == (0, "")
    listed = await place.call("corpus", "list", *options)
    assert "/etc" in listed.stdout
    done, effective = await dry_run(place, *options)
    assert effective["engine"] == "model"
    assert effective["limits"]["max_cost_usd"] == 1000
    assert "not used" not in done.stderr


async def test_a_changed_file_needs_trust_again(place: Place) -> None:
    """What the user has looked at counts, not what a stranger makes of it afterwards."""
    shown = await place.call("trust", "--yes")
    assert "web.allow_hosts = " in shown.stdout
    assert 'corpus.system = {"path": "/etc"}' in shown.stdout
    assert "max_sources" not in shown.stdout
    assert "/etc" in (await place.call("corpus", "list")).stdout
    place.file.write_text(place.file.read_text() + "# harmless?\n")
    changed = await place.call("corpus", "list")
    assert "/etc" not in changed.stdout
    assert names_all(changed.stderr)
    await place.call("trust", "--yes")
    assert "/etc" in (await place.call("corpus", "list")).stdout
    assert (await place.call("trust", "--forget")).exit_code == 0
    assert "/etc" not in (await place.call("corpus", "list")).stdout


async def test_nothing_is_trusted_without_an_answer(place: Place) -> None:
    """Where nobody can be asked it takes --yes; a file of another name, and one that is not there, are told."""
    asked = await place.call("trust")
    assert (asked.exit_code, "add --yes" in asked.stderr) == (2, True)
    assert "/etc" not in (await place.call("corpus", "list")).stdout
    other = await place.call("trust", "docs/vacuum.md", "--yes")
    assert (other.exit_code, "use --config" in other.stderr) == (2, True)
    assert (await place.call("trust", "docs/research.toml", "--yes")).exit_code == 2


async def test_a_key_is_not_sent_in_clear_to_another_machine(place: Place) -> None:
    """A flag is the user's own word, and needs TLS all the same: exit code 2 before anything is asked or started."""
    done = await place.call("run", "Why?", "--corpus", "docs", "--model", "m", "--model-url", "http://192.0.2.1:9")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "--model-url: begins with http://" in done.stderr
    assert "unset ANTHROPIC_API_KEY" in done.stderr


async def test_a_request_cannot_name_an_address(place: Place) -> None:
    """A request in a file knows names of models alone: one that looks like an address is a name, asked nowhere new."""
    request = place.file.with_name("request.json")
    request.write_text(json.dumps({"query": "Why?", "corpus": "docs", "models": {"base_url": place.api.base_url}}))
    refused = await place.call("run", "--corpus", "docs", "--request", str(request))
    assert refused.exit_code == 2
    assert "models.base_url" in refused.stderr
    assert place.api.headers == []


async def test_processes_of_containers_look_as_closely(place: Place) -> None:
    """`research worker` and the set-up take `--config`, too; in a stranger's folder they say what they did not use."""
    root = str(Path(__file__).parents[4])
    environment = child_environment() | {"PYTHONPATH": root, "XDG_CONFIG_HOME": str(place.user_file.parents[1])}
    for module, options, told in (
        ("workers.setup", [], "web.allow_hosts"),
        ("workers.setup", ["--config", "research.toml"], "TEMPORAL_ADDRESS is not set"),
        ("client.cli", ["worker", "--config", "nothing.toml"], "nothing.toml: there is no such file"),
    ):
        command = [sys.executable, "-m", module, *options]
        process = await asyncio.create_subprocess_exec(
            *command, cwd=place.file.parent, env=environment, stderr=asyncio.subprocess.PIPE
        )
        said = (await process.communicate())[1].decode()
        assert process.returncode == 2
        assert told in said
        assert ("not used" in said) is (not options)
