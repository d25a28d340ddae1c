"""The strategy `reflective`, driven by the real driver over real activities, without a server."""

import asyncio
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from contracts.addresses import canonical_url, source_id
from contracts.plan import WITHOUT_SEARCH, Plan
from contracts.reflective_roles import StepKind
from contracts.request import Turn
from contracts.state import ResearchState
from contracts.vocabulary import Confidence, GapStatus, NodeKind, NodeStatus, Outcome, SourceStatus, StopReason
from tests.every_strategy.joined import Trial, begun, resume, trial_of, undisturbed, world_of
from tests.fakes import model_work, reflective_work, states
from tests.fakes.host import TimedHost
from tests.fakes.model_work import element
from tests.fakes.world import begin
from workflows.driver import Driver
from workflows.run.inbox import Inbox, Reply
from workflows.run.research_run import ResearchRun
from workflows.strategies import load_strategy
from workflows.strategies.reflective.position import ReflectivePosition, UnitKind
from workflows.strategies.reflective.reflective_strategy import describe_unit
from workflows.strategies.reflective.steps import completed_steps, query_nodes, summarize_steps
from workflows.strategies.units import step_node

WISH = "What is the default of freeze_max_age?"


async def conducted(folder: Path, **fields: Any) -> tuple[Trial, ResearchState, list[str]]:
    """A whole run with a model, its state, and the roles that were asked, in order."""
    trial = await undisturbed(folder, "reflective", "model", **({"depth": "auto"} | fields))
    return trial, trial.state, [call.role for call in trial.api.calls]


def prompts(trial: Trial, role: str) -> list[str]:
    return [request.prompt for request in trial.api.requests if request.role == role]


def answers(
    monkeypatch: pytest.MonkeyPatch, work: str, change: Callable[[dict[str, Any], int], dict[str, Any]]
) -> list[str]:
    """Have a role answer otherwise than is sensible, by the number of the call from 1; the prompts that it gets."""
    sensible, given = getattr(reflective_work, work), list[str]()

    def answer(prompt: str) -> dict[str, Any]:
        given.append(prompt)
        return change(sensible(prompt), len(given))

    monkeypatch.setattr(reflective_work, work, answer)
    return given


def adds(monkeypatch: pytest.MonkeyPatch, work: str, **fields: Any) -> list[str]:
    return answers(monkeypatch, work, lambda sensible, _: sensible | fields)


def reflections(monkeypatch: pytest.MonkeyPatch, *decisions: str) -> None:
    """Have the reflector answer this, one after the other, the last one for ever."""

    def reflect(_: dict[str, Any], call: int) -> dict[str, Any]:
        decision = decisions[min(call, len(decisions)) - 1]
        return {"decision": decision, "reasoning": f"it says {decision}", "suggested_changes": ["look at limits"]}

    answers(monkeypatch, "reflection", reflect)


async def test_it_answers_without_a_model(tmp_path: Path) -> None:
    """Every role works by rules, one step at a time: it is reflected on before the next one searches
    (S1-003, S1-005, S1-013).
    """
    trial = await undisturbed(tmp_path, "reflective", depth="auto")
    trial.assert_completed()
    assert trial.state.evidence.citations
    assert {"coordinator", "investigator", "step_planner", "researcher", "reflector"} <= set(
        trial.state.accounts.engine_by_role
    )
    steps = trial.state.work.plan.steps
    assert 3 <= len(steps) <= 6
    assert {step.status for step in steps} == {NodeStatus.COMPLETED}
    signs = {"choose_searches": "c", "search": "s", "reflect_on_step": "r"}
    order = "".join(signs.get(name, "") for name, _ in trial.host.calls)
    assert re.fullmatch(f"s*(c+s+r){{{len(steps)}}}", order), order
    assert "strategy reflective" in await trial.report()


