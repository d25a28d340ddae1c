"""What others send, as plain data."""

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.common import RawValue

from workflows.run.host import json_of, plain


def sent(data: bytes, encoding: bytes = b"json/plain") -> RawValue:
    """A payload as it comes over the wire."""
    return RawValue(Payload(metadata={"encoding": encoding}, data=data))


@pytest.mark.parametrize(
    ("value", "data", "text"),
    [
        (sent(b'{"a": [1, null]}'), {"a": [1, None]}, b'{"a": [1, null]}'),
        (sent(b"", b"binary/null"), None, b"null"),
        (sent(b"null"), None, b"null"),
    ],
)
def test_json_and_nothing_are_read(value: RawValue, data: object, text: bytes) -> None:
    """Everything that a client of any language may send instead of nothing is nothing."""
    assert plain(value) == data
    assert json_of(value) == text


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (sent(b"\x00\x01", b"binary/plain"), "no JSON"),
        (RawValue(Payload(data=b"1")), "no JSON"),
        (sent(b"[" * 200_000), "nested too deeply"),
        (sent(b"{"), "Expecting property name"),
    ],
)
def test_what_is_no_json_is_said_to_be_none(value: RawValue, problem: str) -> None:
    """A ValueError with the problem, whatever was sent: nothing of it ends a workflow task."""
    with pytest.raises(ValueError, match=problem):
        plain(value)
