"""The notebook of a run: entries in the content store, by which requests and states are completed.

The workflow sends labels and hashes; the entries have the details. Entries never change, so a process caches them.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

from cachetools import LRUCache
from pydantic import BaseModel

from contracts import roles
from contracts.addresses import canonical_url
from contracts.checking import AnswersEntry, AskedClaim, AskedEntry, ClaimsEntry, best_answers, is_judged
from contracts.checking_roles import CheckInput, ClaimBatchInput, ReviewedClaim, ReviewInput
from contracts.evidence import (
    DocumentRef,
    Evidence,
    Finding,
    PageList,
    ReadDetails,
    SearchHit,
    SectionHint,
    Source,
    SourceDetails,
)
from contracts.messages import ReadRequest, reading_conditions
from contracts.names import CORPUS_SCHEME
from contracts.notebooks import ENTRY_FINDING_FIELDS, ENTRY_TYPE, AnalysisEntry, HitsEntry, SourceEntry, find_hit
from contracts.resolved import ResolvedResearch
from contracts.sentences import AS_DATA
from contracts.state import ResearchState
from contracts.summaries import SummarizeInput
from contracts.vocabulary import EngineKind, Quality
from providers.errors import ContentCorrupt, ContentMissing
from providers.interfaces import ContentStore
from providers.schemas import NOTEBOOK, StoredSchema

E = TypeVar("E", bound=BaseModel)
I = TypeVar("I", bound=roles.RoleInput)
N = TypeVar("N", Evidence, Finding)

CACHED_ENTRIES: Final = 2_000  # per process; most have a few kilobytes
READS_AT_ONCE: Final = 16
MAX_SECTIONS: Final = 6
SHOWN_DIGITS: Final = 19  # characters of a hash in messages: `sha256:` and twelve digits
SOURCE_DEFAULTS: Final = {name: field.get_default() for name, field in Source.model_fields.items()}
REMEDY: Final = "what the run has read or found out before cannot be used any more; start it again from the beginning"


class Notebooks:
    """Entries of runs in a content store.

    Reading raises `ContentMissing`, `ContentCorrupt`, `NewerSchema`, `StoreUnavailable`.
    """

    def __init__(self, content: ContentStore, schema: StoredSchema[dict[str, Any]] = NOTEBOOK) -> None:
        self._content = content
        self._schema = schema
        self._entries: LRUCache[tuple[str, type[BaseModel]], Any] = LRUCache(CACHED_ENTRIES)
        self._loading = asyncio.Semaphore(READS_AT_ONCE)

    async def write(self, entry: BaseModel) -> str:
        """Store an entry; return its hash. Raises `StorageFull`, `StoreUnavailable`."""
        text = self._schema.write(entry.model_dump_json(exclude_defaults=True, context=AS_DATA))
        entry_hash = (await self._content.put_text(text, ENTRY_TYPE)).hash
        self._entries[entry_hash, type(entry)] = entry
        return entry_hash

    async def read(self, entry: str, kind: type[E]) -> E:
        """Read an entry of the given kind."""
        cached: E | None = self._entries.get((entry, kind))
        if cached is not None:
            return cached
        problem = f"the notebook's entry {entry[:SHOWN_DIGITS]} is"
        try:
            async with self._loading:
                text = await self._content.get_text(DocumentRef(hash=entry))
        except ContentCorrupt:
            raise ContentCorrupt(f"{problem} damaged: {REMEDY}") from None
        except ContentMissing:
            raise ContentMissing(f"{problem} gone: {REMEDY}") from None
        try:
            parsed = kind.model_validate_json(self._schema.read(text, entry[:SHOWN_DIGITS]))
        except ValueError:  # also pydantic's ValidationError
            raise ContentCorrupt(f"{problem} damaged: {REMEDY}") from None
        self._entries[entry, kind] = parsed
        return parsed

    async def read_all(self, entries: Iterable[str], kind: type[E]) -> list[E]:
        """Read entries of one kind, in order."""
        return list(await asyncio.gather(*(self.read(entry, kind) for entry in entries)))

    async def _by_hash(self, entries: Iterable[str | None], kind: type[E]) -> dict[str, E]:
        """Return entries by hash, each once."""
        hashes = list(dict.fromkeys(entry for entry in entries if entry))
        return dict(zip(hashes, await self.read_all(hashes, kind), strict=True))

    async def complete_input(self, request: I, role: roles.RoleSpec[Any, Any]) -> I:
        """Complete a role's input from its entries."""
        update: dict[str, Any] = {}
        if request.resolved_entry:
            resolved = await self.read(request.resolved_entry, ResolvedResearch)
            update = roles.resolved_fields(role, request, resolved)
        if isinstance(request, SummarizeInput):
            update["model"] = request.summarizer
        if isinstance(request, roles.BriefedInput) and request.hits:
            hits = [find_hit(await self.read_all(hit.entries, HitsEntry), hit.url, hit.doi) for hit in request.hits]
            update["hits"] = [complete or hit for complete, hit in zip(hits, request.hits, strict=True)]
        if isinstance(request, roles.AnalyzeInput):
            update["sources"] = list(await asyncio.gather(*map(self._complete_extract, request.sources)))
        if isinstance(request, roles.GapsInput):
            update["read_sources"] = list(await asyncio.gather(*map(self._complete_extract, request.read_sources)))
        if isinstance(request, ClaimBatchInput) and request.entry:
            asked = await self.read(request.entry, AskedEntry)
            update["claims"] = [asked.items[number] for number in request.numbers]
            if isinstance(request, CheckInput):
                update["controls"] = controls_for(request.numbers, asked)
                update["sections"] = asked.sections
        if isinstance(request, ReviewInput) and request.claims_entry:
            update["claims"] = await self._reviewed_claims(request)
        if isinstance(request, roles.FindingsInput) and request.entries:
            update |= await self._complete_writing(request)
        return request.model_copy(update=update)

    async def _complete_extract(self, extract: roles.SourceExtract) -> roles.SourceExtract:
        if extract.entry is None:
            return extract
        entry = await self.read(extract.entry, SourceEntry)
        return extract.with_fields(
            id=entry.source_id,
            url=entry.url,
            title=entry.title,
            publisher=entry.publisher,
            published_at=entry.published_at,
            abstract_only=entry.abstract_only,
            snippet=entry.snippet,
            text=entry.text,
            links=entry.links,
            quality=entry.quality if extract.quality is Quality.UNKNOWN else extract.quality,
            sections=await self._sections(entry, extract.hit_entries),
        )

    async def _sections(self, entry: SourceEntry, hit_entries: list[str]) -> list[SectionHint]:
        """Return the sections in which searches found something, if they searched this very text."""
        sections = list(entry.sections)
        for searched in await self.read_all(hit_entries, HitsEntry):
            hit = find_hit([searched], entry.url)
            if hit is None or entry.text is None or hit.content_hash not in (None, entry.text.hash):
                continue
            ranges = {(part.start, part.end) for part in sections}
            sections += [part for part in hit.sections if (part.start, part.end) not in ranges]
        return sections[: max(MAX_SECTIONS, len(entry.sections))]

    async def _reviewed_claims(self, request: ReviewInput) -> list[ReviewedClaim]:
        """Return the claims of a draft that are judged so far."""
        entry = await self.read(request.claims_entry, ClaimsEntry)
        read = await self.read_all(request.answers, AnswersEntry)
        answers = best_answers([answer for one in read for answer in one.items])
        claims = []
        for claim in entry.claims:
            answer = answers.get(claim.fingerprint)
            if not claim.evidence_ids or (claim.asked and not is_judged(answer)):
                continue  # the check that runs beside the review has not come to it, or could not tell
            verdict = answer.verdict if answer else claim.ruled.verdict
            reason = answer.reason if answer else "; ".join(claim.remarks)
            claims.append(
                ReviewedClaim(text=claim.text, verdict=verdict, reason=reason, evidence_ids=claim.evidence_ids)
            )
        return claims

    async def _complete_writing(self, request: roles.FindingsInput) -> dict[str, Any]:
        """Return the findings, evidence and sources of the stored analyses."""
        evidence: dict[str, Evidence] = {}
        findings: dict[str, Finding] = {}
        sources: dict[str, roles.SourceExtract] = {}
        entries = await self.read_all(request.entries, AnalysisEntry)
        for entry in entries:
            evidence.update({item.id: item for item in entry.evidence})
            findings |= {finding.id: finding for finding in entry.findings if finding.id not in findings}
            sources |= {source.id: source for source in entry.sources}
        for extract in request.sources:  # their quality has changed
            sources[extract.id] = sources[extract.id].with_fields(quality=extract.quality)
        # Some of them in the order of the request; a section has those of one sub-query, an analysis those of several.
        is_chosen = isinstance(request, roles.ChosenFindingsInput)
        chosen = request.finding_ids if isinstance(request, roles.ChosenFindingsInput | roles.WriteInput) else []
        if chosen or is_chosen:
            findings = {key: _find(findings.values(), key) for key in chosen}
            cited_ids = {key for finding in findings.values() for key in finding.evidence_ids}
            evidence = {key: item for key, item in evidence.items() if key in cited_ids}
        if isinstance(request, roles.WriteInput) and request.engine is EngineKind.MODEL:
            from providers.verification.same_passages import findings_for_writer  # noqa: PLC0415  for workers alone

            readings = [[finding for finding in entry.findings if finding.id in findings] for entry in entries]
            findings = findings_for_writer(readings, evidence, request.language)
        cited = {source_id for finding in findings.values() for source_id in finding.source_ids}
        return {
            # A writer needs the offsets of passages, not their hashes: the audit has those from the session.
            "evidence": [item.with_fields(quote_hash="") for item in evidence.values()],
            "findings": list(findings.values()),
            "sources": [source for source in sources.values() if source.id in cited],
        }

    async def complete_read(self, request: ReadRequest) -> tuple[ReadRequest, SearchHit | None]:
        """Complete a read request from its entries; return it with its hit."""
        if not request.hit_entries:
            return request, None
        entries = await self.read_all(request.hit_entries, HitsEntry)
        hit = find_hit(entries, request.url)
        if hit is None:
            raise ContentCorrupt(f"the notebook knows no hit of this address: {REMEDY}")
        resolved = await self.read(entries[0].resolved_entry, ResolvedResearch)
        request = request.with_fields(title=hit.title, tenant=resolved.tenant)
        # The quality of a corpus is declared; a web page is judged, and limited to the request's domains.
        if not request.url.startswith(CORPUS_SCHEME):
            conditions = reading_conditions(resolved, entries[0].questions, entries[0].date)
            request = request.with_fields(snippet=hit.snippet, published_at=hit.published_at, doi=hit.doi, **conditions)
        return request, hit

    async def complete_state(self, state: ResearchState) -> ResearchState:
        """Complete a state from its entries, for a report, an audit or a person; unread hits are sources, too."""
        known_sources = {**state.evidence.sources, **state.not_fetched()}
        sources = await asyncio.gather(*map(self._complete_source, known_sources.values()))
        entries = [
            *(item.entry for item in state.evidence.findings),
            *(item.entry for item in state.evidence.passages.values()),
        ]
        analyses = await self._by_hash(entries, AnalysisEntry)
        cited = {item.source_id for item in state.evidence.passages.values()}
        pages = {
            source.id: source.pages for source in state.evidence.sources.values() if source.pages and source.id in cited
        }
        texts = await asyncio.gather(*map(self._content.get_text, pages.values()))
        lists = {key: PageList.read(text) for key, text in zip(pages, texts, strict=True)}
        evidence = {
            key: _complete_evidence(item, analyses, lists.get(item.source_id))
            for key, item in state.evidence.passages.items()
        }
        findings = [_complete_finding(finding, analyses) for finding in state.evidence.findings]
        complete = state.model_copy()
        complete.evidence = state.evidence.model_copy()
        complete.evidence.sources = {source.id: source for source in sources}
        complete.evidence.passages = evidence
        complete.evidence.findings = findings
        return complete

    async def with_entry_texts(self, state: dict[str, Any]) -> dict[str, Any]:
        """Restore in a state as JSON what `strip_entry_texts` has removed."""
        sources = dict(state.get("sources", {}))
        findings = list(state.get("findings", []))
        evidence = dict(state.get("evidence", {}))
        aliases: dict[str, str] = {}
        read = await self._by_hash((source.get("entry") for source in sources.values()), SourceEntry)
        analyses = await self._by_hash((finding.get("entry") for finding in findings), AnalysisEntry)
        for key, source in sources.items():
            if source.get("entry"):
                stored = read[source["entry"]]
                text = None
                if stored.text:
                    text = stored.text.model_dump(mode="json", exclude_defaults=True)
                details = stored.model_dump(mode="json", include={"url", "title", "media_type"})
                raw = stored.raw.hash if stored.raw else None
                sources[key] = source | details | {"text": text, "content_hash": raw}
            for url in (sources[key]["url"], *source.get("aliases", ())):
                aliases.setdefault(canonical_url(url), key)
        for number, finding in enumerate(findings):
            if finding.get("entry"):
                full = _find(analyses[finding["entry"]].findings, finding["id"])
                findings[number] = finding | full.model_dump(mode="json", include=set(ENTRY_FINDING_FIELDS))
        for entry, analysis in analyses.items():
            for item in analysis.evidence:
                position = {"id": item.id, "source_id": item.source_id, "start": item.start, "end": item.end}
                evidence.setdefault(item.id, position | {"entry": entry})
        return state | {"sources": sources, "aliases": aliases, "findings": findings, "evidence": evidence}

    async def _complete_source(self, source: Source) -> Source:
        if source.entry is None:
            hit = find_hit(await self.read_all(source.hit_entries, HitsEntry), source.url, source.doi)
            details = {}
            if hit is not None:
                details = {name: getattr(hit, name) for name in SourceDetails.model_fields}
        else:
            entry = await self.read(source.entry, SourceEntry)
            details = {name: getattr(entry, name) for name in ReadDetails.model_fields}
            details["sections"] = await self._sections(entry, source.hit_entries)
        missing = [name for name in details if getattr(source, name) in ("", SOURCE_DEFAULTS[name])]
        return source.model_copy(update={name: details[name] for name in missing})


