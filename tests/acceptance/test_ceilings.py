"""Ceilings, the money of a day, and tenants, against starts by a plain client of a real engine."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.client import Client, Interceptor, OutboundInterceptor, WorkflowFailureError
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.exceptions import ApplicationError

from client.handle import ResearchClient
from contracts import names
from contracts.tenants import TENANT_HEADER, proof
from tests.acceptance.bench import QUESTION, Bench, benched
from tests.fakes.messages_api import MessagesApi
from workers.dev_server import describe_server
from workers.tenants import TenantSigner

KEY = b"the-key-of-the-lab-0123"
CONFIGURATION = """
[models]
default = "test"
[models.prices.test]
input = 5.0
output = 25.0
[limits]
beyond = "refuse"
[limits.ceiling]
max_cost_usd = 0.5
[limits.tenants.lab]
max_cost_usd = 3.0
[budgets.tenants]
lab = 4.0
"""


class Forged(Interceptor):
    """A client that sends a header of its own making."""

    def __init__(self, text: str) -> None:
        self.text = text

    def intercept_client(self, next: OutboundInterceptor) -> OutboundInterceptor:  # noqa: A002
        text = self.text

        class Starts(OutboundInterceptor):
            async def start_workflow(self, input: Any) -> Any:  # noqa: A002
                payload = Payload(metadata={"encoding": b"json/plain"}, data=text.encode())
                input.headers = {**input.headers, TENANT_HEADER: payload}
                return await super().start_workflow(input)

        return Starts(next)


async def connect(bench: Bench, *interceptors: Interceptor) -> Client:
    server = describe_server(bench.home)
    assert server is not None
    return await Client.connect(server.address, data_converter=pydantic_data_converter, interceptors=list(interceptors))


async def refusal(client: Client, research_id: str, workflow: str = names.DEEP_RESEARCH, **fields: Any) -> str:
    """Start a run that is refused; return why."""
    request = {"query": QUESTION, "web": False, "tenant": "lab", **fields}
    with pytest.raises(WorkflowFailureError) as failed:
        await client.execute_workflow(workflow, request, id=research_id, task_queue=names.WORKFLOWS_QUEUE)
    assert isinstance(failed.value.cause, ApplicationError)
    return failed.value.cause.message


@pytest.mark.soak
def test_no_start_by_a_plain_client_exceeds_what_the_operator_allows(tmp_path: Path) -> None:
    """Without the tenant's key nobody has its ceiling; with it, four runs at once get no more than the day's money, and
    what a killed run has reserved is free for the next one.
    """
    with benched(tmp_path) as bench:
        asyncio.run(serve_and_attack(bench))


async def serve_and_attack(bench: Bench) -> None:
    async with MessagesApi() as api:
        configuration = Path(bench.environment["RESEARCH_CONFIG"])
        address = f'base_url = "{api.base_url}"'
        corpus = f'[corpus.manual]\npath = "{bench.work / "manual"}"\n'
        configuration.write_text(CONFIGURATION.replace("[models]", f"[models]\n{address}") + corpus, "utf-8")
        bench.environment |= {"RESEARCH_TENANT_KEYS": f"lab={KEY.decode()}", "ANTHROPIC_API_KEY": "x"}
        serving = bench.start("serve")
        try:
            await asyncio.to_thread(serving.wait_for, "corpus.ready")
            await attack(bench)
        finally:
            serving.process.terminate()
            await asyncio.to_thread(serving.end)


async def attack(bench: Bench) -> None:
    dear: dict[str, Any] = {"corpus": "manual", "limits": {"max_cost_usd": 3.0}}
    allowed = r"3.00 is more than the 0.50 allowed (the operator's limits.ceiling.max_cost_usd)"
    assert allowed in await refusal(await connect(bench), "r-plain", **dear)
    assert allowed in await refusal(await connect(bench, Forged("{}")), "r-forged", **dear)
    other = Forged(proof({"lab": KEY}, "r-other", "lab"))
    assert allowed in await refusal(await connect(bench, other), "r-replayed", **dear)
    assert "1000000" in await refusal(await connect(bench), "r-endless", limits={"max_cost_usd": 1e308})

    signed = await connect(bench, TenantSigner({"lab": KEY}))
    runs = [f"r-{number}" for number in range(4)]
    waiting: dict[str, Any] = {
        "query": QUESTION,
        "corpus": "manual",
        "limits": {"max_cost_usd": 2.0},
        "gates": {"approve": "plan"},
    }
    for run in runs:
        await signed.start_workflow(names.DEEP_RESEARCH, waiting, id=run, task_queue=names.WORKFLOWS_QUEUE)
    refused: list[str] = []
    granted: list[str] = []
    async with asyncio.timeout(60):
        while len(refused) + len(granted) < len(runs):
            await asyncio.sleep(0.5)
            for run in set(runs) - {*refused, *granted}:
                handle = signed.get_workflow_handle(run)
                if (await handle.describe()).status.name == "FAILED":  # type: ignore[union-attr]
                    refused.append(run)
                elif (await ResearchClient(signed).handle(run).status()).status.value.startswith("awaiting"):
                    granted.append(run)
    assert (len(granted), len(refused)) == (2, 2)
    resolved = (await ResearchClient(signed).handle(granted[0]).session()).work.resolved
    assert resolved is not None
    assert (resolved.tenant, resolved.limits.max_cost_usd) == ("lab", 2.0)
    told = json.loads((await asyncio.to_thread(bench.run, "budget", "--json")).stdout)["tenants"]["lab"]
    assert told["spent"] + told["reserved"] + told["left"] == pytest.approx(4.0)
    assert told["spent"] > 0

    await signed.get_workflow_handle(granted[0]).terminate()
    await asyncio.sleep(31)  # a run that just began counts as open
    waiting["limits"] = {"max_cost_usd": 1.9}  # what the killed run has spent is not free again
    planned = await signed.execute_workflow(
        names.DEEP_RESEARCH_PLAN, waiting, id="plan-1", task_queue=names.WORKFLOWS_QUEUE
    )
    run_handle = ResearchClient(signed).handle(planned["research_id"])
    async with asyncio.timeout(60):
        while not (await run_handle.status()).status.value.startswith("awaiting"):
            await asyncio.sleep(0.5)
    resolved = (await run_handle.session()).work.resolved
    assert resolved is not None
    assert resolved.tenant == "lab"
