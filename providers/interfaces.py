"""Protocols and values of the outside world, as activities see it."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict

from contracts.evidence import DocumentRef, Validators
from contracts.messages import SearchRequest, SearchResponse
from contracts.outcome import Usage
from contracts.resolved import CorpusSnapshot, SkippedFile
from contracts.roles import RoleAnswer, RoleInput, RoleSpec
from contracts.tokens import ArchiveRecord, CallFidelity, ItemFidelity, Level
from contracts.vocabulary import EngineKind
from providers.domains import ANYWHERE, Domains
from providers.reading.canonical_text import DocumentFacts
from providers.tokens.allotment import ContentItem

if TYPE_CHECKING:  # a command reads values of these modules, and shows no source to a model
    from providers.tokens.shown_sources import ShownSource


@dataclass(frozen=True)
class PromptMessage:
    """One message of a conversation, in content blocks of the Messages API."""

    role: str
    content: list[dict[str, Any]]
    author: str = ""
    """Endpoint and model that wrote it; its thinking blocks go back to no other model."""


@dataclass(frozen=True)
class RenderedPrompt:
    """The prompt of a task, with its items whole or shortened."""

    prompt: str
    common_ends: tuple[int, ...] = ()
    """Offsets at the ends of parts shared with the run's other calls of this role."""
    messages: Sequence[PromptMessage] = ()
    """Conversation after the prompt, for a role with tools; the prompt is then the first message."""
    items: Sequence[ContentItem] = field(default=(), compare=False, repr=False)
    """Parts that can be shortened."""
    stored_characters: int = 0
    """Characters of the stored texts of the sources."""
    considered_characters: int = 0
    """Characters of those texts that were considered for the prompt."""


@dataclass(frozen=True)
class EngineTask:
    """Task of one role for an engine."""

    role: RoleSpec[RoleInput, object]  # type: ignore[type-var]
    input: RoleInput
    documents: Mapping[str, str]
    """Stored texts by hash: every `DocumentRef` of the input, already loaded."""
    system: str
    """Stable part of the prompt."""
    whole: RenderedPrompt
    """The prompt with all of its items whole."""
    prompt_version: str
    render: Callable[[Mapping[str, Level]], RenderedPrompt] | None = field(default=None, compare=False, repr=False)
    """Renders the prompt with some items at other levels; None if it has only one form."""
    narrower: Callable[[int], "EngineTask"] | None = field(default=None, compare=False, repr=False)
    """Makes the same task with at most so many tokens of the texts of its sources; None for other tasks."""
    choose: "Callable[[], Sequence[ShownSource]] | None" = field(default=None, compare=False, repr=False)
    """Returns what the prompt of an analysis shows of its sources, worked out once; None for other tasks."""


@dataclass(frozen=True)
class EngineAnswer:
    """An answer that matches the role's schema, and its cost."""

    content: RoleAnswer
    engine: EngineKind
    model: str | None = None
    usage: Usage = field(default_factory=Usage)
    warnings: list[str] = field(default_factory=list)
    items: Sequence[ItemFidelity] = ()
    """Items of the content, as shown to the model."""
    fidelity: CallFidelity | None = None
    """Figures of the content; None if the prompt has no items."""
    estimate: int = 0
    """Estimated tokens of the prompt, erring on the high side."""
    shown_tokens: int | None = None
    """Tokens with which the texts of the sources were chosen anew; None: as the task has them, at their levels."""

    @property
    def levels(self) -> dict[str, Level]:
        """Levels of the items that were not shown in full."""
        return {item.id: item.current_level for item in self.items if item.current_level is not Level.FULL}


class Engine(Protocol):
    """Performs roles, with a language model or without."""

    kind: EngineKind
    paid: bool
    """True if calls cost money and so are recorded in the journal."""

    async def answer(self, task: EngineTask) -> EngineAnswer:
        """Perform a role. Raises `Retryable`, `Rejected` or `AnswerUnusable`."""

    async def close(self) -> None:
        """Close connections and processes."""


class ContentStore(Protocol):
    """Content-addressed, immutable documents."""

    async def put(self, data: bytes, media_type: str) -> DocumentRef:
        """Store bytes (idempotent, atomic). Raises `StorageFull`."""

    async def put_text(self, text: str, media_type: str = "text/plain") -> DocumentRef:
        """Store a text as UTF-8; `size` is in characters."""

    async def get(self, reference: DocumentRef) -> bytes:
        """Return the bytes, checked against the hash. Raises `ContentMissing`, `ContentCorrupt`."""

    async def get_text(self, reference: DocumentRef) -> str:
        """Return the text, checked against the hash. Raises `ContentMissing`, `ContentCorrupt`."""

    async def delete(self, reference: DocumentRef, *, unless_put_since: datetime | None = None) -> bool:
        """Remove a document; true if it is gone, even if it already was."""

    async def delete_others(self, used: Collection[str], *, unless_put_since: datetime) -> int:
        """Remove every document whose hash is not in `used`; return their number."""


@dataclass(frozen=True, kw_only=True)
class ExtractedDocument(DocumentFacts):
    """A document as read: raw bytes, and the text that quotes refer to."""

    url: str
    text: str
    raw: bytes
    way: list[str] = field(default_factory=list)
    """Every address requested for it, in order; empty unless it is a web page."""
    address: str = ""
    """Web address to show in place of the URL; never opened."""
    cached: bool = False
    """True if it came from the cache, without a request to any site."""
    stored: tuple[DocumentRef, DocumentRef] | None = None
    """References to its bytes and its text, if the reader has just stored them."""
    validators: Validators | None = None
    """None if no site sent any."""
    abstract_only: bool = False
    """True if it is the abstract of a paper, in place of its text."""


