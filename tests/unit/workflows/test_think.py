"""Think-pauses: prompts, hooks, the record, and guidance for the next phase: what gives way to what."""

import json

import pytest

from contracts.outcome import Guidance
from contracts.request import Gates
from contracts.resolved import Hook
from contracts.vocabulary import EngineKind, GapStatus, Phase, ThinkMode
from tests.fakes import states
from tests.fakes.pauses import pause_after
from tests.fakes.random_world import RandomWorld
from workflows.phases.pauses import state_for_hook
from workflows.run.context import MAX_GUIDANCE, newest, with_guidance
from workflows.run.inbox import Inbox
from workflows.run.research_run import GUIDANCE_OF_CALL, ResearchRun
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


@pytest.mark.parametrize(
    ("phase", "figures"),
    [
        (Phase.PLANNING, ["2 sub-queries", "brief: yes"]),
        (Phase.GATHERING, ["1 source read"]),
        (Phase.ANALYSIS, ["2 findings", "1 gap."]),
        (Phase.SYNTHESIS, ["1234 characters", "iteration 1 of 3"]),
        (Phase.REFINEMENT, ["1 of 2 addressed"]),
    ],
)
def test_prompts_state_the_figures(phase: Phase, figures: list[str]) -> None:
    """Each phase's own counts, and a question about them (S0-036, S0-037, S0-038, S0-039, S0-040)."""
    made = states.state(
        plan=states.plan(states.sub_query("one question"), states.sub_query("another")),
        sources=states.sources(states.source("corpus:m/a")),
        findings=[states.finding("x"), states.finding("y")],
        gaps=[states.gap("open"), states.gap("closed", status=GapStatus.ADDRESSED)],
        draft=states.draft(1234),
    )
    prompt = reflection_prompt(phase, made)
    assert [figure for figure in figures if figure not in prompt] == []
    assert prompt.endswith("?")


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


@pytest.mark.parametrize(
    ("answer", "noted"), [({"a": 1}, True), (ValueError("no JSON"), True), ("look here " * 100_000, False)]
)
async def test_a_hook_that_answers_anything_else_is_noted(answer: object, noted: bool) -> None:
    """Hooks are written by others, in other languages: what is neither text nor null is noted, a flood of words is cut
    (S0-172).
    """

    async def our_hook(*_: object) -> object:
        if isinstance(answer, Exception):
            raise answer
        return answer

    run = run_with(our_hook)
    await pause_after(run, Phase.PLANNING, can_change=True)
    assert any("neither text nor null" in note for note in run.state.degraded) is noted
    guided = [len(item.text) <= 2_000 for item in run.state.guidance if item.origin == "hook"]
    assert guided == ([] if noted else [True])


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


@pytest.mark.parametrize("hooked", [True, False])
async def test_the_record_follows_the_evaluation(hooked: bool) -> None:
    """Evaluate, reflect, hook, record: in this order, with a hook or without one (S0-080, S0-082, S0-183)."""
    order = []

    async def our_hook(*_: object) -> None:
        order.append("hook")

    run = run_with(our_hook if hooked else None, think_mode=ThinkMode.MODEL)
    host = run.host
    reflect = host.implementations["reflect_on_phase"]

    async def reflecting(request: object) -> object:
        order.append("reflect")
        return await reflect(request)

    host.implementations["reflect_on_phase"] = reflecting
    await pause_after(run, Phase.PLANNING, can_change=False)
    assert order == (["reflect", "hook"] if hooked else ["reflect"])
    actions = [decision.action for decision in run.state.decisions]
    assert actions[0] == "evaluate_phase"
    assert actions[-1] in ("proceed", "retry")


def said(origin: str, *texts: str) -> list[Guidance]:
    return [Guidance(origin=origin, phase=Phase.ANALYSIS, text=text) for text in texts]


def test_what_is_said_again_stands_once_and_counts_as_new() -> None:
    """A gate that finds the same each time does not push everything else out."""
    known = said("rules", "too few sources", "no high confidence")
    told = with_guidance(known, *said("rules", "too few sources"))
    assert [one.text for one in told] == ["no high confidence", "too few sources"]
    assert len(with_guidance(known, *said("model", "too few sources"))) == 3


def test_a_persons_wish_gives_way_to_newer_wishes_alone() -> None:
    """However much rules and models say, the wish is shown (S0-081)."""
    wish = said("person", "look at the appendix")
    known = wish
    for number in range(2 * MAX_GUIDANCE):
        known = with_guidance(known, *said("rules", f"issue {number}"))
    assert (len(known), known[0]) == (MAX_GUIDANCE, wish[0])
    shown = newest(known, GUIDANCE_OF_CALL)
    assert shown == [*wish, *known[-GUIDANCE_OF_CALL + 1 :]]
    wishes = said("person", *(f"wish {number}" for number in range(GUIDANCE_OF_CALL + 2)))
    assert newest([*wishes, *said("rules", "an issue")], GUIDANCE_OF_CALL) == wishes[2:]
