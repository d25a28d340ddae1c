"""Waiting for a person on real servers: over the web, without workers, over a new history, and at the command line."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError

from contracts import names
from contracts.outcome import ResearchResult, ResearchStatus
from contracts.plan import APPROVAL_PHRASE, PlanAnswer
from contracts.vocabulary import Outcome, RunStatus, StopReason
from tests.every_strategy.joined import NAMES, toy_declared
from tests.fakes.web_world import WebWorld
from tests.fakes.webhook_receiver import WebhookReceiver
from tests.fakes.world import World
from tests.integration.conftest import Server, running_workers
from tests.integration.runs import QUESTION, start, until
from tests.integration.test_long_histories import short_histories
from tests.integration.web_pools import over_the_web, web_workers
from tests.unit.client.cli.command_line import research
from workers.settings.sections import NotifySettings

pytestmark = pytest.mark.integration

Handle = WorkflowHandle[Any, ResearchResult]
APPROVE = {"approve": "plan", "think": "rules"}


@pytest.fixture(autouse=True)
def _declared() -> Iterator[None]:
    with toy_declared():
        yield


async def asked(handle: Handle) -> int:
    status = await until(handle, lambda known: known.status is RunStatus.AWAITING_APPROVAL)
    assert status.waiting is not None
    return status.waiting.plan_version


@pytest.mark.parametrize(
    "strategies",
    [pytest.param(("supervisor", "recursive"), id="two"), pytest.param(NAMES, id="every", marks=pytest.mark.soak)],
)
async def test_nothing_leaves_before_the_plan_is_approved(
    client: Client, tmp_path: Path, strategies: tuple[str, ...]
) -> None:
    """No search, page, robots.txt or look at a provider before, also through the loss of all workers.

    The operator gets a notice of each wait and of each end. On a server, because only composed workers have all that
    connects anywhere (X-2).
    """
    async with WebWorld() as world, WebhookReceiver() as receiver:
        notify = NotifySettings(url=f"{receiver.base_url}/hook", allow_hosts=[receiver.place])
        async with web_workers(client, tmp_path, world, notify=notify):
            request = over_the_web(gates=APPROVE, limits={"max_sources": 2}, depth="light")
            runs: dict[str, Handle] = {
                name: await start(client, request | {"strategy": name}, id=f"r-web-{name}") for name in strategies
            }
            for handle in runs.values():
                await asked(handle)
        assert world.asked == []
        async with web_workers(client, tmp_path, world, notify=notify):
            for handle in runs.values():
                await handle.execute_update(names.REVISE_PLAN, args=[{"sub_queries": [QUESTION]}, 1])
                # A strategy may judge the edit before it asks again.
                await until(handle, lambda known: known.waiting is not None and known.waiting.plan_version == 2)
                with pytest.raises(WorkflowUpdateFailedError) as stale:
                    await handle.execute_update(names.APPROVE_PLAN, args=[1])
                assert "older than the plan that there is" in str(stale.value.cause)
            assert world.asked == []
            for name, handle in runs.items():
                await handle.execute_update(names.APPROVE_PLAN, args=[2])
                result = await handle.result()
                plan = await handle.query(names.PLAN, result_type=PlanAnswer)
                assert (plan.version, plan.approved_version, plan.waiting) == (2, 2, None), name
                assert result.outcome in (Outcome.COMPLETED, Outcome.PARTIAL), result
                assert result.counts.sources, name
            # The notice of a wait may be older than the loss of the workers, and then arrives after that of the end.
            due = {(handle.id, kind) for handle in runs.values() for kind in ("run.waiting", "run.ended")}
            while not due <= {(body["research_id"], body["type"]) for body in receiver.bodies()}:
                await asyncio.sleep(0.05)
        waits = {body["research_id"]: body for body in receiver.bodies() if body["type"] == "run.waiting"}
        for research_id, body in waits.items():
            assert body["state"] == "awaiting_approval"
            assert body["next"][0].startswith(f"research approve {research_id} --version ")
        assert any(place.endswith("/robots.txt") for place in world.asked)


async def at_command_line(server: Server, home: Path, *words: str) -> tuple[int, str]:
    """Run the `research` command beside the workers: exit code and output."""
    done = await asyncio.to_thread(research, *words, TEMPORAL_ADDRESS=server.address, RESEARCH_HOME=str(home))
    return done.exit_code, done.output


async def test_a_question_is_answered_and_a_plan_rejected_at_the_command_line(
    client: Client, server: Server, tmp_path: Path
) -> None:
    """`research answer` and `research reject` reach a run that waits for them, and refuse what it does not wait for."""
    gates = {"clarify": "required", "approve": "plan", "think": "rules"}
    async with running_workers(client, World(tmp_path)):
        handle = await start(client, {"query": QUESTION, "corpus": "manual", "gates": gates}, id="r-command-line")
        await until(handle, lambda known: known.status is RunStatus.AWAITING_CLARIFICATION)
        for words, problem in (
            (("reject", handle.id), "waits for an answer"),
            (("answer", handle.id, "one", "two"), "answers: 2 were given to 1 question"),
        ):
            code, said = await at_command_line(server, tmp_path, *words)
            assert (code, problem in said) == (2, True), said
        assert await at_command_line(server, tmp_path, "answer", handle.id, "Large tables") == (
            0, "taken: the run goes on with your answers\n",
        )  # fmt: skip
        await asked(handle)
        code, said = await at_command_line(server, tmp_path, "reject", handle.id)
        assert (code, "its plan is kept" in said) == (0, True), said
        with pytest.raises(WorkflowFailureError) as rejected:
            await handle.result()
    assert isinstance(rejected.value.cause, ApplicationError)
    assert rejected.value.cause.type == StopReason.APPROVAL_REJECTED.value


async def test_a_plan_is_edited_and_approved_at_the_command_line(
    client: Client, server: Server, tmp_path: Path
) -> None:
    """What cannot be taken is told by its field, the exact command is named, and agents do what was agreed upon (X-1)."""
    plan, identity = tmp_path / "plan.md", ("approve", "r-edited", "--version")
    async with running_workers(client, World(tmp_path)):
        request = {"query": QUESTION, "corpus": "manual", "gates": {"approve": "phrase"}, "strategy": "orchestrator"}
        handle = await start(client, request, id="r-edited")
        await asked(handle)
        named = f"research approve r-edited --version 1 --phrase '{APPROVAL_PHRASE}'"
        assert named in (await at_command_line(server, tmp_path, "status", "r-edited"))[1]
        edited = "- What does vacuum freeze?\n- What has autovacuum?\n"
        for text, code, said in (
            (f"- {'x' * 600}", 2, "sub_queries.0.query: "),
            (edited, 0, "the plan is version 2 now; approve it to begin"),
        ):
            plan.write_text(text)
            done = await at_command_line(server, tmp_path, "plan", "r-edited", "--set", str(plan))
            assert (done[0], said in done[1]) == (code, True), done
        for words, code, said in (
            (("1", "--phrase", APPROVAL_PHRASE), 2, "version: 1 is older than the plan that there is"),
            (("2", "--phrase", "so be it"), 2, f"phrase: this run wants exactly these words: {APPROVAL_PHRASE}"),
            (("2", "--phrase", f"{APPROVAL_PHRASE.lower()}."), 0, "approved"),
        ):
            done = await at_command_line(server, tmp_path, *identity, *words)
            assert (done[0], said in done[1]) == (code, True), done
        await handle.result()
        agents = (await handle.query(names.STATUS, result_type=ResearchStatus)).agents
    named = [[word in agent.task for word in ("freeze", "autovacuum")] for agent in agents]
    assert named == [[True, False], [False, True]]


async def test_a_scope_is_edited_until_no_objection_is_left(client: Client, server: Server, tmp_path: Path) -> None:
    """At the command line: an approval names the query and what to split, nothing overrules what was computed, and an
    edit is judged under its own version (S4-006, S4-008, C4-10).
    """
    many = ", ".join(f"part {number}" for number in range(20))
    plan, identity = tmp_path / "plan.md", ("approve", "r-scoped", "--phrase", APPROVAL_PHRASE)
    async with running_workers(client, World(tmp_path)):
        request = {"query": QUESTION, "corpus": "manual", "strategy": "recursive", "depth": "light"}
        handle = await start(client, request, id="r-scoped")
        assert await asked(handle) == 1
        plan.write_text(f"- Compare {many}\n")
        done = await at_command_line(server, tmp_path, "plan", "r-scoped", "--set", str(plan))
        assert (done[0], "plan version 2 is judged now" in done[1]) == (0, True), done
        await until(handle, lambda status: status.waiting is not None and status.waiting.plan_version == 2)
        for words in ((), ("--overrule",)):
            code, said = await at_command_line(server, tmp_path, *identity, *words)
            assert (code, "it names 20 things" in said, "nothing overrules this" in said) == (2, True, True), said
        assert "split it into 2 queries" in (await at_command_line(server, tmp_path, "plan", "r-scoped"))[1]
        plan.write_text(f"- {QUESTION}\n")
        await at_command_line(server, tmp_path, "plan", "r-scoped", "--set", str(plan))
        await until(handle, lambda status: status.waiting is not None and status.waiting.plan_version == 3)
        code, said = await at_command_line(server, tmp_path, *identity)
        assert (code, "approved" in said) == (0, True), said
        await handle.result()


async def test_a_wait_survives_a_new_history(tmp_path: Path) -> None:
    """However often a plan is edited, the history starts anew, and the run waits on for the same until the same time.

    On a server, because a host in the process has no history.
    """
    async with short_histories(30) as client, running_workers(client, World(tmp_path)):
        request = {"query": QUESTION, "corpus": "manual", "strategy": "orchestrator", "depth": "light"}
        handle = await start(client, request | {"gates": APPROVE})
        version = await asked(handle)
        known = await until(handle, lambda status: status.waiting is not None)
        first = (await handle.describe()).run_id
        while (await handle.describe()).run_id == first:
            edit = {"sub_queries": [f"What about part {version} of wraparound?"]}
            try:
                await handle.execute_update(names.REVISE_PLAN, args=[edit, version])
            except WorkflowUpdateFailedError as refused:
                if "getting ready" not in str(refused.cause):
                    raise
                continue  # between two histories nobody can say yet what is waited for; nothing is lost
            version += 1
            while (await handle.query(names.PLAN, result_type=PlanAnswer)).version != version:
                await asyncio.sleep(0.05)
            await asyncio.sleep(0.3)
        status = await until(handle, lambda shown: shown.waiting is not None)
        assert status.waiting is not None
        assert known.waiting is not None
        assert status.waiting.expires_at == known.waiting.expires_at
        await handle.execute_update(names.APPROVE_PLAN, args=[version])
        result = await handle.result()
    assert result.outcome in (Outcome.COMPLETED, Outcome.PARTIAL, Outcome.EMPTY)
