"""Lines from right to left: from what an eye sees at its places to what is spoken."""

import pytest

from providers.reading.right_to_left import Glyph, parted, spoken_words

WIDTH = 6.0
HEIGHT = 14.0


def glyphs(line: str) -> list[Glyph]:
    """The letters of a line as they stand on the page, from the left; a space is a gap."""
    return [Glyph(letter, at * WIDTH, (at + 1) * WIDTH) for at, letter in enumerate(line) if letter != " "]


def spoken(seen: list[Glyph]) -> str:
    return " ".join("".join(sign.text for sign in word) for word in spoken_words(seen, HEIGHT))


@pytest.mark.parametrize(
    ("seen", "text"),
    [
        ("םולש", "שלום"),
        ("2021 יאמ שדוחב", "בחודש מאי 2021"),
        (",2021 יאמ", "מאי 2021,"),
        ("1,200.50 לש החנה 15%-", "-15% הנחה של 1,200.50"),
        ("Windows 11 רובע םולשת", "תשלום עבור Windows 11"),
        (".McMahon לש דרשמב", "במשרד של McMahon."),
        ("םירבחל (RX-5512 הזוח יפל) החנה", "הנחה (לפי חוזה RX-5512) לחברים"),
        ("םירבחל )RX-5512 הזוח יפל( החנה", "הנחה (לפי חוזה RX-5512) לחברים"),
        ("f(x) לש ךרע", "ערך של f(x)"),
        ("18:30 העשב", "בשעה 18:30"),
        ("The word םלוע םולש means hello", "The word שלום עולם means hello"),
        ("the words 3 םולש end", "the words 3 שלום end"),
    ],
)
def test_a_line_is_spoken_from_its_own_side(seen: str, text: str) -> None:
    """Numbers, other writing and brackets stand where they are meant."""
    assert spoken(glyphs(seen)) == text


def test_a_sign_of_two_letters_is_read_in_their_order() -> None:
    """An engine reverses the letters of a ligature with the line."""
    assert spoken([Glyph("ا", 0, 6), Glyph("ل", 0, 6), Glyph("و", 6, 12)]) == "ولا"
    assert spoken([Glyph("ل", 0, 6), Glyph("ا", 0, 6), Glyph("و", 6, 12)]) == "ولا"
    assert spoken([Glyph("\ufefb", 0, 6), Glyph("و", 6, 12)]) == "ولا"


def test_a_mark_belongs_to_the_letter_below_it() -> None:
    """Whatever order it is drawn in."""
    seen = [Glyph("\u0650", 13, 15), Glyph("م", 0, 6), Glyph("\u0652", 7, 9), Glyph("س", 6, 12), Glyph("ب", 12, 18)]
    assert spoken(seen) == "ب\u0650س\u0652م"


@pytest.mark.parametrize("is_after", [True, False])
def test_a_mark_that_reaches_over_the_next_letter_belongs_to_its_own(is_after: bool) -> None:
    """Which letter it was drawn with tells more than its place: after it, or before it if a line is drawn so."""
    letters = [Glyph("ه", 0, 5), Glyph("ل", 4, 6), Glyph("ت", 8, 14), Glyph("ب", 14, 20)]
    marks = [Glyph("\u064f", 0.5, 2.5), Glyph("\u064e", 3, 5.4), Glyph("\u064e", 10, 12), Glyph("\u0650", 16, 18)]
    for place, (letter, mark) in enumerate(zip(letters, marks, strict=True)):
        letter.place, mark.place = (2 * place, 2 * place + 1)[:: 1 if is_after else -1]
    assert spoken([*letters, *marks]) == "ب\u0650ت\u064e ل\u064eه\u064f"


def test_a_mark_over_a_ligature_belongs_to_the_part_below_it() -> None:
    """The first letter of a sign of two is at the right."""
    assert spoken([Glyph("\ufefb", 0, 6), Glyph("\u064e", 4, 5)]) == "ل\u064eا"
    assert spoken([Glyph("\ufefb", 0, 6), Glyph("\u064e", 1, 2)]) == "لا\u064e"


def test_a_gap_is_a_space_from_a_width_that_depends_on_the_words_of_the_engine() -> None:
    """Letters of one word of the engine may be drawn a little apart."""
    near = [Glyph("ב", 0, 6, 1), Glyph("א", 7, 13, 1)]
    assert spoken(near) == "אב"
    near[0].word = 2
    assert spoken(near) == "א ב"
    assert spoken([Glyph("ב", 0, 6, 1), Glyph("א", 7.4, 13, 1)]) == "א ב"


def test_columns_are_lines_of_their_own() -> None:
    """The letters of two columns would be one line from the right."""
    seen = [*glyphs("ab"), *(Glyph(each.text, each.left + 100, each.right + 100) for each in glyphs("אב"))]
    assert ["".join(each.text for each in part) for part in parted(seen, 42)] == ["ab", "אב"]
