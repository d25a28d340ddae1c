"""Plans that wait by preset: outlines, which change by a yes alone, and scopes, which are judged before one."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from contracts.outcome import PERSON
from contracts.outlines import MAX_HEADINGS
from contracts.plan import APPROVAL_PHRASE, Objection, ObjectionKind, WaitKind
from contracts.state import ResearchState
from contracts.vocabulary import NATURAL_STOPS, NodeStatus, Outcome, RunStatus, StopReason
from tests.every_strategy.joined import Trial, begin_again, begun
from tests.fakes import library_work, tool_work
from tests.toy.outlining import ANOTHER_OUTLINE, outlining_declared
from tests.toy.scoping import scoping_declared
from workflows.run import inbox
from workflows.status import build_plan, build_status, details_markdown


# --- outlines --------------------------------------------------------------------------------------------------------
@asynccontextmanager
async def outlined(folder: Path, engine: str = "model", name: str = "living", **fields: Any) -> AsyncIterator[Trial]:
    """A run that has begun, of a strategy whose preset is an approval."""
    with outlining_declared():
        async with begun(folder, name, engine, **({"gates": {}} | fields)) as trial:
            yield trial


@pytest.mark.one_in(3)
@pytest.mark.parametrize("engine", ["model", "extractive"])
async def test_a_plan_costs_no_search_and_waits_by_default(tmp_path: Path, engine: str) -> None:
    """A model may be asked for the plan; nothing is searched or read before a person says yes; the same run goes on then
    (S2-001, S2-002, S2-015, S2-016, X-1, X-25).
    """
    async with outlined(tmp_path, engine) as trial:
        waiting = await trial.asked()
        assert (waiting.kind, waiting.plan_version) == (WaitKind.APPROVAL, 1)
        assert bool(trial.api.calls) is (engine == "model")
        assert not {"search", "read_source", "check_providers"} & {activity for activity, _ in trial.host.calls}
        assert (trial.left, trial.state.work.status) == (0, RunStatus.AWAITING_APPROVAL)
        outline = trial.state.work.plan.outline
        await trial.answer(inbox.read_approval(trial.state, [], 1))
        await trial.task
        trial.assert_completed()
        assert trial.left > 0
        assert "Nobody approved the plan" not in await trial.report()
        assert (await trial.document())["plan"]["outline"] == outline


async def test_a_request_may_do_without_the_approval_and_the_report_says_so(tmp_path: Path) -> None:
    """An explicit `none` wins over the preset, also after a new history (X-1)."""
    async with outlined(tmp_path, gates={"approve": "none"}) as trial:
        await trial.task
        trial.assert_completed()
        assert trial.state.people.approved_version is None
        assert "Nobody approved the plan: the request did without" in await trial.report()


async def test_a_plan_gives_the_report_its_title(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is in the log with the plan, and at the head of the report, which names the question under *Method*."""
    plan = tool_work.decomposition
    monkeypatch.setattr(tool_work, "decomposition", lambda prompt: plan(prompt) | {"title": "The cost of it"})
    async with outlined(tmp_path, query=QUESTION) as trial:
        await trial.asked()
        (drafted,) = [event for event in trial.state.people.events if event.type == "plan.drafted"]
        assert drafted.data["title"] == "The cost of it"
        await trial.answer(inbox.read_approval(trial.state, [], 1))
        await trial.task
        report = await trial.report()
        assert report.startswith("# The cost of it\n")
        assert f"**Question:** {QUESTION}" in report


