"""First use and notices with real processes: the demo in a scratch home, and a notice that outlives killed processes."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.test_assistants import printed
from tests.acceptance.topology import topology
from tests.fakes.webhook_receiver import WebhookReceiver
from tests.integration.runs import QUESTION
from workers.settings.loading import child_environment

pytestmark = [pytest.mark.acceptance, pytest.mark.soak, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-P", "-c", "from client.cli import main; main()"]


async def test_a_notice_outlives_killed_processes_and_is_delivered_once(tmp_path: Path) -> None:
    """The receiver is away while a run ends, and everything is killed; after a new start it gets one notice."""
    async with WebhookReceiver() as away:
        port, url, place = away.port, away.base_url, away.place
    configuration = f'[notify]\nurl = "{url}/hook"\nallow_hosts = ["{place}"]\ninclude = ["question"]\n'
    async with topology(tmp_path, configuration=configuration) as made:
        first = await made.begin("serve", "--no-mcp", "--no-chat")
        page = await printed(first, "page")
        code, printed_id, errors = await made.ask("start", QUESTION, "--corpus", "documents", "--engine", "extractive")
        assert code == 0, errors
        research_id = printed_id.strip()
        code, watched, errors = await made.command("watch", research_id, "--json")
        assert code in (0, 3), errors
        await asyncio.sleep(3)  # some attempts find nobody
        made.kill_server()
        first.kill()
        await first.wait()
        async with WebhookReceiver(port=port) as back:
            second = await made.begin("serve", "--no-mcp", "--no-chat")
            async with asyncio.timeout(120):
                (body,) = await back.until(1)
            await asyncio.sleep(5)
            assert len(back.requests) == 1
            second.terminate()
            await second.communicate()
        assert (body["type"], body["research_id"]) == ("run.ended", research_id)
        assert body["question"] == QUESTION
        assert body["outcome"] == json.loads(watched)["outcome"]
        assert body["link"].endswith(f"/runs/{research_id}")
        assert body["link"].startswith(page.partition("?")[0].rpartition(":")[0])
        await first.communicate()


async def test_a_run_of_one_command_delivers_its_notice_before_its_workers_end(tmp_path: Path) -> None:
    """With nothing else running, the notice is there when the command has ended; a receiver that is away holds it 3 s."""
    async with WebhookReceiver() as receiver:
        configuration = f'[notify]\nurl = "{receiver.base_url}"\nallow_hosts = ["{receiver.place}"]\n'
        async with topology(tmp_path, configuration=configuration) as made:
            run = ["run", QUESTION, "--corpus", "documents", "--engine", "extractive", "--quiet"]
            code, _, errors = await made.command(*run)
            assert code in (0, 3), errors
            assert "was not delivered yet" not in errors
            (body,) = receiver.bodies()
            assert body["type"] == "run.ended"
            await receiver.__aexit__()
            code, _, errors = await made.command(*run)
            assert code in (0, 3), errors
            assert "the notice of this run was not delivered yet" in errors
            await receiver.__aenter__()


def test_the_demo_needs_no_key_and_writes_nothing_where_it_is_called(tmp_path: Path) -> None:
    """Settings of the shell do not change it; it names three commands, and the second of them finds no difference."""
    here = tmp_path / "here"
    here.mkdir()
    home = tmp_path / "home"
    own = {"RESEARCH_HOME": str(home), "PYTHONPATH": str(ROOT), "HOME": str(tmp_path), "COLUMNS": "120"}
    own |= {"RESEARCH_MODEL": "m", "ANTHROPIC_API_KEY": "planted", "ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}
    environment = child_environment() | own
    done = subprocess.run([*COMMAND, "demo"], cwd=here, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "nothing leaves this machine" in done.stderr
    assert "What is in none of" not in done.stdout
    assert list(here.iterdir()) == []
    assert (home / "demo" / "python-docs" / "library").is_dir()
    (audit,) = [line for line in done.stderr.splitlines() if " audit r-" in line and line.startswith("  ")]
    audited = subprocess.run(
        [*COMMAND, "audit", audit.split()[-1]], cwd=here, env=environment, capture_output=True, text=True, check=False
    )
    assert audited.returncode == 0, audited.stdout + audited.stderr
    assert list(here.iterdir()) == []
    assert list((home / "demo" / "reports").iterdir())
