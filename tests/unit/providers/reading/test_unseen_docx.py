"""Words of Word documents that no reader sees, by class, and words that look like such but are seen."""

import pytest

from providers.reading.extraction import extract
from tests.fakes.unseen_docx import SEEN, WORDS, seen_documents, unseen_documents

CASES = [
    pytest.param(raw, id=f"{name} {number}")
    for name, documents in unseen_documents().items()
    for number, raw in enumerate(documents)
]


@pytest.mark.parametrize("raw", CASES)
def test_words_that_nobody_sees_are_not_read(raw: bytes) -> None:
    """Nothing that is kept of the document holds them, and what is seen is there."""
    found = extract(raw, "a.docx")
    assert WORDS.split()[0] not in repr(found)
    assert SEEN in found.text


@pytest.mark.parametrize("raw", seen_documents())
def test_words_that_are_seen_are_read(raw: bytes) -> None:
    """Faint, small, on grounds, or turned back to be seen: readers have them before their eyes."""
    assert WORDS in extract(raw, "a.docx").text
