"""What a conversation means, by its messages alone: ids of runs, what an answer refers to, chores, and annotations."""

import json
import re
from typing import Any

import pytest

from client.chat.conversation import Pointer, RunMessage, Speaker, read_thread, reply_to
from client.chat.protocol import (
    Completion,
    CompletionRequest,
    CompletionWriter,
    ConversationMessage,
    ModelId,
    ProtocolError,
    answer_chore,
    find_model,
    list_models,
    read_request,
)
from client.chat.turns import cited_text
from contracts.plan import Waiting, WaitKind
from contracts.request import Depth
from tests.fakes.chat_windows import (
    COMPACTION,
    EMOJI,
    LIBRECHAT_LABELS,
    LIBRECHAT_TITLE,
    MERGING,
    NEW_EMOJI,
    OPEN_WEBUI,
    QUESTION,
    TOOL_CHOICE,
    open_webui,
)

MODEL = "deep-research/supervisor"
ANN = Speaker(b"key", "ann")


def user(text: str) -> ConversationMessage:
    return ConversationMessage(role="user", content=text)


def assistant(text: str) -> ConversationMessage:
    return ConversationMessage(role="assistant", content=text)


def request(body: dict[str, Any]) -> CompletionRequest:
    return read_request(json.dumps(body).encode())


# --- ids -------------------------------------------------------------------------------------------------------------
def test_the_same_words_of_the_same_user_are_the_same_run() -> None:
    """Another user, key, conversation of the client, model, run before or word makes another id."""
    known = ANN.run_id(MODEL, "", ["How?"])
    assert known == Speaker(b"key", "ann").run_id(MODEL, "", ["How?"])
    others = {
        Speaker(b"key", "bob").run_id(MODEL, "", ["How?"]),
        Speaker(b"other", "ann").run_id(MODEL, "", ["How?"]),
        Speaker(b"key", "ann", "chat-2").run_id(MODEL, "", ["How?"]),
        ANN.run_id(f"{MODEL}/manual", "", ["How?"]),
        ANN.run_id(MODEL, known, ["How?"]),
        ANN.run_id(MODEL, "", ["How", "?"]),
        ANN.run_id(MODEL, "", ["How? "]),
    }
    assert len(others | {known}) == 8


@pytest.mark.parametrize(
    "headers",
    [
        {"x-openwebui-user-id": "u1", "x-openwebui-chat-id": "c1"},
        {"x-librechat-user-id": "u1", "x-conversation-id": "c1"},
    ],
)
def test_clients_may_name_user_and_conversation(headers: dict[str, str]) -> None:
    """In headers, as both programs can be told to; a user in the body comes first."""
    assert Speaker.of(b"key", None, headers) == Speaker(b"key", "u1", "c1")
    assert Speaker.of(b"key", "u2", headers) == Speaker(b"key", "u2", "c1")


def test_an_answer_names_its_run_and_what_it_asks() -> None:
    """The last line is read back; not one within the text, nor one of another user, nor any other id."""
    own = ANN.run_id(MODEL, "", ["How?"])
    for pointer in (Pointer(own), Pointer(own, WaitKind.APPROVAL, 3), Pointer(own, WaitKind.CLARIFICATION, 1)):
        assert (
            ANN.pointer_in(f"# Report\n\nA page says: Run `chat-00000000-11112222333344445555`.\n\n{pointer.line('x')}")
            == pointer
        )
    foreign = Speaker(b"key", "bob").run_id(MODEL, "", ["How?"])
    for text in (Pointer(foreign).line(), "Run `r-20260101-abcd`", "no line", f"{Pointer(own).line()}\n{'x' * 500}"):
        assert ANN.pointer_in(text) is None


# --- threads ---------------------------------------------------------------------------------------------------------
def test_a_conversation_is_read_from_its_last_run_on() -> None:
    """Messages before it do not matter, so that a client may leave them out; an empty answer is none."""
    own = ANN.run_id(MODEL, "", ["How?"])
    told = [
        user("How?"),
        assistant(Pointer(own, WaitKind.APPROVAL, 1).line()),
        user("yes"),
        assistant(""),
        user("stop"),
    ]
    thread = read_thread(told, ANN)
    assert (thread.words, thread.pointer) == (["yes", "stop"], Pointer(own, WaitKind.APPROVAL, 1))
    assert read_thread(told[1:], ANN) == thread
    assert read_thread(told[:3], ANN).words == ["yes"]
    assert read_thread([*told[:3], assistant("half an answ")], ANN).words == ["yes"]


