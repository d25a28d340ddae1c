"""Words, keys and the data of languages: the same for the index, the ranking and the reports."""

from string import Formatter

import pytest

from providers.text import (
    KNOWN_LANGUAGES,
    detect_language,
    language_data,
    meaning_words,
)


def test_framing_words_are_dropped() -> None:
    """Words that say how to answer are not searched for."""
    assert meaning_words("What is the difference between plain and full backups?") == ["plain", "full", "backups"]


def test_a_name_in_capitals_is_kept() -> None:
    """A stop word in capitals is a name; a question all in capitals has none."""
    assert meaning_words("What is a WITHOUT ROWID table?") == ["WITHOUT", "ROWID", "table"]
    assert meaning_words("WHAT IS A TABLE?") == ["TABLE"]


@pytest.mark.parametrize("code", KNOWN_LANGUAGES)
def test_every_language_has_the_same_sentences_with_the_same_values(code: str) -> None:
    """A message id has a sentence in each language, and no sentence loses a value."""
    english, own = language_data("en"), language_data(code)
    for known, given in ((english.brief, own.brief), (english.report, own.report)):
        assert given.keys() == known.keys()
        assert {key: _places(text) for key, text in given.items()} == {
            key: _places(text) for key, text in known.items()
        }
    assert own.stop
    assert own.openings
    assert len(own.forms) == len(english.forms)


def _places(sentence: str) -> list[str]:
    return sorted(name for _, name, _, _ in Formatter().parse(sentence) if name is not None)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("How does the planner choose an index?", "en"),
        ("Wie lange wird eine Sperre gehalten?", "de"),
        ("Comment ajouter un utilisateur ?", "fr"),
        ("¿Cómo se cambia la contraseña?", "es"),
        ("Как установить пакет?", "ru"),
        ("autovacuum", "en"),
    ],
)
def test_the_language_of_a_question_is_told_by_its_small_words(text: str, language: str) -> None:
    """English where nothing decides."""
    assert detect_language(text) == language
