"""PDF: the words of the page in the order of the page, and what two readers of it do not agree on."""

from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from providers.reading.canonical_text import Heading, Paragraph, TableRow
from providers.reading.documents import extract
from providers.reading.pdf import is_better
from providers.reading.pdf_blocks import Heights, Hyphens, page_blocks
from providers.reading.pdf_words import Word
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


def arabic_page(drawn: list[bytes], letters: list[str]) -> bytes:
    """A page whose font has codes for Arabic letters from 65 on, each as wide as the others."""
    codes = {" ": 32} | {letter: 65 + number for number, letter in enumerate(letters)}
    pairs = "\n".join(f"<{code:02X}> <{ord(letter):04X}>" for letter, code in codes.items())
    unicode_map = f"/CIDInit /ProcSet findresource begin begincmap 1 begincodespacerange <00> <FF> endcodespacerange\n{len(codes)} beginbfchar\n{pairs}\nendbfchar endcmap"
    widths = b" ".join([b"600"] * 224)
    font = (
        b"<</Type/Font/Subtype/Type1/BaseFont/Courier/ToUnicode 6 0 R/FirstChar 32/LastChar 255/Widths["
        + widths
        + b"]>>"
    )
    return pdf_of([
        b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        stream_of(b"\n".join(drawn)), font, stream_of(unicode_map.encode()),
    ])  # fmt: skip


ENGLISH = ["The company pays the costs", "The contract runs three years", "The client may end the contract"]
LETTERS = sorted(set("".join(ARABIC)) - {" "})
CODES = {" ": 32} | {letter: 65 + number for number, letter in enumerate(LETTERS)}
WIDE = 14 * 0.6
"""Width of a letter at 14 points."""


def shown(x: float, y: int, text: str) -> bytes:
    """The operators that show codes of the Arabic font from the left."""
    return b"BT /F1 14 Tf %.2f %d Td <%b> Tj ET" % (x, y, bytes(CODES[letter] for letter in text).hex().encode())


def by_lines(line: str, y: int) -> list[bytes]:
    return [shown(100, y, line[::-1])]


def by_words(line: str, y: int) -> list[bytes]:
    places = [len(line) - start - len(word) for start, word in starts(line)]
    return [shown(100 + WIDE * at, y, word[::-1]) for at, (_, word) in zip(places, starts(line), strict=True)]


def by_letters(line: str, y: int) -> list[bytes]:
    return [shown(100 + WIDE * (len(line) - 1 - at), y, letter) for at, letter in enumerate(line) if letter != " "]


