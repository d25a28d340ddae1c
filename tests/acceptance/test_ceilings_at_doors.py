"""Ceilings, the money of a day and tenants at every way into a real `research serve`, tried by somebody who wants more."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client import Client
from temporalio.client import WorkflowExecutionStatus, WorkflowFailureError
from temporalio.exceptions import ActivityError

from client.handle import ResearchClient
from contracts import names
from contracts.messages import refresh_schedule
from contracts.resolved import ResolvedResearch
from contracts.tenants import proof
from tests.acceptance.test_assistants import printed
from tests.acceptance.test_ceilings import Forged
from tests.acceptance.topology import Topology, topology
from tests.integration.runs import QUESTION
from workers.tenants import TenantSigner

pytestmark = [pytest.mark.acceptance, pytest.mark.soak, pytest.mark.timeout(240)]

LAB = b"the-key-of-the-lab-0123"
ALL = b"the-key-of-the-page-0123"
CONFIGURATION = """
[models.prices.test-model]
input = 5.0
output = 25.0
[limits]
beyond = "{beyond}"
[limits.ceiling]
max_cost_usd = 0.5
depth = "medium"
[limits.tenants.lab]
max_cost_usd = 1.5
[budgets]
usd_per_day = {usd}
"""
FORGED = {"research-tenant": proof({"lab": b"another-key-of-16-bytes"}, "r-1", "lab")}
"""A header of the engine's starts, which no way over HTTP passes on."""


@dataclass
class Doors:
    """The ways into one `serve`, each with what its user sends."""

    made: Topology
    page: str
    chat: str
    tools: str
    http: httpx2.AsyncClient
    form_key: str = ""
    headers: dict[str, str] = field(default_factory=dict)

    async def open_page(self, user: str) -> None:
        """Enter the page by its printed address, as the proxy of a user."""
        self.headers = {"x-user": user, **FORGED}
        await self.http.get(self.page, headers=self.headers, follow_redirects=True)
        home = await self.http.get(self.page.partition("?")[0], headers=self.headers)
        found = re.search(r'name="form_key" value="([0-9a-f]+)"', home.text)
        assert found is not None, home.text
        self.form_key = found[1]

    async def preview(self, **form: str) -> str:
        """What the page says before a run, with fields that its form does not have."""
        fields = {"form_key": self.form_key, "query": QUESTION, "corpus": "documents", **form}
        address = self.page.partition("?")[0].rstrip("/") + "/preview"
        return (await self.http.post(address, data=fields, headers=self.headers)).text

    async def say(self, **body: Any) -> httpx2.Response:
        """What the chat answers to a request with fields that it does not know."""
        message = {"role": "user", "content": body.pop("question", QUESTION)}
        request = {"model": "deep-research/supervisor/documents", "messages": [message], **body}
        return await self.http.post(f"{self.chat}/chat/completions", json=request, headers=FORGED, timeout=120)


@asynccontextmanager
async def doors(made: Topology, *words: str) -> AsyncIterator[Doors]:
    """Serve all doors for the time of a block."""
    ports = [word for door in ("mcp", "chat", "page") for word in (f"--{door}-port", "0")]
    serving = await made.begin("serve", *ports, *words)
    try:
        addresses = {name: await printed(serving, name) for name in ("tools", "chat", "page")}
        async with httpx2.AsyncClient() as http:
            yield Doors(made, addresses["page"], addresses["chat"], addresses["tools"], http)
    finally:
        serving.terminate()
        output, errors = await serving.communicate()
        assert b"Traceback" not in output + errors, errors.decode()


def configured(made: Topology, beyond: str, usd: float) -> None:
    """Replace the configuration, for the next processes."""
    corpus = f'\n[corpus.documents]\npath = "{made.documents}"\n'
    (made.home / "research.toml").write_text(CONFIGURATION.format(beyond=beyond, usd=usd) + corpus, encoding="utf-8")


async def call(client: Client, tool: str, **arguments: Any) -> tuple[bool, str]:
    """Whether a tool refused, and what it said."""
    answer = await client.call_tool(tool, arguments)
    assert answer.content[0].type == "text"
    return bool(answer.is_error), answer.content[0].text