async def test_a_plan_shows_everything_that_is_approved(tmp_path: Path) -> None:
    """Queries, headings, questions, assumptions and constraints: in the query, the status, the details, and in the
    stored session (S2-010, S2-047, S2-048).
    """
    constraints = {"audience": "engineers", "region": "Europe", "timeframe": "2020..2024"}
    async with outlined(tmp_path, query="How?", constraints=constraints) as trial:
        waiting = await trial.asked()
        known, now = build_plan(trial.state), trial.host.now().timestamp()
        assert known.outline == ["How it works", "Which settings it has", "Where it fails"]
        assert known.questions == waiting.questions == ["Which part of “How?” do you mean?"]
        assert known.assumptions == ["The current version is meant."]
        assert known.constraints.model_dump(exclude_none=True) == constraints
        aspects = ("how it works", "which settings it has", "where it fails")
        assert [node.text for node in known.sub_queries] == [f"How: {aspect}" for aspect in aspects]
        status = build_status(trial.state, now)
        shown = (status.outline, status.questions, status.assumptions)
        assert shown == (known.outline, known.questions, known.assumptions)
        details = details_markdown(trial.state, now)
        for text in (*known.outline, "Which part of “How?” do you mean?", "The current version is meant."):
            assert text in details
        (prompt,) = [one.prompt for one in trial.api.requests if one.role == "decomposer"]
        assert all(value in prompt for value in constraints.values())
        await trial.run.checkpoints.settle()
        stored = ResearchState.model_validate_json(await trial.world.sessions.load("r-unit") or "")
        assert build_plan(stored).model_copy(update={"waiting": known.waiting}) == known


