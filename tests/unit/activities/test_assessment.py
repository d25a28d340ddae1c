"""What a source is worth."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from activities.assessment.source_assessment import (
    AUTHORITIES,
    OUTDATED,
    UNKNOWN,
    assess,
    declared_quality,
    rate_recency,
)
from contracts.evidence import SourceAssessment
from contracts.messages import ReadRequest
from contracts.request import SourceType
from contracts.vocabulary import Quality
from providers.interfaces import ExtractedDocument

TODAY = "2026-11-21"
QUERY = "How does autovacuum prevent transaction wraparound in PostgreSQL?"
ANSWER = (
    "Autovacuum freezes old rows of PostgreSQL tables to prevent that transaction identifiers run into wraparound. "
)
FILLER = "The weather in the mountains changed slowly over the afternoon while nobody was looking at the sky at all. "
MANUAL = "https://www.postgresql.org/docs/x"


def judged(
    url: str = "https://example.org/a",
    text: str = ANSWER * 25,
    title: str = "Wraparound",
    declared: dict[str, Quality] | None = None,
    *,
    language: str | None = None,
    published: str | None = "2025-06-01",
    **asked: Any,
) -> SourceAssessment:
    """The judgement of a page that answers the query, save for what is changed."""
    document = ExtractedDocument(
        url=url, title=title, text=text, raw=b"", media_type="text/html", language=language, published_at=published
    )
    request = ReadRequest(**{"query": QUERY, "date": TODAY, "source_id": "src-1", "url": url, **asked})
    return assess(request, document, declared or {})


@pytest.mark.parametrize(
    ("url", "label"),
    [
        (MANUAL, Quality.HIGH),
        ("https://cs.stanford.edu/x", Quality.HIGH),
        ("https://www.reuters.com/x", Quality.HIGH),
        ("https://en.wikipedia.org/wiki/x", Quality.MEDIUM),
        ("https://arxiv.org/abs/2101.00001", Quality.MEDIUM),
        ("https://example.org/x", Quality.MEDIUM),
        ("https://www.reddit.com/r/x", Quality.MEDIUM),
        ("https://bit.ly/x", Quality.LOW),
    ],
)
def test_a_page_that_answers_is_worth_what_its_site_is(url: str, label: Quality) -> None:
    """High is authoritative, medium generally reliable, low questionable; a page of one line is low (S0-067)."""
    assert judged(url).label is label
    assert judged(url, ANSWER[:60]).label is Quality.LOW


def test_the_reason_names_what_decided() -> None:
    """One line of our own words: site, coverage, year; the search's date counts where the page has none (X-20)."""
    page = "https://cs.stanford.edu/x"
    assert judged(page).reason == "university or research institute; covers 5 of 5 words; 2025"
    assert judged(page, published=None).reason.endswith("; undated")
    assert judged(page, published=None, published_at="2023").reason.endswith("; 2023")
    german = judged(
        page, "Die Bereinigung verhindert den Überlauf der Kennungen in der Datenbank. " * 40, language="de"
    )
    assert (german.relevance, "another language" in german.reason) == (0.5, True)


@given(st.text(max_size=200))
def test_a_page_cannot_claim_authority(claim: str) -> None:
    """Whatever a page says of itself, in title or text, its authority is that of its host (X-20)."""
    boast = "Official government source, peer reviewed by Nature, https://www.nih.gov, quality: high. " + claim
    plain, loud = judged(), judged(text=boast + ANSWER * 25, title=boast)
    assert loud.authority == plain.authority
    assert loud.label is not Quality.HIGH
    assert "nih" not in loud.reason


def test_a_date_before_the_time_asked_for_is_never_high() -> None:
    """Outside the timeframe even an authoritative page is at most medium (X-20)."""
    old = judged(MANUAL, published_from="2026-01-01")
    assert (old.label, old.recency) == (Quality.MEDIUM, OUTDATED)
    assert "before the time asked for" in old.reason


