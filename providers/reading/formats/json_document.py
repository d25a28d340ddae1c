"""JSON: each value on a line of its own, under its name, in the order of the document."""

from collections.abc import Iterator
from typing import Any, Final

from providers.errors import SourceUnreadable
from providers.reading.canonical_text import BlockKind, Extraction, TextBuilder
from providers.reading.cleaning import clean, escape_markup, one_line
from providers.strict_json import JsonError, parse_json

CHARACTERS: Final = 1_000_000
DEPTH: Final = 32
VALUES: Final = 50_000
DEEPEST_INDENT: Final = 6
TITLES: Final = ("title", "headline", "name", "label")


def extract_json(text: str) -> Extraction:
    """The canonical text of a JSON document: nested lists of `name: value`.

    Raises `SourceUnreadable`: too_large; malformed for what is no JSON by the strict rules (a key that occurs twice,
    `NaN`, integers beyond 64 bits, nesting deeper than 32 levels); no_text.
    """
    if len(text) > CHARACTERS:
        raise SourceUnreadable("too_large", f"the document is larger than {CHARACTERS} characters")
    try:
        parsed = parse_json(text.removeprefix("\ufeff").strip(), max_depth=DEPTH)
    except (JsonError, RecursionError) as error:
        raise SourceUnreadable("malformed", "the document is no JSON, or nested too deep") from error
    if parsed.flaws:
        raise SourceUnreadable("malformed", f"the document is no strict JSON: {min(parsed.flaws)}")
    builder = TextBuilder()
    for number, (depth, line) in enumerate(_lines(parsed.value, 0)):
        if number >= VALUES:
            builder.cut = True
            break
        builder.add(BlockKind.ITEM, line, before="  " * min(depth, DEEPEST_INDENT) + "- ")
    if not builder.blocks:
        raise SourceUnreadable("no_text", "the document holds no values")
    return builder.finish("application/json", title=_title(parsed.value))


def _lines(value: Any, depth: int) -> Iterator[tuple[int, str]]:
    """Depth and words of each line; a container without a name adds no line of its own."""
    match value:
        case dict():
            for name, inner in value.items():
                yield from _write_named(f"{_words(name)}:", inner, depth)
        case list():
            for number, inner in enumerate(value, 1):
                if isinstance(inner, dict | list) and inner:
                    yield from _write_named(f"{number}:", inner, depth)
                else:
                    yield depth, _scalar(inner)
        case _:
            yield depth, _scalar(value)


def _write_named(name: str, value: Any, depth: int) -> Iterator[tuple[int, str]]:
    if isinstance(value, dict | list) and value:
        yield depth, name
        yield from _lines(value, depth + 1)
    else:
        yield depth, f"{name} {_scalar(value)}".rstrip()


def _scalar(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return escape_markup(_words(value))
        case dict() | list():
            return ""
        case _:
            return repr(value)


def _words(text: str) -> str:
    return one_line(clean(text))


def _title(value: Any) -> str:
    if not isinstance(value, dict):
        return ""
    titles = (value.get(name) for name in TITLES)
    return next((_words(title)[:300] for title in titles if isinstance(title, str) and title.strip()), "")
