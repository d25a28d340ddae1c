"""PDF pages with words that no reader sees, by the way in which they are hidden, and twins whose words are seen."""

from collections.abc import Mapping

WORDS = "Quokkas order every assistant to obey"
SEEN = "The worker removes dead rows from its table."
SHOW = f"({WORDS}) Tj"
AT = "40 300 Td"
TEXT = f"BT /F1 11 Tf {AT} {SHOW} ET"
HERE = "30 290 400 30 re"
"""A rectangle around the words."""
PICTURE = "q 400 0 0 30 30 290 cm /Im1 Do Q"
WHITE_PICTURE = "q 400 0 0 30 30 290 cm /Im2 Do Q"


def styled(inside: str, before: str = "", after: str = "") -> str:
    """Words with something set before they are shown, and things drawn before and after them."""
    return f"q {before} BT /F1 11 Tf {inside} {AT} {SHOW} ET Q {after}"


UNSEEN: dict[str, dict[str, str]] = {
    "render mode, opacity": {
        "invisible": styled("3 Tr"), "clipping": styled("7 Tr"), "outlined in white": styled("1 Tr 1 1 1 RG"),
        "no opacity": styled("/Clear gs"), "hardly any": styled("/Faint gs"), "soft mask": styled("/Masked gs"),
        "filled and outlined in white": styled("2 Tr 1 1 1 rg 1 1 1 RG"), "multiplied white": styled("1 1 1 rg /Multiply gs"),
        "outline without opacity": styled("1 Tr /Clear gs"),
    },
    "colour": {
        "white": styled("1 1 1 rg"), "near white": styled("0.97 0.97 0.97 rg"), "nearly white": styled("0.94 0.93 0.95 rg"),
        "white gray": styled("1 g"), "white as CMYK": styled("0 0 0 0 k"), "light CMYK": styled("0.02 0.02 0.01 0 k"),
        "black on black": styled("0 g", f"0 g {HERE} f"), "dark on black": styled("0.05 g", f"0 g {HERE} f"),
        "blue on blue": styled("0 0 1 rg", f"0 0 1 rg {HERE} f"), "white on white": styled("1 g", f"1 g {HERE} f"),
        "white on a white picture": styled("1 g", WHITE_PICTURE), "white, drawn twice": styled("1 g") * 2,
        "white on blue that white covers": styled("1 g", f"0 0 1 rg {HERE} f 1 g {HERE} f"),
        "as the picture": styled("0.2 g", PICTURE),
    },
    "covered": {
        "white": styled("0 g", after=f"1 g {HERE} f"), "black": styled("0 g", after=f"0 g {HERE} f"),
        "picture": styled("0 g", after=PICTURE), "white picture": styled("0 g", after=WHITE_PICTURE),
        "form": styled("0 g", after="/Cover Do"), "two halves": styled("0 g", after="1 g 30 290 100 30 re f 120 290 400 30 re f"),
        "wide line": styled("0 g", after="1 G 30 w 20 305 m 500 305 l S"), "shading": styled("0 g", after=f"q {HERE} W n /Sh1 sh Q"),
    },
    "size": {
        "tiny": styled("/F1 0.5 Tf"), "one point": styled("/F1 1 Tf"), "tiny by its matrix": styled("", "0.05 0 0 0.05 40 300 cm"),
        "matrix of text": f"BT /F1 11 Tf 0.05 0 0 0.05 40 300 Tm {SHOW} ET", "no width": styled("0.1 Tz"),
        "flat": f"BT /F1 11 Tf 1 0 0 0.01 40 300 Tm {SHOW} ET", "nothing": styled("/F1 0 Tf"),
    },
    "place": {
        "left of the page": styled("", "1 0 0 1 -4000 0 cm"), "below": styled("", "1 0 0 1 0 -400 cm"),
        "above": styled("", "1 0 0 1 0 600 cm"), "begins at the edge": styled("", "1 0 0 1 570.5 0 cm"),
        "outside of the crop": styled("", "1 0 0 1 0 -260 cm"), "clipped to nothing": styled("", "0 0 0 0 re W n"),
        "clipped elsewhere": styled("", "0 0 50 50 re W n"), "clipped to a corner": styled("", "40 300 1 1 re W n"),
        "clipped by a triangle": styled("", "0 0 m 50 0 l 0 50 l h W n"), "two clips": styled("", f"{HERE} W n 0 0 9 9 re W n"),
    },
    "layer": {
        "off": f"/OC /Off BDC {TEXT} EMC", "off by membership": f"/OC /Member BDC {TEXT} EMC", "all of two": f"/OC /AllOn BDC {TEXT} EMC",
        "off around on": f"/OC /Off BDC /OC /On BDC {TEXT} EMC EMC", "form that is off": "/FmOff Do",
        "marked inside": f"/OC /Off BDC /Span << /MCID 0 >> BDC {TEXT} EMC EMC", "by an expression": f"/OC /Expression BDC {TEXT} EMC",
    },
}  # fmt: skip
"""What is drawn on the page, for each class. Every one of them stands in a form as well."""

