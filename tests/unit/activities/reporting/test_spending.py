"""What a report tells of the use of a run."""

from activities.reporting.method_section import usage_document, usage_words
from activities.reporting.render import render
from activities.reporting.report_words import ReportWords
from contracts.outcome import Usage
from contracts.state import ResearchState
from contracts.vocabulary import Phase
from tests.unit.activities.reporting.sample import SKIPPED, Sample
from workflows.run.accounting import account

SAMPLE = Sample()


def used(cost: float | None = 0.0123) -> ResearchState:
    state = SAMPLE.state(usage=Usage())
    state.phase = Phase.PLANNING
    account(state, "planner", Usage(model_calls=1, input_tokens=800, output_tokens=200, cost_usd=cost))
    state.phase = Phase.ANALYSIS
    account(state, "analyzer", Usage(model_calls=2, input_tokens=1_200, cached_tokens=300, cost_usd=0.02))
    account(state, "gatherer", Usage(searches=2, reads=3))
    state.usage = state.usage.model_copy(update={"active_seconds": 7.5})
    return state


def test_the_parts_of_the_document_sum_up_to_its_total() -> None:
    """Each counter of `by_role` and of `by_phase` adds up; the cached share is told for each, null without input."""
    document = usage_document(used())
    for table in (document["by_role"], document["by_phase"]):
        for counter in (
            "model_calls",
            "input_tokens",
            "output_tokens",
            "cached_tokens",
            "cost_usd",
            "searches",
            "reads",
        ):
            assert sum(part[counter] for part in table.values()) == document[counter], counter
        assert not any("active_seconds" in part for part in table.values())
    assert document["active_seconds"] == 7.5
    assert (document["cached_share"], document["by_role"]["analyzer"]["cached_share"]) == (0.15, 0.25)
    assert document["by_role"]["gatherer"]["cached_share"] is None


def test_a_session_that_never_kept_parts_has_none() -> None:
    """The parts are optional: a report of such a session has its total alone."""
    assert not {"by_role", "by_phase"} & set(usage_document(SAMPLE.state()))


def test_the_report_tells_what_was_used() -> None:
    """Method and limits name calls, tokens, cache and cost, in total and by role, in each form of the report.

    Roles stand in the order of their names: which one answered first is chance.
    """
    sentence, roles = usage_words(used(), ReportWords("en"))
    assert sentence == "3 model calls, 2,200 tokens, 15% of the input from a cache, 2 searches, 3 reads, 0.0323 USD."
    assert [line.split(":")[0] for line in roles] == ["analyzer", "gatherer", "planner"]
    assert roles[-1] == "planner: 1 model call, 1,000 tokens, 0.0123 USD"
    rendered = render(used(), SAMPLE.draft, SAMPLE.texts, SKIPPED, "0.1.0")
    assert "0.0123 USD" in rendered.markdown
    assert "0.0123 USD" in rendered.html


def test_an_unknown_cost_is_called_unknown() -> None:
    """Never 0: what is known of it is said to be a part."""
    sentence, roles = usage_words(used(cost=None), ReportWords("en"))
    assert "cost unknown, 0.0200 USD of it known" in sentence
    assert roles[-1].endswith("cost unknown")


def test_a_run_that_cost_nothing_says_nothing_of_it() -> None:
    """Without a model and without a paid search there is nothing to tell."""
    assert usage_words(SAMPLE.state(), ReportWords("en")) is None
