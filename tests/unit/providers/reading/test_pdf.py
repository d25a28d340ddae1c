"""PDF: the words of the page in the order of the page, and what two readers of it do not agree on."""

from collections import Counter

import pytest

from providers.reading.documents import extract
from providers.reading.pdf import is_better
from tests.fakes.office_documents import page_pdf, pdf_of, stream_of, text_at

ARABIC = ["تدفع الشركة رسوم الصيانة", "يستمر العقد ثلاث سنوات", "يحق للعميل إلغاء العقد"]


def lines(*texts: str, x: int = 72, top: int = 700, size: int = 12) -> bytes:
    """The operators that show lines of text one below the other."""
    return b"\n".join(text_at(x, top - 20 * number, text, size) for number, text in enumerate(texts))


def read(content: bytes, *extra: bytes, catalogue: bytes = b"") -> str:
    return extract(page_pdf(content, b"", *extra, catalogue=catalogue), "x.pdf").text


def pages(*contents: bytes) -> bytes:
    """A document of several pages."""
    kids = b" ".join(b"%d 0 R" % (4 + 2 * number) for number in range(len(contents)))
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[%b]/Count %d>>" % (kids, len(contents)),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    for number, content in enumerate(contents):
        resources = b"/MediaBox[0 0 612 792]/Resources<</Font<</F1 3 0 R>>>>"
        objects += [b"<</Type/Page/Parent 2 0 R/Contents %d 0 R%b>>" % (5 + 2 * number, resources), stream_of(content)]
    return pdf_of(objects)


def test_letters_are_those_of_the_page() -> None:
    """A capital letter next to small ones stays what it is."""
    assert read(lines("The tests use JavaMail, iMac and eMac.", "See McMahon v. MacMillan.")) == (
        "The tests use JavaMail, iMac and eMac.\nSee McMahon v. MacMillan."
    )


def test_lines_near_the_edge_of_a_page_are_read() -> None:
    """A contract's number and its signature stand there."""
    body = [f"The harbour office opens at eight in the morning of day {number} of each month" for number in range(12)]
    found = read(
        b"\n".join((text_at(72, 770, "Contract no. RX-5512"), lines(*body), text_at(72, 14, "Signed: A. Low")))
    )
    assert found.startswith("Contract no. RX-5512")
    assert found.endswith("Signed: A. Low")


def test_columns_are_read_one_after_the_other() -> None:
    """Also where the page draws them line by line; the words of a line are not those of its neighbour."""
    left = ["The committee reviewed the annual", "report and asked the treasurer to", "explain the rise of travel costs.",
            "It then approved the budget for", "the coming year without changes."]  # fmt: skip
    right = ["Membership fees remain as they", "were since the spring of last", "year. Pupils pay half, and those",
             "who row for the club pay nothing", "at all on three days of the year."]  # fmt: skip
    drawn = [text_at(x, 700 - 14 * row, text, 11) for row, pair in enumerate(zip(left, right, strict=True))
             for x, text in zip((60, 330), pair, strict=True)]  # fmt: skip
    assert read(b"\n".join(drawn)).replace("\n\n", " ") == " ".join((*left, *right))


def test_writing_from_right_to_left_is_read_as_it_is_spoken() -> None:
    """The page draws its letters from the left; lines are prose, not cells of a table."""
    letters = sorted(set("".join(ARABIC)) - {" "})
    codes = {" ": 32} | {letter: 65 + number for number, letter in enumerate(letters)}
    pairs = "\n".join(f"<{code:02X}> <{ord(letter):04X}>" for letter, code in codes.items())
    unicode_map = f"/CIDInit /ProcSet findresource begin begincmap 1 begincodespacerange <00> <FF> endcodespacerange\n{len(codes)} beginbfchar\n{pairs}\nendbfchar endcmap"
    drawn = [
        b"BT /F1 14 Tf 100 %d Td <%b> Tj ET"
        % (700 - 24 * row, bytes(codes[letter] for letter in reversed(line)).hex().encode())
        for row, line in enumerate(ARABIC)
    ]
    widths = b" ".join([b"600"] * 224)
    font = (
        b"<</Type/Font/Subtype/Type1/BaseFont/Courier/ToUnicode 6 0 R/FirstChar 32/LastChar 255/Widths["
        + widths
        + b"]>>"
    )
    raw = pdf_of([
        b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        stream_of(b"\n".join(drawn)), font, stream_of(unicode_map.encode()),
    ])  # fmt: skip
    assert extract(raw, "x.pdf").text.split() == " ".join(ARABIC).split()
    assert "|" not in extract(raw, "x.pdf").text


