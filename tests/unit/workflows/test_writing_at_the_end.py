"""What becomes of a report's text when a run ends early: nothing that it says is lost for a shorter one."""

from typing import Any

import pytest

from contracts.answer_sizes import WORD_OUTPUT_TOKENS
from contracts.outcome import CallAccount
from contracts.roles import SYNTHESIZER, SynthesizerResult
from contracts.vocabulary import EngineKind, StopReason
from tests.fakes import states
from tests.fakes.host import InProcessHost
from workflows.phases.closing import write_early
from workflows.phases.drafts import supersede_draft
from workflows.phases.writing import write_draft
from workflows.run.inbox import Inbox, Interrupted
from workflows.run.research_run import ResearchRun
from workflows.run.run_budget import CallRefused

WORDS = 2_000
KEPT = "not in the text: 1 finding (Which servers may replicate?); "
TOO_LITTLE = "what was left would have paid for a shorter report only"
ANOTHER = states.draft(2_000)
QUERY = states.sub_query("Which servers may replicate?")
NEWER = states.finding("Found in the second iteration").with_fields(iteration=2, sub_query_id=QUERY.id)
NO_MONEY = CallRefused(StopReason.BUDGET_COST)


def written(engine: EngineKind) -> SynthesizerResult:
    return SynthesizerResult(draft=ANOTHER, account=CallAccount(engine=engine))


class Writing(ResearchRun):
    """A run whose synthesizer gives these answers, or raises them, and whose requests are noted."""

    answers: list[Any]
    asked: list[Any]

    async def ask(self, role: Any, step: str, fields: Any, engine: Any = None) -> Any:
        self.asked.append((fields, engine))
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        self.state.accounts.engine_by_role = {SYNTHESIZER.name: answer.account.engine.value}
        return answer


def writing(*answers: Any, engine: EngineKind = EngineKind.MODEL, **changes: Any) -> Writing:
    """A run with a draft of its first iteration, which this engine wrote, and a finding of the second."""
    draft = states.draft().with_fields(word_count=WORDS)
    made = states.state(plan=states.plan(QUERY), findings=[NEWER], draft=draft, resolved=states.resolved(engine=engine))
    made.accounts.engine_by_role = {SYNTHESIZER.name: engine.value}
    states.change(made, **changes)
    run = Writing(made, Inbox(), InProcessHost({}))
    run.answers = list(answers)
    run.asked = []
    return run


async def write(run: Writing, reason: StopReason = StopReason.BUDGET_COST, engine: EngineKind | None = None) -> None:
    await write_early(run, reason, changed=False, engine=engine)


async def test_a_draft_stays_where_only_a_shorter_one_could_be_paid() -> None:
    """The synthesizer is asked with room for as full a text; refused, the run keeps what it has and says so."""
    run = writing(NO_MONEY)
    before = run.state.evidence.draft
    await write(run)
    ((request, _),) = run.asked
    assert request.least_output_tokens > WORD_OUTPUT_TOKENS * WORDS
    assert run.state.evidence.draft == before
    assert list(map(str, run.state.work.degraded)) == [KEPT + TOO_LITTLE]


async def test_with_room_for_as_full_a_text_the_draft_is_written_again() -> None:
    """The findings that came after it are in the new one."""
    run = writing(written(EngineKind.MODEL))
    await write(run)
    assert run.state.evidence.draft == ANOTHER
    assert run.state.work.degraded == []


async def test_a_draft_that_has_every_finding_is_not_written_again() -> None:
    """No call is made."""
    run = writing(findings=[NEWER.with_fields(iteration=1)])
    await write(run)
    assert run.asked == []


@pytest.mark.parametrize(
    ("answers", "reason", "engine", "why"),
    [
        ([], StopReason.PROVIDER_OUTAGE, EngineKind.EXTRACTIVE, StopReason.PROVIDER_OUTAGE.text),
        ([Interrupted(StopReason.PROVIDER_OUTAGE)], StopReason.BUDGET_COST, None, StopReason.PROVIDER_OUTAGE.text),
        ([Interrupted(StopReason.BUDGET_TIME)], StopReason.BUDGET_COST, None, StopReason.BUDGET_TIME.text),
        ([written(EngineKind.EXTRACTIVE)], StopReason.BUDGET_COST, None, "the model gave no usable text"),
    ],
    ids=["an outage before", "an outage now", "no time", "no usable answer"],
)
async def test_rules_write_nothing_over_the_draft_of_a_model(
    answers: list[Any], reason: StopReason, engine: EngineKind | None, why: str
) -> None:
    """It stays as the model's, and the report says what it lacks and why."""
    run = writing(*answers)
    before = run.state.evidence.draft
    await write(run, reason, engine)
    assert len(run.asked) == len(answers)
    assert run.state.evidence.draft == before
    assert run.state.accounts.engine_by_role == {SYNTHESIZER.name: EngineKind.MODEL.value}
    assert list(map(str, run.state.work.degraded)) == [KEPT + why]


async def test_an_answer_of_rules_between_two_iterations_replaces_no_draft_either() -> None:
    """The next iteration, or the end of the run, writes again."""
    run = writing(written(EngineKind.EXTRACTIVE))
    before = run.state.evidence.draft
    await write_draft(run)
    assert run.state.evidence.draft == before
    assert list(map(str, run.state.work.degraded)) == [KEPT + "the model gave no usable text"]


async def test_a_resumed_run_keeps_its_draft_until_there_is_another() -> None:
    """One of a model is older than all findings then; one of rules is dropped, as they write it again at once."""
    old = NEWER.with_fields(id="f-old", iteration=1, evidence_ids=states.draft().evidence_ids)
    run = writing(findings=[old, NEWER.with_fields(iteration=1)])
    supersede_draft(run)
    await write(run, StopReason.PROVIDER_OUTAGE, EngineKind.EXTRACTIVE)
    draft = run.state.evidence.draft
    assert draft is not None
    assert draft.document == states.draft().document
    assert list(map(str, run.state.work.degraded)) == [KEPT + StopReason.PROVIDER_OUTAGE.text]
    rules = writing(engine=EngineKind.EXTRACTIVE)
    supersede_draft(rules)
    assert rules.state.evidence.draft is None


async def test_a_draft_without_its_findings_is_written_again() -> None:
    """Nothing supports it any more."""
    run = writing(written(EngineKind.EXTRACTIVE), findings=[])
    await write(run, StopReason.PROVIDER_OUTAGE, EngineKind.EXTRACTIVE)
    assert run.state.evidence.draft == ANOTHER


@pytest.mark.parametrize(
    ("problem", "changes"),
    [
        (Interrupted(StopReason.BUDGET_TIME), {"draft": None}),
        (NO_MONEY, {"draft": None}),
        (NO_MONEY, {"engine": EngineKind.EXTRACTIVE}),
    ],
    ids=["no time", "no draft", "a draft of rules"],
)
async def test_otherwise_rules_write_what_the_model_could_not(problem: Exception, changes: dict[str, Any]) -> None:
    """There is no text of a model with the same findings to keep."""
    run = writing(problem, written(EngineKind.EXTRACTIVE), **changes)
    await write(run)
    assert [engine for _, engine in run.asked] == [None, EngineKind.EXTRACTIVE]
    assert run.state.evidence.draft == ANOTHER
