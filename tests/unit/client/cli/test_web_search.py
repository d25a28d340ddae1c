"""`research search --provider NAME`: the services of the web, one query at a time."""

import asyncio
import json
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from client.cli.app import app
from tests.fakes.search_answers import KEYS
from tests.fakes.search_apis import SearchApis


async def called(*arguments: str) -> Result:
    """The command, beside the server that it asks."""
    return await asyncio.to_thread(CliRunner().invoke, app, ["search", *arguments])


@pytest.fixture
def planted(home: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A data folder of one's own and a key."""
    monkeypatch.setenv("BRAVE_API_KEY", KEYS["brave"])
    return monkeypatch


async def test_hits_are_shown_and_given_as_json(planted: pytest.MonkeyPatch) -> None:
    """X-16: rank, title, address and snippet for people; the whole response for programs."""
    async with SearchApis() as server:
        planted.setenv("BRAVE_BASE_URL", server.url("brave"))
        shown = await called("backups", "--provider", "brave", "--limit", "2")
        given = await called("backups", "--provider", "brave", "--limit", "2", "--json")
    assert (shown.exit_code, given.exit_code) == (0, 0)
    assert " 2. Result number 1   https://site-1.example/page?id=1" in shown.stdout
    assert "2 hits" in shown.stderr
    assert [hit["rank"] for hit in json.loads(given.stdout)["hits"]] == [1, 2]
    assert len(server.asked) == 2


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--provider", "tavily"], 7, "set TAVILY_API_KEY"),
        (["--provider", "google"], 7, "set GOOGLE_API_KEY and GOOGLE_CSE_ID"),
        (["--provider", "searxng"], 7, "set SEARXNG_URL"),
        (["--provider", "altavista"], 2, "there are: corpus, tavily, google, semantic_scholar"),
        (["--provider", "brave", "--corpus", "manual"], 2, "--corpus belongs to the provider corpus"),
    ],
)
def test_what_cannot_be_asked_says_what_to_set(
    planted: pytest.MonkeyPatch, arguments: list[str], code: int, words: str
) -> None:
    """S0-102: a provider without its key is no provider (exit code 7), a wrong name is a wrong command (2)."""
    result = CliRunner().invoke(app, ["search", "backups", *arguments])
    assert (result.exit_code, result.stdout) == (code, "")
    assert words in result.stderr


@pytest.mark.parametrize(
    ("scenario", "code", "words"),
    [
        ("401", 2, "set BRAVE_API_KEY"),
        ("429", 4, "asks to wait"),
        ("html", 4, "web page instead of JSON"),
    ],
)
async def test_failures_of_a_service_are_one_line(
    planted: pytest.MonkeyPatch, scenario: str, code: int, words: str
) -> None:
    """One clear line, no key in it, no traceback."""
    async with SearchApis(scenario) as server:
        planted.setenv("BRAVE_BASE_URL", server.url("brave"))
        result = await called("backups", "--provider", "brave")
    assert (result.exit_code, result.stdout) == (code, "")
    assert words in result.stderr
    assert KEYS["brave"] not in result.stderr
    assert result.stderr.count("\n") == 1


def test_doctor_tells_which_providers_are_set_up(planted: pytest.MonkeyPatch) -> None:
    """S0-102: one line names those that can be asked, in order, and what the others lack."""
    result = CliRunner().invoke(app, ["doctor"])
    assert "semantic_scholar, brave, wikipedia" in result.stdout
    assert "tavily: set TAVILY_API_KEY; google: set GOOGLE_API_KEY and GOOGLE_CSE_ID" in result.stdout
