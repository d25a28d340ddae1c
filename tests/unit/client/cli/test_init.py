"""`init`: what it writes and leaves alone, what it tries, and what it never shows."""

import asyncio
import json
import os
import pty
import re
import select
import stat
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import platformdirs
import pytest
from typer.testing import Result

from client.cli.init import InitAnswers, current_answers, edited
from contracts.vocabulary import Tier
from tests.architecture.repository import ROOT
from tests.fakes.loopback import HttpRequest, LoopbackServer, response
from tests.fakes.model_scenarios import Reply, streamed
from tests.fakes.search_answers import KEYS
from tests.fakes.search_apis import SearchApis
from tests.unit.client.cli.command_line import research
from workers.settings.loading import Settings, SettingsError, child_environment, load_settings

KEY = "sk-never-shown-anywhere"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The configuration folder of a user who has none yet."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("RESEARCH_HOME", str(tmp_path / "home"))
    return platformdirs.user_config_path("durable-research")


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    file = tmp_path / "key.txt"
    file.write_text(f"{KEY}\n")
    return file


class OneWord(LoopbackServer):
    """A model endpoint of the Messages API that answers with one word."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[tuple[dict[str, str], dict[str, Any]]] = []

    async def serve(self, request: HttpRequest, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        asked = json.loads(request.body)
        self.requests.append((request.headers, asked))
        content = [{"type": "text", "text": "ready"}]
        usage = {"input_tokens": 12, "output_tokens": 2}
        known = {"id": "m", "type": "message", "role": "assistant", "model": asked["model"], "stop_sequence": None}
        message = known | {"content": content, "stop_reason": "end_turn", "usage": usage}
        reply = Reply(200, {"content-type": "application/json"}, json.dumps(message).encode())
        sent = streamed(reply) if asked.get("stream") else reply
        writer.write(response(sent.status, sent.body, sent.headers))
        await writer.drain()
        return True


def init(*options: str) -> Result:
    return research("init", *options)


def left_over(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {"research.toml", "research.env"}


def test_the_files_are_written_and_mean_what_was_asked_for(folder: Path, key_file: Path, tmp_path: Path) -> None:
    """Model, cap and folder are in force; the key is in a file of its own that its owner alone can read."""
    (tmp_path / "handbook").mkdir()
    options = ["--provider", "messages", "--model", "claude-sonnet-4-5", "--cap", "1.5", "--key-file", str(key_file)]
    done = init("--yes", "--no-try", *options, "--corpus", str(tmp_path / "handbook"))
    assert done.exit_code == 0, done.output
    settings = load_settings()
    assert settings.models.by_tier() == dict.fromkeys(("simple", "analytical", "complex"), "claude-sonnet-4-5")
    assert settings.model_keys()["default"].get_secret_value() == KEY
    assert settings.runs.max_cost_usd == 1.5
    assert settings.corpus["handbook"].path == tmp_path / "handbook"
    assert stat.S_IMODE((folder / "research.env").stat().st_mode) == 0o600
    assert KEY not in (folder / "research.toml").read_text() + done.output
    assert "research.env: ANTHROPIC_API_KEY is set" in done.stderr
    assert 'research run "…" --corpus handbook' in done.stderr
    again = init("--yes", "--no-try")
    assert "nothing is written" in again.stderr
    assert not left_over(folder)


def test_what_the_file_has_besides_stays_as_it_is_written(folder: Path) -> None:
    """Comments, order, other tables, substitutes of a model and prices are untouched; the difference is shown."""
    folder.mkdir(parents=True)
    text = (
        "# mine\nretention_days = 90   # long\n\n[models]\n"
        'default = ["m", "spare"]  # two\n\n[models.prices.m]\ninput = 1.0\noutput = 2.0\n\n[runs]\nat_once = 3\n'
    )
    (folder / "research.toml").write_text(text)
    done = init("--yes", "--no-try", "--provider", "messages", "--url", "http://127.0.0.1:9", "--cap", "0.5")
    assert done.exit_code == 0, done.output
    written = (folder / "research.toml").read_text()
    assert [line for line in text.splitlines() if line not in written.splitlines()] == []
    assert '+base_url = "http://127.0.0.1:9"' in done.stderr
    assert "+max_cost_usd = 0.5" in done.stderr
    settings = load_settings()
    assert settings.models.names_for(Tier.ANALYTICAL) == ["m", "spare"]
    assert (settings.runs.at_once, settings.runs.max_cost_usd) == (3, 0.5)
    assert settings.models.base_url == "http://127.0.0.1:9"


def test_chat_completions_are_an_endpoint_of_their_own(folder: Path, key_file: Path) -> None:
    """So that its key and address are independent of variables that other programs use; none leads back to no model."""
    url = ["--url", "http://127.0.0.1:11434/v1", "--model", "qwen3", "--key-file", str(key_file)]
    assert init("--yes", "--no-try", "--provider", "chat", *url, "--model-simple", "small").exit_code == 0
    settings = load_settings()
    assert settings.models.by_tier() == {"simple": "chat:small", "analytical": "chat:qwen3", "complex": "chat:qwen3"}
    assert settings.model_keys()["chat"].get_secret_value() == KEY
    assert current_answers(settings).provider == "chat"
    assert init("--yes", "--no-try", "--provider", "none").exit_code == 0
    assert not load_settings().model_configured
    assert (folder / "research.toml").exists()


def test_the_variables_of_another_program_are_used_where_nothing_else_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With OPENAI_API_KEY the file names the model alone, and no key is stored."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    assert init("--yes", "--no-try", "--provider", "chat", "--model", "gpt-5").exit_code == 0
    assert (folder / "research.toml").read_text().strip() == '[models]\ndefault = "gpt-5"'
    assert load_settings().model_host == "api.openai.com"
    assert not (folder / "research.env").exists()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ([], "there is no terminal to ask at: add --yes"),
        (["--yes", "--provider", "messages"], "no model is named for messages: add --model NAME"),
        (
            ["--yes", "--provider", "messages", "--model", "m"],
            "needs a key: type it, name --key-file, or set ANTHROPIC",
        ),
        (["--yes", "--provider", "none", "--model", "m"], "choose messages or chat"),
        (["--yes", "--search", "tavily"], "tavily needs TAVILY_API_KEY"),
        (["--yes", "--search", "nowhere"], "there is no search service 'nowhere'"),
        (["--yes", "--corpus", "nowhere"], "'nowhere' is not there: name a folder of documents"),
        (["--yes", "--key-file", "gone.txt", "--provider", "messages"], "the key gone.txt cannot be read"),
        (["--yes", "--provider", "messages", "--model", "m", "--url", "ftp://x"], "no valid configuration"),
    ],
)
def test_what_cannot_work_is_one_line_with_its_remedy(folder: Path, options: list[str], problem: str) -> None:
    """Nothing is written, and nothing half written is left."""
    done = init("--no-try", *options)
    assert done.exit_code == 2, done.output
    assert problem in done.stderr
    assert not folder.exists() or list(folder.iterdir()) == []


async def test_model_and_search_are_tried_once_with_their_price_before(
    folder: Path, key_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One request to each; the lines name host, price and what came back, and a failure leaves the files to write."""
    async with OneWord() as model, SearchApis() as services:
        monkeypatch.setenv("TAVILY_BASE_URL", services.url("tavily"))
        folder.mkdir(parents=True)
        (folder / "research.toml").write_text("[models.prices.m]\ninput = 1.0\noutput = 2.0\n")
        options = ["--provider", "messages", "--url", model.base_url, "--model", "m"]
        (tmp_path / "tavily.txt").write_text(KEYS["tavily"])
        search = ["--search", "tavily", "--search-key-file", str(tmp_path / "tavily.txt"), "--key-file", str(key_file)]
        done = await asyncio.to_thread(init, "--yes", *options, *search)
        assert model.requests, done.output
        ((headers, asked),) = model.requests
        assert any(KEY in value for value in headers.values())
        assert (asked["model"], asked["max_tokens"]) == ("m", 64)
        assert len(services.asked) == 1
    assert done.exit_code == 0, done.output
    place = model.base_url.removeprefix("http://")
    assert f"trying one call to m at {place}, at most 94 tokens, at most 0.000158 USD" in done.stderr
    assert "trying one search with tavily, its plan may charge for it" in done.stderr
    assert re.search(r"  m answered after \d+\.\d s: 14 tokens, 0\.000016 USD\n", done.stderr)
    assert re.search(r"  tavily answered after \d+\.\d s: 10 hits\n", done.stderr)
    assert KEY not in done.output
    stored = [f"ANTHROPIC_API_KEY={KEY}", f"TAVILY_API_KEY={KEYS['tavily']}"]
    assert (folder / "research.env").read_text().splitlines() == stored