async def test_with_a_model_the_researcher_looks_at_what_its_searches_brought(tmp_path: Path) -> None:
    """A deep run lets the model name searches turn by turn, within the step's limits (S1-031, S1-057)."""
    _, state, roles = await conducted(tmp_path)
    assert state.work.result.outcome is Outcome.COMPLETED, (state.work.failed_branches, state.work.limitations)
    assert set(roles[:2]) == {"coordinator", "investigator"}, "both are asked at once"
    steps = state.work.plan.steps
    assert roles.count("reflector") == len(steps)
    assert roles.count("researcher") > len(steps)
    for step in steps:
        searches = state.work.plan.children(step)
        assert 2 <= len(searches) <= 3
        assert {search.status for search in searches} == {NodeStatus.COMPLETED}
    assert len({node.text for node in state.work.plan.sub_queries}) == len(state.work.plan.sub_queries)


async def test_at_light_depth_the_searches_of_a_step_are_fixed(tmp_path: Path) -> None:
    """One turn a step, with two searches of the plan and three reads at most (S1-028, S1-029, S1-030)."""
    _, state, roles = await conducted(tmp_path, depth="light")
    steps = state.work.plan.steps
    assert len(steps) <= 3
    assert all(1 <= len(state.work.plan.children(step)) <= 2 for step in steps)
    assert "researcher" not in roles


async def test_a_step_begins_with_the_searches_of_the_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The researcher chooses the later ones alone, with findings before it; a step without searches begins with it."""
    planned = reflective_work.steps

    def some_with_searches(prompt: str) -> dict[str, Any]:
        made = planned(prompt)
        made["steps"][0]["searches"] = [f"aspect {number} of the engine" for number in range(9)]
        made["steps"][1]["searches"] = []
        return made

    monkeypatch.setattr(reflective_work, "steps", some_with_searches)
    trial, state, _ = await conducted(tmp_path, depth="medium")
    first, second, *_ = state.work.plan.steps
    asked = [node.text for node in state.work.plan.children(first)]
    most = state.resolution.limits.max_searches_per_step
    assert asked[: most - 1] == [f"aspect {number} of the engine" for number in range(most - 1)]
    assert len(asked) <= most
    shown = prompts(trial, "researcher")
    assert element(shown[0], "observations")
    assert element(next(one for one in shown if second.text in element(one, "step")), "observations") == ""
    assert ReflectivePosition.of(state).first_searches == {}


async def test_background_fetches_no_page(tmp_path: Path) -> None:
    """Its hits are sources known by title and snippet: the planner hears of them, no page was read (S1-014, S1-015)."""
    async with trial_of(tmp_path, "reflective", "model") as trial:
        for _ in range(3):
            await trial.driver.step()
    background = ReflectivePosition.of(trial.state).background
    assert not trial.world.corpus.reads
    sources = trial.state.evidence.sources
    assert set(sources) == {source_id(hit.url) for hit in background}
    assert {source.status for source in sources.values()} == {SourceStatus.NOT_FETCHED}
    assert all(source.hit_entries for source in sources.values())
    assert background[0].title in prompts(trial, "step_planner")[0]


async def test_sources_of_the_background_are_completed_by_a_read(tmp_path: Path) -> None:
    """Each address is one source: read where a step found it too, else not fetched; no step is duplicated (S1-061)."""
    state = (await undisturbed(tmp_path, "reflective")).state
    background = {source_id(hit.url) for hit in ReflectivePosition.of(state).background}
    by_status = {
        status: {one.id for one in state.evidence.sources.values() if one.status is status} for status in SourceStatus
    }
    assert background <= set(state.evidence.sources)
    assert background & by_status[SourceStatus.FULL]
    assert by_status[SourceStatus.NOT_FETCHED] <= background
    addresses = [canonical_url(one.url) for one in state.evidence.sources.values()]
    assert len(set(addresses)) == len(addresses)
    assert state.counts().sources == len(by_status[SourceStatus.FULL])


def without_searches(made: dict[str, Any]) -> dict[str, Any]:
    return made | {"steps": [step | {"searches": []} for step in made["steps"]]}


async def test_the_model_may_choose_pages_that_were_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hits of the background become sources where it wants to read them; no search is made for that (S1-015, S1-031)."""
    offered = adds(monkeypatch, "searches", pages=[1, 1, 99])
    planned = reflective_work.steps
    monkeypatch.setattr(reflective_work, "steps", lambda prompt: without_searches(planned(prompt)))
    _, state, _ = await conducted(tmp_path)
    hit = ReflectivePosition.of(state).background[0]
    assert f"1. {hit.title}" in offered[0]
    assert state.work.result.outcome is Outcome.COMPLETED, (state.work.failed_branches, state.work.limitations)
    chosen = [node for node in state.work.plan.sub_queries if node.origin == WITHOUT_SEARCH]
    source = state.evidence.sources[source_id(hit.url)]
    assert source.status is SourceStatus.FULL
    assert chosen[0].id in source.sub_query_ids
    assert not {node.id for node in chosen} & {query.id for query in state.searches()}
    assert "choose_pages" in [one.action for one in state.people.decisions]


