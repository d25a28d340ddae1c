"""Words of PDF pages that no reader sees, by class, and words that look like such but are seen."""

import pytest

from providers.reading.canonical_text import Extraction
from providers.reading.formats import pdf_unseen
from providers.reading.sniffing import PDF
from providers.reading.web_page import read_page
from tests.fakes.unseen_pdf import SCAN, SEEN, WORDS, pdf, seen_pdfs, styled, unseen_pdfs

TWINS = seen_pdfs()


def read(raw: bytes) -> Extraction:
    """What is kept of a document."""
    return read_page(raw, PDF, None, "http://a.test/x.pdf")


def test_words_that_nobody_sees_are_not_read() -> None:
    """Nothing that is kept of a document holds one of them, and what is seen is there."""
    for name, ways in unseen_pdfs().items():
        for way, raw in ways:
            found = read(raw)
            assert not [word for word in WORDS.split() if len(word) > 3 and word in repr(found)], (name, way)
            assert SEEN in found.text, (name, way)


def test_words_that_are_seen_are_read() -> None:
    """Coloured, small, turned, on grounds or under something thin: readers have them before their eyes."""
    assert [name for name, raw in TWINS.items() if WORDS not in read(raw).text] == []


@pytest.mark.parametrize("name", ["black", "gray, in forms", "drawn twice", "turned", "under a watermark"])
def test_looking_at_ordinary_words_finds_them_too(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether words are in doubt makes no difference for those that are seen."""
    monkeypatch.setattr(pdf_unseen, "DARK", -1)
    found = read(TWINS[name]).text
    assert WORDS in found
    assert SEEN in found


def test_half_of_a_line_that_is_covered_is_not_read() -> None:
    """Each word is looked at, not the line that was drawn at once."""
    found = read(pdf(styled("0 g", after="1 g 110 290 400 30 re f"))).text
    assert "Quokkas order" in found
    assert "assistant" not in found


def test_words_recognized_in_a_scan_are_read_where_it_is_printed() -> None:
    """Of invisible words without others, those over print are what it says; those over nothing are for machines alone."""
    scan = pdf(SCAN + styled("3 Tr") + " BT /F1 11 Tf 3 Tr 40 200 Td (Beneath the print) Tj ET", seen="")
    assert read(scan).text == WORDS


def test_words_under_many_others_are_not_read() -> None:
    """Looking at them one by one would take as many drawings; nobody can read them anyway."""
    piled = "".join(styled(f"{place / 40} 0 0 rg") for place in range(10, 40))
    found = read(pdf(piled)).text
    assert 1 <= found.count(WORDS) <= pdf_unseen.MOST_TURNS
    assert SEEN in found


def test_beyond_the_time_for_drawing_odd_words_are_left_out_and_that_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Words that look ordinary stay, also where something lies under them."""
    monkeypatch.setattr(pdf_unseen, "SECONDS", 0.0)
    found = read(
        pdf(styled("0.7 g") + f" {styled('0 g', '0.8 g 30 590 400 30 re f 1 0 0 1 0 300 cm').replace('order', 'eat')}")
    )
    assert WORDS not in found.text
    assert WORDS.replace("order", "eat") in found.text
    assert found.warnings == [
        "on 1 pages words of unusual looks are left out: looking at all of them would take too long"
    ]
