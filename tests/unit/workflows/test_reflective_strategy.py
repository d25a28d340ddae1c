"""The strategy `reflective`, driven by the real driver over real activities, without a server."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from contracts.addresses import canonical_url, source_id
from contracts.plan import WITHOUT_SEARCH, Plan
from contracts.state import ResearchState
from contracts.vocabulary import Confidence, NodeKind, NodeStatus, Outcome, SourceStatus, StopReason
from tests.fakes import reflective_work, states
from tests.fakes.messages_api import MessagesApi
from tests.fakes.world import World, model_world
from tests.unit.workflows.test_supervisor_strategy import begin, report_of
from workflows.driver import Driver
from workflows.run.inbox import Inbox
from workflows.run.research_run import ResearchRun
from workflows.strategies import Finished
from workflows.strategies.reflective.plan import ReflectivePosition, completed_steps, query_nodes, summaries_of
from workflows.strategies.reflective.reflective_strategy import ReflectiveStrategy
from workflows.strategies.units import step_node

Answer = Callable[[str], dict[str, Any]]


async def conduct(world: World, **fields: Any) -> tuple[ResearchState, list[tuple[str, str]]]:
    """A whole run: its state, and its activities with their operations in order."""
    state = await begin(world, strategy="reflective", **fields)
    host = world.host()
    await Driver(ResearchRun(state, Inbox(), host), ReflectiveStrategy()).conduct()
    return state, host.calls


async def with_model(folder: Path, **fields: Any) -> tuple[ResearchState, list[tuple[str, str]], list[str], World]:
    """The same with a model: also the roles that were asked, in order."""
    async with MessagesApi() as api:
        world = model_world(folder, api.base_url)
        state, calls = await conduct(world, **fields)
        await world.close()
    return state, calls, [call.role for call in api.calls], world


def reflections(monkeypatch: pytest.MonkeyPatch, *decisions: str) -> None:
    """Have the reflector answer this, one after the other, the last one for ever."""
    left = list(decisions)

    def reflect(_: str) -> dict[str, Any]:
        decision = left.pop(0) if len(left) > 1 else left[0]
        return {"decision": decision, "reasoning": f"it says {decision}", "suggested_changes": ["look at limits"]}

    monkeypatch.setattr(reflective_work, "reflection", reflect)


async def test_it_answers_without_a_model(tmp_path: Path) -> None:
    """Coordinator, background, planner, steps and reflections work by rules; the report cites (S1-003, S1-013)."""
    world = World(tmp_path)
    state, calls = await conduct(world)
    assert state.result is not None
    assert state.result.outcome is Outcome.COMPLETED, (state.failed_branches, state.limitations)
    assert state.citations
    assert {"coordinator", "investigator", "step_planner", "researcher", "reflector"} <= set(state.engine_by_role)
    steps = state.plan.steps
    assert 3 <= len(steps) <= 6
    assert {step.status for step in steps} == {NodeStatus.COMPLETED}
    assert [name for name, _ in calls if name == "reflect_on_step"] == ["reflect_on_step"] * len(steps)
    assert "strategy reflective" in await report_of(world, state)


async def test_with_a_model_the_researcher_looks_at_what_its_searches_brought(tmp_path: Path) -> None:
    """A deep run lets the model name searches turn by turn, within the step's limits (S1-031, S1-057)."""
    state, _, roles, _ = await with_model(tmp_path)
    assert state.result is not None
    assert state.result.outcome is Outcome.COMPLETED, (state.failed_branches, state.limitations)
    assert roles[0] == "coordinator"
    steps = state.plan.steps
    assert roles.count("reflector") == len(steps)
    assert roles.count("researcher") > len(steps)
    for step in steps:
        searches = state.plan.children(step)
        assert 2 <= len(searches) <= 3
        assert {search.status for search in searches} == {NodeStatus.COMPLETED}
    assert len({node.text for node in state.plan.sub_queries}) == len(state.plan.sub_queries)


async def test_at_light_depth_the_searches_of_a_step_are_fixed(tmp_path: Path) -> None:
    """One turn a step, at most two searches and three reads (S1-028, S1-029, S1-030)."""
    state, _, roles, _ = await with_model(tmp_path, depth="light")
    steps = state.plan.steps
    assert len(steps) <= 3
    assert roles.count("researcher") == len(steps)


async def test_reflection_follows_every_step_and_precedes_the_next_search(tmp_path: Path) -> None:
    """One step is researched at a time: no search of a step begins before the last step was reflected on (S1-005)."""
    _, calls = await conduct(World(tmp_path))
    order = [name for name, _ in calls if name in ("choose_searches", "search", "reflect_on_step")]
    first = order.index("choose_searches")
    by_step = "".join({"choose_searches": "c", "search": "s", "reflect_on_step": "r"}[name] for name in order[first:])
    assert set(by_step.split("r")[:-1]) == {"cs"} or all("cs" in part for part in by_step.split("r")[:-1])
    assert by_step.endswith("r")