async def test_the_researcher_chooses_by_place_and_matching_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unread hit of the step is offered with its path and the line that its search matched, a read page with its path;
    without turns to come, a search brings no lines.
    """
    offered = adds(monkeypatch, "searches")
    async with trial_of(tmp_path, "reflective", "model", depth="medium", limits={"max_sources_per_query": 1}) as trial:
        find, asked = trial.world.corpus.search, list[int]()

        async def with_snippets(request: Any) -> Any:
            asked.append(request.snippet_characters)
            found = await find(request)
            hits = [hit.model_copy(update={"snippet": f"about {request.text[:20]}"}) for hit in found.hits]
            return found.model_copy(update={"hits": hits})

        trial.world.corpus.search = with_snippets
        await trial.conduct()
    second = next(prompt for prompt in offered if "\nTurn 2." in prompt)
    assert re.search(r"^1\. [^\[\n]+ \[\w+\.md\]", element(model_work.unmarked(second), "pages"), re.MULTILINE)
    assert "]: about How does" in element(model_work.unmarked(second), "pages")
    assert re.search(r"^- .+ \[\w+\.md\]$", element(model_work.unmarked(second), "read"), re.MULTILINE)
    assert any(asked)
    reflected = prompts(trial, "reflector")[-1]
    assert re.search(r"^- .+ \[\w+\.md\]$", element(model_work.unmarked(reflected), "read"), re.MULTILINE)


async def test_completed_steps_stay_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An adjusted plan keeps every completed step to the byte and continues behind them (S1-006, S1-020, S1-021)."""
    reflections(monkeypatch, "adjust", "continue", "adjust", "continue")
    seen: list[list[str]] = []
    decide = ResearchRun.decide

    def remember(self: ResearchRun, agent: str, *rest: Any, **named: Any) -> int:
        if agent == "reflector":
            seen.append([step.model_dump_json() for step in completed_steps(self.state.work.plan)])
        return decide(self, agent, *rest, **named)

    monkeypatch.setattr(ResearchRun, "decide", remember)
    _, state, roles = await conducted(tmp_path)
    assert roles.count("step_planner") == 3
    assert state.work.iteration == 3
    for earlier, later in pairwise(seen):
        assert later[: len(earlier)] == earlier
    assert state.work.result.outcome is Outcome.COMPLETED, (state.work.failed_branches, state.work.limitations)