async def test_an_outline_of_a_model_that_cannot_be_used_is_cut_and_the_log_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred headings with markup: cut, which is told to whoever watches (S2-010)."""
    plan = tool_work.decomposition
    many = ["## **Costs**", *(f"Part {number}" for number in range(100))]
    monkeypatch.setattr(tool_work, "decomposition", lambda prompt: plan(prompt) | {"outline": many})
    async with outlined(tmp_path) as trial:
        await trial.asked()
        assert (trial.state.work.plan.outline[0], len(trial.state.work.plan.outline)) == ("Costs", MAX_HEADINGS)
        log = "\n".join(event.text for event in trial.state.people.events)
        assert "headings were shortened" in log
        assert "headings beyond the limit of 20" in log


async def test_questions_of_a_plan_are_answered_any_number_of_times(tmp_path: Path) -> None:
    """Each answer and each edit is a version of its own; what was seen before cannot be approved or answered any more
    (S2-018, C2-8).
    """
    async with outlined(tmp_path, query="How?") as trial:
        await trial.asked()
        with pytest.raises(inbox.Unacceptable, match="answers: none was given; approve the plan to go on without any"):
            inbox.read_answers(trial.state, [], [""])
        await trial.answer(inbox.read_answers(trial.state, [], ["the freezing of rows"], 1))
        second = await trial.asked(2)
        assert second.questions == []  # it was answered
        with pytest.raises(inbox.Unacceptable, match="the run waits for the approval of plan version 2"):
            inbox.read_answers(trial.state, [], ["again"])
        edit = {"questions": ["Which release?"], "assumptions": [], "outline": ["Freezing", "Costs"]}
        await trial.answer(inbox.read_revision(trial.state, [], edit, 2))
        third = await trial.asked(3)
        assert (third.questions, trial.state.work.plan.outline) == (["Which release?"], ["Freezing", "Costs"])
        assert trial.state.work.plan.assumptions == []
        assert len(trial.state.work.plan.nodes) == 3  # not named, so unchanged
        with pytest.raises(inbox.Unacceptable, match="version: the plan is version 3 by now"):
            inbox.read_answers(trial.state, [], ["the newest"], 2)
        await trial.answer(inbox.read_answers(trial.state, [], ["the newest"], 3))
        await trial.asked(4)
        prompts = [one.prompt for one in trial.api.requests if one.role == "decomposer"]
        assert "the freezing of rows" in prompts[1]
        assert "the newest" in prompts[-1]
        asked = [one.questions for one in trial.state.people.clarification.rounds]
        assert asked == [["Which part of “How?” do you mean?"], ["Which release?"]]
        assert "Freezing" in prompts[-1]  # the outline that is replaced
        with pytest.raises(inbox.Unacceptable, match="version: 3 is older than the plan that there is"):
            inbox.read_approval(trial.state, [], 3)
        assert trial.left == 0
        await trial.answer(inbox.read_approval(trial.state, [], 4))
        await trial.task
        trial.assert_completed()


async def test_a_cancelled_run_names_no_command_that_it_cannot_follow(tmp_path: Path) -> None:
    """Its stored plan, status and details name no command that it cannot hear; the plan itself is still shown."""
    async with outlined(tmp_path) as trial:
        await trial.asked()
        await trial.cancel()
        await asyncio.wait([trial.task])
        stored = ResearchState.model_validate_json(await trial.world.sessions.load("r-unit") or "")
    known, now = build_plan(stored), trial.host.now().timestamp()
    assert (stored.work.status, known.version) == (RunStatus.CANCELLED, 1)
    assert (known.waiting, build_status(stored, now).waiting) == (None, None)
    assert "research approve" not in details_markdown(stored, now)


async def test_headings_change_by_a_version_with_its_own_yes_alone(tmp_path: Path) -> None:
    """What a strategy would change after the approval waits like the first plan, also in another process (C2-9)."""
    async with outlined(tmp_path, name="outlining", metadata={"another_outline": True}) as trial:
        await trial.asked()
        approved = trial.state.work.plan.outline
        await trial.answer(inbox.read_approval(trial.state, [], 1))
        waiting = await trial.asked(2)
        assert waiting.kind is WaitKind.APPROVAL
        assert trial.state.work.plan.outline == ANOTHER_OUTLINE != approved
        assert not trial.run.is_permitted
        left = trial.left
        await trial.cancel()
        await asyncio.wait([trial.task])
        again = await begin_again(trial, gates={}, metadata={"another_outline": True})
        again.start()
        assert (await again.asked(2)).plan_version == 2
        assert again.left == left
        await again.answer(inbox.read_approval(again.state, [], 2))
        await again.task
        again.assert_completed()


CHANGE = {"outline": ["Costs", "Overview"], "sub_queries": ["Which settings start autovacuum?"]}


async def change_in(trial: Trial, unit: str) -> None:
    """Have a person change the plan at the first call of a unit, and wait until the run presents the new version."""

    async def revise() -> None:
        trial.inbox.replies.append(inbox.read_revision(trial.state, trial.inbox.replies, CHANGE, 1))

    trial.host.acts[unit, 1] = revise
    await trial.asked(1)
    await trial.answer(inbox.read_approval(trial.state, [], 1))
    waiting = await trial.asked(2)
    assert (waiting.kind, trial.state.work.status) == (WaitKind.APPROVAL, RunStatus.AWAITING_APPROVAL)
    assert not trial.run.is_permitted


def headings_of(report: str) -> list[str]:
    return [line.removeprefix("## ") for line in report.splitlines() if line.startswith("## ")]


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("engine", "unit"), [("model", "turn-4"), ("extractive", "turn-4"), ("model", "turn-2")])
async def test_an_approved_plan_changes_by_a_version_with_its_own_yes(tmp_path: Path, engine: str, unit: str) -> None:
    """The run finishes its step, waits, and then has report and agent go by the new headings and queries; what was
    searched stays, and each step keeps the bound of an update (C2-9).
    """
    async with outlined(tmp_path, engine, query=QUESTION) as trial:
        await change_in(trial, unit)
        left, draft = trial.left, trial.state.evidence.draft
        asked = {node.text for node in trial.state.work.plan.sub_queries if node.status is NodeStatus.COMPLETED}
        assert list(draft.words_by_section) != CHANGE["outline"]
        await asyncio.sleep(0.05)
        assert trial.left == left
        await trial.answer(inbox.read_approval(trial.state, [], 2))
        await trial.task
        trial.assert_completed()
        state = trial.state
        assert (state.people.approved_version, state.work.plan.version, state.people.approved_plan) == (2, 2, None)
        assert list(state.evidence.draft.words_by_section) == CHANGE["outline"]
        assert headings_of(await trial.report())[:2] == CHANGE["outline"]
        texts = {node.text: node.status for node in state.work.plan.sub_queries}
        assert texts["Which settings start autovacuum?"] is NodeStatus.COMPLETED
        assert asked <= set(texts)
        steps = [event.data for event in state.people.events if event.type == "report.updated"]
        assert all(step["inserted"] + step["removed"] <= 800 for step in steps)
        cited = set(state.evidence.draft.evidence_ids)
        assert all(
            cited & set(finding.evidence_ids) for finding in state.evidence.findings
        )  # removed notes were written again
        prompts = [one.prompt for one in trial.api.requests if one.role == "living_agent"]
        assert any("The person changed the plan" in prompt for prompt in prompts) is (engine == "model")


@pytest.mark.one_in(3)
@pytest.mark.parametrize("how", ["reject", "expire", "stop"])
async def test_a_version_that_is_not_approved_leaves_the_approved_plan(tmp_path: Path, how: str) -> None:
    """Rejected or not approved in time, the run goes on by the plan of before; stopped, its report goes by it (C2-9)."""
    async with outlined(tmp_path, query=QUESTION) as trial:
        await change_in(trial, "turn-4")
        headings, queries = (
            list(trial.state.evidence.draft.words_by_section),
            trial.state.people.approved_plan.sub_queries,
        )
        if how == "reject":
            await trial.answer(inbox.read_rejection(trial.state, [], "the old one was better"))
        elif how == "expire":
            await trial.host.advance(trial.run.resolved.limits.max_wait_seconds + 1)
        else:
            await trial.stop()
        await trial.task
        state = trial.state
        expected = Outcome.PARTIAL if how == "stop" else Outcome.COMPLETED
        assert state.work.result.outcome is expected, (state.work.failed_branches, state.work.limitations)
        assert (state.work.result.stop_reason in NATURAL_STOPS) is (how != "stop")
        assert (state.work.plan.outline, state.work.plan.version, state.people.approved_version) == (headings, 3, 3)
        assert {query.id for query in queries} <= {query.id for query in state.work.plan.sub_queries}
        assert "Which settings start autovacuum?" not in {query.text for query in state.work.plan.sub_queries}
        assert headings_of(await trial.report())[: len(headings)] == headings
        kept = next(decision for decision in state.people.decisions if decision.action == "keep_plan")
        assert (kept.agent == PERSON) is (how == "reject")


async def test_a_change_that_comes_too_late_is_named(tmp_path: Path) -> None:
    """A run that is stopped in the same step writes its report by the plan that it has, and says so (C2-9)."""
    async with outlined(tmp_path, query=QUESTION) as trial:

        async def revise_and_stop() -> None:
            trial.inbox.replies.append(inbox.read_revision(trial.state, [], CHANGE, 1))
            await trial.stop()

        trial.host.acts["turn-4", 1] = revise_and_stop
        await trial.asked(1)
        outline = trial.state.work.plan.outline
        await trial.answer(inbox.read_approval(trial.state, [], 1))
        await trial.task
        state = trial.state
        assert (state.work.plan.version, state.work.plan.outline, list(state.evidence.draft.words_by_section)) == (
            1,
            outline,
            outline,
        )
        assert any("a change of the plan came too late" in line for line in state.work.degraded)


async def test_words_about_an_approved_plan_have_its_planner_make_a_version(tmp_path: Path) -> None:
    """The planner knows the plan that it replaces; what was searched stays, and the version waits for its own yes."""
    async with outlined(tmp_path, query=QUESTION) as trial:

        async def revise() -> None:
            trial.inbox.replies.append(inbox.read_revision(trial.state, [], "less about settings"))

        trial.host.acts["turn-3", 1] = revise
        await trial.asked(1)
        await trial.answer(inbox.read_approval(trial.state, [], 1))
        await trial.asked(2)
        asked = {node.id for node in trial.state.work.plan.sub_queries if node.status is NodeStatus.COMPLETED}
        assert asked
        prompts = [one.prompt for one in trial.api.requests if one.role == "decomposer"]
        assert "less about settings" in prompts[-1]
        await trial.answer(inbox.read_approval(trial.state, [], 2))
        await trial.task
        trial.assert_completed()
        searches = trial.world.corpus.searches
        assert len(searches) == len(set(searches))


async def test_a_changed_plan_waits_in_another_process_too(tmp_path: Path) -> None:
    """Cancelled while the new version waits, the run presents it again, and can still return to the approved one."""
    async with outlined(tmp_path, query=QUESTION) as trial:
        await change_in(trial, "turn-4")
        approved = trial.state.people.approved_plan.outline
        await trial.cancel()
        await asyncio.wait([trial.task])
        again = await begin_again(trial, gates={}, query=QUESTION)
        again.start()
        assert (await again.asked(2)).plan_version == 2
        await again.answer(inbox.read_rejection(again.state, [], ""))
        await again.task
        again.assert_completed()
        assert again.state.work.plan.outline == approved


# --- scopes ----------------------------------------------------------------------------------------------------------
QUESTION = "How does vacuum prevent wraparound of transaction ids?"
WIDE = "Everything about databases"
NARROW = ["How does vacuum freeze rows?", "Which settings start autovacuum?"]
REASON = "whole shelves are about it"


def verdict(query: str, *, feasible: bool = True, splits: list[str] | None = None) -> dict[str, Any]:
    reason = "a few sources answer it" if feasible else REASON
    return {"query": query, "feasible": feasible, "reason": reason, "splits": splits or []}


def manager(monkeypatch: pytest.MonkeyPatch, *answers: list[dict[str, Any]]) -> list[str]:
    """Have the model answer so, in this order, the last answer from then on; its prompts."""
    prompts: list[str] = []

    def scope(prompt: str) -> dict[str, Any]:
        prompts.append(prompt)
        return {"queries": answers[min(len(prompts), len(answers)) - 1]}

    monkeypatch.setattr(library_work, "scope", scope)
    return prompts


def too_wide(query: str = WIDE) -> list[dict[str, Any]]:
    return [verdict(query, feasible=False, splits=NARROW)]


@asynccontextmanager
async def scoped(folder: Path, engine: str = "model", **fields: Any) -> AsyncIterator[Trial]:
    """A run that has begun, whose preset is the phrase."""
    with scoping_declared():
        async with begun(folder, "scoping", engine, **({"gates": {}, "query": QUESTION} | fields)) as trial:
            yield trial


@pytest.mark.one_in(2)
@pytest.mark.parametrize("engine", ["model", "extractive"])
async def test_a_feasible_question_passes_as_it_is(tmp_path: Path, engine: str) -> None:
    """It waits without an objection and begins with the phrase (S4-003, S4-007, S4-008, X-1, X-25)."""
    async with scoped(tmp_path, engine) as trial:
        waiting = await trial.asked()
        assert [node.text for node in trial.state.work.plan.nodes] == [QUESTION]
        assert (trial.state.work.plan.objections, waiting.objected, waiting.phrase) == ([], None, APPROVAL_PHRASE)
        assert trial.left == 0
        with pytest.raises(inbox.Unacceptable, match="phrase: this run wants exactly these words"):
            inbox.read_approval(trial.state, [], 1, "not Authorized to execute yet")
        await trial.answer(inbox.read_reply(trial.state, [], " authorized TO execute! "))
        await trial.task
        trial.assert_completed()
        assert trial.state.people.approved_version == 1
        assert trial.left > 0


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("limits", "most"), [({}, 4), ({"max_sources": 2}, 2)])
async def test_a_broad_question_becomes_queries_that_are_each_feasible(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limits: dict[str, int], most: int
) -> None:
    """Each with its reason, in the manager's order; beyond what the limits allow there is none (S4-004, S4-005)."""
    texts = [*NARROW, "Three?", "Four?", "Five?"]
    prompts = manager(monkeypatch, [verdict(text) for text in texts])
    async with scoped(tmp_path, query=WIDE, limits=limits) as trial:
        await trial.asked()
        nodes = trial.state.work.plan.sub_queries
        assert [node.text for node in nodes] == texts[:most]
        assert {node.rationale for node in nodes} == {"a few sources answer it"}
        assert trial.state.work.plan.objections == []
    assert f"{most} queries or fewer" in prompts[0]


