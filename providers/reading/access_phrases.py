"""What pages say when they hold their content back, by language: loaded from the file of the same name."""

import tomllib
from functools import cache
from importlib.resources import files
from typing import Final

from contracts.vocabulary import PageAccess

Phrases = dict[PageAccess, tuple[str, ...]]
FILE: Final = "access_phrases.toml"


def _load() -> tuple[Phrases, ...]:
    data = tomllib.loads(files(__package__ or "").joinpath(FILE).read_text("utf-8"))
    for part in ("said", "weak", "stops", "called"):
        data[part] = {access: chain.from_iterable(languages.values()) for access, languages in data[part].items()}
    return tuple({PageAccess(access): tuple(words) for access, words in data[part].items()} for part in PARTS)


@cache
def said() -> Phrases:
    """Phrases of the text of a page, of all languages; ` * ` stands for up to forty characters."""
    return _of_all_languages("said")


@cache
def weak() -> Phrases:
    """Phrases of the same kind that open pages say too: they need a second sign."""
    return _of_all_languages("weak")


@cache
def stops() -> Phrases:
    """Phrases at which a text stops that is not for sale."""
    return _of_all_languages("stops")


@cache
def called() -> Phrases:
    """Whole titles and first headings, without the name of the site."""
    return _of_all_languages("called")


@cache
def marks() -> Phrases:
    """Names of elements and parts of the addresses of scripts; for scripts: ids of what an application fills."""
    return {PageAccess(access): tuple(names) for access, names in _data()["marks"].items()}


@cache
def _data() -> dict[str, dict[str, dict[str, list[str]]]]:
    return tomllib.loads(files(__package__ or "").joinpath(FILE).read_text("utf-8"))


def _of_all_languages(part: str) -> Phrases:
    return {
        PageAccess(access): tuple(phrase for phrases in languages.values() for phrase in phrases)
        for access, languages in _data()[part].items()
    }
