"""What the handle sends."""

import pytest

from client.handle import Reuse, static_summary


@pytest.mark.parametrize(
    ("question", "summary"),
    [("How?", "How?"), ("  two\n lines ", "two lines"), ("x" * 300, "x" * 179 + "…")],
)
def test_the_summary_is_one_short_line(question: str, summary: str) -> None:
    """The engine's web UI shows the question beside the id."""
    assert static_summary(question) == summary


@pytest.mark.parametrize("question", ["ä" * 400, "数据库" * 100, "🙂" * 90])
def test_the_summary_fits_the_engines_limit_in_bytes(question: str) -> None:
    """200 bytes are allowed, quotes of the JSON text included; a sign is never cut in two."""
    summary = static_summary(question)
    assert len(summary.encode()) <= 198
    assert set(summary) <= set(question) | {"…"}


def test_an_id_is_used_again_only_when_it_may() -> None:
    """A plain start never replaces a run (interfaces, section 1)."""
    assert Reuse.NEW.value.name == "REJECT_DUPLICATE"
    assert Reuse.AFTER_FAILURE.value.name == "ALLOW_DUPLICATE_FAILED_ONLY"
    assert Reuse.AFTER_ANY.value.name == "ALLOW_DUPLICATE"