async def test_an_opinion_blocks_until_the_query_is_narrowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The refusal names the query and what to split; an edit keeps its version, is judged before it can be approved, and
    a manager that changes its mind is asked once for each edit (S4-005, S4-006, C4-10, X-18).
    """
    prompts = manager(monkeypatch, too_wide(), too_wide(NARROW[0]), [verdict(NARROW[1])])
    async with scoped(tmp_path, query=WIDE) as trial:
        waiting = await trial.asked()
        assert waiting.objected is ObjectionKind.OPINION
        assert waiting.ways("r")[0] == "research plan r --edit"
        assert any(way.endswith("--overrule") for way in waiting.ways("r"))
        computed = waiting.model_copy(update={"objected": ObjectionKind.STRUCTURAL})
        assert not any("approve" in way for way in computed.ways("r"))
        with pytest.raises(inbox.Unacceptable) as refused:
            inbox.read_approval(trial.state, [], 1, APPROVAL_PHRASE)
        assert all(text in str(refused.value) for text in (WIDE, REASON, *NARROW, "--overrule"))
        for version, query in enumerate(NARROW, start=2):
            edit = inbox.read_revision(trial.state, [], {"sub_queries": [query]})
            with pytest.raises(inbox.Unacceptable, match=f"plan: version {version} is being judged"):
                inbox.read_approval(trial.state, [edit], version, APPROVAL_PHRASE)
            await trial.answer(edit)
            waiting = await trial.asked(version)
            assert trial.state.work.plan.version == version
            assert bool(trial.state.work.plan.objections) is (query == NARROW[0])
        assert waiting.objected is None
        await trial.answer(inbox.read_approval(trial.state, [], 3, APPROVAL_PHRASE))
        await trial.task
        trial.assert_completed()
    assert len(prompts) == 3
    assert "to be judged" in prompts[1]
    assert NARROW[0] in prompts[1]


async def test_a_plan_that_waits_to_be_judged_is_judged_in_another_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that ended between an edit and its verdict does not wait for the approval of what nobody judged."""
    manager(monkeypatch, too_wide(), [verdict(NARROW[0])])
    async with scoped(tmp_path, query=WIDE) as trial:
        await trial.asked()
        edit = inbox.read_revision(trial.state, [], {"sub_queries": [NARROW[0]]})
        state = ResearchState.unpack(trial.state.pack())
        state.work.plan, state.people.waiting = edit.plan, None
        again = Trial(trial.world, trial.name, state)
        again.start()
        waiting = await again.asked(2)
        assert (waiting.objected, state.work.plan.to_judge) == (None, False)
        await again.cancel()
        await asyncio.wait([again.task])


