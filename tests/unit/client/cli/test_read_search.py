"""`research search --provider NAME`: the services of the web, one query at a time."""

import asyncio
import json
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from client.cli.app import app
from providers.shared.circuit_breaker import FAILURES_TO_OPEN, CircuitBreaker
from tests.fakes.search_answers import KEYS
from tests.fakes.search_apis import SearchApis
from workers.search_pool import CIRCUIT_OPEN, service_of
from workers.settings.loading import load_settings
from workers.shared_state import open_shared_state


async def called(*arguments: str) -> Result:
    """The command, beside the server that it asks."""
    return await asyncio.to_thread(CliRunner().invoke, app, ["search", *arguments])


@pytest.fixture
def planted(home: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A data folder of one's own and a key."""
    monkeypatch.setenv("BRAVE_API_KEY", KEYS["brave"])
    return monkeypatch


async def test_hits_are_shown_and_given_as_json(planted: pytest.MonkeyPatch) -> None:
    """Rank, title, address and snippet for people; the whole response for programs (X-16)."""
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
        (["--provider", "brave", "--corpus", "manual"], 2, "--corpus cannot be combined with --provider"),
    ],
)
def test_what_cannot_be_asked_says_what_to_set(
    planted: pytest.MonkeyPatch, arguments: list[str], code: int, words: str
) -> None:
    """A provider without its key is no provider (exit code 7), a wrong name is a wrong command (2) (S0-102)."""
    result = CliRunner().invoke(app, ["search", "backups", *arguments])
    assert (result.exit_code, result.stdout) == (code, "")
    assert words in result.stderr


@pytest.mark.parametrize(
    ("scenario", "code", "words"),
    [
        ("401", 2, "set BRAVE_API_KEY"),
        ("429", 4, "asks to wait"),
        ("html", 4, "documented form"),
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


async def test_a_search_can_be_narrowed_down(planted: pytest.MonkeyPatch) -> None:
    """Type, domains, language and days reach the service; what it cannot do is told, and stands in the JSON (X-16)."""
    options = ["--domain", "site-3.example", "--domain", "example", "--not-domain", "site-0.example", "--type", "news"]
    options += ["--language", "eo", "--from", "2024-05", "--to", "2024-06-30", "--provider", "brave"]
    async with SearchApis() as server:
        planted.setenv("BRAVE_BASE_URL", server.url("brave"))
        shown = await called("backups", *options)
        given = await called("backups", *options, "--json")
    assert (shown.exit_code, given.exit_code) == (0, 0)
    assert "site-0.example" not in shown.stdout
    told = ["cannot search the allowed domains alone: hits elsewhere were left out", "cannot keep to the language eo"]
    assert all(f"brave {line}" in shown.stderr for line in told)
    document = json.loads(given.stdout)
    assert document["warnings"] == told
    assert document["cost_usd"] is None
    assert {hit["source_type"] for hit in document["hits"]} == {"news"}
    assert server.asked[0].path == "/res/v1/news/search"
    assert server.asked[0].parameters["freshness"] == "2024-05-01to2024-06-30"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--provider", "brave", "--type", "books"], "--type is one of web, academic, news, not 'books'"),
        (["--provider", "brave", "--language", "English"], "ISO 639"),
        (["--provider", "brave", "--from", "yesterday"], "YYYY-MM-DD"),
        (["--provider", "brave", "--from", "2024", "--to", "2023"], "lies after"),
        (["--provider", "brave", "--domain", "https://a.example/x"], "host name"),
        (["--corpus", "manual", "--domain", "a.example"], "need a provider of the web"),
        (["--corpus", "manual", "--type", "web"], "need a provider of the web"),
    ],
)
def test_what_narrows_nothing_down_is_refused(planted: pytest.MonkeyPatch, arguments: list[str], words: str) -> None:
    """A filter that means nothing is a wrong command, before anybody is asked."""
    result = CliRunner().invoke(app, ["search", "backups", *arguments])
    assert (result.exit_code, result.stdout) == (2, "")
    assert words in result.stderr


def test_doctor_tells_which_providers_are_set_up(planted: pytest.MonkeyPatch) -> None:
    """One line names those that can be asked, in order, and what the others lack (S0-102)."""
    result = CliRunner().invoke(app, ["doctor"])
    (line,) = [line for line in result.stdout.splitlines() if "web search" in line]
    places = [line.index(name) for name in ("semantic_scholar", "brave", "wikipedia")]
    assert places == sorted(places)
    assert "tavily: set TAVILY_API_KEY; google: set GOOGLE_API_KEY and GOOGLE_CSE_ID" in result.stdout


async def test_doctor_tells_who_is_left_alone_and_whose_key_is_none(home: Path, planted: pytest.MonkeyPatch) -> None:
    """A key that cannot be one ends nothing, and what runs learned of a provider stands beside its name (S0-102)."""
    planted.setenv("TAVILY_API_KEY", "planted key")
    async with open_shared_state(load_settings()) as shared:
        for _ in range(FAILURES_TO_OPEN):
            await CircuitBreaker(shared.store).report(service_of("brave"), ok=False)
    async with SearchApis() as server:
        planted.setenv("BRAVE_BASE_URL", server.url("brave"))
        result = await asyncio.to_thread(CliRunner().invoke, app, ["doctor"])
    assert f"brave ({CIRCUIT_OPEN})" in result.stdout
    assert "tavily: TAVILY_API_KEY holds characters that no key has" in result.stdout
    assert "warn web search" in result.stdout
    assert "server" in result.stdout.partition("web search")[2]
    assert "planted key" not in result.output


def test_doctor_goes_on_over_an_address_of_redis_that_is_none(planted: pytest.MonkeyPatch) -> None:
    """Every other line is told all the same; the address, which may hold a password, is not repeated."""
    planted.setenv("REDIS_URL", "redis://:planted-password@[bad")
    planted.setenv("RESEARCH_MODEL", "m")
    planted.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
    result = CliRunner().invoke(app, ["doctor"])
    assert "fail shared" in result.stdout
    assert "write it as redis://" in result.stdout
    assert "fail model" in result.stdout
    assert "server" in result.stdout
    assert "planted-password" not in result.output
