"""Semantic ranking without a model: what the table makes of texts, and what that changes in the order of passages."""

from pathlib import Path

import pytest

from providers.errors import NotConfigured
from providers.extractive import semantic
from providers.extractive.semantic import TokenTable, knows_writing, likeness, token_table
from tests.unit.providers.extractive.test_passages import Shelf

CAR = 0.5971
BANANA = -0.008367
SHED: dict[str, str] = {
    "Shed": """# Garden shed

## Door

The key of the shed was painted green.

## Lock

If the key of the shed is lost, ask the neighbour, who keeps a spare for emergencies.
"""
}
QUESTION = "What do I do when the shed's key is missing?"


def closeness(one: str, other: str) -> float:
    table = token_table()
    return round(likeness(table.vector(one), table.vector(other)), 6)


def test_texts_of_one_meaning_are_close_on_every_machine() -> None:
    """The figures are these to the last digit: sums are exact, so that all workers order passages alike."""
    assert closeness("The car would not start.", "An automobile failed to begin moving.") == CAR
    assert closeness("The car would not start.", "Bananas are yellow.") == BANANA
    assert closeness("backup", "backup") == 1.0
    assert closeness("", "backup") == 0.0
    assert CAR > BANANA
    long = "word " * 400
    assert closeness(long + "and another end", long + "of something else") == 1.0, "only the beginning counts"


def test_passages_with_the_same_words_are_ordered_by_meaning() -> None:
    """In a run that ranks by meaning the passage about the loss comes first, in the analysis and in the report."""
    shelf = Shelf(SHED)
    by_words = shelf.passages(QUESTION)
    by_meaning = shelf.passages(QUESTION, semantic=True)
    assert sorted(by_words) == sorted(by_meaning)
    assert ("painted" in by_words[0], "neighbour" in by_meaning[0]) == (True, True)
    brief = shelf.brief(QUESTION, semantic=True)
    assert brief.index("neighbour") < brief.index("painted")
    assert shelf.brief(QUESTION).index("neighbour") > shelf.brief(QUESTION).index("painted")


@pytest.mark.parametrize(
    ("question", "known"),
    [
        ("How are backups made?", True),
        ("Wie groß ist π im Handbuch?", True),
        ("バックアップはどのように作成しますか", False),
        ("Как сделать копию файла data.txt?", False),
        ("2 + 2 = ?", False),
    ],
)
def test_only_questions_in_latin_letters_are_ranked_by_meaning(question: str, known: bool) -> None:
    """Of other writing the table has single bytes, which mean nothing."""
    assert knows_writing(question) is known


def test_a_worker_without_the_extra_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The packages are missing, or their files are others than those that were measured: one line names the command."""
    for name in semantic.DIGESTS:
        file = tmp_path / name
        file.parent.mkdir()
        file.write_bytes(b"another version")
    with pytest.raises(NotConfigured, match=r"another file weights/.*: pip install 'durable-research\[semantic\]'"):
        TokenTable(tmp_path)
    monkeypatch.setattr(semantic, "NEEDED", ("a_package_that_nobody_has",))
    semantic._load.cache_clear()
    with pytest.raises(NotConfigured, match=r"not installed: pip install 'durable-research\[semantic\]'"):
        Shelf(SHED).passages(QUESTION, semantic=True)