async def test_a_raised_limit_resolves_the_objection_that_named_it(tmp_path: Path) -> None:
    """The wait and the refusal print the command; resumed with it, the plan is judged under the new limit and can be
    approved, while an opinion about it stays (C4-10).
    """
    fields: dict[str, Any] = {"gates": {"approve": "phrase"}, "depth": "light"}
    low = {"max_model_calls": 3}
    async with begun(tmp_path, "recursive", "model", **fields, limits=low) as trial:
        waiting = await trial.asked()
        needed = int(waiting.short_limits["max_model_calls"])
        command = f"research cancel r && research resume r --set limits.max_model_calls={needed}"
        assert waiting.ways("r")[0] == command
        with pytest.raises(inbox.Unacceptable, match=f"raise the limit: .* limits.max_model_calls={needed}; nothing"):
            inbox.read_approval(trial.state, [], 1, APPROVAL_PHRASE)
        opinion = Objection(kind=ObjectionKind.OPINION, text="too broad")
        trial.state.work.plan.objections.append(opinion)
        await trial.run.checkpoints.save()
        await trial.cancel()
        await asyncio.wait([trial.task])
        again = await begin_again(trial, **fields, limits={"max_model_calls": needed})
        assert again.state.work.plan.objections == [opinion]
        again.start()
        assert (await again.asked()).objected is ObjectionKind.OPINION
        await again.answer(inbox.read_approval(again.state, [], 1, APPROVAL_PHRASE, True))
        await again.task
        assert again.state.people.approved_version == 1
        assert again.left > 0


