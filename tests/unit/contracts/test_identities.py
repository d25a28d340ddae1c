"""Which address, work and voice a page stands for: what is one is counted once."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from contracts.addresses import belongs_to, canonical_url, find_doi, url_host
from contracts.evidence import bounded_confidence, source_voice, supported_confidence
from contracts.vocabulary import Confidence, Quality


@given(st.text("htps:/.@[]%?&=#;12aéß\\ ", max_size=30).map("http://a".__add__) | st.text(max_size=60))
@example("http://[")
@example("http://a:b/")
@example("http://a/%%34%31")
@example("http://a..?")
@example("https://a.org/b/%2e%2E/c")
def test_the_identity_form_is_its_own_identity_form(url: str) -> None:
    """Any string has one, and applying it twice changes nothing."""
    once = canonical_url(url)
    assert canonical_url(once) == once
    assert isinstance(url_host(url), str)


@pytest.mark.parametrize(
    ("spelling", "form"),
    [
        ("HTTPS://Example.ORG.:443", "https://example.org/"),
        ("http://user:secret@example.org:/", "http://example.org/"),
        ("https://example.org/a?", "https://example.org/a"),
        ("https://example.org/a#!/topic", "https://example.org/a"),
        ("https://example.org/a?b=1&utm_Source=x&fbclid=2&&c=#p", "https://example.org/a?b=1&c="),
        ("https://example.org/a?%75tm_source=x", "https://example.org/a"),
        ("https://example.org/a;jsessionid=1A2B/b;v=1", "https://example.org/a/b;v=1"),
        ("https://example.org/%7euser/%e9%28x%29", "https://example.org/~user/%E9(x)"),
        ("https://example.org/caf\u00e9?q=\u00fc b%20c", "https://example.org/caf%C3%A9?q=%C3%BC+b+c"),
        ("https://example.org/a/./b/%2E%2e/../c/..", "https://example.org/a/".replace("a/", "")),
        ("https://example.org/100%", "https://example.org/100%25"),
        ("https://B\u00dcCHER.example/", "https://xn--bcher-kva.example/"),
        ("https://example\u3002org/", "https://example.org/"),
        ("https://[2001:DB8::1]:443/", "https://[2001:db8::1]/"),
    ],
)  # fmt: skip
def test_spellings_have_one_form(spelling: str, form: str) -> None:
    """Case, dots, ports, users, escapes, dot segments, sessions and tracking do not make another page."""
    assert canonical_url(spelling) == form


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("https://e.org/a?x=1&y=2", "https://e.org/a?y=2&x=1"),
        ("https://e.org/a?x=1&x=2", "https://e.org/a?x=2&x=1"),
        ("https://e.org/a", "https://e.org/a/"),
        ("https://e.org/a", "http://e.org/a"),
        ("https://e.org/a", "https://www.e.org/a"),
        ("https://e.org/a%2Fb", "https://e.org/a/b"),
        ("https://e.org/?q=a%2Bb", "https://e.org/?q=a+b"),
        ("https://e.org/?q=a%26b", "https://e.org/?q=a&b"),
        ("https://fa\u00df.de/", "https://fass.de/"),
        ("https://e.org/?ref=main", "https://e.org/?ref=next"),
    ],
)
def test_what_may_be_another_page_stays_another(one: str, other: str) -> None:
    """A wrong merge would lose a source; equal content is found after reading."""
    assert canonical_url(one) != canonical_url(other)


@pytest.mark.parametrize(
    "text", ["corpus:m/A/../b?utm_source=x#y", "ftp://E.org/", "http://E.org:port/", "http://E.org⁈/", "http://E.org:70000/", "http://[::1/", "http://"]
)  # fmt: skip
def test_what_is_no_web_address_stays_as_it_is(text: str) -> None:
    """Corpus addresses keep their ids; malformed ones never raise."""
    assert canonical_url(text) == text


def test_a_domain_ends_at_a_label() -> None:
    """A host that only ends in the same letters does not belong to a domain."""
    assert belongs_to("www.nature.com", "nature.com")
    assert belongs_to("nature.com", "nature.com")
    assert not belongs_to("notnature.com", "nature.com")
    assert not belongs_to("nature.com.evil.example", "nature.com")
    assert url_host("https://nature.com@evil.example:8443/") == "evil.example"
    assert url_host("corpus:m/a") == ""


OLD = "10.1002/(SICI)1097-4571(199806)49:8<693::AID-ASI4>3.0.CO;2-O"


@pytest.mark.parametrize(
    ("text", "doi"),
    [
        ("10.1000/XYZ.1", "10.1000/xyz.1"),
        ("https://doi.org/10.1016/S0140-6736(20)30183-5", "10.1016/s0140-6736(20)30183-5"),
        ("http://dx.doi.org/10.1000%2Fxyz?from=x", "10.1000/xyz"),
        ("https://arxiv.org/abs/2101.00001v3", "10.48550/arxiv.2101.00001"),
        ("https://export.arxiv.org/pdf/math.GT/0309136.pdf", "10.48550/arxiv.math.gt/0309136"),
        ("10.48550/arXiv.2101.00001", "10.48550/arxiv.2101.00001"),
        (OLD, OLD.lower()),
        (f"{OLD}.", OLD.lower()),
        (f"https://doi.org/{OLD}", OLD.lower()),
        ("https://doi.org/" + OLD.replace("<", "%3C").replace(">", "%3e"), OLD.lower()),
        ("https://doi.org/10.1000/a%3Fb%26c?from=x", "10.1000/a?b&c"),
    ],
)
def test_one_work_has_one_identifier(text: str, doi: str) -> None:
    """Every spelling, brackets and versions included, gives the same identifier."""
    assert find_doi(text) == doi
    assert find_doi(doi) == doi


@pytest.mark.parametrize(
    "text",
    [
        "https://dl.acm.org/doi/10.1145/1.2",
        OLD[: OLD.index("<")] + "|",
        None, "", "version 10.1000/x of it", "10.1/x", "10.1000/",
        "10.1000/x and more of it", "10.1000/a|b", "https://doi.org/10.1000/a%7Bb", "https://doi.org/10.1000/a%20b",
        "10.1000/" + "x" * 201,
        "https://notdoi.org/10.1000/x",
        "https://pubpeer.com/publications/10.1000/x",
        "corpus:m/10.1000/x",
    ],
)  # fmt: skip
def test_a_page_about_a_work_is_not_the_work(text: str | None) -> None:
    """Only the resolver's and arXiv's addresses stand for a work, and never the beginning of an identifier."""
    assert find_doi(text) is None


@pytest.mark.parametrize(
    ("url", "publisher", "voice"),
    [
        ("corpus:manual/a.html", None, "corpus:manual"),
        ("corpus:manual/b/c.html", "Somebody", "corpus:manual"),
        ("https://www.example.org/a", None, "example.org"),
        ("https://example.org/b", " The  Press ", "the press"),
        ("https://[broken", None, ""),
    ],
)
def test_voice(url: str, publisher: str | None, voice: str) -> None:
    """A collection is one voice whatever its pages say; on the web the publisher, else the host."""
    assert source_voice(url, publisher) == voice


@pytest.mark.parametrize(
    ("sources", "confidence"),
    [
        ([("a", Quality.HIGH), ("a", Quality.HIGH)], Confidence.MEDIUM),
        ([("a", Quality.HIGH), ("b", Quality.HIGH)], Confidence.HIGH),
        ([("a", Quality.LOW), ("b", Quality.LOW)], Confidence.MEDIUM),
        ([("a", Quality.LOW), ("a", Quality.MEDIUM)], Confidence.LOW),
        ([("", Quality.HIGH)], Confidence.LOW),
    ],
)
def test_support_counts_voices(sources: list[tuple[str, Quality]], confidence: Confidence) -> None:
    """Two pages of one voice are not two."""
    assert supported_confidence(sources) is confidence


def test_a_claim_is_bounded_by_its_support() -> None:
    """Nobody's own word makes a confidence higher than the sources bear out, and a low word stays low."""
    assert bounded_confidence(Confidence.CONFIRMED, Confidence.MEDIUM) is Confidence.MEDIUM
    assert bounded_confidence(Confidence.CONFIRMED, Confidence.HIGH) is Confidence.CONFIRMED
    assert bounded_confidence(Confidence.SPECULATION, Confidence.HIGH) is Confidence.SPECULATION
    assert bounded_confidence(Confidence.HIGH, Confidence.LOW) is Confidence.LOW
