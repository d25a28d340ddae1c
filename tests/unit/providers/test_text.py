"""Words of meaning: the same for the index, the ranking and the honesty rules."""

from providers.text import meaning_words, question_stems


def test_framing_words_are_dropped() -> None:
    """Words that say how to answer are not searched for."""
    assert meaning_words("What is the difference between plain and full backups?") == ["plain", "full", "backups"]


def test_a_name_in_capitals_is_kept() -> None:
    """A stop word in capitals is a name; a question all in capitals has none."""
    assert meaning_words("What is a WITHOUT ROWID table?") == ["WITHOUT", "ROWID", "table"]
    assert meaning_words("WHAT IS A TABLE?") == ["TABLE"]


def test_a_list_is_a_subject_unless_one_is_asked_for() -> None:
    """`List the …` frames a question; `a linked list` is what it is about."""
    assert meaning_words("List the keys") == ["keys"]
    assert meaning_words("How does a linked list grow?") == ["linked", "list", "grow"]


def test_framing_words_count_where_nothing_else_is_left() -> None:
    """A question of framing words alone still searches for something."""
    assert question_stems("How does it work?") == ["work"]
