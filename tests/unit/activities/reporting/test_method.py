"""Method and limits: what was checked, what was used, when; and passages as readers are shown them."""

from dataclasses import replace

import pytest

from activities.reporting.inputs import ReportInputs, gather_inputs
from activities.reporting.passages import QuotedPassage, cut_passages
from activities.reporting.report_text import describe_checking, report_facts, usage_document
from activities.reporting.words import ReportWords
from contracts.addresses import digest
from contracts.evidence import CheckMethod, ClaimVerdict, Verdict
from contracts.outcome import Usage
from contracts.resolved import Estimate
from contracts.state import ResearchState
from contracts.vocabulary import Phase
from providers.errors import ContentCorrupt, ContentMissing
from tests.unit.activities.reporting.sample import VACUUM, Sample, make_evidence, make_source
from workflows.run.budget import account

SAMPLE = Sample()
ENGLISH = ReportWords("en")


def gathered(state: ResearchState, **verdicts: int) -> ReportInputs:
    """The inputs of a report with so many claims of each verdict."""
    inputs = gather_inputs(state, SAMPLE.draft, SAMPLE.texts, [], "0.1.0")
    claims = [
        replace(
            inputs.claims[0],
            judged=ClaimVerdict(claim_id="", verdict=Verdict[name], method=CheckMethod.RULES, reason="Why."),
        )
        for name, count in verdicts.items()
        for _ in range(count)
    ]
    return replace(inputs, claims=claims) if verdicts else inputs


def test_doubtful_statements_are_listed_with_their_reasons() -> None:
    """What is not borne out is listed, the contradicted first."""
    fact = report_facts(gathered(SAMPLE.state(), UNSUPPORTED=1, CONTRADICTED=1, SUPPORTED=1))[0]
    assert fact.value.startswith("Rules compared these statements with their passages")
    assert [item.split(":")[0] for item in fact.items] == ["Contradicted", "Not supported"]
    assert all(item.endswith("(Why.)") for item in fact.items)


def test_without_doubt_nothing_is_said() -> None:
    """Supported claims and undecided ones are no differences."""
    inputs = gathered(SAMPLE.state(), SUPPORTED=3, NOT_ENOUGH_INFORMATION=1)
    assert report_facts(inputs)[0].label == "Outcome"
    assert "1 not decided" in describe_checking(inputs.claims, ENGLISH)


def used(cost: float | None = 0.0123) -> ResearchState:
    """The state of a run that called models."""
    state = SAMPLE.state(usage=Usage())
    state.phase = Phase.PLANNING
    account(state, "planner", Usage(model_calls=1, input_tokens=800, output_tokens=200, cost_usd=cost))
    state.phase = Phase.ANALYSIS
    account(state, "analyzer", Usage(model_calls=2, input_tokens=1_200, cached_tokens=300, cost_usd=0.02))
    account(state, "gatherer", Usage(searches=2, reads=3))
    state.usage = state.usage.model_copy(update={"active_seconds": 7.5})
    return state


def test_the_parts_of_the_usage_sum_up_to_its_total() -> None:
    """Each counter of `by_role` and of `by_phase` adds up; the cached share is given for each, null without input."""
    document = usage_document(used())
    counters = ("model_calls", "input_tokens", "output_tokens", "cached_tokens", "cost_usd", "searches", "reads")
    for table in (document["by_role"], document["by_phase"]):
        for counter in counters:
            assert sum(part[counter] for part in table.values()) == document[counter], counter
        assert not any("active_seconds" in part for part in table.values())
    assert document["active_seconds"] == 7.5
    assert (document["cached_share"], document["by_role"]["analyzer"]["cached_share"]) == (0.15, 0.25)
    assert not {"by_role", "by_phase"} & set(usage_document(SAMPLE.state()))


@pytest.mark.parametrize(
    ("cost", "total"),
    [
        (0.0123, "0.0323 USD."),
        (None, "cost unknown, 0.0200 USD of it known."),
    ],
)
def test_the_report_names_what_was_used(cost: float | None, total: str) -> None:
    """Calls, tokens, cache and cost, in total; an unknown cost is never 0, a run without any has no fact."""
    (fact,) = (fact for fact in report_facts(gathered(used(cost))) if fact.label == "Use")
    assert fact.value == f"3 model calls, 2,200 tokens, 15% of the input from a cache, 2 searches, 3 reads, {total}"
    assert "Use" not in {fact.label for fact in report_facts(gathered(SAMPLE.state()))}


@pytest.mark.parametrize(
    ("timestamp", "day", "moment"),
    [
        ("2026-11-21T20:15:15+00:00", "2026-11-21", "2026-11-21 20:15 UTC"),
        ("2026-11-21T20:15:15Z", "2026-11-21", "2026-11-21 20:15 UTC"),
        (None, "at an unknown time", "unknown"),
    ],
)
def test_moments_are_in_utc(timestamp: str | None, day: str, moment: str) -> None:
    """To the minute; an unknown one is called that."""
    assert (ENGLISH.day(timestamp), ENGLISH.moment(timestamp)) == (day, moment)


# --- passages --------------------------------------------------------------------------------------------------------
def cut(text: str, quote: str) -> QuotedPassage:
    """A passage of a text."""
    source = make_source("corpus:c/a", "A", text)
    evidence = make_evidence(source, text, quote)
    return cut_passages({"ev": evidence}, {source.id: source}, {digest(text): text})["ev"]


@pytest.mark.parametrize("text", ["", "x", "é🐘é" * 3, "a\r\nb\u0301c", "one two " * 100])
def test_offsets_are_code_points_of_the_stored_text(text: str) -> None:
    """C.8: offsets count characters of the stored text as it is; prefix and suffix have 32 at most (invariant 10)."""
    passage = cut(f"{text}QUOTE{text}", "QUOTE")
    assert (passage.quote, passage.prefix, passage.suffix) == ("QUOTE", text[-32:], text[:32])


def test_other_words_and_missing_texts_are_refused() -> None:
    """A quote that the stored text does not have at its place is never written (invariant 3)."""
    sources = {source.id: source for source in SAMPLE.sources.values()}
    for changed in (VACUUM.replace("two billion", "ten billion"), "\n" + VACUUM, ""):
        with pytest.raises(ContentCorrupt):
            cut_passages(SAMPLE.evidence, sources, SAMPLE.texts | {digest(VACUUM): changed})
    for known, texts in ((sources, {}), ({}, SAMPLE.texts)):
        with pytest.raises(ContentMissing):
            cut_passages(SAMPLE.evidence, known, texts)


def test_the_report_repeats_what_was_announced_before_the_run() -> None:
    """The amounts and the cap that the terminal showed; nothing where no paid call was expected."""
    estimate = Estimate(calls=(4, 21), tokens=(1_000, 20_000), searches=(2, 2), cost_usd=(0.1, 0.8), cap_usd=2.0)
    words = "Expected before it began: 4–21 model calls, 1,000–20,000 tokens, 2 searches, 0.10–0.80 USD; cap: 2.00 USD."
    state = SAMPLE.state()
    assert state.resolved is not None
    state.resolved = state.resolved.model_copy(update={"estimate": estimate})
    for shown, stated in ((state, True), (SAMPLE.state(), False)):
        (fact,) = (fact for fact in report_facts(gathered(shown)) if fact.label == "Run")
        assert fact.value.endswith(words) is stated
