"""SIGKILL in every phase: the run goes on, the report is the undisturbed one, no answered call is paid again."""

import asyncio
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from activities.failures import BEAT_SECONDS, FIRST_BEAT_SECONDS
from client.handle import ResearchClient
from contracts.outcome import ResearchResult, ResearchStatus
from contracts.vocabulary import AgentStatus, Outcome, Phase
from tests.acceptance.topology import Topology, topology
from tests.comparable import comparable
from tests.fakes import library_work
from tests.integration.runs import QUESTION, start, until
from workflows.phases.checking import VERIFICATION

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(400)]

REQUEST = {"query": QUESTION, "corpus": "documents"}
CHECKED = {**REQUEST, "verify": "full"}
PHASES = (Phase.PLANNING, Phase.GATHERING, Phase.ANALYSIS, Phase.SYNTHESIS, VERIFICATION)
TWO_PHASES = (Phase.ANALYSIS, VERIFICATION)
SCENARIO = "embroiders"
"""A writer whose statements are in part not borne out, so that there is something to ask a checker."""
LATENCY = 0.5


ROLES_OF_PHASES = {
    Phase.PLANNING: "planner", Phase.ANALYSIS: "analyzer", Phase.SYNTHESIS: "synthesizer", VERIFICATION: "checker"
}  # fmt: skip


def held_role(phase: str) -> dict[str, str]:
    """The role whose calls get no answer until the workers are killed: else a phase may be over before they are."""
    return {ROLES_OF_PHASES[phase]: "slow"} if phase in ROLES_OF_PHASES else {}


@pytest.mark.parametrize("phases", [TWO_PHASES, pytest.param(PHASES, marks=pytest.mark.soak)], ids=["two", "every"])
async def test_workers_killed_in_phases_change_nothing(tmp_path: Path, phases: tuple[str, ...]) -> None:
    """All workers killed once in each of these phases, and once the engine's server, which a worker starts again: same
    report, and each call made once more whose answer was not in the journal (S0-131, invariant 12).
    """
    # The claims of the report are checked and corrected by a model, which is one of the phases.
    async with topology(tmp_path, LATENCY, SCENARIO) as made:
        plan = made.model.plan
        made.model.plan = replace(plan, by_role=held_role(phases[0]))
        await made.start_workers()
        client = await made.client()
        handle = await start(client, CHECKED, id="r-survivor")
        lost = 0
        for phase in phases:
            await until(handle, lambda status, phase=phase: status.phase == phase or status.outcome is not None)
            if phase == VERIFICATION:
                assert (await handle.query("status", result_type=ResearchStatus)).outcome is None
            while phase != Phase.GATHERING and not made.in_flight():
                await asyncio.sleep(0.02)
            if phase == VERIFICATION:
                made.kill_server()
                await until(handle, lambda _: True)  # a worker starts it again
                await made.quiet_moment()
            await made.kill_workers()
            lost = len(made.model.calls) - made.journalled("r-survivor")
            following = phases[phases.index(phase) + 1 :]
            made.model.plan = replace(plan, by_role=held_role(following[0]) if following else {})
            await made.start_workers()
        await until(handle, lambda status: status.outcome is not None)
        result = await handle.result()
        calls = len(made.model.calls)
        made.model.latency = 0.0
        expected = await (await start(client, CHECKED, id="r-undisturbed")).result()
        calls_needed = len(made.model.calls) - calls
    assert result.outcome is expected.outcome is Outcome.COMPLETED
    assert comparable(result.report).replace("r-survivor", "r-undisturbed") == comparable(expected.report)
    assert result.verification == expected.verification
    assert result.verification.correction_counts
    assert calls - calls_needed == lost


AGENTS = {"query": QUESTION, "corpus": "documents", "strategy": "orchestrator"}


async def disturbed(
    made: Topology, request: dict[str, Any], reached: Callable[[ResearchStatus], bool], calls: int, held: str = ""
) -> ResearchResult:
    """Run a request undisturbed and once more with all workers killed while so many calls are under way; compare both.

    Calls of the role `held` get no answer before the kill, so that those calls are under way on a busy machine, too.
    """
    await made.start_workers()
    client = await made.client()
    expected = await (await start(client, request, id="r-undisturbed")).result()
    calls_needed = len(made.model.calls)
    plan = made.model.plan
    made.model.plan = replace(plan, by_role={held: "slow"} if held else {})
    handle = await start(client, request, id="r-disturbed")
    await until(handle, reached)
    while made.in_flight() < calls:
        await asyncio.sleep(0.02)
    await made.kill_workers()
    lost = len(made.model.calls) - calls_needed - made.journalled("r-disturbed")
    made.model.plan = plan
    await made.start_workers()
    result: ResearchResult = await handle.result()
    made_again = len(made.model.calls) - calls_needed
    assert result.outcome is expected.outcome is Outcome.COMPLETED
    assert comparable(result.report) == comparable(expected.report).replace("r-undisturbed", "r-disturbed")
    assert made_again == calls_needed + lost
    return result


@pytest.mark.soak
async def test_workers_killed_while_three_agents_work_change_nothing(tmp_path: Path) -> None:
    """Only calls in flight are paid again; `status` shows the agents, `list` has one run each (invariant 12)."""
    at_work = [AgentStatus.RUNNING] * 3
    async with topology(tmp_path, 0.5) as made:
        await disturbed(made, AGENTS, lambda status: [agent.status for agent in status.agents] == at_work, 3, "agent")
        _, shown, _ = await made.command("status", "r-disturbed")
        _, listed, _ = await made.command("list")
    for number in (1, 2, 3):
        assert re.search(rf"✔ agent-{number} +done · ", shown)
    assert [line.split()[0] for line in listed.splitlines()] == ["r-disturbed", "r-undisturbed"]