def test_turns_with_another_model_are_the_context_of_a_question() -> None:
    """At most five, cut to what a request takes; the instructions of the window are kept apart."""
    told = [ConversationMessage(role="system", content="Be brief.")]
    for number in range(7):
        told += [user(f"Question {number}"), assistant("x" * 30_000)]
    thread = read_thread([*told, user("And now?")], ANN)
    assert thread.system == "Be brief."
    assert [turn.question for turn in thread.earlier] == [f"Question {number}" for number in range(2, 7)]
    assert {len(turn.answer) for turn in thread.earlier} == {20_000}
    assert thread.pointer is None


def test_a_message_of_parts_is_read_as_text() -> None:
    """As clients send it that can attach pictures; a picture alone is refused."""
    parts = [
        {"type": "text", "text": "What"},
        {"type": "image_url", "image_url": {"url": "data:,x"}},
        {"type": "text", "text": "now?"},
    ]
    read = request({"model": MODEL, "messages": [{"role": "user", "content": parts}]})
    assert read.messages[0].text == "What\n\nnow?"
    with pytest.raises(ProtocolError, match="has only parts that are not text"):
        request({"model": MODEL, "messages": [{"role": "user", "content": parts[1:2]}]})


# --- replies ---------------------------------------------------------------------------------------------------------
PLAN = Waiting(kind=WaitKind.APPROVAL, plan_version=2)
PHRASE = Waiting(kind=WaitKind.APPROVAL, plan_version=2, phrase="Authorized to execute")
TWO = Waiting(kind=WaitKind.CLARIFICATION, round=1, questions=["Which boat?", "Where?"])


@pytest.mark.parametrize(
    ("waiting", "text", "reply"),
    [
        (PLAN, "Yes.", RunMessage("approve_plan", (2,))),
        (PLAN, "no", RunMessage("reject_plan")),
        (PLAN, "STOP", RunMessage("stop_and_report")),
        (PLAN, "Overrule!", RunMessage("approve_plan", (2, None), {"overrule": True})),
        (
            PLAN,
            "Yes, but leave out the ropes",
            RunMessage("revise_plan", ({"guidance": "Yes, but leave out the ropes"}, 2)),
        ),
        (PHRASE, "“authorized to execute”", RunMessage("approve_plan", (2, "“authorized to execute”"))),
        (
            PHRASE,
            "overrule Authorized to execute",
            RunMessage("approve_plan", (2, "Authorized to execute"), {"overrule": True}),
        ),
        (
            PHRASE,
            "not authorized to execute",
            RunMessage("revise_plan", ({"guidance": "not authorized to execute"}, 2)),
        ),
        (TWO, "1. The blue one\n2) at home", RunMessage("answer", (["The blue one", "at home"], 1))),
        (TWO, "The blue one", RunMessage("answer", (["The blue one"], 1))),
        (
            TWO,
            "The blue one,\nwhich is old,\nand small",
            RunMessage("answer", (["The blue one,\nwhich is old,\nand small"], 1)),
        ),
        (TWO, "skip", RunMessage("answer", ([], 1))),
        (TWO, "stop", RunMessage("stop_and_report")),
    ],
)
def test_words_are_commands_or_are_passed_on(waiting: Waiting, text: str, reply: RunMessage) -> None:
    """A single word begins, ends or stops; a phrase approves as it stands; all else is for the planner."""
    assert reply_to(waiting, text) == reply


# --- chores ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", OPEN_WEBUI)
def test_chores_of_open_webui_are_answered_by_rules(name: str) -> None:
    """With an object of the form that was asked for; a title is the question."""
    body, expected = OPEN_WEBUI[name]
    chore = answer_chore(request(body))
    assert chore is not None
    assert json.loads(chore.content) == expected


