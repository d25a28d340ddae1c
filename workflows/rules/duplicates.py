"""Identity of hits and sources, independent of arrival order: by URL or DOI, after reading by URL or content. Pure."""

from collections.abc import Collection, Mapping, Sequence
from itertools import zip_longest
from typing import Final

from contracts.addresses import canonical_url, source_id
from contracts.evidence import SearchHit, Source, join_hits, keys_of
from contracts.names import CORPUS_SCHEME
from contracts.protected_sources import NAMED
from contracts.recursive_roles import MentionedWork
from contracts.sentences import Message
from contracts.state import ResearchState
from contracts.vetting import ExaminedSource
from contracts.vocabulary import Quality, SourceStatus

NO_WEB: Final = Message("no_web")
ENDED_BEFORE: Final = Message("run_ended_before")
MIN_CONTENT_CHARACTERS: Final = 200
"""Characters from which equal text means the same source; `Loading…` is the same on many sites."""


# --- before reading ------------------------------------------------------------------------------------------------
class Identities:
    """Maps hits to source ids; hits are added in sub-query and rank order."""

    def __init__(self, sources: Mapping[str, Source], aliases: Mapping[str, str]) -> None:
        self._ids: dict[str, str] = dict(aliases)
        """Canonical URL or DOI → id."""
        self._leaders: dict[str, SearchHit] = {}
        for source in sources.values():
            for url in (source.url, *source.aliases):
                self._ids.setdefault(canonical_url(url), source.id)
            if source.status is not SourceStatus.FULL:
                continue  # an unreadable work may be readable at another URL
            for key in keys_of(source):
                self._ids.setdefault(key, source.id)

    def add(self, hit: SearchHit) -> None:
        """Add a hit that ranks after all earlier ones; the first one with an open text leads."""
        identity = self.identity_of(hit)
        leader = self._leaders.setdefault(identity, hit)
        if leader.abstract_only and not hit.abstract_only:
            self._leaders[identity] = join_hits(leader, hit)
        for key in keys_of(hit):
            self._ids.setdefault(key, identity)

    def identity_of(self, hit: SearchHit) -> str:
        """Return the source id of a hit: that of a known source, else of the first hit with the same URL or DOI."""
        return next((self._ids[key] for key in keys_of(hit) if key in self._ids), source_id(hit.url))

    def leader_of(self, hit: SearchHit) -> SearchHit:
        """Return the hit of the same source whose URL is read: the first with an open text, else the first."""
        return self._leaders.get(self.identity_of(hit), hit)


# --- candidates of a librarian -------------------------------------------------------------------------------------
def interleave_hits(state: ResearchState, searches: Sequence[str], works: Sequence[MentionedWork]) -> list[SearchHit]:
    """Return the hits of searches, interleaved rank by rank in search order; mentioned works come first."""
    by_search = [
        sorted(
            (candidate.hit for candidate in state.evidence.candidates if candidate.sub_query_id == name),
            key=lambda hit: hit.rank,
        )
        for name in searches
    ]
    hits = [hit for rank in zip_longest(*by_search) for hit in rank if hit is not None]
    return sorted(hits, key=lambda hit: not any(work.is_at(hit.url, hit.title) for work in works))


def choose_candidates(
    state: ResearchState, hits: Sequence[SearchHit], examined: Collection[str], limit: int
) -> list[SearchHit]:
    """Return the first hits of distinct sources not examined for this need yet, at most `limit`."""
    identities = Identities(state.evidence.sources, state.evidence.aliases)
    chosen = dict[str, SearchHit]()
    for hit in hits:
        identities.add(hit)
        identity = identities.identity_of(hit)
        if identity not in examined and len(chosen) < limit:
            chosen.setdefault(identity, identities.leader_of(hit))
    return list(chosen.values())


def assess_by_rules(source: Source, *, is_named: bool) -> ExaminedSource:
    """Reject a candidate that could not be read or, unless named by the request, is of low quality."""
    is_read = source.status is SourceStatus.FULL
    quality = source.quality
    reason = "the request names it" if is_named else f"by the rules its quality is {quality.value}"
    if not is_read:
        reason = f"it could not be read: {source.status_reason}"
    accepted = is_read and (is_named or quality is not Quality.LOW)
    return ExaminedSource(source_id=source.id, accepted=accepted, quality=quality, reason=reason)


