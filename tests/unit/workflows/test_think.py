"""Think-pauses: prompts, hooks, guidance, the record."""

import json

from contracts.evidence import ReportDraft
from contracts.request import Gates
from contracts.resolved import Hook
from contracts.vocabulary import EngineKind, GapStatus, Phase, ThinkMode
from tests.fakes import states
from tests.fakes.pauses import pause_after
from tests.fakes.random_world import RandomWorld
from workflows.phases.pause import state_for_hook
from workflows.run.inbox import Inbox
from workflows.run.research_run import ResearchRun
from workflows.strategies.supervisor.supervisor_strategy import reflection_prompt


def run_with(hook: object = None, think_mode: ThinkMode = ThinkMode.OFF, **changes: object) -> ResearchRun:
    resolved = states.resolved(
        engine=EngineKind.MODEL,
        gates=Gates(think=think_mode),
        hook=Hook(name="ours", activity="our_hook", task_queue="ours") if hook else None,
    )
    state = states.state(resolved=resolved, **changes)
    state.deadline_at = 4e9
    host = RandomWorld(1, trouble=0).host()
    if hook:
        host.implementations["our_hook"] = hook
    return ResearchRun(state, Inbox(), host)


def test_prompts_state_the_figures() -> None:
    """Each phase's own counts, and a question about them (S0-036, S0-037, S0-038, S0-039, S0-040)."""
    made = states.state(
        plan=states.plan(states.sub_query("one question"), states.sub_query("another")),
        sources=states.sources(states.source("corpus:m/a")),
        findings=[states.finding("x"), states.finding("y")],
        gaps=[states.gap("open"), states.gap("closed", status=GapStatus.ADDRESSED)],
        draft=ReportDraft(document=states.EMPTY_REF, characters=1234),
    )
    planning = reflection_prompt(Phase.PLANNING, made)
    assert "2 sub-queries" in planning
    assert "brief: yes" in planning
    assert "1 source read" in reflection_prompt(Phase.GATHERING, made)
    analysis = reflection_prompt(Phase.ANALYSIS, made)
    assert "2 findings" in analysis
    assert "1 gap." in analysis
    synthesis = reflection_prompt(Phase.SYNTHESIS, made)
    assert "1234 characters" in synthesis
    assert "iteration 1 of 3" in synthesis
    assert "1 of 2 addressed" in reflection_prompt(Phase.REFINEMENT, made)
    assert all(reflection_prompt(phase, made).endswith("?") for phase in Phase)


async def test_a_hook_gets_state_and_prompt_and_guides_the_next_phase() -> None:
    """Exactly two arguments; what it answers is guidance of the next call (S0-081, S0-172)."""
    heard = []

    async def our_hook(*arguments: object) -> str:
        heard.append(arguments)
        return "look at the appendix"

    run = run_with(our_hook, plan=states.plan(states.sub_query("first long question"), states.sub_query("second long")))
    await pause_after(run, Phase.PLANNING, can_change=True)
    ((view, prompt),) = heard
    assert view["query"] == run.resolved.query
    assert "sub-queries" in prompt
    assert [(item.origin, item.text) for item in run.state.guidance] == [("hook", "look at the appendix")]


def test_a_hook_gets_a_bounded_state() -> None:
    """The argument is below 20 kB for a large run, shows the newest findings, and counts everything."""
    long = "words " * 400
    large = states.state(
        plan=states.plan(*(states.sub_query(f"{number} {long}") for number in range(40)), brief=long),
        findings=[states.finding(f"{number} {long[:500]}") for number in range(75)],
        gaps=[states.gap(f"{number} {long[:300]}") for number in range(30)],
    )
    shown = state_for_hook(large)
    assert len(json.dumps(shown)) < 20_000
    assert [one["statement"].split()[0] for one in shown["findings"]] == [str(number) for number in range(55, 75)]
    assert shown["counts"]["findings"] == 75


async def test_without_a_hook_the_run_goes_on() -> None:
    """No hook, no guidance, but the evaluation is recorded all the same (S0-082, S0-183)."""
    run = run_with()
    await pause_after(run, Phase.PLANNING, can_change=False)
    assert run.state.guidance == []
    assert run.state.decisions[0].action == "evaluate_phase"


async def test_the_record_follows_the_evaluation() -> None:
    """Evaluate, reflect, hook, record: in this order (S0-080)."""
    order = []

    async def our_hook(*_: object) -> None:
        order.append("hook")

    run = run_with(our_hook, think_mode=ThinkMode.MODEL)
    host = run.host
    reflect = host.implementations["reflect_on_phase"]

    async def reflecting(request: object) -> object:
        order.append("reflect")
        return await reflect(request)

    host.implementations["reflect_on_phase"] = reflecting
    await pause_after(run, Phase.PLANNING, can_change=False)
    assert order == ["reflect", "hook"]
    actions = [decision.action for decision in run.state.decisions]
    assert actions[0] == "evaluate_phase"
    assert actions[-1] in ("proceed", "retry")
