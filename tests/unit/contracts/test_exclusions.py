"""Whether a text is about what a run leaves out."""

import pytest

from contracts.exclusions import covers, find_about, find_addresses, find_mainly_about, is_at, is_kept_out, mentions

ASKED = "backups locks SQLite"
"""What `How do backups and locks work in SQLite?` is about."""


@pytest.mark.parametrize(
    ("text", "subject", "found"),
    [
        ("Explicit Locking", "locks", True),
        ("The lock is held.", "locks", True),
        ("A local file", "locks", False),
        ("Local clocks block", "lock", False),
        ("policies of the house", "policy", True),
        ("Die Sperre", "Sperren", True),
        ("Version 9.6 is old", "version 9", True),
        ("Version 16 has 9 settings", "version 9", False),
        ("Version 96", "version 9", False),
        ("row and table locks", "table lock", True),
        ("table of rows", "table lock", False),
        ("anything", "…", False),
    ],
)
def test_words_are_compared_without_their_endings(text: str, subject: str, found: bool) -> None:
    """Inflections count, longer words do not; numbers must stand where they are named."""
    assert mentions(text, subject) is found


def test_a_query_is_about_what_only_it_names() -> None:
    """What the question does not name is enough by itself."""
    assert find_about("How long is a lock held?", ["vacuum", "locks"], "wraparound engine") == "locks"
    assert find_about("How old is a row?", ["locks"], "wraparound engine") is None


def test_the_question_itself_is_never_about_a_part_of_it() -> None:
    """A query that still asks for the rest of the question stays; one about that part alone goes."""
    assert find_about("How do backups and locks work in SQLite?", ["locks"], ASKED) is None
    assert find_about("backups locks SQLite: settings", ["locks"], ASKED) is None
    assert find_about("locks: overview and definition", ["locks"], ASKED) == "locks"
    assert not covers(ASKED, "locks")
    assert covers("locks", "locks")


def test_a_passage_is_about_what_half_of_it_names() -> None:
    """A mention in passing leaves a passage in."""
    assert find_mainly_about("A lock is held. It ends with the transaction.", ["locks"]) == "locks"
    assert find_mainly_about("Rows grow old. Vacuum marks them. Locks do not help.", ["locks"]) is None


def test_a_source_is_kept_out_by_title_or_address() -> None:
    """A part of its title, its host, its path; or because it is from elsewhere."""
    page = "https://docs.example.org/9/locks.html"
    assert is_kept_out("PostgreSQL: Documentation: 13.3. Explicit Locking", page, ["locks"], [])
    assert not is_kept_out("Backup and recovery without long locks", page, ["locks"], [])
    assert is_kept_out("Title", page, ["example.org"], [])
    assert not is_kept_out("Title", page, [], ["example.org"])
    assert is_kept_out("Title", page, [], ["example.com"])
    assert not is_kept_out("Title", page, [], [])


def test_addresses_are_hosts_with_what_is_below_or_paths_in_a_folder() -> None:
    """No host is taken for another that only ends alike."""
    assert is_at("https://docs.example.org/a", "example.org")
    assert not is_at("https://notexample.org/a", "example.org")
    assert not is_at("https://example.org.evil.test/", "example.org")
    assert is_at("https://example.org/docs/a", "example.org/docs")
    assert not is_at("https://example.org/docs-old/a", "example.org/docs")
    assert is_at("corpus:manual/old/setup.md", "setup.md")
    assert is_at("corpus:manual/old/setup.md", "old/setup.md")
    assert not is_at("corpus:manual/old/new-setup.md", "setup.md")
    assert not is_at("https://example.org/", "locks")
    assert find_addresses("from https://Example.org/, and notes/old.md, and/or “a.test”. Not 1.5") == [
        "example.org",
        "notes/old.md",
        "a.test",
    ]
