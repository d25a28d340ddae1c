"""Which hits and sources are one and the same: pure, and the same whatever the order of arrival.

Before reading: the same canonical URL or known alias, else the same DOI. After reading: the same final URL, else the
same content. An equal title alone makes a candidate, which is reported and kept.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from contracts.addresses import canonical_url, doi_of, normalize, source_id
from contracts.evidence import SearchHit, Source
from contracts.vocabulary import SourceStatus

LEAST_CONTENT: Final = 200
"""Characters of text from which equal content means something: `Loading…` is the same on all sites."""
LEAST_TITLE: Final = 20
"""A normalized title must be longer than this to make a candidate (ID rules of the domain)."""
MOST_SECTIONS: Final = 6
NOT_A_WORD: Final = re.compile(r"[\W_]+")


class Identities:
    """From hits to source ids, in constant time. Made anew from all hits in sub-query and rank order."""

    def __init__(
        self, sources: Mapping[str, Source], aliases: Mapping[str, str], hits: Iterable[SearchHit] = ()
    ) -> None:
        self._ids: dict[str, str] = dict(aliases)
        self._same: dict[str, str] = {}
        self._first: dict[str, SearchHit] = {}
        self._known = frozenset(sources)
        for source in sources.values():
            for url in (source.url, *source.aliases):
                self._ids.setdefault(canonical_url(url), source.id)
            doi = _doi(source.url, source.doi)
            # What could not be read under one address may be open under another one of the same work.
            if doi and _readable(source):
                self._ids.setdefault(doi, source.id)
        self._places = {identity: place for place, identity in enumerate(sources)}
        for hit in hits:
            self._add(hit)

    def identity_of(self, hit: SearchHit) -> str:
        """The id of the hit's source: a known one's, else that of the first hit of the same URL or DOI."""
        for key in _keys(hit):
            if key in self._ids:
                return self._root(self._ids[key])
        return self._free_id(hit.url)

    def leader_of(self, hit: SearchHit) -> SearchHit:
        """The first hit of the same source: whose address is read, and gives a new source its id."""
        return self._first.get(self.identity_of(hit), hit)

    def _add(self, hit: SearchHit) -> None:
        keys = _keys(hit)
        roots = dict.fromkeys(self._root(self._ids[key]) for key in keys if key in self._ids)
        known = [root for root in roots if root in self._known]
        # Two known sources stay two: the address decides between them. Else the one that came first gives its id.
        identity = known[0] if known else min(roots, key=self._place, default=self._free_id(hit.url))
        for other in roots:
            if other != identity and other not in self._known:
                self._same[other] = identity
        self._places.setdefault(identity, len(self._places))
        self._first.setdefault(identity, hit)
        for key in keys:
            self._ids.setdefault(key, identity)

    def _free_id(self, url: str) -> str:
        """The id of an address that is new here; one that stands for another page already is never given twice."""
        identity = source_id(url)
        while identity in self._places:
            identity = source_id(f"{identity} {canonical_url(url)}")
        return identity

    def _place(self, identity: str) -> int:
        return self._places[identity]

    def _root(self, identity: str) -> str:
        while identity in self._same:
            identity = self._same[identity]
        return identity


@dataclass(frozen=True)
class Registered:
    """The registry after a round of reading."""

    sources: dict[str, Source]
    """All sources, the known ones first, with what their duplicates added."""
    aliases: dict[str, str]
    """Canonical URL → source id."""
    dropped: dict[str, str]
    """Id of a duplicate → id of the source that it turned out to be."""


def register_sources(
    sources: Mapping[str, Source], aliases: Mapping[str, str], fresh: Sequence[tuple[SearchHit, Source]]
) -> Registered:
    """Add what was read, in its final order; one that turns out to be a known source joins it instead.

    A page that shows less than its text (a wall, a check for robots) is like all others of its kind: it is never taken
    for a duplicate.
    """
    kept, known_as, dropped = dict(sources), dict(aliases), {}
    places: dict[str, str] = {}
    for source in sources.values():
        _index(source, places)
    for hit, found in fresh:
        led = [hit.url] if canonical_url(hit.url) != canonical_url(found.url) else []
        source = found.model_copy(update={"aliases": list(dict.fromkeys([*found.aliases, *led]))})
        same = next((places[mark] for mark in _marks(source) if mark in places), None)
        if same is not None and same != source.id:
            kept[same] = merge_aliases(kept[same], source)
            dropped[source.id] = same
        else:
            kept[source.id] = source
            _index(source, places)
        for url in (hit.url, found.url):
            known_as.setdefault(canonical_url(url), same or source.id)
    return Registered(kept, known_as, dropped)


def merge_aliases(kept: Source, duplicate: Source) -> Source:
    """The source that stays, with the sub-queries, addresses and missing details of its duplicate."""
    own = canonical_url(kept.url)
    urls = {canonical_url(url): url for url in (duplicate.url, *duplicate.aliases, *kept.aliases)}
    update: dict[str, object] = {
        "sub_query_ids": list(dict.fromkeys([*kept.sub_query_ids, *duplicate.sub_query_ids])),
        "aliases": sorted(url for key, url in urls.items() if key != own),
        "authors": kept.authors or duplicate.authors,
    }
    for name in ("doi", "venue", "publisher", "published_at", "language"):
        update[name] = getattr(kept, name) or getattr(duplicate, name)
    if kept.text and duplicate.text and kept.text.hash == duplicate.text.hash:
        places = {(part.start, part.end) for part in kept.sections}
        more = [part for part in duplicate.sections if (part.start, part.end) not in places]
        update["sections"] = [*kept.sections, *more][:MOST_SECTIONS]
    return kept.model_copy(update=update)


def same_titles(sources: Iterable[Source]) -> list[tuple[str, ...]]:
    """Ids of readable sources that bear one title, in groups of two and more: candidates only, all of them stay."""
    groups: dict[str, list[str]] = {}
    for source in sources:
        title = normalized_title(source.title)
        if len(title) > LEAST_TITLE and source.status is SourceStatus.FULL:
            groups.setdefault(title, []).append(source.id)
    return [tuple(group) for group in groups.values() if len(group) > 1]


def normalized_title(title: str) -> str:
    """A title for comparing: case, white space and punctuation do not count."""
    return NOT_A_WORD.sub(" ", normalize("NFKC", title).casefold()).strip()


def _keys(hit: SearchHit) -> list[str]:
    doi = _doi(hit.url, hit.doi)
    return [canonical_url(hit.url), *([doi] if doi else [])]


def _doi(url: str, doi: str | None) -> str:
    named = doi_of(doi) or doi_of(url)
    return f"doi:{named}" if named else ""


def _readable(source: Source) -> bool:
    return source.status is SourceStatus.FULL


def _marks(source: Source) -> list[str]:
    """What tells, after reading, that two sources are one."""
    if not _readable(source):
        return []
    marks = [canonical_url(source.url)]
    if source.text is not None and source.text.size >= LEAST_CONTENT:
        marks.append(source.text.hash)
        if source.content_hash:
            marks.append(source.content_hash)
    return marks


def _index(source: Source, places: dict[str, str]) -> None:
    for mark in _marks(source):
        places.setdefault(mark, source.id)
