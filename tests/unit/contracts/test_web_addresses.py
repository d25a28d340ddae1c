"""The identity form of web addresses."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from contracts.addresses import belongs_to, canonical_url, host_of

PIECES = st.lists(
    st.sampled_from(
        ["http://", "HTTPS://", "a.org", "Ü.de", ":", "80", "0443", "99999", "@", "[::1]", "/", "..", ".", "%", "%2e", "%2F",
         "%41", "41", "?", "&", "=", "utm_x", "#", "#!", ";jsessionid=", ";", " ", "%20", "+", "é", "\ud800", "⁈", "。", "ß",
         "\n", "\\", "x", "ℋ", "İ", "[", "]"]
    ),
    max_size=12,
).map("".join)  # fmt: skip


@given(
    st.one_of(
        st.text(max_size=60), PIECES, PIECES.map(lambda rest: "http://" + rest), PIECES.map("https://a.org/".__add__)
    )
)
@example("http://[")
@example("http://a:b/")
@example("http://a/%%34%31")
@example("http://a..?")
@example("https://a.org/b/%2e%2E/c")
def test_the_identity_form_is_its_own_identity_form(url: str) -> None:
    """Any string has one, and applying it twice changes nothing."""
    once = canonical_url(url)
    assert canonical_url(once) == once
    assert isinstance(host_of(url), str)


@pytest.mark.parametrize(
    ("spelling", "form"),
    [
        ("HTTPS://Example.ORG.:443", "https://example.org/"),
        ("http://user:secret@example.org:/", "http://example.org/"),
        ("https://example.org:0443/a", "https://example.org/a"),
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
        ("https://e.org/?id=1", "https://e.org/?id=2"),
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
    assert host_of("https://nature.com@evil.example:8443/") == "evil.example"
    assert host_of("corpus:m/a") == ""
