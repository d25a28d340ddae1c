"""Requests that cannot be used: what a person is told."""

import json
from typing import Any

import pytest

from contracts.parse_request import InvalidRequest, parse_request


@pytest.mark.parametrize(
    ("request_", "line"),
    [
        ({"constraints": {"timeframe": "lately"}}, "constraints.timeframe: must be day, week, month or year"),
        ({"constraints": {"language": "English"}}, "constraints.language: must be a language code"),
        ({"search": {"domains_deny": ["https://a.test/x"]}}, "search.domains_deny.0: must be a host name alone"),
        ({"search": {"providers": ["Wikipedia!"]}}, "search.providers.0: must be the name of a search provider"),
        ({"corpus": "../etc"}, "corpus: must be at most 64 letters"),
    ],
)
def test_a_text_of_the_wrong_shape_gets_an_example(request_: dict[str, Any], line: str) -> None:
    """The message says what is expected in words, never as a regular expression."""
    with pytest.raises(InvalidRequest) as caught:
        parse_request(json.dumps({"query": "q", **request_}))
    assert caught.value.lines[0].startswith(line)
    assert "^" not in str(caught.value)
    assert "such as" in str(caught.value)
