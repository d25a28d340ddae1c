"""Plain classes that keep the Protocols of `providers.interfaces`, and values that tests start from."""

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from temporalio.testing import ActivityEnvironment

from activities.journal import CallJournal
from activities.roles.run_role import RoleActivities
from activities.verifying.corrections import to_plain_draft
from activities.verifying.material import Material, extract_claims
from contracts import addresses, roles
from contracts.checking import CheckedSource, ClaimsEntry, ExtractedClaim
from contracts.evidence import DocumentRef, Evidence, Finding, SectionHint
from contracts.outcome import Usage
from contracts.plan import PlanNode
from contracts.vocabulary import Confidence, EngineKind, Quality
from providers.errors import CallInFlight, ContentCorrupt, ContentMissing
from providers.interfaces import EngineAnswer, EngineTask
from providers.shared.paid_calls import CallLease
from providers.storage.stored_notebooks import Notebooks

URL = "corpus:manual/vacuum.md"
SOURCE = addresses.source_id(URL)


class MemoryStore:
    """A content store in memory, with the checks that the real one makes."""

    def __init__(self) -> None:
        self.documents: dict[str, bytes] = {}

    async def put(self, data: bytes, media_type: str) -> DocumentRef:
        identity = "sha256:" + hashlib.sha256(data).hexdigest()
        self.documents[identity] = data
        return DocumentRef(hash=identity, media_type=media_type, size=len(data))

    async def put_text(self, text: str, media_type: str = "text/plain") -> DocumentRef:
        reference = await self.put(text.encode(), media_type)
        return reference.model_copy(update={"size": len(text)})

    async def get_text(self, reference: DocumentRef) -> str:
        return await self.text_by_hash(reference.hash)

    async def delete(self, reference: DocumentRef) -> None:
        self.documents.pop(reference.hash, None)

    async def by_hash(self, identity: str) -> bytes:
        if identity not in self.documents:
            raise ContentMissing(identity)
        data = self.documents[identity]
        if "sha256:" + hashlib.sha256(data).hexdigest() != identity:
            raise ContentCorrupt(identity)
        return data

    async def text_by_hash(self, identity: str) -> str:
        return (await self.by_hash(identity)).decode()


class ScriptedEngine:
    """Gives what the script says: a draft, an error to raise, or a function of the task."""

    def __init__(self, script: Any, *, kind: EngineKind = EngineKind.MODEL, paid: bool = True) -> None:
        self.script = script
        self.kind = kind
        self.paid = paid
        self.tasks: list[EngineTask] = []

    async def answer(self, task: EngineTask) -> EngineAnswer:
        self.tasks.append(task)
        given = self.script(task) if callable(self.script) else self.script
        if asyncio.iscoroutine(given):
            given = await given
        if isinstance(given, BaseException):
            raise given
        usage = Usage(model_calls=1, input_tokens=10, output_tokens=5, cost_usd=0.01)
        return EngineAnswer(content=given, engine=self.kind, model="scripted-1", usage=usage)

    async def close(self) -> None:
        return


class MemoryCalls:
    """A call store in memory, whose leases run out when the test says so."""

    def __init__(self) -> None:
        self.answers: dict[str, str] = {}
        self.leased: set[str] = set()
        self.log: list[str] = []
        self.renewed = asyncio.Event()

    async def begin(self, key: str, research_id: str, lease_seconds: float) -> CallLease | str:
        if key in self.answers:
            return self.answers[key]
        if key in self.leased:
            raise CallInFlight("another attempt makes this call", retry_after=7.0)
        self.leased.add(key)
        self.log.append("begin")
        return CallLease(research_id, key, key, b"this attempt")

    async def renew(self, lease: CallLease, lease_seconds: float) -> None:
        self.log.append("renew")
        self.renewed.set()

    async def finish(self, lease: CallLease, answer: str) -> None:
        self.answers[lease.answer_key] = answer
        self.leased.discard(lease.answer_key)
        self.log.append("finish")

    async def release(self, lease: CallLease) -> None:
        self.leased.discard(lease.answer_key)
        self.log.append("release")


