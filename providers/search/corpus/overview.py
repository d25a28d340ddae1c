"""The content of a corpus, in a few lines: folders, titles that represent the documents, languages, dates and versions.

Pure.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from contracts.lenient import to_line
from contracts.resolved import CorpusFolder, CorpusOverview, TitleSeries
from providers.text import language_data, word_keys, words

MAX_FOLDERS: Final = 20
MAX_TITLES: Final = 40
MAX_LANGUAGES: Final = 5
TITLE_CHARACTERS: Final = 100
MAX_TITLE_WORDS: Final = 20  # of a title that count for the choice
MAX_SERIES: Final = 5
MIN_SERIES: Final = 5  # titles that differ in their numbers alone
NUMBER: Final = re.compile(r"\d+(?:[.-]\d+)*+")
"""A number, a version or a date in figures."""


class DocumentTitle(NamedTuple):
    """A document of a corpus, as far as an overview needs it."""

    path: str
    title: str
    language: str
    published_at: str | None


def overview_of(documents: Sequence[DocumentTitle]) -> CorpusOverview:
    """Return the overview of a corpus; equal documents give an equal overview."""
    languages = Counter(document.language for document in documents if document.language)
    dates = sorted(document.published_at[:10] for document in documents if document.published_at)
    return CorpusOverview(
        folders=_folders(document.path for document in documents),
        titles=representative_titles(documents, MAX_TITLES),
        languages=sorted(languages, key=lambda code: (-languages[code], code))[:MAX_LANGUAGES],
        oldest=dates[0] if dates else "",
        newest=dates[-1] if dates else "",
        series=_series(document.title for document in documents),
    )


def _series(titles: Iterable[str]) -> list[TitleSeries]:
    """Return the longest series of titles that differ in their numbers alone, each with its last one.

    The last is told by the last number, as the first may be that of a section. Titles that only begin with a number are
    those of sections.
    """
    series: dict[str, set[str]] = defaultdict(set)
    for title in (to_line(title, TITLE_CHARACTERS) for title in titles):
        if form := series_form(title):
            series[form].add(title)
    longest = sorted(series, key=lambda form: (-len(series[form]), form))[:MAX_SERIES]
    return [
        TitleSeries(last=max(sorted(series[form]), key=_numbers), count=len(series[form]))
        for form in longest
        if len(series[form]) >= MIN_SERIES
    ]


def series_form(title: str) -> str:
    """Return what titles of one series have in common, with a sign for each number; empty for a title of none."""
    form = NUMBER.sub("#", title)
    if form.rfind("#") > 0:
        return form
    return ""


def _numbers(title: str) -> list[tuple[int, ...]]:
    """Return the numbers of a title, the last one first."""
    numbers = [tuple(int(part) for part in re.split("[.-]", number)) for number in NUMBER.findall(title)]
    return numbers[::-1]


def _folders(paths: Iterable[str]) -> list[CorpusFolder]:
    """Return the largest folders of the first level at which there are several, with the number of their documents."""
    parents = [path.split("/")[:-1] for path in paths]
    depth = 0
    while parents and all(len(parent) > depth and parent[depth] == parents[0][depth] for parent in parents):
        depth += 1
    counts = Counter("/".join(parent[: depth + 1]) for parent in parents if len(parent) > depth)
    largest = sorted(counts, key=lambda name: (-counts[name], name))[:MAX_FOLDERS]
    return [CorpusFolder(path=name, files=counts[name]) for name in largest]


def representative_titles(documents: Sequence[DocumentTitle], limit: int) -> list[str]:
    """Return distinct titles that together have the most frequent words of all titles, in the order of the documents.

    Each title is chosen for the words that no title chosen before has, each counted as often as titles have it.
    """
    titles: dict[str, frozenset[str]] = {}
    order: dict[str, int] = {}
    for document in sorted(documents):
        title = to_line(document.title, TITLE_CHARACTERS)
        if title and title not in titles:
            titles[title] = _keys(title, document.language)
            order[title] = len(order)
    counts = Counter(key for keys in titles.values() for key in keys)
    # A word of nearly every title, such as the product's name, tells nothing apart.
    common = {key for key, count in counts.items() if count > len(titles) / 2}
    chosen: list[str] = []
    covered = set(common)
    remaining = dict(titles)
    while remaining and len(chosen) < limit:
        best = max(
            remaining,
            key=lambda title: (_gain(titles[title] - covered, counts) / (1 + len(titles[title])), -order[title]),
        )
        chosen.append(best)
        covered |= remaining.pop(best)
    return sorted(chosen, key=order.__getitem__)


def _gain(keys: Iterable[str], counts: Counter[str]) -> int:
    return sum(counts[key] for key in keys)


def _keys(title: str, language: str) -> frozenset[str]:
    stop = language_data(language).stop
    kept = [word for word in words(title) if word.casefold() not in stop and any(map(str.isalpha, word))]
    return frozenset(key for word in kept[:MAX_TITLE_WORDS] for key in word_keys(word, language))