@pytest.mark.parametrize(
    ("first", "second", "text"),
    [
        ("are based on the price-", "determining factors", "price-determining factors"),
        ("a plan for the long-", "term future", "long-term future"),
        ("the order has been con-", "firmed in writing", "confirmed in writing"),
        ("we do not under-", "stand this at all", "understand this"),
        ("the law of Bos-", "nia and of Baden-Baden", "Bosnia and of Baden-Baden"),
        ("the house of Saxe-", "Coburg was built", "Saxe-Coburg"),
        ("delivery takes 10-", "14 days from now", "10-14 days"),
        ("a flibber-", "jib and a flibberjib", "a flibberjib and"),
        ("a zorb-", "quon and a zorb-quon", "a zorb-quon and"),
    ],
)
def test_a_hyphen_at_the_end_of_a_line_stays_if_the_word_has_one(first: str, second: str, text: str) -> None:
    """The document's own words decide, then whether the whole or its halves are words; a range of numbers stays one."""
    body = ["These lines are long enough to be those of a paragraph that a program broke", f"and this one says {first}",
            f"{second} as was said before, and continues in the same way for a while until"]  # fmt: skip
    assert text in read(lines(*body)).replace("\n", " ")


def test_running_heads_are_read_once() -> None:
    """Equal lines, and those whose numbers count the pages, are of the first page alone; a number that differs stays."""
    body = [
        lines(*(f"Sentence {page}{row} of the text that is unlike all others." for row in range(8)))
        for page in range(3)
    ]
    found = extract(pages(*(
        b"\n".join((text_at(72, 770, "Handbook of the harbour"), content, text_at(72, 40, f"Order {7 * page + 5}"),
                    text_at(72, 20, f"Page {page + 1} of 3")))
        for page, content in enumerate(body)
    )), "x.pdf").text  # fmt: skip
    assert [found.count(head) for head in ("Handbook of the harbour", "Page 1 of 3", "Page 2 of 3")] == [1, 1, 0]
    assert [f"Order {7 * page + 5}" in found for page in range(3)] == [True, True, True]
    assert found.count("unlike all others") == 24


FIELD = b"<</Type/Annot/Subtype/Widget/FT/Tx/T(name)/V(Zenobia Quill)/Rect[170 690 400 710]/F 4/P 3 0 R>>"
NOTE = b"<</Type/Annot/Subtype/FreeText/Contents(Paid in cash)/Rect[170 600 400 620]/F 4/DA(/F1 12 Tf)/P 3 0 R>>"
REMARK = b"<</Type/Annot/Subtype/Text/Contents(Unseen remark)/Rect[170 500 190 520]/P 3 0 R>>"


def test_values_of_forms_and_typed_notes_are_words_of_the_page() -> None:
    """They are shown where they were typed; remarks that only open on a click are comments."""
    raw = page_pdf(lines("Name of employee:", "First day of leave:"), b"", FIELD, NOTE, REMARK,
                   catalogue=b"/AcroForm<</Fields[6 0 R]>>")  # fmt: skip
    raw = raw.replace(b"/MediaBox[0 0 612 792]/Contents", b"/Annots[6 0 R 7 0 R 8 0 R]/MediaBox[0 0 612 792]/Contents")
    found = extract(raw, "x.pdf").text
    assert "Name of employee: Zenobia Quill" in found
    assert "Paid in cash" in found
    assert "Unseen" not in found


def test_words_beyond_the_page_are_not_read() -> None:
    """They are cut away when the page is shown, whatever they say."""
    assert read(
        lines("Words of the page.") + b"\n" + text_at(72, -300, "quokka") + b"\n" + text_at(900, 300, "quokka")
    ) == ("Words of the page.")


def test_what_two_readers_read_differently_is_uncertain() -> None:
    """A lowered letter within a word is one word to one engine and two to the other; the other words are certain."""
    logo = b"BT /F1 12 Tf 72 400 Td (The T) Tj 26 -3 Td (E) Tj 8 3 Td (X companion) Tj ET"
    body = lines(*(f"Both readers read the sentence number {number}" for number in range(5)))
    found = extract(page_pdf(body + b"\n" + logo), "x.pdf")
    assert [found.text[start:end] for start, end in found.uncertain] == ["The TEX companion"]
    assert found.warnings == ["reading uncertain on 1 page, where two readers differ: 1"]
    certain = extract(page_pdf(body), "x.pdf")
    assert (certain.uncertain, certain.warnings) == ([], [])


def test_the_second_reading_of_a_page_replaces_one_that_has_no_words() -> None:
    """Only where by far more of its own words are in the dictionary: two readings that are both words change nothing."""
    words = Counter(
        "the harbour office opens every morning and boats longer than twelve metres need permit from keeper here".split()
        * 2
    )
    signs = Counter({f"xq{letter}zk": 1 for letter in "abcdefghijklmnopqrstuvwxyzabcdefghij"} | {"zq": 20})
    assert is_better(words, signs, words.__contains__)
    assert not is_better(signs, words, words.__contains__)
    assert not is_better(words, words, words.__contains__)
    assert not is_better(words, Counter({"xqazk": 3}), words.__contains__)


def test_words_beyond_the_edge_of_a_page_are_counted() -> None:
    """A page that cuts off a large part of its text says so; what it is stays unread."""
    raw = page_pdf(lines("Words of the page.") + b" " + text_at(72, -300, "quokka beyond the edge of it"))
    assert extract(raw, "x.pdf").warnings == ["40% of the words are read; not read: beyond the edge of a page (6)"]