async def test_background_fetches_no_page(tmp_path: Path) -> None:
    """Its hits are sources known by title and snippet: the planner hears of them, no page was read (S1-014, S1-015)."""
    async with MessagesApi() as api:
        world = model_world(tmp_path, api.base_url)
        state = await begin(world, strategy="reflective")
        run = ResearchRun(state, Inbox(), world.host())
        for _ in range(3):
            unit = await ReflectiveStrategy().advance(run)
            assert not isinstance(unit, Finished)
            await ReflectiveStrategy().pause(run, ReflectiveStrategy().evaluate(run, unit))
        await world.close()
    assert ReflectivePosition.of(state).background
    assert not world.corpus.reads
    found = {source_id(hit.url) for hit in ReflectivePosition.of(state).background}
    assert set(state.sources) == found
    assert {source.status for source in state.sources.values()} == {SourceStatus.NOT_FETCHED}
    assert all(source.hit_entries for source in state.sources.values())
    asked = next(request for request in api.requests if request.role == "step_planner")
    assert ReflectivePosition.of(state).background[0].title in asked.prompt


async def test_sources_of_the_background_are_completed_by_a_read(tmp_path: Path) -> None:
    """Each address is one source: read where a step found it too, else not fetched; no step is duplicated (S1-061)."""
    state, _ = await conduct(World(tmp_path))
    background = {source_id(hit.url) for hit in ReflectivePosition.of(state).background}
    by_status = {status: {one.id for one in state.sources.values() if one.status is status} for status in SourceStatus}
    assert background <= set(state.sources)
    assert background & by_status[SourceStatus.FULL]
    assert by_status[SourceStatus.NOT_FETCHED] <= background
    addresses = [canonical_url(one.url) for one in state.sources.values()]
    assert len(set(addresses)) == len(addresses)
    assert state.counts().sources == len(by_status[SourceStatus.FULL])


async def test_the_model_may_choose_pages_that_were_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hits of the background become sources where it wants to read them; no search is made for that (S1-015, S1-031)."""
    search, offered = reflective_work.searches, list[str]()

    def choose(prompt: str) -> dict[str, Any]:
        offered.append(prompt)
        return search(prompt) | {"pages": [1, 1, 99]}

    monkeypatch.setattr(reflective_work, "searches", choose)
    state, _, _, _ = await with_model(tmp_path)
    hit = ReflectivePosition.of(state).background[0]
    assert f"1. {hit.title}" in offered[0]
    assert state.result is not None
    assert state.result.outcome is Outcome.COMPLETED, (state.failed_branches, state.limitations)
    chosen = [node for node in state.plan.sub_queries if node.origin == WITHOUT_SEARCH]
    source = state.sources[source_id(hit.url)]
    assert source.status is SourceStatus.FULL
    assert chosen[0].id in source.sub_query_ids
    assert not {node.id for node in chosen} & {query.id for query in state.searches()}
    assert "choose_pages" in [one.action for one in state.decisions]


async def test_completed_steps_stay_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An adjusted plan keeps every completed step to the byte and continues behind them (S1-006, S1-020, S1-021)."""
    reflections(monkeypatch, "adjust", "continue", "adjust", "continue")
    seen: list[list[str]] = []
    decide = ResearchRun.decide

    def remember(self: ResearchRun, agent: str, *rest: Any, **named: Any) -> int:
        if agent == "reflector":
            seen.append([step.model_dump_json() for step in completed_steps(self.state.plan)])
        return decide(self, agent, *rest, **named)

    monkeypatch.setattr(ResearchRun, "decide", remember)
    state, _, roles, _ = await with_model(tmp_path)
    assert roles.count("step_planner") == 3
    assert state.iteration == 3
    for earlier, later in pairwise(seen):
        assert later[: len(earlier)] == earlier
    assert state.result is not None
    assert state.result.outcome is Outcome.COMPLETED, (state.failed_branches, state.limitations)


async def test_the_planner_hears_why_the_plan_is_adjusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reasoning, suggested changes and what the steps observed are in its request; the brief stays (S1-016, S1-058)."""
    reflections(monkeypatch, "adjust", "continue")
    sensible, thoughts = reflective_work.steps, ["first thought", "second thought"]
    monkeypatch.setattr(reflective_work, "steps", lambda prompt: sensible(prompt) | {"thought": thoughts.pop(0)})
    async with MessagesApi() as api:
        world = model_world(tmp_path, api.base_url)
        state, _ = await conduct(world)
        await world.close()
    assert (thoughts, state.plan.brief) == ([], "first thought")
    second = [request.prompt for request in api.requests if request.role == "step_planner"][1]
    assert "it says adjust" in second
    assert "look at limits" in second
    assert state.findings[0].statement[:60] in second


async def test_an_early_completion_is_coerced_and_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the least number of steps COMPLETE means CONTINUE; after it the rest is skipped (S1-037, C1-4, C1-8)."""
    reflections(monkeypatch, "complete")
    state, _, roles, _ = await with_model(tmp_path, limits={"min_steps": 2})
    assert [made.coerced_from for made in ReflectivePosition.of(state).reflections] == ["complete", None]
    assert [step.status for step in state.plan.steps] == [
        NodeStatus.COMPLETED, NodeStatus.COMPLETED, NodeStatus.SKIPPED,
    ]  # fmt: skip
    assert roles.count("reflector") == 2
    logged = [decision.outputs for decision in state.decisions if (decision.outputs or {}).get("coerced_from")]
    assert logged == [{"decision": "continue", "coerced_from": "complete", "suggested_changes": ["look at limits"]}]


