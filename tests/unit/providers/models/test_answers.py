"""Answers as the call store keeps them."""

import dataclasses
import json
from typing import Any

import pytest

from contracts.outcome import Usage
from contracts.roles import PLANNER, SUPERVISOR, PlanDraft, PlanInput, RoleSpec
from contracts.vocabulary import EngineKind
from providers.errors import AnswerCut, AnswerRefused, AnswerUnusable, ContentCorrupt, InvalidOutput, usage_of
from providers.interfaces import AnswerCodec, EngineAnswer, EngineTask
from providers.models import paid_answers
from providers.models.paid_answers import answer_from_json, answer_to_json, request_fingerprint

USAGE = Usage(model_calls=1, input_tokens=10, output_tokens=3, cost_usd=None)
INPUT = PlanInput(
    research_id="r-1", operation="plan/1", engine=EngineKind.MODEL, model="m", date="2026-11-21", query="q"
)
ROLE: RoleSpec[Any, Any] = PLANNER
TASK = EngineTask(ROLE, INPUT, {}, "role: planner", "plan it", "1")


def test_an_answer_comes_back_as_it_was() -> None:
    """Draft, usage, model and warnings survive; the text can be written as UTF-8."""
    draft = PlanDraft.model_validate({"research_brief": "é\n", "sub_queries": [{"query": "q", "priority": 2}]})
    answer = EngineAnswer(draft, EngineKind.MODEL, "m-1", USAGE, ["a liberty"])
    assert answer_from_json(answer_to_json(answer), PLANNER) == answer


@pytest.mark.parametrize("kind", [InvalidOutput, AnswerCut, AnswerRefused])
def test_an_unusable_answer_is_raised_again_with_its_cost(kind: type[AnswerUnusable]) -> None:
    """A paid answer that cannot be used is kept as well, so that reading it costs nothing again."""
    kept = answer_to_json(kind("a.b: wrong", usage=USAGE, model="m-1"))
    with pytest.raises(kind, match=r"a\.b: wrong") as caught:
        answer_from_json(kept, PLANNER)
    assert type(caught.value) is kind
    assert usage_of(caught.value) == USAGE
    assert caught.value.model == "m-1"
    assert not isinstance(caught.value, InvalidOutput) or caught.value.problem == "a.b: wrong"


@pytest.mark.parametrize(
    "text", ["", "null", "[]", "{}", '{"kind": "answer"}', '{"kind": "x", "usage": {}}', "[" * 9_000]
)
def test_a_poisoned_entry_is_recognized(text: str) -> None:
    """What is no kept answer raises `ContentCorrupt` and is never taken for one."""
    with pytest.raises(ContentCorrupt, match="cannot be read"):
        answer_from_json(text, PLANNER)


def test_the_module_is_the_codec_of_the_call_store() -> None:
    """What the journal of paid calls needs is here under the agreed names."""
    codec: AnswerCodec = paid_answers
    assert codec.request_fingerprint(TASK) == request_fingerprint(TASK)


def test_an_answer_of_another_role_is_not_taken() -> None:
    """The draft is checked against the role's own schema."""
    kept = answer_to_json(EngineAnswer(PlanDraft(sub_queries=[]), EngineKind.MODEL))
    with pytest.raises(ContentCorrupt, match="cannot be read"):
        answer_from_json(kept, SUPERVISOR)


@pytest.mark.parametrize(
    "other",
    [
        dataclasses.replace(TASK, system="role: planner!"),
        dataclasses.replace(TASK, prompt="plan it well"),
        dataclasses.replace(TASK, input=INPUT.model_copy(update={"model": "n"})),
        dataclasses.replace(TASK, input=INPUT.model_copy(update={"repair": "a: wrong"})),
        dataclasses.replace(TASK, role=dataclasses.replace(ROLE, output_tokens=1)),
        dataclasses.replace(TASK, role=dataclasses.replace(ROLE, draft=SUPERVISOR.draft)),
    ],
)
def test_every_part_of_a_request_is_in_its_fingerprint(other: EngineTask) -> None:
    """Two requests that could be answered differently never share a key."""
    assert request_fingerprint(other) != request_fingerprint(TASK)


def test_the_fingerprint_does_not_depend_on_the_attempt() -> None:
    """The time limit and the run's own bookkeeping change from try to try and do not count."""
    later = dataclasses.replace(TASK, input=INPUT.model_copy(update={"time_limit_seconds": 7.0, "operation": "plan/2"}))
    assert request_fingerprint(later) == request_fingerprint(TASK)
    assert len(request_fingerprint(TASK)) == 64
    assert json.loads(answer_to_json(EngineAnswer(PlanDraft(sub_queries=[]), EngineKind.MODEL)))["format"] == 1
