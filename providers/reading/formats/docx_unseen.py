"""Words of a Word document that no reader of its pages sees: by its runs, its styles, and what they stand on."""

from collections.abc import Iterator
from functools import cached_property
from typing import Any, Final

from docx.oxml.ns import qn

from providers.reading.formats.archives import theme_colors
from providers.reading.html.styles import WHITE, Color, alike, color_of

TEXT_2010: Final = "{http://schemas.microsoft.com/office/word/2010/wordml}"
SMALLEST: Final = 4
"""Half points."""
NARROWEST: Final = 5
"""Percent of the width of letters."""
LOWEST: Final = 40
"""Twentieths of a point that a line or a row leaves its words."""
FAR_LEFT, FAR_RIGHT = -3_000, 24_000
"""Twentieths of a point from the margin, beyond which nothing is on a page."""
MOST_STYLES: Final = 50
"""Styles that rest on one another."""
CLEAREST: Final = 95_000
"""Thousandths of a percent of what shines through."""
OFF: Final = frozenset(("0", "false", "off", "none"))
NOT_THERE: Final = tuple(map(qn, ("w:del", "w:moveFrom", "w:txbxContent", "w:rt")))
"""What was deleted, and boxes of their own."""
THEME: Final = {
    "background1": "lt1", "background2": "lt2", "text1": "dk1", "text2": "dk2", "light1": "lt1", "light2": "lt2",
    "dark1": "dk1", "dark2": "dk2", "bg1": "lt1", "bg2": "lt2", "tx1": "dk1", "tx2": "dk2", "hyperlink": "hlink",
    "followedHyperlink": "folHlink",
}  # fmt: skip
HIGHLIGHTS: Final = {
    "darkYellow": "olive", "darkBlue": "navy", "darkCyan": "teal", "darkGreen": "green", "darkMagenta": "purple",
    "darkRed": "maroon", "darkGray": "gray", "lightGray": "silver",
}  # fmt: skip
CLEAR: Final = Color(0, 0, 0, 0)
"""The shading of what has none."""