# --- protected sources ---------------------------------------------------------------------------------------------
def protected_ids(state: ResearchState) -> dict[str, str]:
    """Return the source id of each protected address that was read or tried."""
    if not (urls := state.resolution.protected_sources):
        return {}
    identities = Identities(state.evidence.sources, state.evidence.aliases)
    fetched = state.evidence.fetched_sources()
    ids = {url: identities.identity_of(SearchHit(url=url)) for url in urls}
    return {url: identity for url, identity in ids.items() if identity in fetched}


def hits_to_protect(state: ResearchState) -> list[SearchHit]:
    """Return the protected sources still to be read, as hits; only an agent with `protects` reads them."""
    if state.work.task is not None and not state.work.task.protects:
        return []
    known = protected_ids(state)
    resolved = state.resolution
    urls = [url for url in resolved.protected_sources if resolved.web or url.startswith(CORPUS_SCHEME)]
    return [SearchHit(url=url, title=url, provider=NAMED) for url in urls if url not in known]


def add_unread_protected(state: ResearchState) -> list[str]:
    """Add protected sources that were never tried, as unread; return a line for each one not read."""
    known = protected_ids(state)
    web = state.resolution.web
    lines = list[str]()
    for url in state.resolution.protected_sources:
        reason = ENDED_BEFORE if web or url.startswith(CORPUS_SCHEME) else NO_WEB
        unread = Source.of_hit(SearchHit(url=url, title=url, provider=NAMED), [])
        source = state.evidence.sources.setdefault(known.get(url, unread.id), unread)
        if source.status is not SourceStatus.FULL:
            lines.append(Message("protected_unread", url=url, reason=source.status_reason or reason))
    return lines


# --- after reading -------------------------------------------------------------------------------------------------
def register_sources(
    sources: Mapping[str, Source], aliases: Mapping[str, str], fresh: Sequence[tuple[SearchHit, Source]]
) -> tuple[dict[str, Source], dict[str, str], dict[str, str]]:
    """Add read sources in their final order; a duplicate is merged into the known source instead.

    Returns the sources, known ones first; the source id of each canonical URL; and the merge target of each duplicate.
    """
    registered = dict(sources)
    known_as = dict(aliases)
    dropped = dict[str, str]()
    owners: dict[str, str] = {}
    for source in sources.values():
        owners = dict.fromkeys(_duplicate_keys(source), source.id) | owners
    for hit, read_source in fresh:
        urls = list(read_source.aliases)
        if canonical_url(hit.url) != canonical_url(read_source.url):  # it was redirected
            urls.append(hit.url)
        source = read_source.with_fields(aliases=list(dict.fromkeys(urls)))
        kept_id = next((owners[mark] for mark in _duplicate_keys(source) if mark in owners), source.id)
        if kept_id != source.id:
            registered[kept_id] = join(registered[kept_id], source)
            registered.pop(source.id, None)  # an unread entry with only a title
            dropped[source.id] = kept_id
        else:
            registered[source.id] = source
            owners = dict.fromkeys(_duplicate_keys(source), source.id) | owners
        for url in (hit.url, read_source.url):
            known_as.setdefault(canonical_url(url), kept_id)
    return registered, known_as, dropped


def join(source: Source, duplicate: Source) -> Source:
    """Return a source with the sub-queries, URLs and missing details of its duplicate."""
    urls = {canonical_url(url): url for url in (duplicate.url, *duplicate.aliases, *source.aliases)}
    urls.pop(canonical_url(source.url), None)
    return source.with_fields(
        sub_query_ids=list(dict.fromkeys([*source.sub_query_ids, *duplicate.sub_query_ids])),
        aliases=sorted(urls.values()),
        doi=source.doi or duplicate.doi,
        publisher=source.publisher or duplicate.publisher,
    )


def _duplicate_keys(source: Source) -> list[str]:
    """Return the values of which duplicates share at least one: the final URL, and hashes of long enough content."""
    if source.status is not SourceStatus.FULL:
        return []
    marks = [canonical_url(source.url)]
    if source.text is not None and source.text.size >= MIN_CONTENT_CHARACTERS:
        marks.append(source.text.hash)
        if source.content_hash:
            marks.append(source.content_hash)
    return marks