def by_halves(line: str, y: int) -> list[bytes]:
    """The left half of a line as it is seen, then the right half letter by letter, as some browsers print."""
    return [
        *by_words(line, y)[len(line.split()) // 2 :],
        *by_letters(line, y)[: len("".join(line.split()[: len(line.split()) // 2]))],
    ]


def starts(line: str) -> list[tuple[int, str]]:
    found, at = [], 0
    for word in line.split(" "):
        found.append((at, word))
        at += len(word) + 1
    return found


@pytest.mark.parametrize("drawn", [by_lines, by_words, by_letters, by_halves])
def test_writing_from_right_to_left_is_read_as_it_is_spoken(drawn: Callable[[str, int], list[bytes]]) -> None:
    """However a program draws it; lines are prose, not cells of a table."""
    operators = [each for row, line in enumerate(ARABIC) for each in drawn(line, 700 - 24 * row)]
    text = extract(arabic_page(operators, LETTERS), "x.pdf").text
    assert text.split() == " ".join(ARABIC).split()
    assert "|" not in text


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
        ("they took an X-", "ray of it", "an X-ray of"),
        ("in the times of COVID-", "19 and later", "of COVID-19 and"),
        ("the two-", "and three-year plans", "the two- and three-year"),
        ("it is state-of-", "the-art work", "state-of-the-art"),
        ("the rules of the EU-", "Kommission", "EU-Kommission"),
        ("the word CONFI-", "DENTIAL on it", "CONFIDENTIAL"),
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


def test_a_compound_of_a_language_without_hyphens_is_one_word() -> None:
    """In German both halves of a divided word are words, too."""
    body = ["Die Abgaben des Hafens werden von der Verwaltung jedes Jahr neu fest-",
            "gesetzt und im Aushang am Haupt-", "und am Nebeneingang des Amtes bekannt gemacht, wie es seit jeher Brauch ist",
            "und wie es die Satzung der Stadt in ihrem zweiten Teil auch so verlangt"]  # fmt: skip
    found = read(lines(*body)).replace("\n", " ")
    assert "jedes Jahr neu festgesetzt und im Aushang am Haupt- und am Nebeneingang" in found


def test_lines_whose_numbers_count_with_the_pages_are_words_of_the_text() -> None:
    """The first line of a list of each page is no running head, nor is the title of a slide."""
    listed = pages(*(
        b"\n".join((text_at(72, 770, "Log of the harbour"), *(text_at(72, 730 - 14 * row, f"Entry {page} of shelf {row}")
                                                             for row in range(10))))
        for page in range(3)
    ))  # fmt: skip
    found = extract(listed, "x.pdf").text
    assert [found.count(f"Entry {page} of shelf 0") for page in range(3)] == [1, 1, 1]
    slides = pages(*(b"\n".join((text_at(72, 740, f"Step {page}", 30), lines(*(
        f"Text of page {page} in row {row} is unlike others" for row in range(9))))) for page in range(3)
    ))  # fmt: skip
    assert [f"Step {page}" in extract(slides, "x.pdf").text for page in range(3)] == [True, True, True]


def test_repeated_heads_are_counted() -> None:
    """Like all words of a document that are not in its text, below a share of them."""
    raw = pages(*(
        b"\n".join((text_at(72, 770, "Handbook of the harbour and of its piers"), lines(*(
            f"Sentence {page} {row}." for row in range(8))))) for page in range(3)
    ))  # fmt: skip
    assert extract(raw, "x.pdf").warnings == ["83% of the words are read; not read: repeated page heads and feet (16)"]


def test_a_table_that_a_layout_sees_in_prose_is_prose() -> None:
    """Cells of a table have their words as they are drawn; gaps of justified lines are no columns."""
    texts = ["nature, one called", "overshoot, the other", "undershoot. They all"]
    words = [
        Word(text, (20 + 80 * column, 20 + 12 * row, 70 + 80 * column, 30 + 12 * row), 3 * row + column)
        for row, line in enumerate(texts)
        for column, text in enumerate(line.split())
    ]
    rect = SimpleNamespace(x=10, y=10, width=300, height=60)
    row = [SimpleNamespace(bbox=SimpleNamespace(x=15 + 80 * column, y=10, width=78, height=60)) for column in range(3)]
    empty = [[SimpleNamespace(bbox=SimpleNamespace(x=15, y=80, width=78, height=9))]] * 20
    area = SimpleNamespace(kind="table", bbox=rect, header=row, rows=empty)
    blocks = list(page_blocks(words, SimpleNamespace(blocks=[area]), Hyphens([]), Heights([])))
    assert blocks == [Paragraph("\n".join(texts))]
    for word in words:  # cell by cell, as programs draw a table
        word.order = word.order % 3 * 3 + word.order // 3
    assert next(page_blocks(words, SimpleNamespace(blocks=[area]), Hyphens([]), Heights([]))) == TableRow(
        ["nature, overshoot, undershoot.", "one the They", "called other all"]
    )


def test_letters_of_two_scripts_in_one_word_are_uncertain() -> None:
    """A font of drawings may name some of its Arabic letters as Latin ones; a Latin name with an Arabic prefix is none."""
    letters = [*LETTERS, "A", "W", "s"]
    codes = {" ": 32} | {letter: 65 + number for number, letter in enumerate(letters)}
    words = {"broken": "الAWن", "prefixed": "الAWs"}
    warnings = {}
    for name, word in words.items():
        line = " ".join([word] * 4)
        drawn = [b"BT /F1 14 Tf 72 %d Td <%b> Tj ET" % (700 - 24 * row, bytes(codes[letter] for letter in line[::-1]).hex().encode())
                 for row in range(3)]  # fmt: skip
        warnings[name] = [str(each) for each in extract(arabic_page(drawn, letters), "x.pdf").warnings]
    assert warnings["broken"] == ["1 page with letters that the file does not name, read as other signs: 1"]
    assert warnings["prefixed"] == []


@pytest.mark.parametrize("is_rtl", [True, False])
def test_cells_of_a_row_are_in_the_order_of_drawing(is_rtl: bool) -> None:
    """Which side a table with Arabic words begins at, nothing else says."""
    texts = [["الرسوم", "Fee"], ["العقد", "Contract"], ["الشركة", "Company"]]
    words = [
        Word(
            text, (300 - 200 * column, 20 + 20 * row, 350 - 200 * column, 30 + 20 * row), 2 * row + place, line=2 * row
        )
        for row, cells in enumerate(texts)
        for column, text in enumerate(cells)
        for place in (column if is_rtl else 1 - column,)
    ]
    rect = SimpleNamespace(x=50, y=10, width=400, height=60)
    rows = [
        [SimpleNamespace(bbox=SimpleNamespace(x=x, y=16 + 20 * row, width=150, height=18)) for x in (60, 250)]
        for row in range(3)
    ]
    area = SimpleNamespace(kind="table", bbox=rect, header=rows[0], rows=rows[1:])
    blocks = list(page_blocks(words, SimpleNamespace(blocks=[area]), Hyphens([]), Heights([])))
    assert blocks == [TableRow(cells if is_rtl else cells[::-1]) for cells in texts]


def test_words_of_a_higher_script_are_no_heading() -> None:
    """Arabic letters are higher than Latin ones of the same size; one that is higher than others of its kind is one."""
    latin = [Word("word", (20, 20 * row, 60, 20 * row + 10), row) for row in range(20)]
    arabic = [Word("العقد", (20, 20 * row, 60, 20 * row + 15), row, line=row) for row in range(20, 23)]
    title = Word("الشركة", (20, 500, 60, 524), 30, line=30)
    heights = Heights([*latin, *arabic, title])
    kinds = [type(next(page_blocks([word], None, Hyphens([]), heights))) for word in (latin[0], arabic[0], title)]
    assert kinds == [Paragraph, Paragraph, Heading]


def test_labels_of_a_form_are_read_with_its_fields() -> None:
    """Some programs draw all labels after the text of the page, far from where they are read."""
    drawn = b"\n".join((
        text_at(72, 740, "Rules of the club"), text_at(72, 540, "Signed by"), text_at(72, 500, "Date"),
        text_at(72, 697, "First name of member"),
    ))  # fmt: skip
    raw = page_pdf(drawn, b"", FIELD, catalogue=b"/AcroForm<</Fields[6 0 R]>>")
    kept = b"/Annots[6 0 R]/MediaBox[0 0 612 792]/Contents"
    found = extract(raw.replace(b"/MediaBox[0 0 612 792]/Contents", kept), "x.pdf").text
    words = " ".join(found.replace("#", "").split())
    assert words == "Rules of the club First name of member Zenobia Quill Signed by Date"


@pytest.mark.parametrize(("drawn", "shown"), [("ANNUAL REPORT", "ANNUAL REPORT"), ("ABCDEFG", "A B C D E F G")])
def test_letters_that_are_set_apart_are_words_if_a_dictionary_has_them(drawn: str, shown: str) -> None:
    """Headings are often drawn letter by letter; the heads of a table are no word."""
    spaced = b"\n".join(text_at(72 + 20 * at, 740, letter, 18) for at, letter in enumerate(drawn) if letter != " ")
    assert read(spaced + lines("The committee met in spring.")).split("\n")[0].lstrip("# ") == shown


@pytest.mark.parametrize("turned", [b"0 1 -1 0 500 100 cm ", b"-1 0 0 -1 600 800 cm ", b"0 -1 1 0 100 500 cm "])
@pytest.mark.parametrize("rotate", [0, 90, 180, 270])
def test_a_page_that_lies_on_its_side_is_read_as_people_turn_it(turned: bytes, rotate: int) -> None:
    """Tables and scans are often drawn sideways or upside down, with or without a statement how to show the page."""
    texts = ["The committee met in spring", "and heard the harbour master", "on the fees of the pier."]
    raw = page_pdf(turned + lines(*texts, x=50, top=350), b"")
    shown = raw.replace(b"/MediaBox[0 0 612 792]", b"/Rotate %d/MediaBox[0 0 612 792]" % rotate)
    assert extract(shown, "x.pdf").text.split() == " ".join(texts).split()


FIELD = b"<</Type/Annot/Subtype/Widget/FT/Tx/T(name)/V(Zenobia Quill)/Rect[190 690 400 715]/F 4/P 3 0 R>>"
LINES = b"<</Type/Annot/Subtype/Widget/FT/Tx/T(more)/V(Arrives late\nleaves early)/Ff 4096/Rect[190 630 400 690]/F 4/P 3 0 R>>"
NOTE = b"<</Type/Annot/Subtype/FreeText/Contents(Paid in cash)/Rect[170 600 400 620]/F 4/DA(/F1 12 Tf)/P 3 0 R>>"
REMARK = b"<</Type/Annot/Subtype/Text/Contents(Unseen remark)/Rect[170 500 190 520]/P 3 0 R>>"
YES = b"<</Type/Annot/Subtype/Widget/FT/Btn/T(yes)/V/On/AS/On/AP<</N<</On null/Off null>>>>/Rect[150 540 162 552]/F 4/P 3 0 R>>"
NO = b"<</Type/Annot/Subtype/Widget/FT/Btn/T(no)/V/Off/AS/Off/AP<</N<</On null/Off null>>>>/Rect[220 540 232 552]/F 4/P 3 0 R>>"


def test_values_of_forms_and_typed_notes_are_words_of_the_page() -> None:
    """They are shown where they were typed, boxes are ticked or not; remarks that open on a click are comments."""
    shown_text = b"\n".join((
        lines("Name of employee:"), text_at(72, 678, "Remarks:"), text_at(72, 541, "Member:"), text_at(170, 541, "yes"),
        text_at(240, 541, "no"),
    ))  # fmt: skip
    raw = page_pdf(shown_text, b"", FIELD, LINES, NOTE, REMARK, YES, NO,
                   catalogue=b"/AcroForm<</Fields[6 0 R 7 0 R 10 0 R 11 0 R]>>")  # fmt: skip
    kept = b"/Annots[6 0 R 7 0 R 8 0 R 9 0 R 10 0 R 11 0 R]/MediaBox[0 0 612 792]/Contents"
    found = extract(raw.replace(b"/MediaBox[0 0 612 792]/Contents", kept), "x.pdf").text
    words = " ".join(found.replace("#", "").split())
    assert "Name of employee: Zenobia Quill" in words
    assert "Remarks: Arrives late leaves early" in words
    assert "Paid in cash" in words
    assert "Member: \u2611 yes \u2610 no" in words
    assert "Unseen" not in words


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


def placed(x: float, y: float, text: str, size: float = 10) -> bytes:
    """The operators that show a text of the font's own encoding at a place between points."""
    return b"BT /F1 %.1f Tf %.2f %.2f Td (%b) Tj ET" % (size, x, y, text.encode("latin-1"))


def test_raised_letters_are_set_off() -> None:
    """The number of a note or a power is no digit of the number before it; ordinals are one word."""
    drawn = b" ".join((
        placed(72, 700, "Built in 1887", 12), placed(138.5, 705, "3", 7), placed(160, 700, "by the 4", 12), placed(204, 705, "th", 7),
        placed(222, 700, "mayor for 10", 12), placed(291, 705, "6", 7), placed(305, 700, "euro.", 12),
        placed(72, 100, "3", 6), placed(76, 97, "Minutes of the council.", 9),
    ))  # fmt: skip
    found = read(drawn)
    assert "Built in 1887^3 by the 4th mayor for 10^6 euro." in found
    assert "^3 Minutes of the council." in found


def test_accents_that_are_drawn_over_a_letter_are_part_of_it() -> None:
    """Some fonts have no letter with its accent; an acute accent after a letter is none of it."""
    drawn = b"BT /F1 10 Tf 72 700 Td [(G\xc8) 440 (odel it\xc2s)] TJ ET"
    assert read(drawn) == "G\xf6del it\xb4s"


JUSTIFIED = [
    line.split() for line in (
        "The report of the club says that each", "of its boats was new in the long-term", "programme, notwithstanding all",
        "circumstances and the value of the work", "that was done by the men of the club in", "programme, notwithstanding the",
        "summer of the year, as was confirmed by", "the laboratory in the course of the last", "programme, notwithstanding any",
    )
]  # fmt: skip


def justified(x: float, top: float) -> list[bytes]:
    """A narrow column whose words fill each line from edge to edge, drawn from the top."""
    drawn = []
    for row, words in enumerate(JUSTIFIED):
        free = (230 - sum(4.9 * len(word) for word in words)) / (len(words) - 1)
        for number, word in enumerate(words):
            at = x + sum(4.9 * len(each) + free for each in words[:number])
            drawn.append(placed(at, top - 11.5 * row, word))
    return drawn


def test_columns_of_wide_gaps_are_no_tables() -> None:
    """A page that is drawn column by column is read so, however far apart the words of its lines are."""
    found = read(b"\n".join((*justified(60, 700), *justified(310, 700))))
    column = " ".join(word for words in JUSTIFIED for word in words)
    assert " ".join(found.split()) == f"{column} {column}"


def test_arabic_and_latin_columns_are_read_one_after_the_other() -> None:
    """A line of each is on one height; letters of an Arabic font, which are higher, are no headings."""
    left = [each for row, line in enumerate(ARABIC) for each in by_lines(line, 700 - 24 * row)]
    right = [b"BT /F2 10 Tf 345 %d Td (%b) Tj ET" % (700 - 24 * row, line.encode()) for row, line in enumerate(ENGLISH)]
    raw = arabic_page([*left, *right], LETTERS).replace(
        b"/F1 5 0 R", b"/F1 5 0 R/F2<</Type/Font/Subtype/Type1/BaseFont/Times-Roman>>"
    )
    assert extract(raw, "x.pdf").text.split() == " ".join((*ARABIC, *ENGLISH)).split()


def test_a_table_of_arabic_begins_at_the_right() -> None:
    """Whether its cells are so near that its rows are one line to an engine, or far apart."""
    rows = [("رسوم الصيانة", "ثلاث"), ("العقد", "سنوات"), ("الشركة", "الصيانة")]
    near = [part for y, row in zip((700, 680, 660), rows, strict=True)
            for x, text in zip((330, 240), row, strict=True) for part in (shown(x, y, text[::-1]),)]  # fmt: skip
    far = [part for y, row in zip((500, 480, 460), rows, strict=True)
           for x, text in zip((430, 60), row, strict=True) for part in (shown(x, y, text[::-1]),)]  # fmt: skip
    found = extract(arabic_page([*near, *far], LETTERS), "x.pdf").text
    words = found.replace("|", " ").replace("---", " ").split()
    assert words == [word for row in rows for cell in row for word in cell.split()] * 2


def test_an_index_in_columns_is_no_table() -> None:
    """Numbers of a justified line are far apart, but the page is drawn down one column and then down the next."""
    drawn, entries = [], []
    for column in range(3):
        for row in range(30):
            first, second = f"entrynumber{30 * column + row}", str(1000 * column + 20 * row + 7)
            drawn += [
                placed(60 + 170 * column, 740 - 12 * row, first),
                placed(155 + 170 * column, 740 - 12 * row, second),
            ]
            entries += [first, second]
    assert read(b"\n".join(drawn)).split() == entries


def test_names_before_short_explanations_are_read_row_by_row() -> None:
    """Each row is drawn across the page, and no cell has a further line: names are too short to be a column of text."""
    names = ["fdisk", "fsck", "getty", "halt", "init", "mkfs", "mkswap", "reboot", "route", "swapon"]
    rows = [f"{name} The program for the purpose number {number}" for number, name in enumerate(names)]
    drawn = [part for y, row in zip(range(700, 0, -17), rows, strict=False)
             for part in (placed(72, y, row.split(" ", 1)[0]), placed(290, y, row.split(" ", 1)[1]))]  # fmt: skip
    found = read(b"\n".join(drawn))
    assert found.replace("|", " ").replace("---", " ").replace("#", " ").split() == " ".join(rows).split()


def test_a_list_of_terms_and_explanations_is_read_row_by_row() -> None:
    """Each term is drawn before its explanation, which may have several lines; terms are no column of their own."""
    rows = [("array:", ["Extended versions of tables."]), ("calc:", ["Infix expressions, contributed to the", "distribution by two authors."]),
            ("delarray:", ["Adds large delimiters."]), ("fileerr:", ["A suite of small files that control the", "loop of missing files."]),
            ("hhline:", ["Finer rules in tables."]), ("layout:", ["An overview of the layout of the page,", "produced for the current document."]),
            ("trace:", ["Suppresses the output of tracing."])]  # fmt: skip
    drawn, y = [], 700
    for term, explanation in rows:
        drawn.append(placed(72, y, term))
        for line in explanation:
            drawn.append(placed(150, y, line))
            y -= 12
    found = " ".join(read(b"\n".join(drawn)).replace("#", "").replace("|", "").replace("---", "").split())
    assert found == " ".join(f"{term} {' '.join(explanation)}" for term, explanation in rows)


def test_turned_words_do_not_stand_within_lines() -> None:
    """A watermark and a note along the edge come after the text that they cross."""
    body = lines(*(f"The harbour office opens at eight on day {number} of the month" for number in range(8)))
    mark = b" BT /F1 50 Tf 0.7 0.7 -0.7 0.7 150 560 Tm (DRAFT) Tj ET BT /F1 8 Tf 0 1 -1 0 20 300 Tm (Form 12-B) Tj ET "
    found = read(mark + body)
    assert found.startswith("The harbour office opens at eight on day 0 of the month")
    assert found.endswith("DRAFT\n\nForm 12-B")


def test_numbers_of_list_items_stand_before_them() -> None:
    """Some programs draw the numbers of a list after all its items."""
    items = ["Open the lid.", "Press the button.", "Wait for the light."]
    drawn = [placed(90, 700 - 14 * row, item) for row, item in enumerate(items)]
    drawn += [placed(72, 700 - 14 * row, f"{row + 1}.") for row in range(3)]
    found = " ".join(read(b"\n".join(drawn)).split())
    assert found == "1. Open the lid. 2. Press the button. 3. Wait for the light."


@pytest.mark.parametrize(("x", "y"), [(72, 672), (90, 662)])
def test_a_paragraph_below_a_list_is_none_of_its_items(x: int, y: int) -> None:
    """It begins at the left of them, or below their numbers after a gap."""
    items = [placed(90, 700 - 14 * row, f"{row + 1}. {text}", 12) for row, text in enumerate(("General", "Payment"))]
    below = ["The deposit is 1,200 euro and is paid back", "within thirty days of the end."]
    drawn = [*items, *(placed(x, y - 14 * row, text, 12) for row, text in enumerate(below))]
    assert read(b"\n".join(drawn)).startswith("1. General\n2. Payment\n\nThe deposit")


def test_a_number_at_the_end_of_a_line_is_no_marker_of_the_next_column() -> None:
    """A line of the other column may begin a little to the right of it."""
    left = [f"The rule was changed again in item {number} of it" for number in range(5)]
    left[2] = "This has been corrected as well (github issue 332)"
    right = [f"The harbour is open on day {number} of the month" for number in range(5)]
    drawn = [placed(60 if column == 0 else 282, 700 - 12 * row, text, 9.5)
             for column, texts in enumerate((left, right)) for row, text in enumerate(texts)]  # fmt: skip
    assert " ".join(read(b"\n".join(drawn)).split()) == " ".join((*left, *right))


def test_a_page_that_is_a_picture_is_named() -> None:
    """Nothing of it is read, and a reader is to know."""
    image = b"<</Type/XObject/Subtype/Image/Width 1/Height 1/ColorSpace/DeviceGray/BitsPerComponent 8/Length 1>>stream\n0\nendstream"
    raw = pages(lines("A page of words that are read."), b"q 612 0 0 792 0 0 cm /I1 Do Q")
    raw = raw.replace(b"/Font<</F1 3 0 R>>", b"/Font<</F1 3 0 R>>/XObject<</I1 8 0 R>>")
    body = raw[: raw.index(b"xref")] + b"8 0 obj\n" + image + b"\nendobj\ntrailer<</Root 1 0 R>>\n%%EOF"
    assert extract(body, "x.pdf").warnings == ["1 page without words, perhaps scanned: 2"]


def test_letters_that_a_file_does_not_name_are_uncertain() -> None:
    """A font whose signs have numbers and no letters shows words that no program can read."""
    font = b"<</Type/Font/Subtype/Type0/BaseFont/Odd/Encoding/Identity-H/DescendantFonts[7 0 R]>>"
    inner = (
        b"<</Type/Font/Subtype/CIDFontType2/BaseFont/Odd/CIDSystemInfo<</Registry(Adobe)/Ordering(Identity)/Supplement 0>>"
        b"/DW 600>>"
    )
    drawn = b"BT /F2 12 Tf 72 400 Td <0448044904500451> Tj 60 0 Td <0470047104720473> Tj 60 0 Td <0452> Tj ET"
    raw = page_pdf(lines("Words of the page.") + b"\n" + drawn, b"", font, inner)
    found = extract(raw.replace(b"/F1 5 0 R", b"/F1 5 0 R/F2 6 0 R"), "x.pdf")
    assert "1 page with letters that the file does not name, read as other signs: 1" in found.warnings
    assert [found.text[start:end] for start, end in found.uncertain] != []
    assert "Words of the page." not in [found.text[start:end] for start, end in found.uncertain]
