"""The payloads that workers write into histories."""

import pytest
from temporalio.api.failure.v1 import Failure
from temporalio.exceptions import ApplicationError

from contracts.evidence import SearchHit
from contracts.messages import SearchResponse
from contracts.outcome import Usage
from workers.temporal import DATA_CONVERTER


def test_payloads_of_compact_models_have_no_defaults() -> None:
    """A compact model is written without its defaults, at every level; any other value is written whole."""
    response = SearchResponse(provider="p", hits=[SearchHit(url="https://e.org/a", rank=2)])
    converter = DATA_CONVERTER.payload_converter
    compact, whole = converter.to_payloads([response, Usage(reads=1)])
    assert compact.data == b'{"provider":"p","hits":[{"url":"https://e.org/a","rank":2}]}'
    assert b'"searches":0' in whole.data
    assert converter.from_payloads([compact, whole], [SearchResponse, Usage]) == [response, Usage(reads=1)]


@pytest.mark.parametrize("error", [ApplicationError("too many calls", type="RateLimited"), ValueError("unforeseen")])
def test_failures_raised_on_purpose_have_no_frames(error: Exception) -> None:
    """Formatting them costs more than the failure itself; an unforeseen error has its frames."""
    failure = Failure()
    with pytest.raises(type(error)) as caught:
        raise error
    DATA_CONVERTER.failure_converter.to_failure(caught.value, DATA_CONVERTER.payload_converter, failure)
    assert failure.message in str(error)
    assert bool(failure.stack_trace) == isinstance(error, ValueError)
