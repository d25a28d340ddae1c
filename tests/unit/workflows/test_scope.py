"""The scope: who judges it, what stands against its approval, how a person overrules, and its end without a person."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from contracts.plan import APPROVAL_PHRASE, ObjectionKind
from contracts.state import ResearchState
from contracts.strategies import calls_by_role
from contracts.vocabulary import Outcome, StopReason
from tests.every_strategy.joined import Trial, begin_again, begun
from tests.fakes import library_work
from tests.toy.scoping import scoping_declared
from workflows.phases.scope import estimate_scope, most_queries
from workflows.run import inbox
from workflows.status import details_markdown, plan_of, status_of

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


@pytest.mark.parametrize("engine", ["model", "extractive"])
async def test_a_feasible_question_passes_as_it_is(tmp_path: Path, engine: str) -> None:
    """It waits without an objection and begins with the phrase (S4-003, S4-007, S4-008, X-1, X-25)."""
    async with scoped(tmp_path, engine) as trial:
        waiting = await trial.asked()
        assert [node.text for node in trial.state.plan.nodes] == [QUESTION]
        assert (trial.state.plan.objections, waiting.objected, waiting.phrase) == ([], None, APPROVAL_PHRASE)
        assert trial.left == 0
        with pytest.raises(inbox.Unacceptable, match="phrase: this run wants exactly these words"):
            inbox.read_approval(trial.state, [], 1, "not Authorized to execute yet")
        await trial.answer(inbox.read_reply(trial.state, [], " authorized TO execute! "))
        await trial.task
        trial.assert_completed()
        assert trial.state.approved_version == 1
        assert trial.left > 0


async def test_a_broad_question_becomes_queries_that_are_each_feasible(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two queries with the reason of each, in the manager's order; beyond the limit there is none (S4-004, S4-005)."""
    prompts = manager(monkeypatch, [verdict(text) for text in (*NARROW, "Three?", "Four?", "Five?")])
    async with scoped(tmp_path, query=WIDE) as trial:
        await trial.asked()
        nodes = trial.state.plan.sub_queries
        assert [node.text for node in nodes] == [*NARROW, "Three?", "Four?"]
        assert {node.rationale for node in nodes} == {"a few sources answer it"}
        assert trial.state.plan.objections == []
    assert "4 queries or fewer" in prompts[0]


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
        with pytest.raises(inbox.Unacceptable) as refused:
            inbox.read_approval(trial.state, [], 1, APPROVAL_PHRASE)
        assert all(text in str(refused.value) for text in (WIDE, REASON, *NARROW, "--overrule"))
        for version, query in enumerate(NARROW, start=2):
            edit = inbox.read_revision(trial.state, [], {"sub_queries": [query]})
            with pytest.raises(inbox.Unacceptable, match=f"plan: version {version} is being judged"):
                inbox.read_approval(trial.state, [edit], version, APPROVAL_PHRASE)
            await trial.answer(edit)
            waiting = await trial.asked(version)
            assert trial.state.plan.version == version
            assert bool(trial.state.plan.objections) is (query == NARROW[0])
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
        state.plan, state.waiting = edit.plan, None
        again = Trial(trial.world, trial.name, state)
        again.start()
        waiting = await again.asked(2)
        assert (waiting.objected, state.plan.to_judge) == (None, False)
        await again.cancel()
        await asyncio.wait([again.task])


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
        (decision,) = [one for one in trial.state.decisions if one.action == "overrule_objections"]
        assert (decision.agent, decision.inputs) == ("person", {"version": 1})
        report = await trial.report()
        assert "Opinions that a query is too wide, which a person overruled" in report
        assert WIDE in report
        assert plan_of(trial.state).objections[0].overruled