async def test_a_service_that_refuses_is_a_line_and_no_end(folder: Path, key_file: Path) -> None:
    """What was asked for is written in any case, because a key may be mended later."""
    async with SearchApis("401") as services:
        os.environ["TAVILY_BASE_URL"] = services.url("tavily")
        try:
            done = await asyncio.to_thread(init, "--yes", "--search", "tavily", "--search-key-file", str(key_file))
        finally:
            del os.environ["TAVILY_BASE_URL"]
    assert done.exit_code == 0, done.output
    assert "tavily does not work yet: " in done.stderr
    assert "TAVILY_API_KEY" in (folder / "research.env").read_text()


def test_an_answer_that_is_typed_as_it_was_changes_nothing() -> None:
    """The text of a file comes back to the byte where all answers are those in force."""
    text = '[models]\nanalytical = "a"\nsimple="s"\n\n[models.endpoints.x]\nbase_url = "http://127.0.0.1:1"\n'
    settings = Settings.model_validate(
        {
            "models": {"analytical": "a", "simple": "s", "endpoints": {"x": {"base_url": "http://127.0.0.1:1"}}},
            "anthropic_api_key": KEY,
        }
    )
    assert edited(text, replace(current_answers(settings), cap_usd=None), settings) == text
    assert edited("", InitAnswers(), Settings()) == ""


