"""From a reply to a draft, without any endpoint."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from contracts.roles import ANALYZER, PLANNER, SUPERVISOR, SYNTHESIZER, PlanDraft, ReflectionDraft, ReportTextDraft
from providers.errors import AnswerCut, AnswerRefused, AnswerUnusable, InvalidOutput
from providers.models.chat import ChatReply, TokenCounts
from providers.models.message_envelope import FOREIGN_TOOL
from providers.models.structured_output import draft_of
from providers.strict_json import DUPLICATE_KEY

PLAN = {"research_brief": "b", "sub_queries": [{"query": "q"}]}
PLAN_TEXT = json.dumps(PLAN)
SECRET = "zebra"


def reply(text: str = "", *, tool: Any = None, stop: str | None = "end_turn", **rest: Any) -> ChatReply:
    """A reply as the envelope reader gives it."""
    return ChatReply(text, tool, stop, TokenCounts(), "m", **rest)


def problem(role: Any, given: ChatReply) -> str:
    """Why a reply is no draft; it never repeats the reply."""
    with pytest.raises(InvalidOutput) as caught:
        draft_of(role, given)
    assert SECRET not in caught.value.problem
    return caught.value.problem


@pytest.mark.parametrize(
    ("text", "liberties"),
    [
        (PLAN_TEXT, 0),
        (f"```json\n{PLAN_TEXT}\n```", 1),
        (f"Here it is: {PLAN_TEXT} I hope it helps.", 1),
        (f"Of the set {{a, b}} I take:\n{PLAN_TEXT}", 1),
        (f"An example would be {{}} but really {PLAN_TEXT}", 1),
        (f"{PLAN_TEXT}}}}}", 1),
        (PLAN_TEXT[:-1] + ",}", 1),
        (PLAN_TEXT[:-1], 1),
        (f"```json\n{PLAN_TEXT[:-2]}\n```", 1),
        (PLAN_TEXT.replace('"q"', '"q,]"')[:-2] + ",]}", 1),
        (PLAN_TEXT.replace('"b"', '"\\ud800"'), 1),
        (PLAN_TEXT.replace('"b"', '"two\nlines"'), 0),
    ],
)
def test_finds_the_object_in_the_text_and_repairs_it_lightly(text: str, liberties: int) -> None:
    """Fences, prose, trailing commas and missing closers do no harm, and each liberty is told (X-15)."""
    draft, warnings = draft_of(PLANNER, reply(text))
    assert isinstance(draft, PlanDraft)
    assert draft.sub_queries[0].query.startswith("q")
    assert len(warnings) == liberties


THOUGHTS = f'Hm, the {SECRET}. Perhaps {{"research_brief": "{SECRET}", "sub_queries": [{{"query": "{SECRET}"}}]}}?'


@pytest.mark.parametrize("before", ["<think>\n", " \n<think>", "<thinking>", ""])
@pytest.mark.parametrize("between", ["\n</think>\n\n", "</think>\n", "\n</thinking>\n"])
def test_thoughts_before_the_answer_are_no_part_of_it(before: str, between: str) -> None:
    """Neither a report nor a plan is made of what a model thinks aloud, not even if the mark of the beginning is lost."""
    written, told = draft_of(SYNTHESIZER, reply(f"{before}{THOUGHTS}{between}# A report\n\nIt is `</think>` [1]."))
    assert written == ReportTextDraft(markdown="# A report\n\nIt is `</think>` [1].")
    assert len(told) == 1
    planned, told = draft_of(PLANNER, reply(f"{before}{THOUGHTS}{between}```json\n{PLAN_TEXT}\n```"))
    assert planned == PlanDraft.model_validate(PLAN)
    assert "thoughts" in told[0]


@pytest.mark.parametrize("role", [SYNTHESIZER, PLANNER])
@pytest.mark.parametrize("text", [f"<think>\n{THOUGHTS}", f"<think>{THOUGHTS}</think>", f"{THOUGHTS}\n</think>\n"])
def test_thoughts_alone_are_no_answer(role: Any, text: str) -> None:
    """A model that never came to its answer has given none."""
    assert "empty" in problem(role, reply(text))


def test_marks_within_an_answer_are_words_like_others() -> None:
    """A report about models that think aloud, and a plan for one, are left as they are."""
    report = "Some models write `<think>` first.\n</think>\nThen they answer, after `</think>`, as shown:\n</think>\n"
    assert draft_of(SYNTHESIZER, reply(report)) == (ReportTextDraft(markdown=report.strip()), [])
    plan = PLAN_TEXT.replace('"q"', '"what does </think>\\n mean?"')
    for text in (plan, f"```json\n{plan}\n```"):
        planned, _ = draft_of(PLANNER, reply(text))
        assert planned.sub_queries[0].query.startswith("what does </think>")


def test_a_tool_input_goes_before_text() -> None:
    """What the tool was given is the answer, whatever is said beside it (X-15)."""
    draft, warnings = draft_of(PLANNER, reply("some talk", tool=PLAN, stop="tool_use"))
    assert draft == PlanDraft.model_validate(PLAN)
    assert warnings == []
    draft, _ = draft_of(PLANNER, reply(tool=PLAN_TEXT))
    assert draft == PlanDraft.model_validate(PLAN)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty"),
        (f"I know nothing about the {SECRET}.", "no JSON object"),
        (f'{{"sub_queries": 7, "{SECRET}": 1}}', "sub_queries: "),
        (f'{{"sub_queries": [{{"query": "q", "priority": "{SECRET}"}}]}}', "sub_queries.0.priority: "),
        ('{"research_brief": "b"}', "sub_queries: Field required"),
        (PLAN_TEXT[:-1] + ', "research_brief": "other"}', DUPLICATE_KEY),
        (PLAN_TEXT[:-1] + ', "x": NaN}', "not finite"),
        (PLAN_TEXT[:-1] + f', "x": {"9" * 5_000}}}', "too many digits"),
        ('{"a": ' + "[" * 3_000 + "]" * 3_000 + "}", "deeper than 64"),
        ("{" * 100_000, "deeper than 64"),
        ('{"a": "' + "x" * 1_000_001 + '"}', "longer than"),
        (PLAN_TEXT[:30], "not readable"),
        ("[1, 2]", "no JSON object"),
    ],
)
def test_says_what_is_wrong_by_path_and_never_repeats_the_answer(text: str, said: str) -> None:
    """Each problem is a short `path: message` line that can stand in the next prompt."""
    assert said in problem(PLANNER, reply(text))


def test_many_problems_are_counted_and_not_listed() -> None:
    """The problem stays short however wrong an answer is."""
    text = json.dumps({"sub_queries": [{"priority": "x"}] * 50})
    lines = problem(PLANNER, reply(text)).splitlines()
    assert len(lines) == 9
    assert lines[-1] == "and 92 more"


def test_the_parts_of_a_broken_object_are_not_taken_for_the_whole() -> None:
    """An object that breaks off is not replaced by a smaller one inside it that happens to fit."""
    text = '{"wrapper": [{"action": "proceed"}, {"action": "retry'
    problem(SUPERVISOR, reply(text))


@pytest.mark.parametrize("stop", ["max_tokens", "model_context_window_exceeded", "pause_turn", "length"])
@pytest.mark.parametrize("role", [PLANNER, SYNTHESIZER])
def test_a_cut_answer_is_never_complete(role: Any, stop: str) -> None:
    """Even where the text happens to be readable, an answer that was cut is refused."""
    with pytest.raises(AnswerCut):
        draft_of(role, reply(PLAN_TEXT, stop=stop))


@pytest.mark.parametrize("role", [PLANNER, SYNTHESIZER])
def test_a_refusal_is_no_answer(role: Any) -> None:
    """What the model says while declining is not taken for work."""
    with pytest.raises(AnswerRefused):
        draft_of(role, reply("I will not.", stop="refusal"))


def test_without_a_stop_reason_only_what_is_visibly_whole_counts() -> None:
    """JSON shows its own end; missing closers and plain text do not."""
    assert draft_of(PLANNER, reply(PLAN_TEXT, stop=None))[0] == PlanDraft.model_validate(PLAN)
    problem(PLANNER, reply(PLAN_TEXT[:-1], stop=None))
    with pytest.raises(AnswerCut):
        draft_of(SYNTHESIZER, reply("# Report", stop=None))


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("# Report\n\nwords {not json", "# Report\n\nwords {not json"),
        ("```markdown\n# Report\n```", "# Report"),
        ("```\na\n```\ntext\n```\nb\n```", "```\na\n```\ntext\n```\nb\n```"),
        ("a\ud800b", "a\ufffdb"),
    ],
)
def test_plain_text_is_taken_as_it_is(text: str, kept: str) -> None:
    """A role of plain text gets the visible text as its one field; only a fence around all of it goes."""
    assert draft_of(SYNTHESIZER, reply(text))[0] == ReportTextDraft(markdown=kept)


def test_an_empty_report_is_no_report() -> None:
    """White space alone is refused."""
    assert "empty" in problem(SYNTHESIZER, reply(" \n "))


def test_flaws_of_the_envelope_count_only_for_a_tool_input() -> None:
    """Two equal keys in a tool's input are refused; elsewhere in the envelope they are the endpoint's own matter."""
    flaws = frozenset({DUPLICATE_KEY})
    assert DUPLICATE_KEY in problem(PLANNER, reply(tool=PLAN, flaws=flaws))
    draft_of(PLANNER, reply(PLAN_TEXT, flaws=flaws))


def test_a_call_of_a_foreign_tool_is_no_answer() -> None:
    """A tool that was not offered is named as the problem."""
    assert FOREIGN_TOOL in problem(ANALYZER, reply(stop="tool_use", warnings=[FOREIGN_TOOL]))


def test_words_out_of_a_list_pass_to_where_they_are_interpreted() -> None:
    """Drafts hold free words, which the caller coerces: a wrong one does not cost a second call."""
    draft, _ = draft_of(SUPERVISOR, reply('{"action": "splendid"}'))
    assert draft == ReflectionDraft(action="splendid")


PIECES = some.sampled_from(
    ["{", "}", "[", "]", '"', "\\", ",", ":", "```json\n", PLAN_TEXT, PLAN_TEXT[:-1], "\ud800", " ", "NaN"]
)
ANY_TEXT = some.one_of(some.text(), some.lists(PIECES, max_size=30).map("".join))


@settings(max_examples=300, deadline=None)
@given(text=ANY_TEXT, stop=some.sampled_from(["end_turn", "tool_use", None, "max_tokens", "new_reason"]))
def test_any_text_gives_a_draft_or_a_known_error(text: str, stop: str | None) -> None:
    """Whatever a model writes, the result is a draft that UTF-8 can carry, or an error with a short reason."""
    for role in (PLANNER, SYNTHESIZER):
        try:
            draft, _ = draft_of(role, reply(text, stop=stop))
        except AnswerUnusable as error:
            assert len(str(error)) < 2_000  # noqa: PT017 - either end is right
        else:
            assert draft.model_dump_json().encode()