async def test_the_planner_gets_the_reason_for_adjusting_the_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reasoning, suggested changes and what the steps observed are in its request; the brief stays (S1-016, S1-058)."""
    reflections(monkeypatch, "adjust", "continue")
    plans = answers(monkeypatch, "steps", lambda sensible, call: sensible | {"thought": f"thought {call}"})
    _, state, _ = await conducted(tmp_path)
    assert state.work.plan.brief == "thought 1"
    _, second = plans
    assert "it says adjust" in second
    assert "look at limits" in second
    assert state.evidence.findings[0].statement[:60] in second


async def test_the_writer_is_given_the_steps_that_were_worked_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In their order, as parts of the answer; a step that was skipped is none (S1-062)."""
    reflections(monkeypatch, "complete")
    trial, state, _ = await conducted(tmp_path, limits={"min_steps": 2})
    done, skipped = state.work.plan.steps[:2], state.work.plan.steps[2]
    (prompt, *_) = prompts(trial, "synthesizer")
    assert all(f"{number}. {step.text}" in prompt for number, step in enumerate(done, start=1))
    assert skipped.text not in prompt


async def test_an_early_completion_is_coerced_and_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the least number of steps COMPLETE means CONTINUE; after it the rest is skipped (S1-037, C1-4, C1-8)."""
    reflections(monkeypatch, "complete")
    _, state, roles = await conducted(tmp_path, limits={"min_steps": 2})
    assert [made.coerced_from for made in ReflectivePosition.of(state).reflections] == ["complete", None]
    assert [step.status for step in state.work.plan.steps] == [
        NodeStatus.COMPLETED, NodeStatus.COMPLETED, NodeStatus.SKIPPED,
    ]  # fmt: skip
    assert roles.count("reflector") == 2
    logged = [decision.outputs for decision in state.people.decisions if (decision.outputs or {}).get("coerced_from")]
    assert logged == [{"decision": "continue", "coerced_from": "complete", "suggested_changes": ["look at limits"]}]


async def test_the_last_adjustment_is_coerced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without another plan ADJUST means CONTINUE on the steps that are left: none is lost (S1-004, C1-5)."""
    reflections(monkeypatch, "adjust")
    _, state, roles = await conducted(tmp_path, limits={"max_iterations": 2, "min_steps": 1})
    assert roles.count("step_planner") == 2
    assert "adjust" in [made.coerced_from for made in ReflectivePosition.of(state).reflections]
    assert {step.status for step in state.work.plan.steps} == {NodeStatus.COMPLETED}


