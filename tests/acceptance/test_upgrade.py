"""An upgrade with open runs, on real processes: two builds of different workflow code side by side, and a rollback."""

import asyncio
import json
import shutil
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowHandle

from client.handle import ResearchClient
from contracts import names
from contracts.messages import refresh_schedule
from contracts.names import PACKAGES
from contracts.outcome import ResearchResult
from contracts.request import ResearchRequest
from contracts.vocabulary import Outcome, RunStatus
from tests.acceptance.topology import PYTHON, RESEARCH, ROOT, Topology, topology
from tests.integration.runs import QUESTION, start, until
from workers.versions import pollers_by_version

pytestmark = [pytest.mark.acceptance, pytest.mark.soak, pytest.mark.timeout(900)]

STRATEGIES = ("supervisor", "reflective", "orchestrator", "living", "recursive")
LATENCY = 1.0
UNIT = "    async def _advance(self) -> Unit | Finished:\n"
ADDED = UNIT.replace("_advance", "_advance_as_before")
CHANGE = f'''{UNIT}        """Make one call more before each unit of every strategy."""
        from contracts import activities, messages

        options = call_options(RECORDS_QUEUE, self._run.operation("describe"), "describe the settings")
        await self._run.host.execute(activities.DESCRIBE_RESEARCH, messages.MetadataRequest(), options)
        return await self._advance_as_before()

{ADDED}'''
"""The second build: an activity more in each strategy, which no open run of the first build could be replayed with."""


def write_second_build(folder: Path) -> None:
    """Copy the product and change its workflows."""
    for package in PACKAGES:
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "durable_research", folder / "durable_research", dirs_exist_ok=True)
    driver = folder / "workflows" / "driver.py"
    text = driver.read_text(encoding="utf-8")
    assert text.count(UNIT) == 1
    driver.write_text(text.replace(UNIT, CHANGE), encoding="utf-8")


@asynccontextmanager
async def pool_of_build(
    made: Topology, tree: Path, build_id: str, pools: str, client: Client
) -> AsyncIterator[asyncio.subprocess.Process]:
    """A worker process of the code in a folder, once it polls."""
    command = (PYTHON, *RESEARCH, "worker", "--log-format", "json", "--pool", pools)
    environment = made.environment() | {"RESEARCH_BUILD_ID": build_id}
    with (made.home / f"{build_id}-{pools[:9]}.log").open("ab") as log:
        process = await asyncio.create_subprocess_exec(*command, cwd=tree, env=environment, stdout=log, stderr=log)
    try:
        while "workflows" in pools and build_id not in await pollers_by_version(client):
            assert process.returncode is None
            await asyncio.sleep(0.1)
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def builds_of(client: Client, research_id: str) -> list[str]:
    """The versions that completed tasks of the executions of a run, in order, each once in a row."""
    found: list[str] = []
    executions = [run async for run in client.list_workflows(f'WorkflowId="{research_id}"')]
    for execution in sorted(executions, key=lambda run: run.start_time):
        history = await client.get_workflow_handle(research_id, run_id=execution.run_id).fetch_history()
        for event in history.events:
            completed = event.workflow_task_completed_event_attributes
            if event.HasField("workflow_task_completed_event_attributes"):
                build_id = completed.deployment_version.build_id
                found += [build_id] if found[-1:] != [build_id] else []
    return found


async def is_open(client: Client, research_id: str) -> bool:
    """Return whether a run is open; the server's list of runs may be a moment late."""
    return (await client.get_workflow_handle(research_id).describe()).status is WorkflowExecutionStatus.RUNNING


async def is_at(client: Client, research_id: str, build_id: str) -> None:
    """Wait until a run waits for its approval on a version."""
    while True:
        described = await client.get_workflow_handle(research_id).describe()
        if described.raw_description.workflow_execution_info.versioning_info.deployment_version.build_id == build_id:
            return
        await asyncio.sleep(0.2)


