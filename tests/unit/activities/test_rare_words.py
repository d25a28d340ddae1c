"""What is said in rare cases, word for word, and where the line to them is drawn."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from activities.failure_translation import READING, application_error
from activities.reporting.judged_claims import PlacedClaim
from activities.reporting.report_inputs import ReportInputs, gather_matter
from activities.reporting.report_words import ReportWords
from activities.reporting.verification import describe_checking, verification_facts
from activities.roles.untrusted import LINE_CHARACTERS, break_lines
from contracts.evidence import Verdict
from contracts.messages import ReadRequest
from contracts.request import Verify
from providers import errors
from tests.fakes.states import PERMITTED
from tests.unit.activities.reporting.sample import Sample
from tests.unit.activities.scripted import SOURCE, URL, environment
from tests.unit.activities.test_searching_and_reading import reading


def claims(**counts: int) -> list[PlacedClaim]:
    """So many claims of each verdict."""
    return [
        PlacedClaim(
            f"c-{verdict}-{number}",
            f"It *is* so {number}.",
            0,
            9,
            "general",
            "",
            [],
            [1],
            ["ev-1"],
            Verdict[verdict],
            "rules",
            "Why.",
        )
        for verdict, count in counts.items()
        for number in range(count)
    ]


def matter() -> ReportInputs:
    """Of a report without corrections and reviews."""
    sample = Sample()
    return gather_matter(sample.state(), sample.draft, sample.texts, [], "0.1.0")


@pytest.mark.parametrize(
    ("counts", "care"),
    [
        ({"UNSUPPORTED": 1, "SUPPORTED": 4}, False),
        ({"UNSUPPORTED": 2, "SUPPORTED": 7}, True),
        ({"CONTRADICTED": 1, "SUPPORTED": 19}, False),
        ({"CONTRADICTED": 1, "SUPPORTED": 18}, True),
        ({"PARTIAL": 10}, False),
        ({"UNSUPPORTED": 1, "NOT_ENOUGH_INFORMATION": 99}, True),
    ],
)
def test_a_report_is_read_with_care_where_much_is_doubtful(counts: dict[str, int], care: bool) -> None:
    """The shares are of the claims that were judged; claims in part are listed and no reason for care."""
    [fact] = verification_facts(claims(**counts), matter())
    warning = "Read this report with care: many of its statements are not borne out. "
    assert fact.value.startswith(warning) is care
    assert fact.value.removeprefix(warning).startswith("Rules compared these statements with their passages")
    assert fact.items[0].endswith("It is so 0. (Why.)")


def test_without_doubt_nothing_is_said() -> None:
    """Supported claims and undecided ones are no differences."""
    assert verification_facts(claims(SUPPORTED=3, NOT_ENOUGH_INFORMATION=2), matter()) == []
    assert "1 not decided" in describe_checking(
        claims(SUPPORTED=3, NOT_ENOUGH_INFORMATION=1), Verify.LIGHT, ReportWords("en")
    )


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
