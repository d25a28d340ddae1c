"""From a reply to an answer, and from an answer to the journal and back, without any endpoint."""

import dataclasses
import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from contracts.outcome import Usage
from contracts.roles import PLANNER, SYNTHESIZER, PlanInput, PlannerAnswer, RoleSpec, SynthesizerAnswer
from contracts.supervisor_roles import SUPERVISOR
from contracts.tokens import CallFidelity, ItemFidelity, Level
from contracts.vocabulary import EngineKind
from providers.errors import AnswerCut, AnswerRefused, AnswerUnusable, ContentCorrupt, InvalidOutput
from providers.interfaces import EngineAnswer, EngineTask, PromptMessage, RenderedPrompt
from providers.models.answers import (
    MAX_ANSWER_CHARACTERS,
    answer_from_json,
    answer_of,
    answer_to_json,
    read_reply,
    request_fingerprint,
    turn_of,
)
from providers.models.chat import ChatReply
from tests.drawn import draws

PLAN = {"research_brief": "b", "sub_queries": [{"query": "q"}]}
PLAN_TEXT = json.dumps(PLAN)
SECRET = "zebra"
DIGITS = "9" * 5_000
THOUGHTS = f'Hm, the {SECRET}. Perhaps {{"research_brief": "{SECRET}", "sub_queries": [{{"query": "{SECRET}"}}]}}?'


def reply(text: str = "", *, tool: Any = None, stop: str | None = "end_turn", **rest: Any) -> ChatReply:
    return ChatReply(text, tool, stop, Usage(), "m", **rest)


def problem(role: Any, given: ChatReply) -> str:
    with pytest.raises(InvalidOutput) as caught:
        answer_of(role, given)
    assert SECRET not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "liberties"),
    [
        (PLAN_TEXT, 0),
        (f"```json\n{PLAN_TEXT}\n```", 1),
        (f"Here it is: {PLAN_TEXT} I hope it helps.", 1),
        (f"An example would be {{}} but really {PLAN_TEXT}", 1),
        (f'{{"found": {DIGITS}}} {PLAN_TEXT}', 1),
        (f"{PLAN_TEXT}}}}}", 1),
        (PLAN_TEXT[:-1] + ",} I hope it helps.", 1),
        (PLAN_TEXT[:-1], 1),
        (PLAN_TEXT.replace('"b"', '"he said "go" to me"'), 1),
        (PLAN_TEXT.replace('"b"', '"two\nlines"'), 0),
    ],
)
def test_the_object_in_the_text_is_found_and_repaired(text: str, liberties: int) -> None:
    """Fences, prose, commas and missing closers do no harm; each liberty is a warning; a tool's input goes first (X-15)."""
    answer, warnings = answer_of(PLANNER, reply(text))
    assert isinstance(answer, PlannerAnswer)
    assert answer.sub_queries[0].query == "q"
    assert len(warnings) == liberties
    assert answer_of(PLANNER, reply("some talk", tool=text, stop="tool_use"))[0] == answer


@pytest.mark.parametrize("before", ["<think>\n", " \n<think>", "<thinking>", ""])
@pytest.mark.parametrize("between", ["\n</think>\n\n", "</think>\n", "\n</thinking>\n"])
def test_thoughts_before_the_answer_are_no_part_of_it(before: str, between: str) -> None:
    """Neither a report nor a plan is made of what a model thinks aloud, even if the opening mark is lost."""
    written, warnings = answer_of(SYNTHESIZER, reply(f"{before}{THOUGHTS}{between}# A report\n\nIt is `</think>` [1]."))
    assert written == SynthesizerAnswer(markdown="# A report\n\nIt is `</think>` [1].")
    assert len(warnings) == 1
    planned, _ = answer_of(PLANNER, reply(f"{before}{THOUGHTS}{between}```json\n{PLAN_TEXT}\n```"))
    assert planned == PlannerAnswer.model_validate(PLAN)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "empty"),
        (f"<think>\n{THOUGHTS}", "empty"),
        (f"I know nothing about the {SECRET}.", "no JSON object"),
        (PLAN_TEXT[:30], "no JSON object"),
        ('{"a": ' + "[" * 3_000 + "]" * 3_000 + "}", "no JSON object"),
        ('{"a": "' + "x" * MAX_ANSWER_CHARACTERS + '"}', "longer than"),
        (f'{{"sub_queries": [{{"query": "q", "priority": "{SECRET}"}}]}}', "sub_queries.0.priority: "),
        ('{"research_brief": "b"}', "sub_queries: required"),
    ],
)
def test_the_problem_is_named_by_path_and_never_repeats_the_answer(text: str, named: str) -> None:
    """Each problem is a short `path: message` line that can be a part of the repair prompt."""
    assert named in problem(PLANNER, reply(text))