async def test_no_model_is_asked_where_only_one_decision_is_possible(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the last step of the last plan the report is written at once, and before the least number of steps the next
    one begins, without a call.
    """
    reflections(monkeypatch, "complete")
    _, state, roles = await conducted(tmp_path, limits={"max_iterations": 1, "min_steps": 3})
    assert "reflector" not in roles
    assert [made.decision for made in ReflectivePosition.of(state).reflections] == ["continue", "continue", "complete"]
    assert {step.status for step in state.work.plan.steps} == {NodeStatus.COMPLETED}


async def test_steps_never_exceed_their_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit holds over all plans together (S1-023, S1-024, C1-6)."""
    reflections(monkeypatch, "adjust")
    limits = {"max_steps": 2, "max_searches_per_step": 1, "max_reads_per_step": 1}
    trial, state, _ = await conducted(tmp_path, limits=limits)
    assert len(state.work.plan.steps) <= 2
    for step in state.work.plan.steps:
        assert len(state.work.plan.children(step)) <= 1
    assert len(trial.world.corpus.reads) <= 2


async def test_a_greeting_is_answered_directly(tmp_path: Path) -> None:
    """`direct` makes no search and no plan, is no failure, and says that nothing is cited (S1-010, S1-052, S1-064)."""
    trial, state, roles = await conducted(tmp_path, mode="direct")
    assert (state.work.result.outcome, state.work.result.stop_reason) == (
        Outcome.COMPLETED,
        StopReason.ANSWERED_DIRECTLY,
    )
    assert roles == ["responder"]
    assert not trial.world.corpus.searches
    assert not state.work.plan.nodes
    report = await trial.report()
    assert "hello to you, too" in report
    assert "Nothing was searched or read for this answer" in report


async def test_a_quick_run_has_one_step(tmp_path: Path) -> None:
    """A plan of one step; no coordinator, background or reflector is asked, and the depth is light (S1-053, S1-065)."""
    _, state, roles = await conducted(tmp_path, mode="quick")
    assert roles == ["analyzer", "synthesizer"]
    assert [node.kind for node in state.work.plan.nodes] == [NodeKind.STEP, NodeKind.QUERY]
    assert state.work.result.outcome is Outcome.COMPLETED
    assert state.work.resolved.limits.deadline_seconds == 15


async def test_the_coordinator_chooses_the_limits_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Depth auto follows the complexity, and a later plan does not change it (S1-011, S1-063)."""
    reflections(monkeypatch, "adjust", "continue")
    adds(monkeypatch, "classification", complexity="complex")
    _, state, _ = await conducted(tmp_path)
    assert (state.work.resolved.depth, state.work.resolved.limits.max_steps) == ("extended", 10)
    assert state.work.resolved.verify == "full"
    assert state.clock.deadline_at == state.clock.clock_started_at + 1_800


async def test_what_a_person_chose_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mode deep is deep, whatever the coordinator says, and a depth that is named stays (C1-2)."""
    adds(monkeypatch, "classification", route="quick")
    _, state, roles = await conducted(tmp_path, mode="deep", depth="light")
    assert "reflector" in roles
    assert state.work.resolved.depth == "light"
    ended = next(event for event in state.people.events if event.type == "phase.finished")
    assert ended.text == "coordination done: deep, light"


def test_the_reflector_sees_the_best_of_what_was_found() -> None:
    """Of many findings the best-supported ones, whenever they were found (S1-034)."""
    step = step_node("Research limits").model_copy(update={"status": NodeStatus.COMPLETED})
    (query,) = query_nodes(step, ["which limits are there"], 1)
    weak = [states.finding(f"weak {n}", sub_query_id=query.id, confidence=Confidence.LOW) for n in range(30)]
    strong = states.finding("strong", sub_query_id=query.id, confidence=Confidence.HIGH)
    state = states.state(plan=Plan(nodes=[step, query]), findings=[*weak, strong])
    assert summarize_steps(state)[0].observations[:2] == ["strong", "weak 0"]


async def test_the_reflector_settles_gaps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It sees every finding and open gap under its label; those that it calls answered are closed, and recorded."""
    sensible = model_work.analysis
    monkeypatch.setattr(model_work, "analysis", lambda prompt, **_: sensible(prompt, with_gap=True))

    def settling(prompt: str) -> dict[str, Any]:
        plain = model_work.unmarked(prompt)
        gaps = re.findall(r"^(gap-\w+): ", element(plain, "gaps"), re.MULTILINE)
        findings = re.findall(r"^(f-\w+) \(on \d\): ", element(plain, "findings"), re.MULTILINE)
        settled = [{"gap_id": gap, "answered_by": findings[-1:]} for gap in gaps]
        return {"decision": "continue", "reasoning": "on", "settled_gaps": settled}

    monkeypatch.setattr(reflective_work, "reflection", settling)
    trial, state, _ = await conducted(tmp_path)
    assert prompts(trial, "reflector")
    assert state.evidence.gaps
    assert {gap.status for gap in state.evidence.gaps} == {GapStatus.ADDRESSED}
    known = {finding.id for finding in state.evidence.findings}
    assert all(gap.resolved_by and set(gap.resolved_by) <= known for gap in state.evidence.gaps)
    closed = [item for item in state.people.decisions if (item.agent, item.action) == ("reflector", "gap_addressed")]
    assert len(closed) == len(state.evidence.gaps)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("decision", ["continue", "complete"])
async def test_the_reflector_has_pages_read_further(
    decision: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It sees passages of pages already read beside each open gap; the sections of those that it names are analyzed
    before the report is written, without a search, and once.
    """
    sensible, gap = model_work.analysis, {"description": "How often must tables be vacuumed?", "sub_query": 1}

    def analysis(prompt: str, **_: Any) -> dict[str, Any]:
        is_further = "were chosen because they may answer" in prompt
        return sensible(prompt) | {"gaps": [] if is_further else [gap]}

    def reflecting(prompt: str) -> dict[str, Any]:
        listed = element(model_work.unmarked(prompt), "gaps")
        further = [
            {"gap_id": name, "passages": [int(number)]}
            for name, number in re.findall(r"^(gap-\w+): .*\(passages (\d+)", listed, re.MULTILINE)
        ]
        # With `complete`, only the last reflection asks for it, when no step is left that would read beside it.
        is_due = decision == "continue" or not element(prompt, "pending")
        return {"decision": decision, "reasoning": "on", "read_further": further if is_due else []}

    monkeypatch.setattr(model_work, "analysis", analysis)
    monkeypatch.setattr(reflective_work, "reflection", reflecting)
    trial, state, roles = await conducted(tmp_path)
    assert any("How often must tables" in prompt and "(passages 1" in prompt for prompt in prompts(trial, "reflector"))
    further = [prompt for prompt in prompts(trial, "analyzer") if "were chosen because they may answer" in prompt]
    assert len(further) == 1
    assert "How often must tables be vacuumed?" in element(model_work.unmarked(further[0]), "sub_queries")
    assert roles.index("synthesizer") > len(roles) - 1 - roles[::-1].index("analyzer")
    assert not any(record.text == gap["description"] for record in state.evidence.query_ledger)
    assert [item.action for item in state.people.decisions if item.agent == "reflector"].count("read_further") == 1


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("found", "known", "shown"), [(1, 0, "1 finding: "), (0, 2, "no new findings: "), (0, 0, "0 findings: ")]
)
def test_a_step_that_finds_what_was_known_is_shown_so(found: int, known: int, shown: str) -> None:
    """Findings that an earlier step had are none of its own, and still it found something."""
    update = {"status": NodeStatus.COMPLETED, "finding_count": found + known}
    step = step_node("Research limits").model_copy(update=update)
    (query,) = query_nodes(step, ["which limits are there"], 1)
    findings = [states.finding(f"limit {n}", sub_query_id=query.id) for n in range(found)]
    state = states.state(plan=Plan(nodes=[step, query]), findings=findings)
    assert describe_unit(state, UnitKind.STEP, "step-1") == f"{shown}Research limits"