def role_activities(
    engine: Any, content: Any, calls: MemoryCalls | None = None, renew_seconds: float = 2.0, archive: Any = None
) -> RoleActivities:
    """The activities of roles over one engine, with stores in memory."""
    journal = CallJournal(calls or MemoryCalls(), renew_seconds=renew_seconds)
    return RoleActivities({engine.kind: engine}, content, journal, Notebooks(content), archive)


def environment(*, details: Sequence[Any] = (), client: Any = None) -> ActivityEnvironment:
    """An activity environment that remembers the heartbeats of an earlier attempt."""
    env = ActivityEnvironment(client)
    env.info = replace(env.info, heartbeat_details=details)
    return env


def common(**changes: Any) -> dict[str, Any]:
    """The fields that every role's input has."""
    return {
        "research_id": "r-1",
        "operation": "op/1",
        "engine": EngineKind.MODEL,
        "model": "scripted-1",
        "date": "2026-11-21",
        "query": "How does vacuum prevent wraparound?",
        **changes,
    }


def plan_input(**changes: Any) -> roles.PlanInput:
    return roles.PlanInput(**common(**changes))


def source(text: DocumentRef | None, **changes: Any) -> roles.SourceExtract:
    """A source whose text is stored."""
    fields: dict[str, Any] = {
        "id": SOURCE, "url": URL, "title": "Vacuum", "quality": Quality.HIGH, "text": text, **changes
    }  # fmt: skip
    return roles.SourceExtract(**fields)


def analyze_input(sources: list[roles.SourceExtract], **changes: Any) -> roles.AnalyzeInput:
    text = "what does vacuum do about wraparound"
    sub_query = PlanNode(id=addresses.sub_query_id(text), text=text)
    return roles.AnalyzeInput(**common(**{"sub_query": sub_query, "sources": sources, **changes}))


def reference(text: str) -> DocumentRef:
    return DocumentRef(hash=addresses.digest(text), size=len(text))


def passage(text: str, quote: str, source_id: str = SOURCE) -> Evidence:
    """Evidence for words that stand in a text."""
    start = text.index(quote)
    end = start + len(quote)
    return Evidence(
        id=addresses.evidence_id(source_id, start, end),
        source_id=source_id,
        start=start,
        end=end,
        quote_hash=addresses.digest(quote),
    )


def finding(statement: str, *evidence: Evidence, confidence: Confidence = Confidence.HIGH) -> Finding:
    """A finding that rests on evidence."""
    keys = [item.id for item in evidence]
    return Finding(
        id=addresses.finding_id(statement, keys),
        statement=statement,
        confidence=confidence,
        evidence_ids=keys,
        source_ids=list(dict.fromkeys(item.source_id for item in evidence)),
    )


def hint(text: str, words: str, score: float = 1.0) -> SectionHint:
    """A hint at the words of a text."""
    start = text.index(words)
    return SectionHint(start=start, end=start + len(words), score=score)


def passage_of(pages: Mapping[str, str], identity: str, source_id: str, quote: str) -> Evidence:
    """The passage of a page that these words are."""
    start = pages[source_id].index(quote)
    end = start + len(quote)
    return Evidence(id=identity, source_id=source_id, start=start, end=end, quote_hash=addresses.digest(quote))


def drafted_over(
    markdown: str, pages: Mapping[str, str], passages: Sequence[Evidence]
) -> tuple[str, list[ExtractedClaim], Material]:
    """A draft with its claims, and a run that has read these pages and quotes these passages."""
    references = {name: DocumentRef(hash=addresses.digest(text)) for name, text in pages.items()}
    entry = ClaimsEntry(
        draft=DocumentRef(hash=addresses.digest("draft")),
        evidence=list(passages),
        sources=[CheckedSource(id=name, title=name, text=text) for name, text in references.items()],
    )
    material = Material(entry, {references[name].hash: text for name, text in pages.items()}, by_model=True)
    draft = to_plain_draft(markdown)
    claims = extract_claims(draft, material)
    return draft, claims, replace(material, entry=entry.with_fields(claims=claims))
