"""How old a source is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from activities.assessment.question_fit import OUTSIDE, UNKNOWN, age_of
from contracts.request import SourceType

TODAY = "2026-11-21"


@pytest.mark.parametrize(
    "published", [None, "", "soon", "2024-13", "0000", "2026-12-24", "2030", "yesterday", "2024-02-30"]
)
def test_an_unknown_date_is_neutral(published: str | None) -> None:
    """No date, one that cannot be read and one that lies ahead neither help nor harm (X-20)."""
    age = age_of(published, TODAY, None, SourceType.WEB)
    assert (age.recency, age.phrase, age.outside) == (UNKNOWN, "undated", False)


def test_age_is_judged_by_the_kind_of_search() -> None:
    """A month is old for news, and young for a paper (X-20)."""
    news, paper = (age_of("2026-10-21", TODAY, None, mode).recency for mode in (SourceType.NEWS, SourceType.ACADEMIC))
    assert news < 0.5
    assert paper > 0.98
    assert age_of(TODAY, TODAY, None, SourceType.NEWS).recency == 1


def test_a_date_in_part_counts_as_its_latest_day() -> None:
    """A year that reaches into the time asked for is not outside of it."""
    assert not age_of("2024", TODAY, "2024-05-01", SourceType.WEB).outside
    assert age_of("2024-04", TODAY, "2024-05-01", SourceType.WEB).outside
    assert age_of("2026", TODAY, None, SourceType.NEWS).recency == 1


def test_before_the_time_asked_for_is_out_of_date() -> None:
    """However young, it is outside (X-20)."""
    age = age_of("2026-11-01T10:00:00Z", TODAY, "2026-11-10", SourceType.ACADEMIC)
    assert (age.recency, age.outside, age.phrase) == (OUTSIDE, True, "2026, before the time asked for")


@given(
    st.one_of(st.none(), st.text(max_size=12), st.dates().map(str)),
    st.one_of(st.text(max_size=12), st.dates().map(str)),
    st.sampled_from(SourceType),
)
def test_any_dates_give_an_age(published: str | None, today: str, mode: SourceType) -> None:
    """Never an error, always between 0 and 1."""
    assert 0 <= age_of(published, today, today, mode).recency <= 1