def test_words_of_one_question_must_be_together() -> None:
    """A page with every word somewhere covers less than one on the matter; of several questions the best counts."""
    scattered = (FILLER * 60).join(["autovacuum. ", "prevent. ", "transaction. ", "wraparound. ", "PostgreSQL. "])
    apart = judged(text=scattered, title="")
    assert "covers 5 of 5 words" in apart.reason
    assert apart.relevance < 0.4
    found = judged(query=f"What do mountains look like in winter?\n{QUERY}\n\n")
    assert (found.relevance, "covers 5 of 5" in found.reason) == (1, True)


# --- age -------------------------------------------------------------------------------------------------------------
UNDATED = [None, "soon", "2024-13", "0000", "2026-12-24", "2030", "2024-02-30"]


@pytest.mark.parametrize(
    ("published", "mode", "earliest", "least", "most"),
    [
        *((published, SourceType.WEB, None, UNKNOWN, UNKNOWN) for published in UNDATED),
        ("2026-10-21", SourceType.NEWS, None, 0, 0.5),
        ("2026-10-21", SourceType.ACADEMIC, None, 0.98, 1),
        ("2026", SourceType.NEWS, None, 1, 1),
        ("2024", SourceType.WEB, "2024-05-01", OUTDATED + 0.01, 1),
        ("2024-04", SourceType.WEB, "2024-05-01", OUTDATED, OUTDATED),
    ],
)
def test_age_is_judged_by_the_kind_of_search(
    published: str | None, mode: SourceType, earliest: str | None, least: float, most: float
) -> None:
    """A month is old for news; a date in part counts as its latest day; one that cannot be is neutral (X-20)."""
    request = ReadRequest(source_id="s", url="", date=TODAY, published_from=earliest, mode=mode)
    value, words = rate_recency(published, request)
    assert least <= value <= most
    assert (words == "undated") is (published in UNDATED)


# --- authority -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("url", "tier"),
    [
        ("https://www.nih.gov/a", "government"),
        ("https://www.gov.uk/a", "government"),
        ("https://www.meti.go.jp/", "government"),
        ("https://www.cs.ox.ac.uk/~x", "university"),
        ("https://plato.stanford.edu/entries/x", "encyclopedia"),
        ("https://www.rfc-editor.org/rfc/rfc9110", "standards"),
        ("https://www.nature.com/articles/x", "publisher"),
        ("https://sites.google.com/nih.gov", "open_hosting"),
        ("https://nature.com.github.io/", "open_hosting"),
        ("https://ehow.com/x", "thin"),
        *((url, "general") for url in (
            "https://notnature.com/", "https://nature.com.evil.example/", "https://evil.example/www.nih.gov",
            "https://nih.gov@evil.example/", "https://evil.example/?u=harvard.edu", "https://mygov.example/",
            "https://xn--nature-9za.example/", "corpus:nih.gov/a", "not an address", "https://exаmple.edu.evil.example",
        )),
    ],
)  # fmt: skip
def test_an_address_cannot_borrow_a_name(url: str, tier: str) -> None:
    """Only the host counts, from its end, label by label; the longest domain of the table decides (X-20)."""
    assert AUTHORITIES.tier_of(url) is (AUTHORITIES.tiers.get(tier) or AUTHORITIES.general)


def test_the_operator_has_the_last_word() -> None:
    """A declared domain stands for what lies below it; the longest declaration decides."""
    declared = {"example.org": Quality.HIGH, "old.example.org": Quality.LOW, "a.org": Quality.UNKNOWN}
    assert declared_quality("https://docs.Example.org/a", declared) is Quality.HIGH
    assert declared_quality("https://x.old.example.org/a", declared) is Quality.LOW
    assert declared_quality("https://notexample.org/a", declared) is None
    assert declared_quality("https://a.org", declared) is None
    found = judged("https://docs.example.org/x", declared=declared)
    assert (found.label, found.reason.partition(";")[0]) == (Quality.HIGH, "your setting for this site")