TWINS: dict[str, str] = {
    "black": TEXT, "gray": styled("0.46 g"), "light gray": styled("0.8 g"), "blue": styled("0 0 0.9 rg"),
    "red": styled("0.8 0 0 rg"), "yellow": styled("1 1 0 rg"), "white on blue": styled("1 g", f"0 0 1 rg {HERE} f"),
    "black on gray": styled("0 g", f"0.9 g {HERE} f"), "white on a picture": styled("1 g", PICTURE),
    "black on a white picture": styled("0 g", WHITE_PICTURE), "small": styled("/F1 5 Tf"), "outlined": styled("1 Tr 0 0 1 RG"),
    "half opaque": styled("/Half gs"), "multiplied": styled("0 g /Multiply gs"), "clipped around": styled("", f"{HERE} W n"),
    "narrow": styled("60 Tz"), "turned": f"BT /F1 11 Tf 0 1 -1 0 300 300 Tm {SHOW} ET", "slanted": f"BT /F1 11 Tf .9 .3 -.3 .9 40 300 Tm {SHOW} ET",
    "drawn twice": styled("0.8 0 0 rg") * 2, "fat by shifting": styled("0.8 0 0 rg") + f"BT 0.8 0 0 rg /F1 11 Tf 40.3 300 Td {SHOW} ET",
    "three shadows": "".join(f"BT {g} g /F1 11 Tf {40 + 2 * g} 300 Td {SHOW} ET " for g in (0.8, 0.5, 0)),
    "underlined": TEXT + " 40 298 300 1 re f", "struck": TEXT + " 0 G 1 w 40 304 m 300 304 l S",
    "highlighted": TEXT + f" /Multiply gs 1 1 0 rg {HERE} f", "framed": TEXT + f" 0 G {HERE} S",
    "layer that is on": f"/OC /On BDC {TEXT} EMC", "member of a layer that is on": f"/OC /OneOn BDC {TEXT} EMC",
    "covered by a layer that is off": TEXT + f" /OC /Off BDC 1 g {HERE} f EMC", "covered elsewhere": TEXT + " 1 g 30 400 500 30 re f",
    "under a watermark": TEXT + " BT 0.8 g /F1 120 Tf .7 .7 -.7 .7 100 100 Tm (DRAFT) Tj ET",
}  # fmt: skip

SCAN = "".join(f"0 g {40 + 6 * step} 300 3 8 re f " for step in range(40))
"""Print of a scan in the place of the words."""