@pytest.mark.parametrize(
    ("stop", "error"),
    [
        *((stop, AnswerCut) for stop in ("max_tokens", "model_context_window_exceeded", "pause_turn", "length")),
        ("refusal", AnswerRefused),
    ],
)
@pytest.mark.parametrize("role", [PLANNER, SYNTHESIZER])
def test_a_cut_answer_or_a_refusal_is_never_complete(role: Any, stop: str, error: type[Exception]) -> None:
    """Even where the text happens to be readable, it is refused."""
    with pytest.raises(error):
        answer_of(role, reply(PLAN_TEXT, stop=stop))


def test_without_a_stop_reason_only_a_visibly_whole_answer_counts() -> None:
    """JSON shows its own end; missing closers and plain text do not."""
    assert answer_of(PLANNER, reply(PLAN_TEXT, stop=None))[0] == PlannerAnswer.model_validate(PLAN)
    problem(PLANNER, reply(PLAN_TEXT[:-1], stop=None))
    with pytest.raises(AnswerCut):
        answer_of(SYNTHESIZER, reply("# Report", stop=None))


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        ("# Report\n\nwords {not json", "# Report\n\nwords {not json"),
        ("```markdown\n# Report\n```", "# Report"),
        ("```\na\n```\ntext\n```\nb\n```", "```\na\n```\ntext\n```\nb\n```"),
    ],
)
def test_plain_text_is_taken_as_it_is(text: str, taken: str) -> None:
    """A role of plain text gets the visible text as its one field; only a fence around all of it goes."""
    assert answer_of(SYNTHESIZER, reply(text))[0] == SynthesizerAnswer(markdown=taken)


PIECES = some.sampled_from(
    ["{", "}", "[", "]", '"', "\\", ",", ":", "```json\n", PLAN_TEXT, PLAN_TEXT[:-1], " ", "NaN"]
)


@draws(50)
@given(
    text=some.one_of(some.text(), some.lists(PIECES, max_size=30).map("".join)),
    stop=some.sampled_from(["end_turn", "tool_use", None, "max_tokens", "new_reason"]),
)
def test_any_text_gives_an_answer_or_a_known_error(text: str, stop: str | None) -> None:
    """Whatever a model writes, the result is an answer that UTF-8 can carry, or an error with a short reason."""
    body = {"content": [{"type": "text", "text": text}], "stop_reason": stop, "usage": {}}
    for role in (PLANNER, SYNTHESIZER):
        try:
            answer, _ = answer_of(role, read_reply(json.dumps(body).encode(), "m"))
        except AnswerUnusable as error:
            assert len(str(error)) < 2_000  # noqa: PT017 - either end is right
        else:
            assert answer.model_dump_json().encode()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("piece", ['{"a" b ', '{"a": /*', "word "])
def test_repair_takes_time_that_grows_with_the_text(piece: str) -> None:
    """The longest answer that is looked at costs a few seconds of processor time at most."""
    text = ('{"a": ' + piece * MAX_ANSWER_CHARACTERS)[: MAX_ANSWER_CHARACTERS - 1] + "}"
    begun = time.process_time()
    with pytest.raises(InvalidOutput):
        answer_of(PLANNER, reply(text))
    assert time.process_time() - begun < 8


# --- from the wire ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ("claude-haiku-4-5-20251001", "claude-haiku-4-5-20251001"),
        ("m\n## Report![x](y)", "m????Report??x??y?"),
        ("x" * 10_000, "x" * 80),
        (None, "requested-1"),
    ],
)
def test_names_from_the_wire_are_short_and_harmless(given: object, taken: str) -> None:
    """A model's name stands in state, logs and reports: bounded, on one line, without Markdown."""
    body = {"content": [], "model": given, "stop_reason": given}
    read = read_reply(json.dumps(body).encode(), "requested-1")
    assert read.model == taken
    assert (read.stop_reason or "requested-1") == taken


@pytest.mark.parametrize("digits", [DIGITS[:400], DIGITS])
def test_an_endless_number_leaves_the_answer_that_was_paid(digits: str) -> None:
    """No reader of numbers ends at it, and as a count of tokens it is none."""
    body = f'{{"content": [{{"type": "text", "text": "So."}}], "usage": {{"input_tokens": {digits}}}, "x": {digits}}}'
    read = read_reply(body.encode(), "m")
    assert (read.text, read.usage.input_tokens, read.usage.cost_usd) == ("So.", 0, None)


