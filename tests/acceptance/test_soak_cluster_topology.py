"""Ten processes with the commands and variables of docker-compose.yml: one of each pool dies, and nothing is lost."""

import asyncio
import json
from collections import Counter
from pathlib import Path

import pytest
from temporalio.client import Client

from contracts.names import POOLS
from contracts.outcome import ResearchResult
from contracts.vocabulary import Outcome
from tests.acceptance.cluster import Cluster, cluster, deciding, holders, shared_keys
from tests.integration.runs import QUESTION, start

pytestmark = [pytest.mark.acceptance, pytest.mark.soak, pytest.mark.timeout(400)]

OTHER_QUESTION = "How many workers may the autovacuum daemon have?"
PASSWORD = "a-password-of-valkey"
DOTENV = {"RESEARCH_MODEL": "test-model", "ANTHROPIC_API_KEY": "planted-secret-key", "REDIS_PASSWORD": PASSWORD}
LATENCY = 0.6
LONGEST_START, LONGEST_RUN = 90.0, 90.0
PROVIDERS = ["searxng"]
IDS = ("by-command", "by-client")


async def set_up_and_started(made: Cluster) -> None:
    """The set-up, twice, and two workers of each pool."""
    code, said = await made.command("setup")
    assert code == 0, said
    starting = [made.start_worker(pool) for pool in POOLS for _ in range(2)]
    (code, said), *_ = await asyncio.gather(made.command("setup"), *starting)
    assert (code, "there already" in said, "as they should be" in said) == (0, True, True), said
    async with asyncio.timeout(LONGEST_START):
        await made.until_healthy()


async def both_started(made: Cluster, client: Client) -> None:
    """One run by the command, and when it reads its first page, another one by a plain client."""
    words = ["start", QUESTION, "--corpus", "documents", "--web", "--id", "by-command"]
    code, said = await made.command("research", *words, "--set", f"search.providers={json.dumps(PROVIDERS)}")
    assert code == 0, said
    async with asyncio.timeout(LONGEST_RUN):
        await made.reading_begun.wait()
    await start(client, {"query": OTHER_QUESTION, "web": True, "search": {"providers": PROVIDERS}}, id="by-client")


async def strike(made: Cluster, client: Client) -> int:
    """SIGKILL for one worker of each pool, those that work where there are such; how many calls had no answer kept."""
    working: dict[str, int] = {}
    while not (working.get("reading") and working.get("models") and unanswered(made)):
        working = {"workflows": await deciding(client, "by-command")}
        working |= await holders(client, "by-command") | await holders(client, "by-client")
    struck = [
        next((one for one in made.workers if one.running.pid == working.get(pool)), None)
        or next(one for one in made.workers if one.pool == pool)
        for pool in POOLS
    ]
    for worker in struck:
        worker.kill()
    for worker in struck:
        await worker.running.wait()
    kept = len(answers_kept(made))
    calls = len(made.model.calls)
    made.gate.set()
    return calls - kept


def unanswered(made: Cluster) -> bool:
    """Whether a request waits for the model."""
    return any(call.ended is None for call in made.model.calls)


def answers_kept(made: Cluster) -> list[str]:
    """What the shared state holds of both runs' answers."""
    keys = shared_keys(made.valkey_port, PASSWORD)
    return [key for key in keys if "/answer/" in key and any(research_id in key for research_id in IDS)]


async def test_a_worker_of_each_pool_is_killed_and_nothing_is_lost(tmp_path: Path) -> None:
    """Two workers a pool, one killed in each: reports are complete, cite the web, and no answer is paid twice (S0-131)."""
    async with cluster(tmp_path, DOTENV, latency=LATENCY, slow_pages=True) as made:
        await set_up_and_started(made)
        client = await made.client()
        await both_started(made, client)
        watching = await made.begin("research", "watch", "by-command", "--json")
        async with asyncio.timeout(LONGEST_RUN):
            lost_at_most = await strike(made, client)
        async with asyncio.timeout(LONGEST_RUN):
            other = await client.get_workflow_handle("by-client", result_type=ResearchResult).result()
            output, _ = await watching.communicate()
        results = dict(zip(IDS, [ResearchResult.model_validate_json(output), other], strict=True))
        for research_id, result in results.items():
            assert result.outcome is Outcome.COMPLETED, result
            code, said = await made.command("research", "report", research_id, "--format", "json")
            assert code == 0, said
            cited = [source["url"] for source in json.loads(said)["sources"] if source["cited"]]
            assert any(url.startswith(site.url()) for url in cited for site in made.sites), cited
            code, said = await made.command("research", "audit", research_id)
            assert (code, "no difference" in said) == (0, True), said

        calls, answers = len(made.model.calls), len(answers_kept(made))
        assert answers == sum(result.usage.model_calls for result in results.values())
        assert calls - answers <= lost_at_most
        survivors = [worker for worker in made.workers if worker.running.returncode is None]
        assert Counter(worker.pool for worker in survivors) == dict.fromkeys(POOLS, 1)
        for worker in survivors:
            worker.running.terminate()
        assert [await worker.running.wait() for worker in survivors] == [0] * len(POOLS)