def test_a_stored_key_is_replaced_in_its_line_and_links_stay_links(
    folder: Path, key_file: Path, tmp_path: Path
) -> None:
    """Comments and other variables of research.env stay, and so do the permissions of a file elsewhere."""
    folder.mkdir(parents=True)
    elsewhere = tmp_path / "dotfiles.toml"
    elsewhere.write_text("# mine\n")
    elsewhere.chmod(0o640)
    (folder / "research.toml").symlink_to(elsewhere)
    env = folder / "research.env"
    env.write_text("# keys\nTAVILY_API_KEY=t\nANTHROPIC_API_KEY=old\n# end\n")
    env.chmod(0o600)
    done = init("--yes", "--no-try", "--provider", "messages", "--model", "m", "--key-file", str(key_file))
    assert done.exit_code == 0, done.output
    assert env.read_text() == f"# keys\nTAVILY_API_KEY=t\nANTHROPIC_API_KEY={KEY}\n# end\n"
    assert "ANTHROPIC_API_KEY is replaced" in done.stderr
    assert "old" not in done.output
    assert (folder / "research.toml").is_symlink()
    assert elsewhere.read_text() == '# mine\n\n[models]\ndefault = "m"\n'
    assert stat.S_IMODE(elsewhere.stat().st_mode) == 0o640


# --- the file of variables ----------------------------------------------------------------------------------------------


def test_stored_variables_count_below_those_of_the_environment(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Comments and spaces are allowed; an empty variable of the environment counts as unset."""
    folder.mkdir(parents=True)
    file = folder / "research.env"
    file.write_text("# keys\nRESEARCH_MODEL = stored\n\nANTHROPIC_API_KEY=a=b\n")
    file.chmod(0o600)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "")
    settings = load_settings()
    assert settings.models.by_tier()["simple"] == "stored"
    assert settings.model_keys()["default"].get_secret_value() == "a=b"
    assert "a=b" in settings.secrets()
    monkeypatch.setenv("RESEARCH_MODEL", "given")
    assert load_settings().models.by_tier()["simple"] == "given"


@pytest.mark.parametrize(
    ("text", "mode", "problem"),
    [
        (f"ANTHROPIC_API_KEY={KEY}\n", 0o640, "other users may read the keys in it: chmod 600"),
        (f"ANTROPIC_API_KEY={KEY}\n", 0o600, "unknown variable: is ANTHROPIC_API_KEY meant?"),
    ],
)
def test_stored_variables_that_others_read_or_nothing_does_are_refused(
    folder: Path, text: str, mode: int, problem: str
) -> None:
    """The message names the file and the remedy, and no value."""
    folder.mkdir(parents=True)
    file = folder / "research.env"
    file.write_text(text)
    file.chmod(mode)
    with pytest.raises(SettingsError) as raised:
        load_settings()
    assert problem in str(raised.value)
    assert KEY not in str(raised.value)


# --- at a terminal --------------------------------------------------------------------------------------------------------


@pytest.mark.soak
@pytest.mark.parametrize("is_interrupted", [False, True])
def test_at_a_terminal_everything_is_asked_and_the_key_is_not_shown(
    folder: Path, tmp_path: Path, *, is_interrupted: bool
) -> None:
    """InitAnswers typed one after the other; Ctrl-C at the last question leaves nothing behind."""
    (tmp_path / "notes").mkdir()
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(tmp_path)
        os.environ.update(child_environment(), PYTHONPATH=str(ROOT), TERM="dumb", RESEARCH_HOME=str(tmp_path / "home"))
        os.execv(sys.executable, [sys.executable, "-c", "from client.cli import main; main()", "init", "--no-try"])
    shown = ""

    def until(text: str) -> None:
        nonlocal shown
        end = time.monotonic() + 60
        while text not in shown.rpartition("\x00")[2]:
            assert time.monotonic() < end, shown
            if select.select([terminal], [], [], 0.2)[0]:
                shown += os.read(terminal, 65_536).decode()

    def answer(question: str, text: str) -> None:
        nonlocal shown
        until(question)
        shown += "\x00"
        os.write(terminal, text.encode())

    answer("which", "messages\n")
    answer("address", "http://127.0.0.1:9\n")
    answer("model for every role", "m\n")
    answer("simple work", "\n")
    answer("writes reports", "\n")
    answer("local servers): ", f"{KEY}\n")  # its last space comes once nothing is shown any more
    answer("US dollars", "0.75\n")
    answer("which", "none\n")
    answer("folder", "notes\n")
    answer("write this?", "\x03" if is_interrupted else "y\n")
    if not is_interrupted:
        until("next: ")
    _, status = os.waitpid(child, 0)
    os.close(terminal)
    assert KEY not in shown
    if is_interrupted:
        assert os.waitstatus_to_exitcode(status) == 5
        assert list(folder.iterdir()) == []
    else:
        assert os.waitstatus_to_exitcode(status) == 0
        settings = load_settings()
        assert settings.runs.max_cost_usd == 0.75
        assert settings.corpus["notes"].path == tmp_path / "notes"
        assert settings.model_keys()["default"].get_secret_value() == KEY
