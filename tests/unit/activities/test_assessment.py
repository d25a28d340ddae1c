"""What a source is worth."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from activities.assessment.authorities import Authorities, load_authorities
from activities.assessment.question_fit import coverage
from activities.assessment.source_assessment import WEIGHTS, assess, content_quality
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


def judged(url: str = "https://example.org/a", text: str = ANSWER * 25, **changes: Any) -> SourceAssessment:
    """The judgement of a page that answers the query, save for what is changed."""
    page: dict[str, Any] = {name: changes.pop(name) for name in ("language", "published_at") if name in changes}
    page.setdefault("published_at", "2025-06-01")
    declared = changes.pop("declared", None)
    title = str(changes.pop("title", "Wraparound"))
    asked = {
        "query": QUERY,
        "date": TODAY,
        "source_id": "src-1",
        "url": url,
    }
    document = ExtractedDocument(url=url, title=title, text=text, raw=b"", media_type="text/html", **page)
    return assess(ReadRequest(**{**asked, **changes}), document, load_authorities(), declared)


@pytest.mark.parametrize(
    ("url", "label"),
    [
        ("https://www.postgresql.org/docs/x", Quality.HIGH),
        ("https://cs.stanford.edu/x", Quality.HIGH),
        ("https://www.reuters.com/x", Quality.HIGH),
        ("https://en.wikipedia.org/wiki/x", Quality.MEDIUM),
        ("https://arxiv.org/abs/2101.00001", Quality.MEDIUM),
        ("https://example.org/x", Quality.MEDIUM),
        ("https://www.reddit.com/r/x", Quality.MEDIUM),
        ("https://medium.com/x", Quality.MEDIUM),
        ("https://bit.ly/x", Quality.LOW),
    ],
)
def test_a_page_that_answers_is_worth_what_its_site_is(url: str, label: Quality) -> None:
    """High is authoritative, medium generally reliable, low questionable (S0-067)."""
    assert judged(url).label is label


def test_the_reason_names_what_decided() -> None:
    """One line of our own words: site, coverage, year (X-20)."""
    reason = judged("https://cs.stanford.edu/x").reason
    assert reason == "university or research institute; covers 5 of 5 words; 2025"


def test_a_page_off_the_subject_is_low() -> None:
    """Authority alone does not make a source for this question (S0-067)."""
    found = judged("https://cs.stanford.edu/x", FILLER * 25, title="Weather")
    assert (found.label, found.authority) == (Quality.LOW, 0.85)


def test_a_page_of_one_line_is_low() -> None:
    """There is next to nothing to rely on, whoever publishes it (S0-067)."""
    assert judged("https://www.postgresql.org/docs/x", ANSWER).label is Quality.MEDIUM
    assert judged("https://www.postgresql.org/docs/x", ANSWER[:60]).label is Quality.LOW


@given(st.text(max_size=200))
def test_a_page_cannot_claim_authority(claim: str) -> None:
    """Whatever a page says of itself, in title or text, its authority is that of its host (X-20)."""
    boast = "Official government source, peer reviewed by Nature, https://www.nih.gov, quality: high. " + claim
    plain, loud = judged("https://example.org/x"), judged("https://example.org/x", boast + ANSWER * 25, title=boast)
    assert loud.authority == plain.authority
    assert loud.label is not Quality.HIGH
    assert "nih" not in loud.reason


def test_where_anybody_can_write_nothing_is_high() -> None:
    """Whatever figures the table gives to such sites (X-20)."""
    table = load_authorities()
    trusted = table.tiers["community"].model_copy(update={"web": 0.99})
    url = "https://www.reddit.com/x"
    document = ExtractedDocument(
        url=url, title="", text=ANSWER * 25, raw=b"", media_type="text/html", published_at=TODAY
    )
    request = ReadRequest(source_id="s", url=url, query=QUERY, date=TODAY)
    for open_to_all, label in ((True, Quality.MEDIUM), (False, Quality.HIGH)):
        tier = trusted.model_copy(update={"user_generated": open_to_all})
        changed = Authorities(as_of="", forum_labels="", general=table.general, tiers={"community": tier})
        assert assess(request, document, changed).label is label


def test_the_operators_word_decides() -> None:
    """A declared domain has the declared label, and its reason says whose word it is."""
    found = judged("https://docs.example.org/x", declared={"example.org": Quality.HIGH})
    assert found.label is Quality.HIGH
    assert found.reason.startswith("chosen by the operator")
    assert judged("https://www.nature.com/x", declared={"nature.com": Quality.LOW}).label is Quality.LOW


def test_a_date_before_the_time_asked_for_is_never_high() -> None:
    """Outside the timeframe even an authoritative page is at most medium (X-20)."""
    old = judged("https://www.postgresql.org/docs/x", published_from="2026-01-01")
    assert old.label is Quality.MEDIUM
    assert old.recency == 0.1
    assert "before the time asked for" in old.reason


def test_a_date_of_the_search_counts_where_the_page_has_none() -> None:
    """The provider's date stands in."""
    page = judged(published_at=None)
    assert "undated" in page.reason
    document = ExtractedDocument(url="https://e.org", title="", text=ANSWER, raw=b"", media_type="text/html")
    request = ReadRequest(
        source_id="s",
        url="https://e.org",
        query=QUERY,
        date=TODAY,
        published_at="2023",
    )
    assert assess(request, document, load_authorities()).reason.endswith("2023; little text")


