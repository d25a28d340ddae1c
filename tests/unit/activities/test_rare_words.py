"""What is said in rare cases, word for word, and where the line to them is drawn."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from activities.failure_translation import READING, application_error
from activities.roles.untrusted import LINE_CHARACTERS, break_lines
from contracts.messages import ReadRequest
from providers import errors
from tests.fakes.states import PERMITTED
from tests.unit.activities.scripted import SOURCE, URL, environment
from tests.unit.activities.test_searching_and_reading import reading


@pytest.mark.parametrize(
    ("error", "category"),
    [
        (errors.RateLimited("x"), ApplicationErrorCategory.BENIGN),
        (errors.CallInFlight("x"), ApplicationErrorCategory.BENIGN),
        (errors.SourceUnreadable("not_found", "x"), ApplicationErrorCategory.BENIGN),
        (errors.Unavailable("x"), ApplicationErrorCategory.UNSPECIFIED),
    ],
)
def test_what_is_to_be_expected_disturbs_no_operator(
    error: errors.ProviderError, category: ApplicationErrorCategory
) -> None:
    """Waits and pages that cannot be read are no errors in the worker's log and metrics."""
    assert application_error(error, READING).category is category


@pytest.mark.parametrize(("wait", "words"), [(None, "once more"), (181.4, "181 s")])
async def test_a_site_that_asks_for_too_long_is_named_with_what_it_asks(wait: float | None, words: str) -> None:
    """How long, or that it asks again."""
    env = environment()
    now = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
    env.info = replace(env.info, scheduled_time=now - timedelta(days=1), schedule_to_close_timeout=timedelta(seconds=1))
    failing = reading(errors.RateLimited("the server asks to wait", retry_after=wait))
    with pytest.raises(ApplicationError) as caught:
        await env.run(failing.read_source, ReadRequest(source_id=SOURCE, url=URL, permission=PERMITTED))
    assert caught.value.message == f"the site asks to wait {words}, longer than its pages are waited for"


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        ("a" * LINE_CHARACTERS, ["a" * LINE_CHARACTERS]),
        ("a" * (LINE_CHARACTERS - 1) + " b", ["a" * (LINE_CHARACTERS - 1), "b"]),
        ("a" * LINE_CHARACTERS + " b", ["a" * LINE_CHARACTERS, "b"]),
        ("a" * (LINE_CHARACTERS + 50) + " b", ["a" * (LINE_CHARACTERS + 50), "b"]),
        ("a" * (LINE_CHARACTERS + 50), ["a" * (LINE_CHARACTERS + 50)]),
        ("a " + "b" * LINE_CHARACTERS, ["a " + "b" * LINE_CHARACTERS]),
        ("one\ntwo", ["one", "two"]),
    ],
)
def test_a_long_line_is_broken_at_a_space(words: str, lines: list[str]) -> None:
    """In the second half of what fits, else at the next one; a word is never broken."""
    assert list(break_lines(words)) == lines
