"""Names of documents in queries, by their words."""

from providers.search.corpus.query import NAME_WEIGHT, SCATTERED_SHARE, NamedDocuments


def test_a_whole_name_counts_by_the_weight_of_its_words():
    """A part of a title counts nothing, and words of a title that are scattered in the query count half."""
    weights = {"alter": 3.0, "tabl": 1.0, "drop": 2.0, "column": 2.0, "3.8.6": 3.0}
    named = NamedDocuments("ALTER TABLE, drop a column in 3.8.6", weights, "en")
    assert named.score("x.md", "ALTER VIEW") == 0
    assert named.score("x.md", "Chapter 5. Alter table") == named.score("altertable.md", "") == NAME_WEIGHT * 4
    assert named.score("x.md", "drop-table(1)") == NAME_WEIGHT * SCATTERED_SHARE * 3
    assert named.score("x.md", "drop the column") == NAME_WEIGHT * SCATTERED_SHARE * 4
    assert named.score("releases/3_8_6.html", "Release 3.8.6 of a Monday") == NAME_WEIGHT * 3
    assert named.score("releases/3_8.html", "") == NAME_WEIGHT * 2
    assert NamedDocuments("?", {}, "en").score(".md", "1.") == 0