async def test_no_way_in_gives_more_than_the_operator_allows(tmp_path: Path) -> None:
    """Page, chat, tools, schedule and dry run show the ceiling in force, and refuse or cut as configured.

    A tenant in a form, a body, a header, an argument or an address does not count; the page proves the users of its
    proxy. What is left of a day's money and when it returns is named, and a run that costs less gets it.
    """
    async with topology(tmp_path) as made:
        made.variables = {"RESEARCH_TENANT_KEYS": f"lab={LAB.decode()},*={ALL.decode()}"}
        configured(made, "refuse", 50.0)
        async with doors(made, "--page-user-header", "X-User") as serving:
            await try_page(serving)
            await try_chat(serving)
            await try_tools(serving)
            await try_commands(made)
            await try_documents(made)
        configured(made, "cut", 50.0)
        async with doors(made) as serving, Client(serving.tools) as client:
            refused, said = await call(
                client, "start_research", question=QUESTION, corpus="documents", max_cost_usd=9.0
            )
            assert (refused, "max_cost_usd: 0.50 in place of 9.00, as the operator allows no more" in said) == (
                False,
                True,
            )
        configured(made, "refuse", 0.3)
        async with doors(made) as serving:
            await try_money(serving)


async def try_page(serving: Doors) -> None:
    """The header of the proxy is the tenant; fields of the form are none."""
    await serving.open_page("lab")
    assert "ceiling: tenant lab, 1.50 US dollars, depth medium" in await serving.preview()
    assert "depth: extended is deeper than medium" in await serving.preview(depth="extended")
    await serving.open_page("guest")
    attempts = {"tenant": "lab", "limits": '{"max_cost_usd": 9}', "limits.max_cost_usd": "9", "x-user": "lab"}
    shown = await serving.preview(**attempts)
    assert "ceiling: tenant guest, 0.50 US dollars, depth medium" in shown
    assert "Limit of costs</dt><dd>0.50 US dollars" in shown
    address = serving.page.partition("?")[0].rstrip("/")
    forged = {"form_key": serving.form_key, "query": QUESTION, "corpus": "documents", "research_id": "guest-1"}
    started = await serving.http.post(f"{address}/start", data={**forged, **attempts}, headers=serving.headers)
    assert started.headers["location"] == "/runs/guest-1"
    resolved = await resolution(serving.made, "guest-1")
    assert (resolved.tenant, resolved.limits.max_cost_usd) == ("guest", 0.5)


async def try_chat(serving: Doors) -> None:
    """A conversation is of the tenant of the process, whatever its request names, and shows the ceiling first."""
    answer = await serving.say(
        tenant="lab", user="lab", metadata={"tenant": "lab"}, max_cost_usd=9, limits={"depth": 9}
    )
    assert answer.status_code == 200, answer.text
    reasoning = answer.json()["choices"][0]["message"]["reasoning_content"]
    assert "ceiling: tenant default, 0.50 US dollars, depth medium" in reasoning
    answer = await serving.say(question="Which locks are there?", reasoning_effort="high")
    assert (answer.status_code, "depth: extended is deeper than medium" in answer.text) == (422, True)


async def try_tools(serving: Doors) -> None:
    """Tools name the ceiling in their description, and take neither a tenant nor a higher cap."""
    async with Client(serving.tools) as client:
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert "a run ends at 0.50 US dollars at most" in (listed["start_research"].description or "")
        asked = {"question": QUESTION, "corpus": "documents"}
        assert (await call(client, "start_research", **asked, tenant="lab"))[1].startswith(
            "start_research has no argument"
        )
        refused, said = await call(client, "start_research", **asked, max_cost_usd=1.0)
        assert (refused, said.startswith("max_cost_usd: the operator allows at most 0.50")) == (True, True)
        refused, said = await call(client, "start_research", **asked, depth="extended")
        assert (refused, said.startswith("depth: extended is deeper than medium")) == (True, True)
        refused, said = await call(client, "start_research", **asked, max_cost_usd=0.2)
        assert (refused, "ceiling: tenant default, 0.50 US dollars" in said) == (False, True)


async def try_commands(made: Topology) -> None:
    """A dry run and a schedule of refreshes, beside workers; the tenant that a command names needs its key."""
    code, output, errors = await made.command(
        "run", QUESTION, "--corpus", "documents", "--dry-run", "--set", "tenant=lab"
    )
    assert (code, "ceiling: tenant lab, 1.50 US dollars" in output) == (0, True), errors
    made.variables |= {"RESEARCH_TENANT_KEYS": ""}
    code, output, errors = await made.command(
        "run", QUESTION, "--corpus", "documents", "--dry-run", "--set", "tenant=lab"
    )
    assert (code, "ceiling: tenant default, 0.50 US dollars" in output) == (0, True), errors
    beyond = ("--dry-run", "--set", "limits.max_cost_usd=1")
    code, _, errors = await made.command("run", QUESTION, "--corpus", "documents", *beyond)
    assert (code, "limits.max_cost_usd: 1.00 is more than the 0.50 allowed" in errors) == (2, True)
    living = ("run", QUESTION, "--corpus", "documents", "--strategy", "living", "--id", "live-1", "--quiet")
    code, _, errors = await made.command(*living, "--set", "gates.approve=none")
    assert code in (0, 3), errors
    code, output, errors = await made.command("refresh", "live-1", "--every", "1d")
    assert (code, "ceiling: tenant default, 0.50 US dollars" in errors) == (0, True), output
    code, _, errors = await made.command("refresh", "live-1", "--every", "2d", "--set", "limits.max_cost_usd=1")
    assert (code, "limits.max_cost_usd: 1.00 is more than the 0.50 allowed" in errors) == (4, True), errors
    made.variables = {"RESEARCH_TENANT_KEYS": f"lab={LAB.decode()},*={ALL.decode()}"}


