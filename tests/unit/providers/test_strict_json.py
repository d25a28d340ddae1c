"""JSON from strangers."""

import json

import pytest

from providers.strict_json import (
    DUPLICATE_KEY,
    LONG_NUMBER,
    NOT_FINITE,
    JsonError,
    NestingError,
    bracketing,
    clean_text,
    parse_json,
)


@pytest.mark.parametrize(
    ("text", "flaw"),
    [
        ('{"a": NaN}', NOT_FINITE),
        ('{"a": -Infinity}', NOT_FINITE),
        ('{"a": 1e999}', NOT_FINITE),
        ('{"a": 1, "a": 2}', DUPLICATE_KEY),
        ('{"a": [{"b": 1, "b": 1}]}', DUPLICATE_KEY),
        ('{"a": ' + "9" * 5_000 + "}", LONG_NUMBER),
    ],
)
def test_names_what_strict_json_forbids(text: str, flaw: str) -> None:
    """Values that `json.loads` would silently accept are reported as flaws."""
    assert parse_json(text).flaws == {flaw}


@pytest.mark.parametrize("text", ["", "{", '{"a":1', '{"a":1}}', "hello", '{"a":"b', "[}"])
def test_refuses_what_is_no_json_without_quoting_it(text: str) -> None:
    """Broken text raises, and the message repeats none of it."""
    with pytest.raises(JsonError) as caught:
        parse_json(text)
    assert "hello" not in str(caught.value)


@pytest.mark.parametrize("text", ["[" * 3_000 + "]" * 3_000, '{"a":' * 100_000, '{"a": ' + "[" * 64 + "]" * 64 + "}"])
def test_refuses_deep_nesting_before_parsing(text: str) -> None:
    """Nesting beyond 64 levels is refused without recursion."""
    with pytest.raises(NestingError):
        parse_json(text)


def test_brackets_in_strings_do_not_count() -> None:
    """Strings may hold any brackets and escaped quotes."""
    value = {"a": "[" * 200 + '"}' + "\\", "b": ["{"]}
    text = json.dumps(value)
    assert parse_json(text).value == value
    assert bracketing(text + " }").end == len(text)


def test_replaces_lone_surrogates_and_keeps_pairs() -> None:
    """A lone surrogate becomes U+FFFD in values and keys; what UTF-16 means stays."""
    parsed = parse_json('{"\\ud800k": ["x\\udfffy", "\\ud83d\\ude00"]}')
    assert parsed.value == {"\ufffdk": ["x\ufffdy", "😀"]}
    assert parsed.cleaned
    assert clean_text("a\ud800b") == "a\ufffdb"
    assert not parse_json('{"a": "ü"}').cleaned
