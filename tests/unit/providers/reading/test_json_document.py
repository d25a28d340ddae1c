"""JSON becomes readable text, by strict rules."""

import json

import pytest

from providers.errors import SourceUnreadable
from providers.reading.formats.json_document import CHARACTERS, DEPTH, extract_json


def test_values_stand_on_lines_under_their_names() -> None:
    """Nested lists in the order of the document; white space and invisible characters as in every text."""
    found = extract_json(
        '{"title": "Vacuum\\n settings", "on": true, "none": null, "limit": 0.20, "tags": ["a", "b"], "empty": [], '
        '"steps": [{"do": "re\\u200bmove"}, [1, 2]], "big": 9007199254740993}'
    )
    assert found.title == "Vacuum settings"
    assert found.media_type == "application/json"
    assert found.text.split("\n") == [
        "- title: Vacuum settings",
        "- on: true",
        "- none: null",
        "- limit: 0.2",
        "- tags:",
        "  - a",
        "  - b",
        "- empty:",
        "- steps:",
        "  - 1:",
        "    - do: remove",
        "  - 2:",
        "    - 1",
        "    - 2",
        "- big: 9007199254740993",
    ]


def test_the_same_document_gives_the_same_text() -> None:
    """Offsets into it stay true."""
    text = json.dumps({"b": [1, {"a": "x"}], "a": "# no heading"})
    assert extract_json(text) == extract_json(text)
    assert "\\# no heading" in extract_json(text).text


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("", "malformed"),
        ("{", "malformed"),
        ('{"a": 1}}', "malformed"),
        ('{"a": 1, "a": 2}', "malformed"),
        ('{"a": NaN}', "malformed"),
        ('{"a": -Infinity}', "malformed"),
        ('{"a": 1e999}', "malformed"),
        ('{"a": ' + "9" * 5_000 + "}", "malformed"),
        ("[" * 100_000, "malformed"),
        ("[" * (DEPTH + 1) + "]" * (DEPTH + 1), "malformed"),
        ('"' + "x" * CHARACTERS + '"', "too_large"),
        ("{}", "no_text"),
        ("[]", "no_text"),
    ],
    ids=lambda value: value[:20],
)
def test_what_is_no_strict_json_is_refused(text: str, kind: str) -> None:
    """Two values of one name, numbers that are none, depth and size: each has its reason."""
    with pytest.raises(SourceUnreadable) as raised:
        extract_json(text)
    assert raised.value.kind == kind


def test_lone_surrogates_can_be_stored() -> None:
    """What UTF-8 cannot write is replaced, in names and in values."""
    extract_json('{"\\ud800": "\\udfff x"}').text.encode()


def test_very_many_values_are_cut() -> None:
    """The beginning is kept, and the cut is told."""
    found = extract_json(json.dumps([0] * 60_000))
    assert found.cut
    assert found.text.count("\n") == 49_999