async def try_documents(made: Topology) -> None:
    """A client of the engine reads the documents of the tenant that it proves, not of the one that it names."""
    client = await made.client()
    stolen = {"research_id": "guest-1", "name": "session.json", "tenant": "guest", "tenant_proof": "{}"}
    for connected in (
        client,
        await other_client(made, Forged("{}")),
        await other_client(made, TenantSigner({"lab": LAB})),
    ):
        with pytest.raises(WorkflowFailureError) as failed:
            await connected.execute_workflow(
                names.RESEARCH_DOCUMENT, stolen, id="stolen", task_queue=names.WORKFLOWS_QUEUE
            )
        assert isinstance(failed.value.cause, ActivityError)
        assert "there is no such session" in str(failed.value.cause.cause)
    own = ResearchClient(await other_client(made, TenantSigner({"*": ALL}))).handle("guest-1")
    assert json.loads(await own.document("session.json", tenant="guest"))["resolved"]["tenant"] == "guest"
    lab = await other_client(made, TenantSigner({"lab": LAB}))
    for asking, tenant, usd in ((client, "default", 0.5), (lab, "lab", 1.5)):
        described = await asking.execute_workflow(
            names.RESEARCH_METADATA, id=f"described-{tenant}", task_queue=names.WORKFLOWS_QUEUE
        )
        limits = described["research_settings_schema"]["properties"]["limits"]["properties"]
        assert (limits["max_cost_usd"]["default"], limits["max_cost_usd"]["maximum"]) == (usd, usd)


async def try_money(serving: Doors) -> None:
    """Each way names what is left and when it returns; a run that may cost less gets it, and a form is refused."""
    left = re.compile(
        r"budget: this run may cost 0\.50 US dollars, and 0\.\d\d of 0\.30 are left today .* in \d+ h \d+ min"
    )
    address = serving.page.partition("?")[0].rstrip("/")
    await serving.http.get(serving.page, follow_redirects=True)
    home = await serving.http.get(address)
    found = re.search(r'name="form_key" value="([0-9a-f]+)"', home.text)
    assert found is not None
    serving.form_key = found[1]
    assert left.search(await serving.preview())
    answer = await serving.say(question="What does autovacuum do?")
    assert (answer.status_code, bool(left.search(answer.text))) == (422, True), answer.text
    async with Client(serving.tools) as client:
        refused, said = await call(client, "start_research", question=QUESTION, corpus="documents")
        assert (refused, bool(left.search(said)), "limits.max_cost_usd" in said) == (True, True, False), said
    code, _, errors = await serving.made.command("run", QUESTION, "--corpus", "documents", "--dry-run")
    assert (code, bool(left.search(errors))) == (4, True), errors

    client = await serving.made.client()
    refresh = client.get_schedule_handle(refresh_schedule("live-1"))
    await refresh.trigger()
    async with asyncio.timeout(60):
        while (await client.get_workflow_handle("live-1").describe()).status is not WorkflowExecutionStatus.FAILED:
            await asyncio.sleep(0.2)
    code, output, _ = await serving.made.command("doctor")
    assert re.search(r"warn refreshes +the last refresh of live-1: budget: this run may cost 0\.50", output), output
    assert "live-1 completed" in (await serving.made.command("status", "live-1"))[1]
    assert (await serving.made.command("refresh", "live-1", "--every", "off"))[0] == 0


async def other_client(made: Topology, interceptor: Any) -> Any:
    """A client of the engine with an interceptor of its own."""
    plain = await made.client()
    configuration = plain.config() | {"interceptors": [interceptor]}
    return type(plain)(**configuration)


async def resolution(made: Topology, research_id: str) -> ResolvedResearch:
    """What the workers made of the request of a run."""
    handle = ResearchClient(await made.client()).handle(research_id)
    while (resolved := (await handle.session()).work.resolved) is None:
        await asyncio.sleep(0.2)
    return resolved
