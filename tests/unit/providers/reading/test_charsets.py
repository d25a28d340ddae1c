"""From bytes to characters: what a text is counts more than what is said of it."""

import pytest

from providers.reading.charsets import LOST, Decoded, codec_of, decode, decode_with_warning
from providers.reading.web_page import read_page

RUSSIAN = "Привет мир, это обычный русский текст о базах данных."
THAI = "ฐานข้อมูลเป็นชุดของข้อมูลที่มีความสัมพันธ์กัน"
JAPANESE = "この記事は東京の経済について述べています。データベースの自動バキューム。"
GERMAN = "Größe, Übung, ähnlich, Straße — „ja“. "


def page(words: str, charset: str | None = None) -> str:
    """A page that perhaps states its character set."""
    meta = f"<meta charset={charset}>" if charset else ""
    return f"<html><head>{meta}</head><body><p>{words}</p></body></html>"


def text_of(raw: bytes, charset: str | None = None) -> str:
    """What is read of a page of the web."""
    return read_page(raw, "text/html", charset, "https://site.test/a").text


def test_utf8_wins_over_a_server_that_names_single_bytes() -> None:
    """Nothing else is UTF-8 by chance; a name that fits as well counts for a word or two."""
    assert text_of(page(GERMAN).encode(), "iso-8859-1") == GERMAN.strip()
    assert text_of(page(JAPANESE).encode(), "gbk") == JAPANESE
    assert text_of(page("联通").encode("gbk"), "gbk") == "联通"


def test_stray_bytes_do_not_make_another_set_of_a_page() -> None:
    """They become U+FFFD, whatever else is stated; the rest stays what it is."""
    raw = page(GERMAN * 20).encode().replace(b"</p>", b"\xff sch\xf6n</p>")
    for charset in (None, "utf-8", "windows-1252"):
        found = text_of(raw, charset)
        assert GERMAN.strip() in found
        assert found.count(LOST) == 2


@pytest.mark.parametrize(
    ("words", "codec", "stated", "charset"),
    [
        (RUSSIAN, "cp1251", "windows-1251", None),
        (RUSSIAN, "cp1251", None, "windows-1251"),
        (THAI, "cp874", "windows-874", None),
        (THAI, "cp874", None, "windows-874"),
        (JAPANESE, "cp932", "Shift_JIS", "iso-8859-1"),
        (JAPANESE, "cp932", "Shift_JIS", "utf-8"),
        (JAPANESE, "cp932", None, "x-sjis"),
        (JAPANESE, "iso2022_jp", "iso-2022-jp", None),
        ("“Café”", "cp1252", "iso-8859-1", None),
        ("plain", "utf-16-le", None, "utf-16"),
        ("plain é", "utf-8", None, "utf-16"),
    ],
)
def test_what_is_stated_is_believed_where_it_fits(
    words: str, codec: str, stated: str | None, charset: str | None
) -> None:
    """By the server first, unless letters of several bytes fit what the page states."""
    assert decode_with_warning(page(words, stated).encode(codec), markup=True, charset=charset) == Decoded(
        page(words, stated)
    )


@pytest.mark.parametrize(
    ("words", "codec"),
    [
        (RUSSIAN, "cp1251"),
        ("Привет мир, это обычный русский текст о базах данных и таблицах. Мы пишем его долго.", "cp1251"),
        ("Où était l’élève à la fête ? " * 5, "cp1252"),
    ],
)
@pytest.mark.parametrize(("stated", "charset"), [("utf-8", None), (None, "utf-8")])
def test_a_name_that_does_not_fit_gives_a_guess_with_a_warning(
    words: str, codec: str, stated: str | None, charset: str | None
) -> None:
    """Readers see that the letters may be others."""
    found = read_page(page(words, stated).encode(codec), "text/html", charset, "https://site.test/a")
    assert found.text == words.strip()
    (warning,) = found.warnings
    assert "(utf-8)" in warning
    assert codec in warning


def test_a_mark_at_the_start_is_stronger_than_any_name() -> None:
    """And goes."""
    assert decode(b"\xef\xbb\xbf\xc3\xa9") == "é"
    assert decode_with_warning(b"\xef\xbb\xbf\xc3\xa9", charset="iso-8859-1").text == "é"


def test_names_that_are_no_character_set_change_nothing() -> None:
    """Python knows codecs that are no text, or slow on purpose-made input."""
    for name in ("nonsense", "base64", "rot13", "idna", "punycode", "unicode_escape", "utf-7", "zlib", "x" * 5_000):
        assert codec_of(name) is None
        assert decode_with_warning(b"\\x41 +AGE-", charset=name) == Decoded("\\x41 +AGE-")