# --- turns -----------------------------------------------------------------------------------------------------------
CALL = {"type": "tool_use", "id": "a", "name": "look_up", "input": {"word": "vacuum"}}
THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "s"}
HIDDEN = {"type": "redacted_thinking", "data": "xyz"}


def test_a_turn_has_calls_texts_and_thoughts_in_order() -> None:
    """Unknown kinds of blocks are left out, and so are thoughts aloud."""
    aloud = {"type": "text", "text": "<think>Hm.</think>So."}
    turn, warnings = turn_of("p:m", reply(stop="tool_use", blocks=[THOUGHT, HIDDEN, aloud, {"type": "server"}, CALL]))
    assert turn.content == [THOUGHT, HIDDEN, {"type": "text", "text": "So."}, CALL]
    assert (turn.author, len(warnings)) == ("p:m", 1)


# --- the journal -----------------------------------------------------------------------------------------------------
USAGE = Usage(model_calls=1, input_tokens=10, output_tokens=3, cost_usd=None)
INPUT = PlanInput(research_id="r-1", operation="plan/1", engine=EngineKind.MODEL, model="m", query="q")
ROLE: RoleSpec[Any, Any] = PLANNER
TASK = EngineTask(ROLE, INPUT, {}, "role: planner", RenderedPrompt("plan it"), "1")


def test_answers_come_back_from_the_journal_as_they_were() -> None:
    """Answer, usage, model and warnings survive; an unusable answer is raised again with its cost."""
    draft = PlannerAnswer.model_validate({"research_brief": "é\n", "sub_queries": [{"query": "q", "priority": 2}]})
    items = [
        ItemFidelity(id="src-1", kind="source", original_tokens=9, current_tokens=4, current_level=Level.COMPRESSED)
    ]
    figures = CallFidelity(considered=9, shown=4, items=1, shortened=1)
    answer = EngineAnswer(draft, EngineKind.MODEL, "m-1", USAGE, ["a liberty"], items, figures)
    assert answer_from_json(answer_to_json(answer), PLANNER) == answer
    older = json.loads(answer_to_json(answer))
    del older["items"], older["fidelity"]  # an entry of an earlier version
    assert answer_from_json(json.dumps(older), PLANNER).content == draft
    for kind in (InvalidOutput, AnswerCut, AnswerRefused):
        with pytest.raises(kind, match=r"a\.b: wrong") as caught:
            answer_from_json(answer_to_json(kind("a.b: wrong", usage=USAGE, model="m-1")), PLANNER)
        assert (caught.value.usage, caught.value.model) == (USAGE, "m-1")


@pytest.mark.parametrize("text", ["", "null", "[]", "{}", '{"unusable": "x", "usage": {}}', "[" * 9_000])
def test_a_poisoned_entry_is_recognized(text: str) -> None:
    """A text that is no answer of the role raises `ContentCorrupt` and never passes for one."""
    other = answer_to_json(EngineAnswer(PlannerAnswer(sub_queries=[]), EngineKind.MODEL))
    for entry, role in ((text, PLANNER), (other, SUPERVISOR)):
        with pytest.raises(ContentCorrupt, match="cannot be read"):
            answer_from_json(entry, role)


@pytest.mark.parametrize(
    "other",
    [
        dataclasses.replace(TASK, system="role: planner!"),
        dataclasses.replace(TASK, whole=RenderedPrompt("plan it well")),
        dataclasses.replace(TASK, whole=RenderedPrompt("plan it", messages=[PromptMessage("user", [])])),
        dataclasses.replace(TASK, input=INPUT.model_copy(update={"model": "n"})),
        dataclasses.replace(TASK, input=INPUT.model_copy(update={"repair": "a: wrong"})),
        dataclasses.replace(TASK, input=INPUT.model_copy(update={"more": True})),
        dataclasses.replace(TASK, role=dataclasses.replace(ROLE, output_tokens=1)),
        dataclasses.replace(TASK, role=dataclasses.replace(ROLE, answer=SUPERVISOR.answer)),
    ],
)
def test_every_part_of_a_request_is_in_its_fingerprint(other: EngineTask) -> None:
    """Two requests that could be answered differently never share a key; attempts of one request do."""
    assert request_fingerprint(other) != request_fingerprint(TASK)
    attempt = {"time_limit_seconds": 7.0, "operation": "plan/2", "reserved_output_tokens": 900, "shorten": True}
    later = dataclasses.replace(TASK, input=INPUT.model_copy(update=attempt))
    assert request_fingerprint(later) == request_fingerprint(TASK)
