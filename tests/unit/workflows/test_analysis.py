"""Analyses: one that is made again replaces the first, and the analyzer's word on a source counts a step."""

import pytest

from activities.assessment.source_assessment import best_quality
from contracts.evidence import Source, SourceAssessment
from contracts.plan import PlanNode
from contracts.roles import (
    QualityUpdate,
)
from contracts.vocabulary import GapStatus, Quality
from tests.fakes import states
from tests.fakes.host import InProcessHost
from workflows.phases.analysis import update_quality, withdraw
from workflows.phases.role_inputs import analyze_input
from workflows.run.inbox import Inbox
from workflows.run.research_run import ResearchRun


def test_a_source_is_considered_at_length_once() -> None:
    """By the sub-query that found it first; others, of later iterations too, consider 1,000 characters of it (S0-060)."""
    first, second = states.sub_query("the first question"), states.sub_query("the second question")
    later = states.sub_query("a question of the next iteration", iteration=2)
    shared, lost = (states.source(f"corpus:m/{name}", text=states.EMPTY_REF, analyzed=False) for name in ("a", "b"))
    shared = shared.model_copy(update={"sub_query_ids": [first.id, second.id, later.id]})
    lost = lost.model_copy(update={"sub_query_ids": [first.id, later.id]})
    made = states.state(plan=states.plan(first, second), sources=states.sources(shared, lost))
    run = ResearchRun(made, Inbox(), InProcessHost({}))

    def considered(query: PlanNode) -> dict[str, int]:
        request = analyze_input(run, query, []).model_copy(update={"source_characters": 12_000})
        return {source.url: request.characters_of(source) for source in request.sources}

    assert considered(first) == {"corpus:m/a": 12_000, "corpus:m/b": 12_000}
    assert considered(second) == {"corpus:m/a": 1_000}
    others = [states.source(f"corpus:m/{number}", rank=0, sub_query_ids=[first.id]) for number in range(20)]
    made.sources = states.sources(shared, lost, *others)  # the first question has more than one analysis shows
    assert considered(second) == {"corpus:m/a": 12_000}
    made.analyzed_sub_queries = [first.id, second.id]  # the analysis of the first question did not read one of them
    made.sources[shared.id] = shared.model_copy(update={"analyzed": True})
    assert considered(later) == {"corpus:m/a": 1_000, "corpus:m/b": 12_000}
    request = analyze_input(run, later, []).model_copy(update={"source_characters": 12_000})
    protecting = request.model_copy(update={"protected_source_ids": [shared.id]})
    assert {protecting.characters_of(source) for source in protecting.sources} == {12_000}


def test_what_is_analyzed_again_opens_what_it_had_closed() -> None:
    """Open gaps of the first analysis are superseded; a gap that it had closed waits for the second one."""
    query = states.sub_query("a question", origin="gap:gap-closed")
    closed = states.gap("closed", id="gap-closed", status=GapStatus.ADDRESSED)
    mine = states.gap("mine", origin=f"sub_query:{query.id}")
    other = states.gap("other", origin="sub_query:another")
    made = states.state(plan=states.plan(query), gaps=[closed, mine, other], findings=[states.finding("x")])
    withdraw(made, [query])
    assert [gap.status for gap in made.gaps] == [GapStatus.OPEN, GapStatus.SUPERSEDED, GapStatus.OPEN]
    assert len(made.findings) == 1


def assessed(label: Quality, **parts: object) -> Source:
    """A source that the rules judged, as it is known after reading."""
    given = {"authority": 0.8, "relevance": 0.5, "recency": 0.5, "content_quality": 0.5, "label": label}
    found = SourceAssessment(**given | {"reason": "university site"} | parts)
    best = best_quality(found)
    return states.source("https://e.org/a", quality=label, assessment=found, best_quality=best)


def opinion(source: Source, quality: str) -> Source:
    return update_quality(source, QualityUpdate(source_id=source.id, quality=quality))


@pytest.mark.parametrize(
    ("label", "word", "expected"),
    [
        (Quality.MEDIUM, "high", Quality.HIGH),
        (Quality.MEDIUM, "low", Quality.LOW),
        (Quality.LOW, "high", Quality.MEDIUM),
        (Quality.HIGH, "low", Quality.MEDIUM),
        (Quality.HIGH, "unknown", Quality.HIGH),
        (Quality.HIGH, "excellent", Quality.HIGH),
    ],
)
def test_an_opinion_moves_a_label_by_one_step(label: Quality, word: str, expected: Quality) -> None:
    """The label follows the analyzer by one step, with what it was before as the reason (S0-063, X-20)."""
    source = opinion(assessed(label), word)
    assert source.quality is expected
    if expected is not label:
        assert source.quality_reason == f"analyzer: {expected.value} (was {label.value})"


def test_where_anybody_can_write_nothing_is_authoritative() -> None:
    """The analyzer cannot raise a page of a forum or an open encyclopedia to high (X-20)."""
    edited, open_to_all = (assessed(Quality.MEDIUM, authority=0.6, user_generated=by_all) for by_all in (False, True))
    assert opinion(edited, "high").quality is Quality.HIGH
    assert opinion(open_to_all, "high").quality is Quality.MEDIUM
    assert opinion(open_to_all, "low").quality is Quality.LOW
