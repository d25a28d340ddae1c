"""What a host tells of its pages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from activities.assessment.authorities import Authorities, AuthorityTier, load_authorities
from contracts.request import SourceType
from contracts.vocabulary import Quality

TABLE = load_authorities()


@pytest.mark.parametrize(
    ("url", "tier"),
    [
        ("https://www.nih.gov/a", "government"),
        ("https://www.gov.uk/a", "government"),
        ("https://data.gov.au", "government"),
        ("https://www.meti.go.jp/", "government"),
        ("https://www.cs.ox.ac.uk/~x", "university"),
        ("https://cs.stanford.edu", "university"),
        ("https://plato.stanford.edu/entries/x", "encyclopedia"),
        ("https://www.rfc-editor.org/rfc/rfc9110", "standards"),
        ("https://www.nature.com/articles/x", "publisher"),
        ("https://arxiv.org/abs/2101.00001", "preprint"),
        ("https://www.postgresql.org/docs/", "documentation"),
        ("https://en.wikipedia.org/wiki/X", "open_encyclopedia"),
        ("https://www.reuters.com/x", "news"),
        ("https://old.reddit.com/r/x", "community"),
        ("https://forums.nature.com/x", "community"),
        ("https://sites.google.com/nih.gov", "open_hosting"),
        ("https://nature.com.github.io/", "open_hosting"),
        ("https://bit.ly/x", "shortener"),
        ("https://ehow.com/x", "thin"),
        ("https://example.org/", "general"),
    ],
)
def test_sites_have_their_tier(url: str, tier: str) -> None:
    """The longest domain of the table decides (X-20)."""
    assert TABLE.standing(url, SourceType.WEB).tier == tier


@pytest.mark.parametrize(
    "url",
    [
        "https://notnature.com/", "https://nature.com.evil.example/", "https://nih.gov.evil.example/",
        "https://evil.example/www.nih.gov", "https://nih.gov@evil.example/", "https://evil.example/?u=harvard.edu",
        "https://gov.evil.example/", "https://mygov.example/", "https://harvard-edu.example", "https://xn--nature-9za.example/",
        "corpus:nih.gov/a", "not an address", "https://exаmple.edu.evil.example",
    ],
)  # fmt: skip
def test_an_address_cannot_borrow_a_name(url: str) -> None:
    """Only the host counts, from its end, label by label (X-20)."""
    assert TABLE.standing(url, SourceType.WEB).tier == "general"


def test_the_kind_of_search_decides_what_a_tier_is_worth() -> None:
    """A newspaper is worth more for news than for papers; a journal the other way round (X-20)."""
    paper, journal = "https://www.reuters.com/x", "https://www.nature.com/x"
    for url, better, worse in (
        (paper, SourceType.NEWS, SourceType.ACADEMIC),
        (journal, SourceType.ACADEMIC, SourceType.NEWS),
    ):
        assert TABLE.standing(url, better).authority > TABLE.standing(url, worse).authority


def test_the_operator_has_the_last_word() -> None:
    """A declared domain stands for what lies below it; the longest declaration decides."""
    declared = {"example.org": Quality.HIGH, "old.example.org": Quality.LOW, "nature.com": Quality.LOW}
    assert TABLE.standing("https://docs.Example.org/a", SourceType.WEB, declared).declared is Quality.HIGH
    assert TABLE.standing("https://x.old.example.org/a", SourceType.WEB, declared).declared is Quality.LOW
    assert TABLE.standing("https://www.nature.com/a", SourceType.WEB, declared).authority < 0.2
    assert TABLE.standing("https://notexample.org/a", SourceType.WEB, declared).declared is None
    unknown = TABLE.standing("https://a.org", SourceType.WEB, {"a.org": Quality.UNKNOWN})
    assert unknown.declared is None


def test_where_anybody_can_write_is_known() -> None:
    """Forums of an institution, open hosting and open encyclopedias say so; institutions do not (X-20)."""
    for url in (
        "https://forum.postgresql.org/x",
        "https://x.github.io",
        "https://de.wikipedia.org",
        "https://x.medium.com",
    ):
        assert TABLE.standing(url, SourceType.WEB).user_generated
    for url in ("https://www.postgresql.org", "https://cs.stanford.edu", "https://example.org"):
        assert not TABLE.standing(url, SourceType.WEB).user_generated


def test_a_forum_with_an_entry_of_its_own_has_its_tier() -> None:
    """The first label only decides where the table does not name the very host."""
    standards = TABLE.tiers["standards"].model_copy(update={"domains": "forum.example.org"})
    table = Authorities(
        as_of="", forum_labels=TABLE.forum_labels, general=TABLE.general, tiers={"standards": standards}
    )
    assert table.standing("https://forum.example.org", SourceType.WEB).tier == "standards"
    assert TABLE.standing("https://forum.example.org", SourceType.WEB).tier == "community"


def test_no_domain_stands_in_two_tiers() -> None:
    """The table says one thing of each domain, in the form that hosts are compared in."""
    domains = [domain for tier in TABLE.tiers.values() for domain in tier.domains.split()]
    assert len(set(domains)) == len(domains)
    assert all(domain == domain.lower().strip("./") and "/" not in domain for domain in domains)


@given(st.text(max_size=60), st.sampled_from(SourceType))
def test_any_text_has_a_standing(url: str, mode: SourceType) -> None:
    """Never an error, always between 0 and 1."""
    assert 0 <= TABLE.standing(url, mode).authority <= 1


@pytest.mark.parametrize("field", ["web", "academic", "news"])
@pytest.mark.parametrize(("worth", "accepted"), [(-0.01, False), (0, True), (1, True), (1.01, False)])
def test_nothing_is_worth_more_than_everything(field: str, worth: float, accepted: bool) -> None:
    """A table with a number below 0 or above 1 is refused."""
    given = {"phrase": "a site", "web": 0.5, "academic": 0.5, "news": 0.5, field: worth}
    try:
        tier = AuthorityTier.model_validate(given)
    except ValueError:
        assert not accepted
    else:
        assert accepted
        assert getattr(tier, field) == worth