async def test_an_upgrade_with_fifteen_open_runs_loses_none_and_pays_nothing_twice(tmp_path: Path) -> None:
    """Runs of each strategy in different phases, three that wait for approval, a live report with a schedule: the next
    version has an activity more in each strategy. It is promoted, rolled back, promoted again; the first one is drained
    and removed. All complete, none is parked, no answer is paid twice.
    """
    second = tmp_path / "second"
    second.mkdir()
    write_second_build(second)
    async with topology(tmp_path / "home", LATENCY) as made:
        client = await made.client()
        research = ResearchClient(client)

        async def command(*words: str) -> Any:
            code, output, errors = await made.command("workers", *words, "--json")
            assert code == 0, (words, output, errors)
            return json.loads(output)

        def asked(number: int, strategy: str, **more: Any) -> dict[str, Any]:
            common = {"corpus": "documents", "strategy": strategy, "gates": {"approve": "none"}}
            return {"query": f"{QUESTION} Case {number}.", **common, **more}

        runs: dict[str, WorkflowHandle[Any, ResearchResult]] = {}
        async with pool_of_build(made, ROOT, "one", "models,search,reading,records", client):
            async with pool_of_build(made, ROOT, "one", "workflows", client) as first:
                live = await start(client, asked(0, "living"), id="r-live")
                assert (await live.result()).outcome is Outcome.COMPLETED
                await research.schedule_refresh(
                    ResearchRequest(query=f"{QUESTION} Case 0.", continue_from="r-live", refresh=True),
                    "r-live",
                    timedelta(days=1),
                )
                waiting = [f"r-waits-{strategy}" for strategy in STRATEGIES[:3]]
                for number, strategy in enumerate(STRATEGIES[:3]):
                    request = asked(20 + number, strategy, gates={"approve": "plan"})
                    runs[waiting[number]] = await start(client, request, id=waiting[number])
                for name in waiting:
                    await until(runs[name], lambda known: known.status is RunStatus.AWAITING_APPROVAL)
                async with pool_of_build(made, second, "two", "workflows", client):
                    for number in range(12):
                        strategy = STRATEGIES[number % len(STRATEGIES)]
                        name = f"r-{number}-{strategy}"
                        runs[name] = await start(client, asked(number + 1, strategy), id=name)
                        await asyncio.sleep(0.4)  # so that they are in different phases
                    open_before = [name for name in runs if await is_open(client, name)]
                    promoted = await command("promote", "two")
                    for name in waiting:
                        await is_at(client, name, "two")
                    for number, strategy in enumerate(STRATEGIES[:2]):
                        name = f"r-second-{strategy}"
                        runs[name] = await start(client, asked(30 + number, strategy), id=name)
                        await is_at(client, name, "two")
                    await command("promote", "one")  # rollback
                    for name in waiting:
                        await is_at(client, name, "one")
                    await command("promote", "two")
                    for name in waiting:
                        await is_at(client, name, "two")
                        await research.handle(name).approve_plan(1)
                    await client.get_schedule_handle(refresh_schedule("r-live")).trigger()
                    assert (await command("drain", "one", "--wait", "5"))["open_runs"] == 0
                    builds = {name: await builds_of(client, name) for name in runs}
                    first.kill()
                    await first.wait()
                    results = {name: await client.get_workflow_handle(name).result() for name in runs}
                    refreshes = [run async for run in client.list_workflows(f'WorkflowType="{names.RESEARCH_REFRESH}"')]
                    doctor = json.loads((await made.command("doctor", "--json"))[1])
        twice = made.answered_twice()
        outcomes = Counter(result["outcome"] for result in results.values())
        figures = {"open": open_before, "promoted": promoted, "outcomes": outcomes, "calls": len(made.model.calls)}
        print(figures, builds)  # noqa: T201  the figures of the page
        assert outcomes == {Outcome.COMPLETED.value: len(runs)}, results
        assert open_before == list(runs)[:15]
        assert all(builds[name][0] == "one" for name in open_before)
        assert all(builds[name][0] == "one" and builds[name][-1] == "two" for name in waiting)
        assert all(builds[f"r-second-{strategy}"][0] == "two" for strategy in STRATEGIES[:2])
        assert refreshes
        assert [each for each in doctor if each["name"] in ("runs", "versions") and each["grade"] == "fail"] == []
        assert not twice


async def test_a_run_whose_version_is_gone_goes_on_with_the_new_one(tmp_path: Path) -> None:
    """Its worker was killed and never returns: `doctor` names version and run, and `resume --version new` goes on from
    the last checkpoint under the same id; no answer is paid twice.
    """
    second = tmp_path / "second"
    second.mkdir()
    write_second_build(second)
    pools = "workflows,models,search,reading,records"
    async with topology(tmp_path / "home", LATENCY) as made:
        client = await made.client()
        async with pool_of_build(made, ROOT, "one", pools, client):
            request = {"query": QUESTION, "corpus": "documents", "gates": {"think": "rules"}}
            handle = await start(client, request, id="r-left")
            await until(handle, lambda known: known.counts.findings > 0)
            await made.quiet_moment()
        async with pool_of_build(made, second, "two", pools, client):
            assert (await made.command("workers", "promote", "two"))[0] == 0
            while True:
                checks = json.loads((await made.command("doctor", "--json"))[1])
                failed = [check for check in checks if check["name"] == "versions" and check["grade"] == "fail"]
                if failed:
                    break
                await asyncio.sleep(2)
            assert "no worker serves version one: r-left" in failed[0]["found"]
            code, output, errors = await made.command("resume", "r-left", "--version", "new", "--json")
            assert code == 0, errors
            assert ResearchResult.model_validate_json(output).outcome is Outcome.COMPLETED
            assert await builds_of(client, "r-left") == ["one", "two"]
        assert made.answered_twice() == []