async def test_a_person_overrules_an_opinion_and_that_is_on_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By an argument of the approval, not by the phrase alone; the decision is the person's and stands in the report
    (S4-006, S4-008, X-18).
    """
    manager(monkeypatch, too_wide())
    async with scoped(tmp_path, query=WIDE) as trial:
        await trial.asked()
        with pytest.raises(inbox.Unacceptable, match="overrule: expected true or false"):
            inbox.read_approval(trial.state, [], 1, APPROVAL_PHRASE, "yes")
        with pytest.raises(inbox.Unacceptable, match="phrase"):
            inbox.read_approval(trial.state, [], 1, None, True)
        await trial.answer(inbox.read_approval(trial.state, [], 1, APPROVAL_PHRASE, True))
        await trial.task
        assert trial.left > 0
        (decision,) = [one for one in trial.state.people.decisions if one.action == "overrule_objections"]
        assert (decision.agent, decision.inputs) == ("person", {"version": 1})
        report = await trial.report()
        assert "Opinions that a query is too wide, which a person overruled" in report
        assert WIDE in report
        assert build_plan(trial.state).objections[0].overruled


async def test_objections_are_shown_wherever_a_plan_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the query, the status, the details of the web UI, the events, and in the stored session."""
    manager(monkeypatch, too_wide())
    async with scoped(tmp_path, query=WIDE) as trial:
        waiting, now = await trial.asked(), trial.host.now().timestamp()
        (objection,) = build_plan(trial.state).objections
        assert (objection.query, objection.text, objection.splits) == (WIDE, REASON, NARROW)
        assert build_status(trial.state, now).objections == [objection]
        assert REASON in details_markdown(trial.state, now)
        (drafted,) = [event for event in trial.state.people.events if event.type == "plan.drafted"]
        assert drafted.data["objections"] == [objection.line()]
        await trial.run.checkpoints.settle()
        stored = ResearchState.model_validate_json(await trial.world.sessions.load("r-unit") or "")
        assert build_plan(stored).model_copy(update={"waiting": waiting}) == build_plan(trial.state)