class SeenRuns:
    """Finds the runs of paragraphs that are seen."""

    def __init__(self, document: Any) -> None:
        self._document = document

    def of(self, paragraph: Any) -> list[Any]:
        """The runs of a paragraph of which a reader sees something."""
        inside = list(paragraph.iterancestors(qn("w:tc"), qn("w:tr"), qn("w:tbl")))
        if any(map(_has_no_room, inside)) or _is_moved_away(paragraph):
            return []
        styles = [*self._of_paragraph(paragraph), *self._of_tables(inside), self._defaults]
        ground = self._ground(paragraph, inside)
        return [run for run in _runs(paragraph) if not self._is_unseen(run, styles, ground)]

    def _is_unseen(self, run: Any, styles: list[Any], ground: Color | None) -> bool:
        own = run.find(qn("w:rPr"))
        places = [own, *(style.find(qn("w:rPr")) for style in self._follow_styles(_value(own, "w:rStyle"))), *styles]
        places = [place for place in places if place is not None]
        if any(_is_on(places, name) for name in ("w:vanish", "w:webHidden", "w:specVanish")):
            return True
        size, width = _number(places, "w:sz"), _number(places, "w:w")
        if (size is not None and size <= SMALLEST) or (width is not None and width <= NARROWEST):
            return True
        shade = self._shade(_first(places, "w:shd"))
        highlight = _first(places, "w:highlight")
        name = highlight.get(qn("w:val")) if highlight is not None else None
        if name and name != "none":
            ground = color_of(HIGHLIGHTS.get(name, name.lower()))
        elif shade != CLEAR:
            ground = shade
        color = self._letters(places)
        return color is not None and (
            color.opacity * 100_000 <= 100_000 - CLEAREST or (ground is not None and alike(color.over(ground), ground))
        )

    def _letters(self, places: list[Any]) -> Color | None:
        """The colour of letters; None for one that goes by the ground."""
        for place in places:
            filled = place.find(f"{TEXT_2010}textFill")
            if filled is not None:
                return self._filling(filled)
            color = place.find(qn("w:color"))
            if color is not None:
                value = color.get(qn("w:val")) or "auto"
                return self._color(value, color, "w:themeColor", "w:themeTint", "w:themeShade")
        return None

    def _filling(self, filled: Any) -> Color | None:
        if filled.find(f"{TEXT_2010}noFill") is not None:
            return Color(0, 0, 0, 0)
        for part in filled.iter(f"{TEXT_2010}srgbClr", f"{TEXT_2010}schemeClr"):
            value = part.get(f"{TEXT_2010}val") or ""
            color = self._of_theme(value) if part.tag.endswith("schemeClr") else color_of(f"#{value.lower()}")
            alpha = part.find(f"{TEXT_2010}alpha")
            clear = _whole(alpha.get(f"{TEXT_2010}val")) if alpha is not None else None
            return color if color is None or clear is None else color._replace(opacity=1 - clear / 100_000)
        return None

    def _ground(self, paragraph: Any, inside: list[Any]) -> Color | None:
        """What a paragraph stands on: a plain colour, or None for one that is not known."""
        properties = [paragraph.find(qn("w:pPr")), *self._of_paragraph(paragraph, "w:pPr")]
        cells = [outer.find(qn("w:tcPr")) for outer in inside if outer.tag == qn("w:tc")]
        for place in (*properties, *cells):
            shade = self._shade(place.find(qn("w:shd")) if place is not None else None)
            if shade != CLEAR:
                return shade
        tables = [outer for outer in inside if outer.tag == qn("w:tbl")]
        if any(next(style.iter(qn("w:shd")), None) is not None for table in tables for style in self._styles_of(table)):
            return None
        background = self._document.element.find(qn("w:background"))
        shown = _is_on([self._document.settings.element], "w:displayBackgroundShape")
        value = background.get(qn("w:color")) if background is not None and shown else None
        return WHITE if not value or value == "auto" else color_of(f"#{value.lower()}")

    def _shade(self, shade: Any) -> Color | None:
        """The colour of a shading; None for one that is not known; clear where there is none."""
        if shade is None:
            return CLEAR
        kind = shade.get(qn("w:val")) or "clear"
        if kind not in {"clear", "nil", "solid"}:
            return None
        fill = shade.get(qn("w:color" if kind == "solid" else "w:fill")) or "auto"
        theme = ("w:themeColor", "w:themeTint", "w:themeShade") if kind == "solid" else (
            "w:themeFill", "w:themeFillTint", "w:themeFillShade")  # fmt: skip
        color = self._color(fill, shade, *theme)
        return CLEAR if color is None and fill == "auto" else color

    def _color(self, value: str, element: Any, theme: str, tint: str, shade: str) -> Color | None:
        named = element.get(qn(theme))
        color = self._of_theme(named) if named and named != "none" else None
        if color is None:
            return None if value == "auto" else color_of(f"#{value.lower()}")
        lighter, darker = _hexadecimal(element.get(qn(tint))), _hexadecimal(element.get(qn(shade)))
        if lighter is not None:
            return Color(*(part * lighter / 255 + 255 - lighter for part in color[:3]))
        return color if darker is None else Color(*(part * darker / 255 for part in color[:3]))

    def _of_theme(self, name: str) -> Color | None:
        return self._theme.get(THEME.get(name, name))

    @cached_property
    def _theme(self) -> dict[str, Color]:
        """Colours of the theme by name."""
        parts = [relation for relation in self._document.part.rels.values() if relation.reltype.endswith("/theme")]
        known = theme_colors(parts[0].target_part.blob) if parts else {}
        return {"lt1": WHITE, "dk1": Color(0, 0, 0)} | known

    @cached_property
    def _styles(self) -> dict[str, Any]:
        return {style.get(qn("w:styleId")): style for style in self._document.styles.element.iter(qn("w:style"))}

    @cached_property
    def _defaults(self) -> Any:
        return self._document.styles.element.find(f"{qn('w:docDefaults')}/{qn('w:rPrDefault')}/{qn('w:rPr')}")

    @cached_property
    def _default_paragraph(self) -> str | None:
        on = "@w:default='1' or @w:default='true' or @w:default='on'"
        return next(iter(self._document.styles.element.xpath(f"w:style[@w:type='paragraph'][{on}]/@w:styleId")), None)

    def _follow_styles(self, name: str | None) -> list[Any]:
        found: list[Any] = []
        while name in self._styles and len(found) < MOST_STYLES:
            found.append(self._styles[name])
            name = _value(found[-1], "w:basedOn")
        return found

    def _of_paragraph(self, paragraph: Any, wanted: str = "w:rPr") -> list[Any]:
        name = _value(paragraph.find(qn("w:pPr")), "w:pStyle") or self._default_paragraph
        return [style.find(qn(wanted)) for style in self._follow_styles(name)]

    def _styles_of(self, table: Any) -> list[Any]:
        return self._follow_styles(_value(table.find(qn("w:tblPr")), "w:tblStyle"))

    def _of_tables(self, inside: list[Any]) -> list[Any]:
        return [
            style.find(qn("w:rPr")) for table in inside if table.tag == qn("w:tbl") for style in self._styles_of(table)
        ]


