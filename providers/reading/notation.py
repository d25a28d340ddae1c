"""Numbers of lists, formulas and diagrams as lines of text, the same for all readers."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

from lxml import etree  # type: ignore[import-untyped]

Element: TypeAlias = Any  # an element of lxml, which has no type stubs

ROMAN: Final = ((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"),
                (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"))  # fmt: skip
MAX_LETTERS: Final = 9
SIMPLE: Final = re.compile(r"[-−+]?\w*")
"""A term that needs no brackets."""
UNWRITTEN: Final = frozenset(("annotation", "annotation-xml", "delText", "instrText", "mphantom"))
ROOT_SIGN: Final = "√"
SYMBOL_FONT: Final = dict(
    zip(
        (*range(0x20, 0x7F), *range(0xA0, 0xF0), *range(0xF1, 0xFF)),
        " !∀#∃%&∋()∗+,−./0123456789:;<=>?≅ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ[∴]⊥_‾αβχδεφγηιϕκλμνοπθρστυϖωξψζ{|}∼"
        "€ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…⏐⎯↵ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉∠∇®©™∏√⋅¬∧∨⇔⇐⇑⇒⇓◊〈®©™∑⎛⎜⎝⎡⎢⎣⎧⎨⎩⎪"
        "〉∫⌠⎮⌡⎞⎟⎠⎤⎥⎦⎫⎬⎭",
        strict=True,
    )
)
"""Signs of the font Symbol, by their code in it."""
WINGDINGS: Final = {
    0x6F: "☐", 0x71: "☐", 0x72: "☐", 0xA8: "☐", 0x78: "☒", 0xFD: "☒", 0xFE: "☑", 0xFC: "✓", 0xFB: "✗",
    0xDF: "←", 0xE0: "→", 0xE1: "↑", 0xE2: "↓",
}  # fmt: skip
"""Boxes, ticks and arrows of the font Wingdings; its other signs are pictures."""
SIGNS_OF_FONTS: Final[Mapping[str, Mapping[int, str]]] = {"symbol": SYMBOL_FONT, "wingdings": WINGDINGS}
FONT_CODES: Final = range(0xF000, 0xF100)
"""Characters by which Office writes the signs of a font that has no letters."""
PRIVATE_USE: Final = range(0xE000, 0xF900)
MAX_CODE: Final = 0xFFFF
DRAWING: Final = "{http://schemas.openxmlformats.org/drawingml/2006/main}"


def written_number(number: int, form: str) -> str:
    """Write a number in a form of numbering; forms of other scripts become decimal ones."""
    match form:
        case "none":
            return ""
        case "decimalZero":
            return f"{number:02}"
        case "ordinal":
            ends = {1: "st", 2: "nd", 3: "rd"}
            return f"{number}{'th' if number % 100 in {11, 12, 13} else ends.get(number % 10, 'th')}"
        case "lowerLetter" | "upperLetter" if number > 0:
            letters = chr(ord("a") + (number - 1) % 26) * min((number - 1) // 26 + 1, MAX_LETTERS)
            if form.startswith("upper"):
                return letters.upper()
            return letters
        case "lowerRoman" | "upperRoman" if 0 < number < 4000:
            written = ""
            for value, letters in ROMAN:
                written += letters * (number // value)
                number %= value
            if form.startswith("upper"):
                return written.upper()
            return written
    return str(number)


def sign_of_font(code: int, font: str) -> str:
    """Return the character that a code of a font such as Symbol means; empty for a picture and for no code."""
    signs = SIGNS_OF_FONTS.get(font.strip().lower())
    if signs is not None and (code in FONT_CODES or code in range(0x100)):
        return signs.get(code & 0xFF, "")
    if code in PRIVATE_USE or not 0 <= code <= MAX_CODE:
        return ""
    return chr(code)


def with_signs_of_font(text: str, font: str) -> str:
    """Return a text in which the codes of a font such as Symbol are the characters that they mean."""
    if text.isascii() or font.strip().lower() not in SIGNS_OF_FONTS:
        return text
    return "".join(sign_of_font(ord(sign), font) if ord(sign) in FONT_CODES else sign for sign in text)


def formula_text(element: Element) -> str:
    """Write a formula of MathML or of Word as one line: `E=mc^2`, `(a+b)/c`, `√x`, `x_i`."""
    if not isinstance(element.tag, str):
        return ""
    name = element.tag.rpartition("}")[2]
    if name in UNWRITTEN or name.endswith("Pr"):
        return ""
    if not len(element):
        text = element.text or ""
        if name == "t":
            return text
        return " ".join(text.split())
    inner = [(child.tag, formula_text(child)) for child in element if isinstance(child.tag, str)]
    texts = [text for _, text in inner]
    parts = {tag.rpartition("}")[2]: text for tag, text in inner}
    match name:
        case "msup" | "mover" if len(texts) == 2:
            return f"{texts[0]}^{_term(texts[1])}"
        case "msub" | "munder" if len(texts) == 2:
            return f"{texts[0]}_{_term(texts[1])}"
        case "msubsup" | "munderover" if len(texts) == 3:
            return f"{texts[0]}_{_term(texts[1])}^{_term(texts[2])}"
        case "mfrac" if len(texts) == 2:
            return f"{_term(texts[0])}/{_term(texts[1])}"
        case "mroot" if len(texts) == 2:
            return f"{texts[1]}{ROOT_SIGN}{_term(texts[0])}"
        case "msqrt":
            return ROOT_SIGN + _term("".join(texts))
        case "mtr" | "mr":
            return " ".join(texts)
        case "mtable" | "m" | "eqArr":
            return "; ".join(filter(None, texts))
        case "sSup" | "sSub" | "sSubSup" | "limLow" | "limUpp":
            limit = parts.get("lim", "")
            lower = parts.get("sub", limit if name == "limLow" else "")
            upper = parts.get("sup", limit if name == "limUpp" else "")
            return parts.get("e", "") + _limits(lower, upper)
        case "f":
            return f"{_term(parts.get('num', ''))}/{_term(parts.get('den', ''))}"
        case "rad":
            return parts.get("deg", "") + ROOT_SIGN + _term(parts.get("e", ""))
        case "nary":
            bounds = _limits(parts.get("sub", ""), parts.get("sup", ""))
            return f"{_property(element, 'chr', '∫')}{bounds} {parts.get('e', '')}"
        case "d":
            return _property(element, "begChr", "(") + "|".join(texts) + _property(element, "endChr", ")")
    return (element.text or "").strip() + "".join(texts)


def diagram_lines(raw: bytes) -> Iterator[str]:
    """Yield the paragraphs of a diagram of Office (SmartArt) in the order of its data."""
    root = etree.fromstring(raw, etree.XMLParser(resolve_entities=False, no_network=True, recover=True))
    if root is None:
        return
    for paragraph in root.iter(f"{DRAWING}p"):
        if text := "".join(part.text or "" for part in paragraph.iter(f"{DRAWING}t")).strip():
            yield text


def _limits(lower: str, upper: str) -> str:
    """Return what stands below and above a sign, behind it; either may be empty."""
    written = f"_{_term(lower)}" if lower else ""
    if upper:
        written += f"^{_term(upper)}"
    return written


def _property(element: Element, name: str, default: str) -> str:
    """Return a sign that Word states for a formula in its properties."""
    for found in element.iterfind(f"./{{*}}{element.tag.rpartition('}')[2]}Pr/{{*}}{name}"):
        return str(next(iter(found.attrib.values()), ""))
    return default


def _term(text: str) -> str:
    if SIMPLE.fullmatch(text):
        return text
    return f"({text})"