LIVING = {"query": QUESTION, "corpus": "documents", "strategy": "living", "gates": {"approve": "none"}}


@pytest.mark.soak
@pytest.mark.parametrize("role", ["decomposer", "living_agent", "analyzer", "reporter", "reviewer"])
async def test_workers_killed_while_a_report_grows_change_nothing(tmp_path: Path, role: str) -> None:
    """Killed while a role of each unit is asked: the same texts in the same order, no update twice (invariant 12)."""
    async with topology(tmp_path, 0.5) as made:

        def is_asked(_: ResearchStatus) -> bool:
            return any(call.role == role and not call.delivered for call in made.model.calls)

        await disturbed(made, LIVING, is_asked, 1)
        client = ResearchClient(await made.client())
        grown = [
            [event.data async for event in client.handle(name).follow() if event.type == "report.updated"]
            for name in ("r-undisturbed", "r-disturbed")
        ]
    assert len(grown[0]) > 3
    assert grown[0] == grown[1]


RECURSIVE = {
    "query": QUESTION, "corpus": "documents", "strategy": "recursive", "depth": "medium", "gates": {"approve": "none"}
}  # fmt: skip


@pytest.mark.soak
@pytest.mark.parametrize(
    ("role", "words"),
    [("manager", ""), ("extractor", "(level 1)"), ("extractor", "(level 2)"), ("extractor", "(level 3)")],
    ids=["scope", "first", "second", "third"],
)
async def test_workers_killed_at_each_level_of_a_tree_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, role: str, words: str
) -> None:
    """Killed while a leaf of this level is worked on: same tree, same report, no answer paid twice (invariant 12)."""
    monkeypatch.setattr(library_work, "tree", library_work.three_levels)
    async with topology(tmp_path, 0.5) as made:

        def is_asked(_: ResearchStatus) -> bool:
            asked = zip(made.model.calls, made.model.requests, strict=True)
            return any(call.role == role and words in request.prompt and not call.delivered for call, request in asked)

        result = await disturbed(made, RECURSIVE, is_asked, 1)
        _, plan, _ = await made.command("plan", "r-disturbed")
    assert set(re.findall(r"\(level (\d)\)", plan)) == {"1", "2", "3"}
    assert set(re.findall(r"\(level (\d)\)", result.report.partition("## Method")[2])) >= {"2", "3"}


@pytest.mark.soak
async def test_the_run_of_a_killed_command_can_be_continued(tmp_path: Path) -> None:
    """SIGKILL for `research run` takes its workers along; the same command with the same id finishes the run."""
    async with topology(tmp_path, LATENCY) as made:
        words = ("run", QUESTION, "--corpus", str(made.documents), "--id", "r-command", "--quiet")
        process = await made.begin(*words)
        while not made.in_flight():
            await asyncio.sleep(0.05)
        process.kill()
        await process.communicate()
        code, output, errors = await made.command(*words, "--json")
        twice = made.answered_twice()
    assert code == 0, errors
    assert ResearchResult.model_validate_json(output).outcome is Outcome.COMPLETED
    assert not twice


SUMMARIES = """
[models]
simple = ["test-model", "small"]

[models.endpoints.default]
window = 8192
reasoning_tokens = 500

[tokens]
summarization_provider = "small"
"""


@pytest.mark.soak
async def test_workers_killed_between_a_summary_and_its_call_pay_it_once(tmp_path: Path) -> None:
    """Summaries that were answered are in the journal: the call that needs them is made again, and uses them (S0-177)."""
    answer = " ".join(f"Setting {number} of the engine is 200000{number}." for number in range(140))
    context = [{"question": f"What is setting {number}?", "answer": f"{number}. {answer}"} for number in range(3)]
    async with topology(tmp_path, LATENCY, configuration=SUMMARIES) as made:
        made.model.plan = replace(made.model.plan, by_role={"planner": "slow"})
        await made.start_workers()
        handle = await start(await made.client(), REQUEST | {"context": context}, id="r-summaries")
        await made.model.waiting.wait()
        summaries = made.model.counts()["summarizer"]
        await made.kill_workers()
        made.model.plan = replace(made.model.plan, by_role={})
        await made.start_workers()
        result = await handle.result()
        twice, counts = made.answered_twice(), made.model.counts()
        planned = [request.prompt.count("In short: ") for request in made.model.requests if request.role == "planner"]
    assert result.outcome is Outcome.COMPLETED, (result.failed_branches, result.limitations)
    assert counts["summarizer"] == summaries > 0
    assert planned == [summaries, summaries]
    assert not twice
    assert result.usage.model_calls == len(made.model.calls) - 1


@pytest.mark.soak
async def test_a_call_to_a_model_outlives_any_number_of_kills(tmp_path: Path) -> None:
    """Workers that die while a model works on a call are no sign of a bad text: the run is completed (invariant 12)."""
    async with topology(tmp_path) as made:
        made.model.plan = replace(made.model.plan, by_role={"planner": "slow"})
        await made.start_workers()
        handle = await start(await made.client(), REQUEST, id="r-killed")
        for kills in range(1, 5):
            while sum(call.role == "planner" for call in made.model.calls) < kills:
                await asyncio.sleep(0.05)
            await asyncio.sleep(FIRST_BEAT_SECONDS + BEAT_SECONDS)  # a heartbeat says that it waits for the model
            await made.kill_workers()
            await made.start_workers()
        made.model.plan = replace(made.model.plan, by_role={})
        result = await handle.result()
    assert result.outcome is Outcome.COMPLETED, (result.failed_branches, result.limitations)