async def test_the_planner_gets_the_coordinators_brief(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What earlier turns add to the question is not lost: the coordinator says it in its own words (S1-008)."""
    adds(monkeypatch, "classification", brief="The engine is the one of the manual.")
    trial, _, _ = await conducted(tmp_path, depth="light", context=[Turn(question="Which?", answer="X")])
    assert "The engine is the one of the manual." in prompts(trial, "step_planner")[0]


async def test_unusable_answers_of_the_responder_fail_the_run(tmp_path: Path) -> None:
    """A responder whose answers cannot be used leaves a failed run, not an empty one that is called completed."""
    _, state, _ = await conducted(tmp_path, by_role={"responder": "empty"}, mode="direct")
    assert (state.work.result.outcome, state.evidence.citations) == (Outcome.FAILED, [])


async def test_an_unusable_answer_is_named_in_plain_words(tmp_path: Path) -> None:
    """The report and those who watch read what happened, and no name of a class."""
    trial, state, _ = await conducted(tmp_path, depth="light", by_role={"analyzer": "empty"})
    without = "analyzer: done without the model, whose answers could not be used"
    assert (without in state.work.failed_branches, without in state.work.degraded) == (True, True)
    assert (await trial.report()).count(without) == 1
    told = [
        *state.work.failed_branches,
        *state.work.degraded,
        *state.work.limitations,
        *(event.text for event in state.people.events),
    ]
    assert not [text for text in told if re.search(r"\b[A-Z][a-z]+[A-Z][a-z]+\b", text)]


async def test_enough_context_is_believed_only_with_evidence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A first plan without steps is refused, whatever it claims; a later one ends the research (S1-019, C1-4)."""
    reflections(monkeypatch, "adjust")
    enough = {"has_enough_context": True, "thought": "enough", "steps": []}
    # The first answer is of no use, its repair is; the next plan has found enough.
    plans = answers(monkeypatch, "steps", lambda sensible, call: sensible if call == 2 else enough)
    _, state, _ = await conducted(tmp_path, depth="light")
    assert len(plans) == 3
    assert "steps: at least one step" in plans[1]
    assert [step.status for step in state.work.plan.steps] == [
        NodeStatus.COMPLETED, NodeStatus.SKIPPED, NodeStatus.SKIPPED,
    ]  # fmt: skip
    assert [decision.rationale for decision in state.people.decisions if decision.action == "enough_context"] == [
        "enough"
    ]
    assert state.work.result.outcome is Outcome.COMPLETED, (state.work.failed_branches, state.work.limitations)
    assert state.work.result.stop_reason in (StopReason.NO_OPEN_GAPS, StopReason.COVERAGE_SUFFICIENT)


async def test_a_step_without_a_search_searches_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever its type is called, it is an analysis of what was read (S1-033)."""

    def thinking(made: dict[str, Any], _: int) -> dict[str, Any]:
        made["steps"][1]["needs_search"] = False
        return made

    answers(monkeypatch, "steps", thinking)
    trial, state, _ = await conducted(tmp_path, depth="light")
    research, thought, _ = state.work.plan.steps
    assert [step.facet == StepKind.ANALYSIS for step in (research, thought)] == [False, True]
    assert thought.expected_contribution not in trial.world.corpus.searches
    assert thought.status is NodeStatus.COMPLETED


async def test_a_first_plan_without_a_search_is_repaired(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps that only think have nothing to think about: the planner hears it, and plans again (S1-018, S1-033)."""

    def thinking(made: dict[str, Any], call: int) -> dict[str, Any]:
        return made if call > 1 else made | {"steps": [step | {"step_type": "analysis"} for step in made["steps"]]}

    plans = answers(monkeypatch, "steps", thinking)
    trial, state, _ = await conducted(tmp_path, depth="light")
    assert len(plans) == 2
    assert "at least one step must search" in plans[1]
    assert trial.world.corpus.searches
    assert state.work.result.outcome is Outcome.COMPLETED, (state.work.failed_branches, state.work.limitations)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("clarify", ["auto", "off"])
async def test_the_coordinators_own_questions_are_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clarify: str
) -> None:
    """Where the request allows it they are waited for, and an answered question is not taken as it stands (S1-012)."""
    adds(monkeypatch, "classification", is_ambiguous=True, clarifying_questions=["Which engine?"])
    async with begun(tmp_path, "reflective", "model", gates={"clarify": clarify}) as trial:
        if clarify == "auto":
            assert (await trial.asked()).questions == ["Which engine?"]
            await trial.answer(Reply(answers=["the one of the manual"]))
        await trial.task
    assert any("leaves open" in line for line in trial.state.work.limitations) is (clarify == "off")
    assert trial.api.counts()["clarifier"] == 0
    assert any("the one of the manual" in one.text for one in trial.state.people.guidance) is (clarify == "auto")