def _runs(paragraph: Any) -> Iterator[Any]:
    """The runs of a paragraph itself, in links, insertions and the like too."""
    for run in paragraph.iter(qn("w:r")):
        outer = run.getparent()
        while outer is not paragraph and outer.tag not in NOT_THERE:
            outer = outer.getparent()
        if outer is paragraph:
            yield run


def _has_no_room(part: Any) -> bool:
    """Whether a row, or a table, leaves its words no place on a page."""
    if part.tag == qn("w:tr"):
        properties = part.find(qn("w:trPr"))
        if properties is None:
            return False
        height = properties.find(qn("w:trHeight"))
        exact = height is not None and height.get(qn("w:hRule")) == "exact"
        return _is_on([properties], "w:hidden") or (exact and (_whole(height.get(qn("w:val"))) or 0) <= LOWEST)
    if part.tag == qn("w:tbl"):
        return any(_is_far(place, "w:tblpX", "w:tblpY") for place in part.iterfind(f"{qn('w:tblPr')}/{qn('w:tblpPr')}"))
    return False


def _is_moved_away(paragraph: Any) -> bool:
    properties = paragraph.find(qn("w:pPr"))
    if properties is None:
        return False
    spacing = properties.find(qn("w:spacing"))
    if spacing is not None and spacing.get(qn("w:lineRule")) == "exact":
        line = _whole(spacing.get(qn("w:line")))
        if line is not None and line <= LOWEST:
            return True
    return any(_is_far(place, "w:x", "w:y") for place in properties.iterfind(qn("w:framePr"))) or any(
        _is_far(place, "w:left", "w:start") for place in properties.iterfind(qn("w:ind"))
    )


def _is_far(place: Any, *names: str) -> bool:
    values = (_whole(place.get(qn(name))) for name in names)
    return any(value is not None and not FAR_LEFT <= value <= FAR_RIGHT for value in values)


def _first(places: list[Any], name: str) -> Any:
    return next((found for place in places if (found := place.find(qn(name))) is not None), None)


def _is_on(places: list[Any], name: str) -> bool:
    found = _first(places, name)
    return found is not None and (found.get(qn("w:val")) or "1").lower() not in OFF


def _number(places: list[Any], name: str) -> int | None:
    found = _first(places, name)
    return None if found is None else _whole((found.get(qn("w:val")) or "").removesuffix("%"))


def _value(place: Any, name: str) -> str | None:
    found = place.find(qn(name)) if place is not None else None
    return None if found is None else found.get(qn("w:val"))


def _whole(text: str | None) -> int | None:
    try:
        return int(float(text)) if text else None
    except (ValueError, OverflowError):
        return None


def _hexadecimal(text: str | None) -> int | None:
    try:
        return int(text, 16) if text else None
    except ValueError:
        return None