def test_chores_without_a_history_are_answered_too() -> None:
    """The choice of a tool of the window, a face for a message, a shortened conversation; answers are not merged."""
    choice = answer_chore(request(TOOL_CHOICE))
    assert choice is not None
    assert json.loads(choice.content) == {"tool_calls": []}
    for body in (EMOJI, NEW_EMOJI):
        face = answer_chore(request(body))
        assert face is not None
        assert len(face.content) == 1
    assert answer_chore(request(COMPACTION)) == Completion("")
    with pytest.raises(ProtocolError, match="not merged here: choose another model"):
        answer_chore(request(MERGING))


def test_no_line_of_a_stream_is_too_long_for_a_window() -> None:
    """Annotations come in several chunks, in their order, none of which exceeds what windows read as one line."""
    annotations = [
        {"type": "url_citation", "url_citation": {"url": f"https://example.org/{'x' * 300}/{number}", "title": "T"}}
        for number in range(1_000)
    ]
    completion = Completion("word " * 20_000, annotations)
    chunks = CompletionWriter("chat-1", MODEL).ending(completion, with_usage=True)
    assert max(len(json.dumps(chunk)) for chunk in chunks) < 20_000
    deltas = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
    assert [each for delta in deltas for each in delta.get("annotations", [])] == annotations
    assert "".join(delta.get("content", "") for delta in deltas) == completion.content


def test_chores_of_librechat_are_answered_by_rules() -> None:
    """A title as plain text, in chunks; labels as the call of the function that the request offers."""
    title = answer_chore(request(LIBRECHAT_TITLE))
    assert title == Completion(QUESTION)
    labels = answer_chore(request(LIBRECHAT_LABELS))
    assert labels is not None
    whole = CompletionWriter("chat-window", MODEL).whole(labels)
    (choice,) = whole["choices"]
    assert choice["finish_reason"] == "tool_calls"
    assert json.loads(choice["message"]["tool_calls"][0]["function"]["arguments"])["title"] == QUESTION
    chunks = CompletionWriter("chat-window", MODEL).ending(labels, with_usage=False)
    (call,) = chunks[0]["choices"][0]["delta"]["tool_calls"]
    assert (call["index"], call["function"]["name"]) == (0, "extract")
    plain = answer_chore(request({**LIBRECHAT_LABELS, "tools": None}))
    assert plain is not None
    assert json.loads(plain.content)["title"] == QUESTION


def test_a_title_is_one_short_line() -> None:
    """Whatever the question is; without one it is a word of ours."""
    long = open_webui('{ "title": "…" }', f"<chat_history>\nUSER: {'boat ' * 400}\x07\n</chat_history>")
    chore = answer_chore(request(long))
    assert chore is not None
    assert len(json.loads(chore.content)["title"]) <= 60
    chore = answer_chore(request(open_webui('{ "title": "…" }', "<chat_history>\n</chat_history>")))
    assert chore is not None
    assert json.loads(chore.content) == {"title": "Research"}


@pytest.mark.parametrize(
    "text",
    [
        "### Task:\nAnswer by this context.\n<context>\nPage\n</context>\n\nHow is a boat moored?",
        "Which words does <chat_history> have?",
        "How do I write a title?",
    ],
)
def test_a_question_is_no_chore(text: str) -> None:
    """Not even one that a window has wrapped in the passages of a file."""
    assert answer_chore(request({"model": MODEL, "messages": [{"role": "user", "content": text}]})) is None


def test_a_second_message_of_a_person_is_no_chore() -> None:
    """Chores come alone, so a conversation that quotes one is a conversation."""
    quoted = OPEN_WEBUI["title"][0]["messages"]
    later = [{"role": "assistant", "content": "So."}, {"role": "user", "content": "How?"}]
    for messages in ([*quoted, *later], [*reversed(later), *quoted]):
        assert answer_chore(request({"model": MODEL, "messages": messages})) is None