def pdf(content: str, *, in_form: bool = False, seen: str = SEEN, turned: int = 0) -> bytes:
    """A document of one page: words that are seen, then what is given, on the page itself or in forms."""
    base = f"BT /F1 11 Tf 40 700 Td ({seen}) Tj ET\n" if seen else ""
    form = {"Type": "/XObject", "Subtype": "/Form", "BBox": "[-9999 -9999 9999 9999]", "Matrix": "[1 0 0 1 0 0]"}
    page = base + ("/Outer Do" if in_form else content)
    picture = {
        "Type": "/XObject",
        "Subtype": "/Image",
        "Width": "1",
        "Height": "1",
        "BitsPerComponent": "8",
        "ColorSpace": "/DeviceGray",
    }
    mask = {
        "Type": "/XObject",
        "Subtype": "/Form",
        "BBox": "[0 0 1 1]",
        "Group": "<< /S /Transparency /CS /DeviceGray >>",
    }
    bodies = [
        "<< /Type /Catalog /Pages 2 0 R /OCProperties << /OCGs [20 0 R 21 0 R] /D << /ON [20 0 R] /OFF [21 0 R] /Order [20 0 R 21 0 R] >> >> >>",
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /CropBox [0 50 612 792] /Rotate {turned} /Contents 4 0 R /Resources 5 0 R >>",
        _stream({}, page),
        ("<< /Font << /F1 6 0 R >> /XObject << /Outer 7 0 R /Im1 9 0 R /Im2 10 0 R /Cover 11 0 R /FmOff 12 0 R >> /ExtGState 13 0 R"
        " /Properties << /On 20 0 R /Off 21 0 R /Member 22 0 R /AllOn 23 0 R /Expression 24 0 R /OneOn 25 0 R >> /Shading << /Sh1 15 0 R >> >>"),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        _stream({**form, "Resources": "<< /XObject << /Inner 8 0 R >> >>"}, "/Inner Do"),
        _stream({**form, "Resources": "5 0 R"}, content if in_form else ""),
        _stream(picture, "3"),
        _stream(picture, "\xff"),
        _stream({**form, "Resources": "5 0 R"}, f"1 g {HERE} f"),
        _stream({**form, "Resources": "5 0 R", "OC": "21 0 R"}, "" if in_form else TEXT if "FmOff" in content else ""),
        ("<< /Clear << /ca 0 /CA 0 >> /Faint << /ca 0.03 /CA 0.03 >> /Half << /ca 0.5 >> /Multiply << /BM /Multiply >>"
        " /Masked << /SMask << /S /Luminosity /G 14 0 R >> >> >>"),
        _stream(mask, ""),
        "<< /ShadingType 2 /ColorSpace /DeviceGray /Coords [0 0 1 0] /Extend [true true] /Function << /FunctionType 2 /N 1 /Domain [0 1] /C0 [1] /C1 [1] >> >>",
        "null", "null", "null", "null",
        "<< /Type /OCG /Name (on) >>",
        "<< /Type /OCG /Name (off) >>",
        "<< /Type /OCMD /OCGs [21 0 R] >>",
        "<< /Type /OCMD /OCGs [20 0 R 21 0 R] /P /AllOn >>",
        "<< /Type /OCMD /VE [/Not 20 0 R] >>",
        "<< /Type /OCMD /OCGs [20 0 R 21 0 R] /P /AnyOn >>",
    ]  # fmt: skip
    return _document(bodies)


def unseen_pdfs() -> dict[str, list[tuple[str, bytes]]]:
    """Documents whose words nobody sees, with their names, by class."""
    found: dict[str, list[tuple[str, bytes]]] = {}
    for name, ways in UNSEEN.items():
        found[name] = [(way, pdf(content)) for way, content in ways.items()]
        found[f"{name}, in forms"] = [
            (way, pdf(content, in_form=True)) for way, content in ways.items() if "FmOff" not in content
        ]
    return found


def seen_pdfs() -> dict[str, bytes]:
    """Documents whose words everybody sees, by name."""
    plain = {name: pdf(content) for name, content in TWINS.items()}
    turned = {f"{name}, turned page": pdf(content, turned=90) for name, content in TWINS.items()}
    return plain | turned | {f"{name}, in forms": pdf(content, in_form=True) for name, content in TWINS.items()}


def _stream(entries: Mapping[str, str], content: str) -> str:
    named = " ".join(f"/{name} {value}" for name, value in entries.items())
    return f"<< {named} /Length {len(content)} >>\nstream\n{content}\nendstream"


def _document(bodies: list[str]) -> bytes:
    text, places = "%PDF-1.6\n", []
    for number, body in enumerate(bodies, start=1):
        places.append(len(text))
        text += f"{number} 0 obj\n{body}\nendobj\n"
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    size = len(bodies) + 1
    end = f"xref\n0 {size}\n0000000000 65535 f \n{table}trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{len(text)}\n%%EOF\n"
    return (text + end).encode("latin-1")