# --- nobody is asked -------------------------------------------------------------------------------------------------
async def test_without_a_person_the_managers_own_split_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The narrower queries are judged like an edit and searched for; the report says so (S4-004, X-18)."""
    prompts = manager(monkeypatch, too_wide(), [verdict(text) for text in NARROW])
    async with scoped(tmp_path, query=WIDE, gates={"approve": "none"}) as trial:
        await trial.task
        assert [node.text for node in trial.state.work.plan.sub_queries] == NARROW
        assert all(text in prompts[1] for text in NARROW)
        report = await trial.report()
        assert "The question was too wide: its narrower queries were taken" in report
        assert REASON in report


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("answers", "limits", "line"),
    [
        ([too_wide(), [*too_wide(NARROW[0]), *too_wide(NARROW[1])]], {}, REASON),
        ([too_wide(), [verdict(NARROW[0]), *too_wide(NARROW[1])]], {}, REASON),
        ([[verdict(WIDE)]], {"max_model_calls": 4}, "limits.max_model_calls is 4"),
    ],
    ids=["always", "also its own split", "computed"],
)
async def test_without_a_person_what_is_too_wide_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answers: list[Any], limits: dict[str, int], line: str
) -> None:
    """The end is `refused: infeasible` with the lines that a person would have seen; nothing was searched, the plan is
    there, and a resumed run judges again (S4-006).
    """
    prompts = manager(monkeypatch, *answers)
    fields = {"query": WIDE, "gates": {"approve": "none"}, "limits": limits}
    async with scoped(tmp_path, **fields) as trial:
        assert await trial.task is Outcome.REFUSED
        result = trial.state.work.result
        assert (result.outcome, result.stop_reason, trial.left) == (Outcome.REFUSED, StopReason.INFEASIBLE, 0)
        assert any(line in text for text in result.limitations)
        assert "research resume" in result.advice
        assert len(prompts) <= 2
        assert trial.state.work.plan.open_objections
        manager(monkeypatch, [verdict(NARROW[0])])
        again = await begin_again(trial, **(fields | {"limits": {}}))
        assert await again.conduct() is not Outcome.REFUSED
        assert [node.text for node in again.state.work.plan.sub_queries if node.origin == "plan"] == NARROW[:1]


async def test_a_limit_that_allows_no_call_at_all_is_named_by_the_work(tmp_path: Path) -> None:
    """Where nobody is asked and not even the manager can be paid, the run ends by that limit, not as infeasible."""
    async with scoped(tmp_path, gates={"approve": "none"}, limits={"max_model_calls": 0}) as trial:
        await trial.task
        assert trial.state.work.result.stop_reason is StopReason.BUDGET_CALLS
