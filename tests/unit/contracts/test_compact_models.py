"""Messages without default values."""

from contracts.evidence import SearchHit
from contracts.messages import SearchResponse
from contracts.outcome import CallAccount, Usage
from contracts.roles import AnalyzerResult


def test_defaults_are_left_out_and_come_back() -> None:
    """In the message and in all that it holds; what is read is what was written."""
    hits = [SearchHit(url="https://e.org/a", title="A", rank=2), SearchHit(url="https://e.org/b", doi="10.1/2")]
    response = SearchResponse(provider="p", hits=hits, term_documents={"vacuum": 3})
    text = response.model_dump_json()
    assert text == (
        '{"provider":"p","hits":[{"title":"A","url":"https://e.org/a","rank":2},'
        '{"doi":"10.1/2","url":"https://e.org/b"}],"term_documents":{"vacuum":3}}'
    )
    assert SearchResponse.model_validate_json(text) == response


def test_an_unknown_cost_is_no_default() -> None:
    """A cost of nothing is left out, one that is unknown is not; shares are computed again."""
    usage = Usage(model_calls=1, input_tokens=10, cached_tokens=5, cost_usd=None)
    output = AnalyzerResult(account=CallAccount(usage=usage))
    assert '"usage":{"model_calls":1,"input_tokens":10,"cached_tokens":5,"cost_usd":null}' in output.model_dump_json()
    assert AnalyzerResult.model_validate_json(output.model_dump_json()).account.usage.cached_share == 0.5


def test_people_are_told_everything() -> None:
    """The output of a command has every field."""
    response = SearchResponse(provider="p", hits=[SearchHit(url="https://e.org/a")])
    assert set(response.whole()) == set(SearchResponse.model_fields)
    assert set(response.whole()["hits"][0]) == set(SearchHit.model_fields)