Progress = Callable[[int, int], None]
"""Callback with the number of files read so far, and of all that have changed."""


class SearchProvider(Protocol):
    """One place to search."""

    name: str

    async def search(self, request: SearchRequest) -> SearchResponse:
        """Return hits in rank order, empty if there are none. Raises `Retryable` or `Rejected`."""


class Corpora(SearchProvider, Protocol):
    """Named, indexed folders of documents."""

    async def refresh(self, name: str, progress: Progress | None = None) -> CorpusSnapshot:
        """Bring the index up to date, reading only changed files. Raises `CorpusUnknown`, `StorageFull`."""

    async def describe(self, name: str) -> CorpusSnapshot:
        """Describe the current index. Raises `CorpusUnknown`."""

    async def closest_titles(self, name: str, question: str, limit: int) -> list[str]:
        """Return the titles of the documents that fit a question best, best first, each with its path in brackets.

        Raises as `search` does.
        """

    async def skipped(self, name: str) -> list[SkippedFile]:
        """Return the skipped files with reasons."""

    async def has(self, url: str) -> bool:
        """Return whether a corpus still has the document `corpus:NAME/relative/path`; false without such a corpus."""

    async def read(self, url: str) -> ExtractedDocument:
        """Read `corpus:NAME/relative/path`. Raises `SourceUnreadable`, `CorpusUnknown`."""


class PrivateDocuments(Protocol):
    """A server of documents that have addresses of their own."""

    async def read(self, url: str, given: DocumentRef | None = None) -> ExtractedDocument:
        """Read a document, from its text if that is given. Raises `SourceUnreadable`, `Retryable`, `Rejected`."""


class SourceReader(Protocol):
    """A reader of all sources."""

    async def read(
        self,
        url: str,
        *,
        tenant: str = "default",
        domains: Domains = ANYWHERE,
        given: DocumentRef | None = None,
    ) -> ExtractedDocument:
        """Fetch and extract within the domains; tenants share no pages. Raises `SourceUnreadable`, `Retryable`.

        `given` is the document itself, if a server sent it with its hit.
        """
        ...

    async def read_again(
        self, url: str, known: Validators | None, *, domains: Domains = ANYWHERE
    ) -> ExtractedDocument | None:
        """Read past every cache; None if the site has no version but the `known` one. Raises as `read` does."""
        ...


@dataclass(frozen=True)
class StoredValue:
    """The value of a key in a shared store, with the time of the store's clock."""

    value: bytes | None
    now: float
    """Seconds since the epoch by the store's own clock, the same for every worker."""
    refused: bool = False
    """True if there is a value that was changed, or is plain where that is refused; `value` is None then."""


class SharedStore(Protocol):
    """Small values shared by all workers; they change atomically and expire by the store's own clock.

    Every method raises `SharedStateUnavailable` if the store cannot be used at the moment, and `StorageFull`.
    """

    async def get(self, key: str) -> StoredValue:
        """Return the value; None if there is none or it has expired."""

    async def swap(
        self,
        key: str,
        old: bytes | None,
        new: bytes | None,
        ttl_seconds: float | None = None,
        *,
        over_limit: bool = False,
    ) -> bool:
        """Replace `old` by `new` if it is the current value; None means absent. Return whether it was replaced.

        With `over_limit` the value is written even if it exceeds a limit that the operator set for the store; without
        it such a store is full. A disk that is full has no such limit to exceed.
        """

    async def remove(self, prefix: str) -> int:
        """Remove every key that starts with the prefix; return their number."""

    async def close(self) -> None:
        """Close connections and files."""


class StoredSession(BaseModel):
    """A session in a list, and the first line of its record; `saved_at` is ISO 8601 in UTC."""

    model_config = ConfigDict(strict=True, frozen=True)

    schema_version: Literal[1] = 1
    research_id: str
    query: str
    status: str
    saved_at: str
    closed: bool
    defects: int = 0
    """Number of unforeseen errors that the state describes."""
    thread: list[str] = []
    """Ids of the runs above it in its thread, the first question first. Records of earlier versions lack it."""
    tenant: str = "default"
    """Records of earlier versions lack it, until their run is saved again."""


class ContentArchive(Protocol):
    """Records of content that models were not shown."""

    async def put(self, records: Sequence[ArchiveRecord]) -> None:
        """Write records (idempotent, atomic), beside those of other runs. Raises errors that name the setting."""


class NoticeReceiver(Protocol):
    """The address that the operator named for notices."""

    async def send(self, notice_id: str, body: bytes) -> int:
        """Deliver a notice once, and return the status.

        Raises `InvalidCall` if it is refused, `Unavailable` or `RateLimited` if a retry may help.
        """


class SessionStore(Protocol):
    """Records of runs, which outlive the retention of the Temporal server."""

    async def save(self, research_id: str, state_json: str, *, closed: bool) -> None:
        """Write a checkpoint, atomically."""

    async def load(self, research_id: str, *, as_written: bool = False) -> str | None:
        """Return the newest checkpoint as JSON of `ResearchState`, or None; `as_written`, of whatever schema it is."""

    async def list(self) -> list[StoredSession]:
        """Return all sessions, newest first."""

    async def documents(self) -> dict[str, frozenset[str] | None]:
        """Return the document hashes of each session by id; None for a session that cannot be read."""

    async def delete(self, research_id: str) -> None:
        """Remove a session; no error if it is gone."""
