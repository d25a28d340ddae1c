"""Digital object identifiers in texts and addresses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.addresses import doi_of

OLD = "10.1002/(SICI)1097-4571(199806)49:8<693::AID-ASI4>3.0.CO;2-O"


@pytest.mark.parametrize(
    ("text", "doi"),
    [
        ("10.1000/XYZ.1", "10.1000/xyz.1"),
        ("doi: 10.1000/xyz", "10.1000/xyz"),
        ("https://doi.org/10.1016/S0140-6736(20)30183-5", "10.1016/s0140-6736(20)30183-5"),
        ("http://dx.doi.org/10.1000%2Fxyz?from=x", "10.1000/xyz"),
        ("10.1000/xyz).", "10.1000/xyz"),
        ("https://arxiv.org/abs/2101.00001v3", "10.48550/arxiv.2101.00001"),
        ("https://export.arxiv.org/pdf/math.GT/0309136.pdf", "10.48550/arxiv.math.gt/0309136"),
        ("10.48550/arXiv.2101.00001", "10.48550/arxiv.2101.00001"),
        (OLD, OLD.lower()),
        (f"{OLD}>).", OLD.lower()),
        (f"https://doi.org/{OLD}", OLD.lower()),
        ("https://doi.org/" + OLD.replace("<", "%3C").replace(">", "%3e"), OLD.lower()),
        ("https://doi.org/10.1000/a%3Fb%26c?from=x", "10.1000/a?b&c"),
    ],
)
def test_one_work_has_one_identifier(text: str, doi: str) -> None:
    """Every spelling, brackets and versions included, gives the same identifier."""
    assert doi_of(text) == doi
    assert doi_of(doi) == doi


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
    assert doi_of(text) is None


@given(
    st.one_of(
        st.text(max_size=40),
        st.text(max_size=20).map("https://doi.org/10.1000/".__add__),
        st.text("<>()[]{}|x1.:;/?&# ", max_size=20).map("10.1000/".__add__),
    )
)
def test_an_identifier_is_its_own_identifier(text: str) -> None:
    """Any text is accepted, and what comes out stays the same."""
    found = doi_of(text)
    assert found is None or doi_of(found) == found
