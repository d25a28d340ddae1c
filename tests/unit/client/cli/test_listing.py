"""Which runs `list` shows, and how."""

from datetime import UTC, datetime, timedelta

import pytest

from client.cli.command_errors import CommandError
from client.cli.listing import RunFilter, RunRow, parse_since, parse_statuses

ROW = RunRow("r-1", "refused", "2026-11-20T12:00:00+00:00", "How does Vacuum work?", "corpus: unknown")


@pytest.mark.parametrize(
    ("wanted", "taken"),
    [
        (RunFilter(), True),
        (RunFilter(text="vacuum"), True),
        (RunFilter(text="locks"), False),
        (RunFilter(statuses=("partial", "refused")), True),
        (RunFilter(statuses=("partial",)), False),
        (RunFilter(since=datetime(2026, 11, 20, 12, tzinfo=UTC)), True),
        (RunFilter(since=datetime(2026, 11, 20, 13, tzinfo=UTC)), False),
    ],
)
def test_runs_are_chosen_by_words_ending_and_time(wanted: RunFilter, taken: bool) -> None:
    """Each filter narrows by itself, and what is not given holds for all."""
    assert wanted.takes(ROW) is taken


def test_a_time_is_a_date_here_or_a_span_ago() -> None:
    """A date without zone is this machine's; a span counts from now."""
    assert parse_since("2026-11-20T12:00:00+00:00") == datetime(2026, 11, 20, 12, tzinfo=UTC)
    assert parse_since("2026-11-20") == datetime(2026, 11, 20).astimezone()
    before = datetime.now(tz=UTC)
    assert before <= parse_since("2d") + timedelta(days=2) <= datetime.now(tz=UTC)


@pytest.mark.parametrize("given", ["yesterday", "2026-13-01", "", "0001-01-01T00:00"])
def test_a_time_that_is_none_is_refused_with_examples(given: str) -> None:
    """The message shows the three forms."""
    with pytest.raises(CommandError, match="2026-11-20, or 12h"):
        parse_since(given)


def test_outcomes_are_names_in_any_number() -> None:
    """With commas or repeated; hyphens will do; an unknown one is refused with the list."""
    assert parse_statuses(["partial,timed-out", "running"]) == ("partial", "timed_out", "running")
    with pytest.raises(
        CommandError, match="takes running, queued, awaiting_clarification, awaiting_approval, interrupted"
    ):
        parse_statuses(["done"])


def test_a_line_says_why_a_run_was_refused() -> None:
    """Before the question, so that a narrow terminal does not cut it off."""
    line = ROW.line(5).plain
    assert line.index("corpus: unknown") < line.index("How does Vacuum work?")
