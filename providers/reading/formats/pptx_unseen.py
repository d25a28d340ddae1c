"""Words of a presentation that nobody sees: hidden shapes, those beside the slide, letters like their ground."""

from collections.abc import Iterator
from functools import cached_property
from typing import Any, Final

from pptx.opc.constants import RELATIONSHIP_TYPE
from pptx.oxml.ns import qn

from providers.reading.formats.archives import theme_colors
from providers.reading.html.styles import Color, alike, color_of

SMALLEST: Final = 200
"""Hundredths of a point: smaller letters are not seen."""
CLEAREST: Final = 5_000
"""Thousandths of a percent of opacity, below which letters are not seen."""
DEEPEST: Final = 20
"""Groups inside one another."""
THEME: Final = {"bg1": "lt1", "tx1": "dk1", "bg2": "lt2", "tx2": "dk2"}
PAINTED: Final = tuple(map(qn, ("a:gradFill", "a:pattFill", "a:blipFill", "a:grpFill")))


class SeenShapes:
    """The shapes of a slide that are on it, and what is seen of their words."""

    def __init__(self, slide: Any) -> None:
        self._slide = slide

    def shapes(self) -> Iterator[Any]:
        """The shapes that are seen, those of groups among them, in the order of the file."""
        presentation = self._slide.part.package.presentation_part.presentation
        width, height = presentation.slide_width or 0, presentation.slide_height or 0
        waiting = [(shape, 0) for shape in reversed(list(self._slide.shapes))]
        while waiting:
            shape, depth = waiting.pop()
            if _is_hidden(shape) or (not depth and not _is_inherited(shape) and _is_beside(shape, width, height)):
                continue
            if hasattr(shape, "shapes"):
                if depth < DEEPEST:
                    waiting += [(inner, depth + 1) for inner in reversed(list(shape.shapes))]
            else:
                yield shape

    def words_of(self, paragraph: Any, shape: Any = None) -> str:
        """What is seen of a paragraph of a shape, or of a table."""
        ground = None if shape is None else self._ground(shape)
        return "".join(
            "\n" if part.tag == qn("a:br") else "".join(part.itertext(qn("a:t")))
            for part in paragraph._p  # noqa: SLF001  # fields and line ends are no runs of the library's
            if part.tag in {qn("a:r"), qn("a:fld"), qn("a:br")} and not self._is_unseen(part, ground)
        )

    def _is_unseen(self, run: Any, ground: Color | None) -> bool:
        properties = run.find(qn("a:rPr"))
        if properties is None:
            return False
        size = properties.get("sz")
        if size is not None and size.isdecimal() and int(size) <= SMALLEST:
            return True
        if properties.find(qn("a:noFill")) is not None:
            return True
        fill = properties.find(qn("a:solidFill"))
        if fill is None:
            return False
        alpha = next((part.get("val") for part in fill.iter(qn("a:alpha"))), None)
        if alpha is not None and alpha.isdecimal() and int(alpha) <= CLEAREST:
            return True
        color = self._color(fill)
        return color is not None and ground is not None and alike(color, ground)

    def _ground(self, shape: Any) -> Color | None:
        """What the words of a shape stand on; None where that is not known."""
        properties = shape._element.find(qn("p:spPr"))  # noqa: SLF001
        if properties is not None:
            fill = properties.find(qn("a:solidFill"))
            if fill is not None:
                return self._color(fill)
            if any(properties.find(name) is not None for name in PAINTED):
                return None
        if shape._element.find(qn("p:style")) is not None or self._has_drawings:  # noqa: SLF001
            return None
        return self._background

    @cached_property
    def _has_drawings(self) -> bool:
        """Whether anything but words lies on the slide, which may be the ground of some of them."""
        layout = self._slide.slide_layout
        places = (self._slide, layout, layout.slide_master)
        return any(
            not shape.is_placeholder and (not shape.has_text_frame or _is_painted(shape))
            for place in places
            for shape in place.shapes
        )

    @cached_property
    def _background(self) -> Color | None:
        layout = self._slide.slide_layout
        for place in (self._slide, layout, layout.slide_master):
            background = place._element.find(f"{qn('p:cSld')}/{qn('p:bg')}")  # noqa: SLF001
            if background is not None:
                fill = next(background.iter(qn("a:solidFill")), None)
                if fill is None:
                    fill = background.find(qn("p:bgRef"))
                return None if fill is None else self._color(fill)
        return None

    def _color(self, fill: Any) -> Color | None:
        """The colour of a fill, if it is stated plainly."""
        for part in fill:
            value = (part.get("val") or "").lower()
            if any(child.tag != qn("a:alpha") for child in part):
                return None
            if part.tag == qn("a:srgbClr"):
                return color_of(f"#{value}")
            if part.tag == qn("a:schemeClr"):
                return self._theme.get(self._map_name(value))
        return None

    def _map_name(self, name: str) -> str:
        mapping = self._slide.slide_layout.slide_master._element.find(qn("p:clrMap"))  # noqa: SLF001
        found = None if mapping is None else mapping.get(name)
        return str(found or THEME.get(name, name))

    @cached_property
    def _theme(self) -> dict[str, Color]:
        part = self._slide.slide_layout.slide_master.part.part_related_by(RELATIONSHIP_TYPE.THEME)
        return theme_colors(part.blob)


def _is_hidden(shape: Any) -> bool:
    own = next(shape._element.iter(qn("p:cNvPr")), None)  # noqa: SLF001
    return own is not None and own.get("hidden") in {"1", "true"}


def _is_inherited(shape: Any) -> bool:
    """Whether the layout says where a shape lies, which takes long to look up, and nobody puts one beside the slide."""
    return shape.is_placeholder and next(shape._element.iter(qn("a:xfrm"), qn("p:xfrm")), None) is None  # noqa: SLF001


def _is_painted(shape: Any) -> bool:
    properties = shape._element.find(qn("p:spPr"))  # noqa: SLF001
    filled = properties is not None and any(properties.find(name) is not None for name in (qn("a:solidFill"), *PAINTED))
    return filled or shape._element.find(qn("p:style")) is not None  # noqa: SLF001


def _is_beside(shape: Any, width: int, height: int) -> bool:
    """Whether a shape that states its place lies beside the slide."""
    places = (shape.left, shape.top, shape.width, shape.height)
    if any(place is None for place in places) or not width or not height:
        return False
    left, top, wide, high = places
    return bool(left >= width or top >= height or left + wide <= 0 or top + high <= 0)
