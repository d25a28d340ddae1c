"""Options, request files and `--set`."""

from pathlib import Path

import pytest

from client.cli.command_errors import CommandError
from client.cli.request_options import build_request, known_paths, merge, parse_assignments, read_request_file


def test_set_is_typed_by_the_request() -> None:
    """Numbers, truth values, lists and objects arrive as what the request wants."""
    values = parse_assignments(
        [
            "limits.max_iterations=2",
            "limits.deadline_seconds=90.5",
            "output.target_words = 400",
            "gates.policy=advisory",
            'metadata={"ticket": 7}',
        ]
    )
    request = build_request({"query": "q", **values})
    assert request.limits.max_iterations == 2
    assert request.limits.deadline_seconds == 90.5
    assert request.output.target_words == 400
    assert str(request.gates.policy) == "advisory"
    assert request.metadata == {"ticket": 7}


def test_set_splits_lists_at_commas() -> None:
    """A list of texts can be written without JSON, or as JSON."""
    assert parse_assignments(["output.sections=A, B"]) == {"output": {"sections": ["A", "B"]}}
    assert parse_assignments(['output.sections=["A, B"]']) == {"output": {"sections": ["A, B"]}}


def test_the_value_may_hold_an_equals_sign() -> None:
    """Only the first one separates."""
    assert parse_assignments(["query=a=b"]) == {"query": "a=b"}


def test_null_takes_a_value_back() -> None:
    """`null` means: the preset."""
    assert merge({"limits": {"max_iterations": 2}}, parse_assignments(["limits.max_iterations=null"])) == {
        "limits": {"max_iterations": None}
    }


def test_an_unknown_path_is_refused_with_the_known_ones() -> None:
    """Never ignored: the nearest name and the whole list are told, exit code 2."""
    with pytest.raises(CommandError) as caught:
        parse_assignments(["limits.max_iteration=2"])
    assert "did you mean limits.max_iterations?" in str(caught.value)
    assert "gates.policy" in str(caught.value)
    assert caught.value.code == 2


def test_continue_from_is_not_for_people() -> None:
    """Resuming has a command of its own."""
    assert "continue_from" not in known_paths()
    with pytest.raises(CommandError):
        parse_assignments(["continue_from=x"])


@pytest.mark.parametrize("assignment", ["limits.max_iterations", "metadata={", "output.sections=[1"])
def test_a_malformed_assignment_says_how_to_write_it(assignment: str) -> None:
    """One line, exit code 2."""
    with pytest.raises(CommandError, match="--set"):
        parse_assignments([assignment])


@pytest.mark.parametrize("query", [None, "", "   \n"])
def test_an_empty_question_is_refused(query: str | None) -> None:
    """With an example of what to write."""
    with pytest.raises(CommandError, match="the question is empty"):
        build_request({"query": query})


def test_a_bad_value_is_named_by_its_path_and_not_repeated() -> None:
    """Lines are `path: message`; what a person wrote does not come back."""
    with pytest.raises(CommandError) as caught:
        build_request({"query": "q", "limits": {"max_iterations": "sesame"}, "colour": "sesame"})
    assert "limits.max_iterations: " in str(caught.value)
    assert "colour: unknown key" in str(caught.value)
    assert "sesame" not in str(caught.value)


def test_what_is_not_built_yet_is_refused_before_anything_starts() -> None:
    """Accepted by name, refused with `not available yet`, never ignored (interfaces)."""
    with pytest.raises(CommandError, match="strategy: not available yet"):
        build_request({"query": "q", "strategy": "recursive"})


def test_a_request_file_is_an_object(tmp_path: Path) -> None:
    """A JSON object is taken as it is."""
    path = tmp_path / "request.json"
    path.write_text('{"query": "q", "limits": {"max_iterations": 1}}')
    assert read_request_file(path) == {"query": "q", "limits": {"max_iterations": 1}}


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"{", "no valid JSON: .* line 1"), (b"[1]", "one JSON object"), (b"\xff\xfe\x00", "not UTF-8 text")],
)
def test_a_request_file_that_cannot_be_used(tmp_path: Path, content: bytes, words: str) -> None:
    """One line that says where and why."""
    path = tmp_path / "request.json"
    path.write_bytes(content)
    with pytest.raises(CommandError, match=words):
        read_request_file(path)


def test_a_missing_request_file(tmp_path: Path) -> None:
    """Named with its path."""
    with pytest.raises(CommandError, match="no such file"):
        read_request_file(tmp_path / "nothing.json")