def _complete_evidence(item: Evidence, analyses: Mapping[str, AnalysisEntry], pages: PageList | None) -> Evidence:
    """Complete a passage; its page is the one on which it starts."""
    if item.entry is not None:
        item = _find(analyses[item.entry].evidence, item.id).with_fields(entry=item.entry)
    if pages is None:
        return item
    return item.with_fields(page=pages.page_of(item.start), uncertain=pages.is_uncertain(item.start, item.end))


def _complete_finding(finding: Finding, analyses: Mapping[str, AnalysisEntry]) -> Finding:
    if finding.entry is None:
        return finding
    stored = _find(analyses[finding.entry].findings, finding.id)
    return finding.with_fields(
        category=stored.category,
        contradicts=stored.contradicts,
        remarks=stored.remarks,
        priority=stored.priority,
        sub_query_count=stored.sub_query_count,
    )


def _find(items: Iterable[N], key: str) -> N:
    """Return the item with this id. Raises `ContentCorrupt`."""
    for item in items:
        if item.id == key:
            return item
    raise ContentCorrupt(f"the notebook has no {key}: {REMEDY}")


def controls_for(numbers: Sequence[int], asked: AskedEntry) -> list[AskedClaim]:
    """Return the controls of a call about these claims, which no other call about claims of the same entry gets."""
    if not numbers or not asked.controls:
        return asked.controls
    first, last = (number * len(asked.controls) // max(1, len(asked.items)) for number in (numbers[0], numbers[-1] + 1))
    return asked.controls[first:last] or asked.controls[first : first + 1] or asked.controls[:1]