async def test_the_last_adjustment_is_coerced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without another plan ADJUST means CONTINUE on the steps that are left: none is lost (S1-004, C1-5)."""
    reflections(monkeypatch, "adjust")
    state, _, roles, _ = await with_model(tmp_path, limits={"max_iterations": 2})
    assert roles.count("step_planner") == 2
    assert ReflectivePosition.of(state).reflections[-1].coerced_from == "adjust"
    assert {step.status for step in state.plan.steps} == {NodeStatus.COMPLETED}


async def test_steps_never_exceed_their_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit holds over all plans together (S1-023, S1-024, C1-6)."""
    reflections(monkeypatch, "adjust")
    limits = {"max_steps": 2, "max_searches_per_step": 1, "max_reads_per_step": 1}
    state, _, _, world = await with_model(tmp_path, limits=limits)
    assert len(state.plan.steps) <= 2
    for step in state.plan.steps:
        assert len(state.plan.children(step)) <= 1
    assert len(world.corpus.reads) <= 2


async def test_a_greeting_is_answered_directly(tmp_path: Path) -> None:
    """`direct` makes no search and no plan, is no failure, and says that nothing is cited (S1-010, S1-052, S1-064)."""
    async with MessagesApi() as api:
        world = model_world(tmp_path, api.base_url)
        state = await begin(world, strategy="reflective", mode="direct")
        await Driver(ResearchRun(state, Inbox(), world.host()), ReflectiveStrategy()).conduct()
        await world.close()
    assert state.result is not None
    assert (state.result.outcome, state.result.stop_reason) == (Outcome.COMPLETED, StopReason.ANSWERED_DIRECTLY)
    assert [call.role for call in api.calls] == ["responder"]
    assert not world.corpus.searches
    assert not state.plan.nodes
    report = await report_of(world, state)
    assert "hello to you, too" in report
    assert "Nothing was searched or read for this answer" in report


async def test_a_quick_run_has_one_step(tmp_path: Path) -> None:
    """A plan of one step; no coordinator, background or reflector is asked, and the depth is light (S1-053, S1-065)."""
    state, _, roles, _ = await with_model(tmp_path, mode="quick")
    assert roles == ["analyzer", "synthesizer"]
    assert [node.kind for node in state.plan.nodes] == [NodeKind.STEP, NodeKind.QUERY]
    assert state.result is not None
    assert state.result.outcome is Outcome.COMPLETED
    assert state.resolved is not None
    assert state.resolved.limits.deadline_seconds == 15


async def test_the_coordinator_chooses_the_limits_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Depth auto follows the complexity, and a later plan does not change it (S1-011, S1-063)."""
    reflections(monkeypatch, "adjust", "continue")
    classify = reflective_work.classification
    monkeypatch.setattr(reflective_work, "classification", lambda prompt: {**classify(prompt), "complexity": "complex"})
    state, _, _, _ = await with_model(tmp_path)
    assert state.resolved is not None
    assert (state.resolved.depth, state.resolved.limits.max_steps) == ("extended", 10)
    assert state.resolved.verify == "full"
    assert state.deadline_at == state.clock_started_at + 1_800


async def test_what_a_person_chose_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mode deep is deep, whatever the coordinator says, and a depth that is named stays (C1-2)."""
    classify = reflective_work.classification
    monkeypatch.setattr(reflective_work, "classification", lambda prompt: {**classify(prompt), "route": "quick"})
    state, _, roles, _ = await with_model(tmp_path, mode="deep", depth="light")
    assert "reflector" in roles
    assert state.resolved is not None
    assert state.resolved.depth == "light"
    ended = next(event for event in state.events if event.type == "phase.finished")
    assert ended.text == "coordination done: deep, light"


async def test_a_long_report_is_written_by_sections(tmp_path: Path) -> None:
    """As in every strategy: a section for each search with findings, and a frame around them."""
    _, _, roles, _ = await with_model(tmp_path, output={"target_words": 3_000})
    assert roles.count("synthesizer") > 2


def test_the_reflector_sees_the_best_of_what_was_found() -> None:
    """Of many findings the best-supported ones, whenever they were found (S1-034)."""
    step = step_node("Research limits").model_copy(update={"status": NodeStatus.COMPLETED})
    (query,) = query_nodes(step, ["which limits are there"], 1)
    weak = [states.finding(f"weak {n}", sub_query_id=query.id, confidence=Confidence.LOW) for n in range(30)]
    strong = states.finding("strong", sub_query_id=query.id, confidence=Confidence.HIGH)
    state = states.state(plan=Plan(nodes=[step, query]), findings=[*weak, strong])
    assert summaries_of(state)[0].observations[:2] == ["strong", "weak 0"]