async def test_what_is_computed_binds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls beyond the limit, and more things than any tree has leaves: with both figures, whatever the model says, and
    nothing overrules it (S4-005, C4-10, X-18).
    """
    named = ", ".join(f"thing {number}" for number in range(20))
    manager(monkeypatch, [verdict(f"Compare {named}")])
    async with scoped(tmp_path, limits={"max_model_calls": 4}) as trial:
        waiting = await trial.asked()
        assert waiting.objected is ObjectionKind.STRUCTURAL
        assert not any("approve" in way for way in waiting.ways("r"))
        parts, calls = trial.state.plan.objections
        assert parts.figures == {"max_leaves": (20.0, 15.0)}
        assert "split it into 2 queries of at most 15 things each" in parts.text
        estimate = estimate_scope(trial.run, [calls.query])["max_model_calls"]
        assert calls.query == parts.query == f"Compare {named}"
        assert calls.figures == {"max_model_calls": (float(estimate or 0), 4.0)}
        assert f"at least {estimate} model calls, and limits.max_model_calls is 4" in calls.text
        with pytest.raises(inbox.Unacceptable, match="nothing overrules this"):
            inbox.read_approval(trial.state, [], 1, APPROVAL_PHRASE, True)


async def test_the_manager_is_asked_for_no_more_queries_than_the_limits_allow(tmp_path: Path) -> None:
    """One figure counts: that of the estimate of the run, of the objection and of the number of queries."""
    async with scoped(tmp_path, limits={"max_sources": 2}) as trial:
        await trial.asked()
        assert most_queries(trial.run) == 2
        calls = calls_by_role(trial.run.resolved)
        assert estimate_scope(trial.run, [QUESTION])["max_model_calls"] == sum(fewest for fewest, _ in calls.values())


async def test_objections_are_shown_wherever_a_plan_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the query, the status, the details of the web UI, the events, and in the stored session."""
    manager(monkeypatch, too_wide())
    async with scoped(tmp_path, query=WIDE) as trial:
        waiting, now = await trial.asked(), trial.host.now().timestamp()
        (objection,) = plan_of(trial.state).objections
        assert (objection.query, objection.text, objection.splits) == (WIDE, REASON, NARROW)
        assert status_of(trial.state, now).objections == [objection]
        assert REASON in details_markdown(trial.state, now)
        (drafted,) = [event for event in trial.state.events if event.type == "plan.drafted"]
        assert drafted.data["objections"] == [objection.line()]
        await trial.run.checkpoints.settle()
        stored = ResearchState.model_validate_json(await trial.world.sessions.load("r-unit") or "")
        assert plan_of(stored).model_copy(update={"waiting": waiting}) == plan_of(trial.state)


# --- nobody is asked -------------------------------------------------------------------------------------------------
async def test_without_a_person_the_managers_own_split_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The narrower queries are judged like an edit and searched for; the report says so (S4-004, X-18)."""
    prompts = manager(monkeypatch, too_wide(), [verdict(text) for text in NARROW])
    async with scoped(tmp_path, query=WIDE, gates={"approve": "none"}) as trial:
        await trial.task
        assert [node.text for node in trial.state.plan.sub_queries] == NARROW
        assert all(text in prompts[1] for text in NARROW)
        report = await trial.report()
        assert "The question was too wide: its narrower queries were taken" in report
        assert REASON in report


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
        result = trial.state.result
        assert (result.outcome, result.stop_reason, trial.left) == (Outcome.REFUSED, StopReason.INFEASIBLE, 0)
        assert any(line in text for text in result.limitations)
        assert "research resume" in result.advice
        assert len(prompts) <= 2
        assert trial.state.plan.open_objections
        manager(monkeypatch, [verdict(NARROW[0])])
        again = await begin_again(trial, **(fields | {"limits": {}}))
        assert await again.conduct() is not Outcome.REFUSED
        assert [node.text for node in again.state.plan.sub_queries if node.origin == "plan"] == NARROW[:1]


async def test_a_limit_that_allows_no_call_at_all_is_named_by_the_work(tmp_path: Path) -> None:
    """Where nobody is asked and not even the manager can be paid, the run ends by that limit, not as infeasible."""
    async with scoped(tmp_path, gates={"approve": "none"}, limits={"max_model_calls": 0}) as trial:
        await trial.task
        assert trial.state.result.stop_reason is StopReason.BUDGET_CALLS