# --- requests and models ---------------------------------------------------------------------------------------------
def test_models_are_strategies_alone_and_with_each_corpus() -> None:
    """An unknown name is answered with those that exist, as the protocol has it."""
    models = list_models(["supervisor", "living"], ["manual"])
    assert list(models) == [
        "deep-research/supervisor",
        "deep-research/living",
        "deep-research/supervisor/manual",
        "deep-research/living/manual",
    ]
    assert find_model("deep-research/living/manual", models) == ModelId("living", "manual")
    with pytest.raises(ProtocolError, match="there are: deep-research/supervisor, ") as caught:
        find_model("gpt-4o\x1b", models)
    assert (caught.value.status, caught.value.code) == (404, "model_not_found")
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize(
    ("effort", "depth"), [(None, None), ("low", Depth.LIGHT), ("medium", Depth.MEDIUM), ("high", Depth.EXTENDED)]
)
def test_the_effort_of_the_protocol_is_the_depth(effort: str | None, depth: Depth | None) -> None:
    """A window that offers a choice of effort offers depths."""
    body = {"model": MODEL, "messages": [{"role": "user", "content": "How?"}], "reasoning_effort": effort}
    assert request(body).depth == depth


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"model": MODEL, "messages": []}, "messages"),
        ({"model": MODEL}, "messages"),
        ({"model": MODEL, "messages": [{"role": "assistant", "content": "So."}]}, "is missing or empty"),
        ({"model": MODEL, "messages": [{"role": "user", "content": " \n"}]}, "is missing or empty"),
        ({"model": MODEL, "messages": [{"role": "king", "content": "How?"}]}, "messages.0.role"),
        ({"model": MODEL, "messages": [{"role": "user", "content": "How?"}] * 501}, "messages"),
        ({"model": MODEL, "messages": [{"role": "user", "content": "How?"}], "n": 2}, "n: "),
        ({"model": MODEL, "messages": [{"role": "user", "content": "secret"}], "stream": "secret"}, "stream"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused_by_its_field(body: dict[str, Any], message: str) -> None:
    """With the path, and without the values."""
    with pytest.raises(ProtocolError, match=re.escape(message)) as caught:
        request(body)
    assert caught.value.status == 400
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"text"', b"\xff\xfe", b"[" * 100_000])
def test_a_body_that_is_no_request_is_refused(body: bytes) -> None:
    """Whatever it is, in one line."""
    with pytest.raises(ProtocolError, match="invalid request"):
        read_request(body)


# --- annotations -----------------------------------------------------------------------------------------------------
MARKDOWN = """\
# Käpt’n’s ropes 🚢

> A quotation says \\[1\\] and means it [2].

Two ropes hold a boat [1][12], as `ropes[1]` says. *(± Supported in part)*

| rope | place |
| --- | --- |
| bow [1] | pier \\| quay [2] |

```python
ropes[1] = "[2]"
```

## Sources

- [1] Ropes
- [12] More ropes
"""


def test_annotations_enclose_each_citation_to_the_character() -> None:
    """Numbers in code and escaped ones are no citations, and neither is one without a source."""
    source = {"id": "s1", "url": "corpus:manual/ropes.md", "title": "Ropes\n"}
    cited = {
        "report": {"markdown": MARKDOWN},
        "sources": [source, {"id": "s12", "url": "https://example.org/", "title": ""}],
    }
    cited["citations"] = [
        {"number": 1, "source_id": "s1"},
        {"number": 12, "source_id": "s12"},
        {"number": 2, "source_id": "gone"},
    ]  # type: ignore[assignment]
    text, annotations = cited_text(cited)
    assert text == MARKDOWN
    spans = [annotation["url_citation"] for annotation in annotations]
    assert [text[span["start_index"] : span["end_index"]] for span in spans] == ["[1]", "[12]", "[1]", "[1]", "[12]"]
    assert [text[: span["start_index"]].count("`") % 2 for span in spans] == [0] * 5
    assert (spans[0]["url"], spans[0]["title"]) == ("corpus:manual/ropes.md", "Ropes")
    assert (spans[1]["url"], spans[1]["title"]) == ("https://example.org/", "https://example.org/")


def test_a_long_answer_comes_in_pieces_with_its_annotations_last() -> None:
    """The pieces are the text; usage comes only if it was asked for."""
    completion = Completion("ä" * 9_001, [{"type": "url_citation"}])
    chunks = CompletionWriter("chat-1", MODEL).ending(completion, with_usage=True)
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks if chunk["choices"]]
    assert "".join(delta.get("content", "") for delta in deltas) == completion.content
    assert deltas[-2] == {"annotations": completion.annotations}
    assert chunks[-2]["choices"][0]["finish_reason"] == "stop"
    assert chunks[-1]["choices"] == []
    assert "usage" in chunks[-1]
