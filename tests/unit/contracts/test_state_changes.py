"""What is stored and sent: changes of a JSON value, packed states, messages without default values."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.evidence import DocumentRef, ReportDraft, SearchHit
from contracts.messages import SearchResponse
from contracts.outcome import CallAccount, Usage
from contracts.roles import AnalyzerResult
from contracts.state import ResearchState
from contracts.state_changes import NOTHING, apply_change, change_between, json_digest, pack_json, unpack_json
from contracts.vocabulary import ReportKind
from tests.fakes import states

SCALARS = st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=4),
    max_leaves=12,
)


@given(VALUES, VALUES)
def test_a_change_makes_the_one_of_the_other(before: object, after: object) -> None:
    """Applied to what it was made for, a change gives the value it was made of, also after being packed."""
    change = unpack_json(pack_json(change_between(before, after)))
    assert json_digest(apply_change(before, change)) == json_digest(after)


def test_what_did_not_change_is_not_sent() -> None:
    """A long list that grew by one item, and one item of an object that changed: the change holds nothing else."""
    before = {"sources": {str(number): {"title": "t" * 100} for number in range(50)}, "decisions": ["d" * 100] * 50}
    after = {
        "sources": before["sources"] | {"7": {"title": "other"}},
        "decisions": [*before["decisions"], "new"],
    }
    assert change_between(before, before) == NOTHING
    assert len(str(change_between(before, after))) < 150


@pytest.mark.parametrize("change", [["?", 1, 2], ["["], ["[", {"9": ["=", 1]}, []], ["{", {}, []], []])
def test_a_change_that_does_not_fit_is_an_error(change: object) -> None:
    """An unfit change raises an error."""
    with pytest.raises(ValueError):
        apply_change([1], change)  # type: ignore[arg-type]


def test_a_packed_state_is_the_same_state() -> None:
    """A checkpoint loses nothing and is small."""
    state = states.state(
        plan=states.plan(states.sub_query("one question of the plan")),
        sources=states.sources(*(states.source(f"corpus:m/{number}") for number in range(20))),
        gaps=[states.gap("open")],
    )
    packed = state.pack()
    assert ResearchState.unpack(packed) == state
    assert len(packed) < len(state.model_dump_json()) / 3


def test_defaults_are_left_out_and_come_back() -> None:
    """In the message and in all that it holds; what is read is what was written."""
    hits = [SearchHit(url="https://e.org/a", title="A", rank=2), SearchHit(url="https://e.org/b", doi="10.1/2")]
    response = SearchResponse(provider="p", hits=hits, term_documents={"vacuum": 3})
    text = response.compact_json()
    assert text == (
        '{"provider":"p","hits":[{"title":"A","url":"https://e.org/a","rank":2},'
        '{"doi":"10.1/2","url":"https://e.org/b"}],"term_documents":{"vacuum":3}}'
    )
    assert SearchResponse.model_validate_json(text) == response


def test_an_unknown_cost_is_no_default() -> None:
    """A cost of nothing is left out, one that is unknown is not; shares are computed again."""
    usage = Usage(model_calls=1, input_tokens=10, cached_tokens=5, cost_usd=None)
    output = AnalyzerResult(account=CallAccount(usage=usage))
    assert '"usage":{"model_calls":1,"input_tokens":10,"cached_tokens":5,"cost_usd":null}' in output.compact_json()
    assert AnalyzerResult.model_validate_json(output.compact_json()).account.usage.cached_share == 0.5


def test_a_draft_takes_all_from_another_that_does_not_follow_from_the_text() -> None:
    """A draft without its longer figures, with another's history, has its own text and each other field of the other."""
    document = DocumentRef(hash="sha256:" + "a" * 64, size=9)
    earlier = ReportDraft(
        document=document,
        unresolved_markers=["ev-1"],
        foreign_urls=["https://example.org/"],
        iteration=3,
        kind=ReportKind.PASSAGES,
        direct=True,
        empty=True,
    )
    draft = ReportDraft(
        document=document,
        title="Title",
        summary="Summary.",
        sections=["One"],
        word_count=7,
        characters=9,
        has_headings=True,
        evidence_ids=["ev-2"],
        words_by_section={"One": 7},
    )
    short = draft.without_longer_figures()
    assert short == ReportDraft(document=document, word_count=7, characters=9, has_headings=True)
    unlike = {name for name in ReportDraft.model_fields if getattr(draft, name) != getattr(earlier, name)}
    assert unlike == ReportDraft.model_fields.keys() - {"document", "revision"}
    figures = draft.model_dump(include={"title", "summary", "sections", "word_count", "characters", "has_headings"})
    figures |= {"evidence_ids": ["ev-2"], "words_by_section": {"One": 7}, "revision": 4}
    assert draft.with_history_of(earlier, 4).model_dump() == earlier.model_dump() | figures
