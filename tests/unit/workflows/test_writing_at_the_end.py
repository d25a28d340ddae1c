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
from workflows.run.inbox import Inbox, Interrupted
from workflows.run.research_run import ResearchRun
from workflows.run.run_budget import CallRefused

WORDS = 2_000
KEPT = "what was found last is not in the text: what was left would have paid for a shorter report only"
ANOTHER = states.draft(2_000)
NEWER = states.finding("Found in the second iteration").with_fields(iteration=2)
NO_MONEY = CallRefused(StopReason.BUDGET_COST)


class Writing(ResearchRun):
    """A run whose synthesizer gives these answers, or raises them, and whose requests are noted."""

    answers: list[Any]
    asked: list[Any]

    async def ask(self, role: Any, step: str, fields: Any, engine: Any = None) -> Any:
        self.asked.append((fields, engine))
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer


def writing(*answers: Any, engine: EngineKind = EngineKind.MODEL, **changes: Any) -> Writing:
    """A run with a draft of its first iteration, which this engine wrote, and a finding of the second."""
    query = states.sub_query("Which servers may replicate?")
    draft = states.draft().with_fields(word_count=WORDS)
    made = states.state(plan=states.plan(query), findings=[NEWER], draft=draft, resolved=states.resolved(engine=engine))
    made.accounts.engine_by_role = {SYNTHESIZER.name: engine.value}
    states.change(made, **changes)
    run = Writing(made, Inbox(), InProcessHost({}))
    run.answers = list(answers)
    run.asked = []
    return run


def written(engine: EngineKind) -> SynthesizerResult:
    return SynthesizerResult(draft=ANOTHER, account=CallAccount(engine=engine))


async def write(run: Writing, reason: StopReason = StopReason.BUDGET_COST) -> None:
    await write_early(run, reason, changed=False, engine=None)


async def test_a_draft_stays_where_only_a_shorter_one_could_be_paid() -> None:
    """The synthesizer is asked with room for as full a text; refused, the run keeps what it has and says so."""
    run = writing(NO_MONEY)
    before = run.state.evidence.draft
    await write(run)
    ((request, _),) = run.asked
    assert request.least_output_tokens > WORD_OUTPUT_TOKENS * WORDS
    assert run.state.evidence.draft == before
    assert list(map(str, run.state.work.degraded)) == [KEPT]


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
    ("problem", "changes"),
    [
        (Interrupted(StopReason.BUDGET_TIME), {}),
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