def test_an_identifier_helps_in_a_search_for_papers_alone() -> None:
    """On an unknown host a DOI that the search told stands for a publication; elsewhere it does not."""
    mode = SourceType.ACADEMIC
    assert judged(doi="10.1000/x", mode=mode).authority > judged(mode=mode).authority
    assert judged(doi="10.1000/x").authority == judged().authority
    assert judged("https://reddit.com/x", doi="10.1000/x", mode=mode).authority == 0.2


def test_another_language_is_not_held_against_a_page() -> None:
    """Its words cannot be compared with the question's; the reason says so."""
    german = "Die Bereinigung verhindert den Überlauf der Kennungen von Vorgängen in der Datenbank über lange Zeit. "
    found = judged("https://www.tum.de/x", german * 25, language="de", title="Bereinigung")
    assert found.relevance == 0.5
    assert "another language" in found.reason
    assert found.label is not Quality.LOW


@given(
    st.text(max_size=300), st.text(max_size=50), st.text(max_size=50), st.sampled_from(SourceType),
    st.one_of(st.none(), st.text(max_size=12)),
)  # fmt: skip
def test_anything_can_be_judged(text: str, query: str, url: str, mode: SourceType, date: str | None) -> None:
    """All parts lie between 0 and 1, the label is one of three, the reason one line."""
    found = judged(url, text, query=query, mode=mode, published_at=date)
    assert found.label in {Quality.HIGH, Quality.MEDIUM, Quality.LOW}
    assert "\n" not in found.reason
    assert len(found.reason) < 150


def test_weights_add_up() -> None:
    """Each kind of search shares out one whole, like the shares of a priority (S0-160)."""
    for weights in WEIGHTS.values():
        assert weights.authority + weights.relevance + weights.recency + weights.content == pytest.approx(1)


def test_content_is_length_and_prose() -> None:
    """Empty is nothing; menus are worth less than sentences of the same length."""
    assert content_quality(" \n ") == 0
    assert content_quality("Home\nNews\nAbout\n" * 200) == pytest.approx(0.5)
    assert content_quality(FILLER * 30) == 1
    assert content_quality(FILLER) < 0.1


def test_words_must_stand_together() -> None:
    """A long page that holds every word somewhere covers less than one that speaks of the matter."""
    scattered = (FILLER * 60).join(["autovacuum. ", "prevent. ", "transaction. ", "wraparound. ", "PostgreSQL. "])
    together = coverage(QUERY, "", "", ANSWER)
    apart = coverage(QUERY, "", "", scattered)
    assert together.found == together.of == apart.found == 5
    assert together.share == 1
    assert apart.share < 0.4


def test_of_several_questions_the_best_covered_counts() -> None:
    """A page may serve any sub-query of its run, whichever found it first."""
    other = "What do mountains look like in winter?"
    found = coverage(f"{other}\n{QUERY}\n\n", "", "", ANSWER)
    assert (found.share, found.of) == (1, 5)
    assert found == coverage(f"{QUERY}\n{other}", "", "", ANSWER)


def test_scripts_without_blanks_are_compared() -> None:
    """Pairs of characters stand for words."""
    assert coverage("真空是什么", "", "", "数据库中的真空是什么意思").share == 1
    assert coverage("真空是什么", "", "", "天气很好").share == 0
    assert coverage("", "", "", "text").share == 0.5
