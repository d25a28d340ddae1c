"""Words of Word documents that no reader sees, by class, and words that look like such but are seen."""

from providers.reading.extraction import extract
from tests.fakes.unseen_docx import SEEN, WORDS, seen_documents, unseen_documents


def test_words_that_nobody_sees_are_not_read() -> None:
    """Nothing that is kept of a document holds them, and what is seen is there."""
    for name, documents in unseen_documents().items():
        for number, raw in enumerate(documents):
            found = extract(raw, "a.docx")
            assert WORDS.split()[0] not in repr(found), (name, number)
            assert SEEN in found.text, (name, number)


def test_words_that_are_seen_are_read() -> None:
    """Faint, small, on grounds, or turned back to be seen: readers have them before their eyes."""
    unread = [number for number, raw in enumerate(seen_documents()) if WORDS not in extract(raw, "a.docx").text]
    assert unread == []
