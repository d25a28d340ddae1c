"""What activities see of the outside world."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from contracts.activities import SearchRequest, SearchResponse
from contracts.base import Contract
from contracts.documents import DocumentRef
from contracts.resolved import CorpusSnapshot
from contracts.roles import RoleInput, RoleSpec
from contracts.usage import Usage
from contracts.vocabulary import EngineKind
from providers.errors import AnswerUnusable


@dataclass(frozen=True)
class EngineTask:
    """One role's work for an engine."""

    role: RoleSpec[RoleInput, object]  # type: ignore[type-var]
    input: RoleInput
    documents: Mapping[str, str]
    """Stored texts by hash: every `DocumentRef` of the input, already loaded."""
    system: str
    """The stable part of the prompt."""
    prompt: str
    """The rendered prompt."""
    prompt_version: str


@dataclass(frozen=True)
class EngineAnswer:
    """A draft of the role's schema, and what it cost."""

    draft: Contract
    engine: EngineKind
    model: str | None = None
    usage: Usage = field(default_factory=Usage)
    warnings: list[str] = field(default_factory=list)


class Engine(Protocol):
    """Does the roles: with a language model, or without."""

    kind: EngineKind
    paid: bool
    """Whether a call costs money and so goes through the call store."""

    async def answer(self, task: EngineTask) -> EngineAnswer:
        """Do one role. Raises `Retryable`, `Rejected` or `AnswerUnusable` with its usage in `usage_of(error)`."""
        ...

    async def close(self) -> None:
        """Let go of connections and processes."""
        ...


class ContentStore(Protocol):
    """Content-addressed, immutable documents."""

    async def put(self, data: bytes, media_type: str) -> DocumentRef:
        """Store bytes (idempotent, atomic). Raises `StorageFull`."""
        ...

    async def put_text(self, text: str, media_type: str = "text/plain") -> DocumentRef:
        """Store a text as UTF-8; `size` is in characters."""
        ...

    async def get(self, reference: DocumentRef) -> bytes:
        """The bytes, checked against the hash. Raises `ContentMissing`, `ContentCorrupt`."""
        ...

    async def get_text(self, reference: DocumentRef) -> str:
        """The text, checked against the hash. Raises `ContentMissing`, `ContentCorrupt`."""
        ...

    async def delete(self, reference: DocumentRef) -> None:
        """Remove a document; no error if it is gone."""
        ...


@dataclass(frozen=True)
class ExtractedDocument:
    """A document as read: raw bytes, and the text that quotes refer to."""

    url: str
    title: str
    text: str
    raw: bytes
    media_type: str
    authors: list[str] = field(default_factory=list)
    publisher: str | None = None
    published_at: str | None = None


@dataclass(frozen=True)
class SkippedFile:
    """A file of a corpus that could not be used."""

    path: str
    kind: str
    reason: str


@dataclass(frozen=True)
class IndexProgress:
    """How far indexing is."""

    done: int
    total: int
    unchanged: int
    skipped: int
    current: str = ""


class SearchProvider(Protocol):
    """One place to search."""

    name: str

    async def search(self, request: SearchRequest) -> SearchResponse:
        """Hits in rank order. Raises `Retryable` or `Rejected`; no hits is an empty list, never an error."""
        ...


class Corpora(SearchProvider, Protocol):
    """Named folders of documents, indexed."""

    async def refresh(self, name: str, progress: Callable[[IndexProgress], None] | None = None) -> CorpusSnapshot:
        """Bring the index up to date (only changed files are read). Raises `CorpusUnknown`, `StorageFull`."""
        ...

    async def describe(self, name: str) -> CorpusSnapshot:
        """What the index holds now. Raises `CorpusUnknown`."""
        ...

    async def skipped(self, name: str) -> list[SkippedFile]:
        """Files that were left out, with reasons."""
        ...

    async def read(self, url: str) -> ExtractedDocument:
        """Read `corpus:NAME/relative/path`. Raises `SourceUnreadable`, `CorpusUnknown`."""
        ...


class Reader(Protocol):
    """Reads a document by its URL."""

    async def read(self, url: str) -> ExtractedDocument:
        """Fetch and extract. Raises `SourceUnreadable`, `Retryable`."""
        ...


class CallStore(Protocol):
    """Journal of paid calls and single-flight in one: an answered call is never paid again."""

    async def begin(self, key: str, research_id: str, lease_seconds: float) -> str | None:
        """Take the call: null if it is ours to make now, else the stored answer.

        Raises `CallInFlight` while another attempt holds a live lease.
        """
        ...

    async def renew(self, key: str, lease_seconds: float) -> None:
        """Keep the lease while the call runs."""
        ...

    async def finish(self, key: str, answer: str) -> None:
        """Write the answer, before the activity returns."""
        ...

    async def release(self, key: str) -> None:
        """Give the call up without an answer."""
        ...

    async def forget(self, research_id: str) -> int:
        """Remove all rows of a run; the number removed."""
        ...


class AnswerCodec(Protocol):
    """How a task is recognized and an answer is written down, for the call store; a module can be one."""

    def request_fingerprint(self, task: EngineTask, /) -> str:
        """A hash of everything that goes to the engine: the same request gives the same text."""
        ...

    def answer_to_json(self, answer: EngineAnswer | AnswerUnusable, /) -> str:
        """A paid answer as text, usable or not."""
        ...

    def answer_from_json(self, text: str, role: RoleSpec[Any, Any], /) -> EngineAnswer:
        """Inverse of `answer_to_json`. Raises a kept `AnswerUnusable`, or `ContentCorrupt` if the text is no answer."""
        ...


@dataclass(frozen=True)
class StoredSession:
    """A session as it is listed."""

    research_id: str
    query: str
    status: str
    saved_at: str
    closed: bool


class SessionStore(Protocol):
    """The record of runs: it outlives the engine's own retention."""

    async def save(self, research_id: str, state_json: str, *, closed: bool) -> None:
        """Write a checkpoint, atomically."""
        ...

    async def load(self, research_id: str) -> str | None:
        """The newest checkpoint as JSON of `ResearchState`, or null."""
        ...

    async def list(self) -> list[StoredSession]:
        """All sessions, newest first."""
        ...

    async def delete(self, research_id: str) -> None:
        """Remove a session; no error if it is gone."""
        ...