async def test_a_step_goes_through_its_states_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pending, then executing, then completed; or skipped without having begun (S1-059)."""
    reflections(monkeypatch, "continue", "complete")
    seen: dict[str, list[str]] = {}
    note = ResearchRun.note

    def remember(self: ResearchRun, kind: str, text: str, /, **data: Any) -> None:
        for step in self.state.work.plan.steps:
            states = seen.setdefault(step.id, [])
            states += [] if states[-1:] == [step.status.value] else [step.status.value]
        note(self, kind, text, **data)

    monkeypatch.setattr(ResearchRun, "note", remember)
    _, state, _ = await conducted(tmp_path, depth="medium", limits={"min_steps": 2})
    done = ["pending", "executing", "completed"]
    assert list(seen.values()) == [done, done, ["pending", "skipped"]]
    assert [made.step for made in ReflectivePosition.of(state).reflections] == [
        step.text for step in state.work.plan.steps[:2]
    ]
    assert {event.data["phase"] for event in state.people.events if event.type == "phase.started"} >= {
        "step-1",
        "step-2",
    }
    assert state.work.result.outcome is Outcome.COMPLETED, (state.work.failed_branches, state.work.limitations)


async def test_no_reflection_leaves_out_what_a_person_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """COMPLETE skips what was planned; the wish is carried out, and then the report is written."""
    reflections(monkeypatch, "complete")
    async with trial_of(tmp_path, "reflective", "model") as trial:
        for _ in range(3):
            await trial.driver.step()
        for words in (WISH, "What does a base backup copy?"):
            await trial.steer(words)
        await trial.conduct()
    state = trial.state
    assert [(step.text == WISH, step.status) for step in state.work.plan.steps] == [
        (True, NodeStatus.COMPLETED), (False, NodeStatus.COMPLETED), (False, NodeStatus.SKIPPED),
    ]  # fmt: skip


async def test_open_questions_are_stated_after_resuming_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """How an ambiguous question was taken stands in the report of every run of the session (C1-9)."""
    adds(monkeypatch, "classification", is_ambiguous=True, clarifying_questions=["Which engine?"])
    async with trial_of(tmp_path, "reflective", "model") as trial:
        for _ in range(4):
            await trial.driver.step()
        await trial.stop()
        await trial.conduct()
        later = await resume(trial)
        for one in (trial, later):
            assert "leaves open: Which engine?" in await one.report()


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("most", "by_rules"), [(10, False), (11, True)])
async def test_rules_reflect_where_a_call_is_left_to_read(most: int, by_rules: bool, tmp_path: Path) -> None:
    """A reflection that the limit of calls refuses is made by rules if an analysis still fits, else the work ends."""
    trial, state, _ = await conducted(tmp_path, depth="medium", limits={"max_model_calls": most})
    assert ("reflector: done without the model (budget_calls)" in state.work.degraded) is by_rules
    assert (state.work.result.outcome, state.work.result.stop_reason) == (Outcome.PARTIAL, StopReason.BUDGET_CALLS)
    assert len(trial.api.requests) <= most


async def test_background_searches_are_proposed_while_the_route_is_chosen(tmp_path: Path) -> None:
    """Both calls take ten seconds, and together no more."""
    slow = {"classify_question": 10.0, "investigate_background": 10.0}
    async with world_of(tmp_path, "model") as (world, _):
        state = await begin(world, strategy="reflective", depth="medium", gates={"approve": "none"})
        host = TimedHost(world.host().implementations, lambda activity, _: slow.get(activity, 0.0))
        start = host.now()
        run = ResearchRun(state, Inbox(), host)
        conducted = asyncio.ensure_future(Driver(run, load_strategy("reflective")).conduct())
        await host.pass_time(conducted)
        await conducted
    assert sorted(name for name, _ in host.calls if name in slow) == sorted(slow)
    assert 10 <= (host.now() - start).total_seconds() < 20
    assert ReflectivePosition.read(state).background_queries


async def test_nothing_is_proposed_to_search_before_the_plan_is_approved(tmp_path: Path) -> None:
    """Nobody knows yet whether anything will be searched."""
    async with begun(tmp_path, "reflective", "model", gates={"approve": "plan"}) as trial:
        await trial.asked()
        assert "coordinator" in [call.role for call in trial.api.calls]
        assert "investigator" not in [call.role for call in trial.api.calls]
