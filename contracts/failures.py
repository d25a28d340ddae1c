"""Type names of failures, shared by the code that raises and the code that catches them."""

from collections.abc import Mapping
from typing import Final

from contracts.sentences import Message

# Failures that end a run (workflow level).
INVALID_REQUEST: Final = "InvalidRequest"
REFUSED: Final = "Refused"
TIMED_OUT: Final = "TimedOut"
RESEARCH_FAILED: Final = "ResearchFailed"

# Refusal of a message (update).
NOT_READY: Final = "NotReady"
"""The run cannot read messages at this moment, as while it begins a new history: the same one may be sent again."""

# Failure of a query.
EVENTS_AFTER_TASK: Final = "the run's history has events that no workflow task has handled yet: ask again"

# Failures of calls to the outside world (activity level).
SUMMARIES_NEEDED: Final = "SummariesNeeded"
"""Not a failure: texts of the call must be summarised before it is paid (`contracts.summaries`)."""
RESERVATION_TOO_SMALL: Final = "ReservationTooSmall"
"""Not a failure: the prompt needs more input tokens than are reserved; nothing was paid. The details name them."""
INVALID_MODEL_OUTPUT: Final = "InvalidModelOutput"
ANSWER_CUT: Final = "AnswerCut"
ANSWER_REFUSED: Final = "AnswerRefused"
CONTEXT_TOO_LONG: Final = "context_too_long"
"""Kind of a `ModelRejected`: no configured model has room for the prompt."""
MODEL_UNAVAILABLE: Final = "ModelUnavailable"
MODEL_REJECTED: Final = "ModelRejected"
RATE_LIMITED: Final = "RateLimited"
CALL_IN_FLIGHT: Final = "CallInFlight"
CORPUS_UNAVAILABLE: Final = "CorpusUnavailable"
SEARCH_UNAVAILABLE: Final = "SearchUnavailable"
SEARCH_REJECTED: Final = "SearchRejected"
"""A provider rejects one query; others may succeed."""
SEARCH_MALFORMED: Final = "SearchMalformed"
"""A provider answers, but not in the documented form, for longer than a fault of its own usually lasts."""
SEARCH_NOT_CONFIGURED: Final = "SearchNotConfigured"
"""A provider cannot be used as configured."""
NOT_PERMITTED: Final = "NotPermitted"
"""An outbound call of a run whose plan is not approved."""
WORKER_LOST: Final = "WorkerLost"
WORKER_STOPPED: Final = "WorkerStopped"
"""A worker shut down gracefully during the call; the call itself did not fail."""
INPUT_UNPROCESSABLE: Final = "InputUnprocessable"
"""An outside text crashed the process that handled it more than once."""
SOURCE_UNREADABLE: Final = "SourceUnreadable"
SOURCE_UNAVAILABLE: Final = "SourceUnavailable"
"""A site did not answer, or answered 5xx, for longer than the patience for one of several pages."""
PROCESS_STALLED: Final = "ProcessStalled"
"""A child process of a worker got no processor time."""
STORAGE_FULL: Final = "StorageFull"
SESSION_CHANGED: Final = "SessionChanged"
"""The stored session is not the base of the change, so the whole state must be sent."""
CONTENT_MISSING: Final = "ContentMissing"
CONTENT_CORRUPT: Final = "ContentCorrupt"
STORE_UNAVAILABLE: Final = "StoreUnavailable"
NOTICE_UNDELIVERED: Final = "NoticeUndelivered"
"""The receiver of a notice did not answer, or asks to try again."""
NOTICE_REFUSED: Final = "NoticeRefused"
"""The receiver of a notice, or the rules for addresses, refuse it; a retry would be refused, too."""

TRANSIENT: Final = frozenset(
    {RATE_LIMITED, CALL_IN_FLIGHT, STORAGE_FULL, STORE_UNAVAILABLE, MODEL_UNAVAILABLE, SEARCH_UNAVAILABLE}
    | {SOURCE_UNAVAILABLE, WORKER_STOPPED, PROCESS_STALLED}
)
"""Transient failures. A workflow sees one only after the call's time is used up, so it means an outage."""

SEARCH_LIMIT: Final = "search_limit"
"""The run has made all searches that its limit allows; nothing was asked."""

EXPLANATIONS: Final[Mapping[str, str]] = {
    INVALID_MODEL_OUTPUT: Message("failure_unusable"),
    ANSWER_CUT: Message("failure_cut"),
    ANSWER_REFUSED: Message("failure_declined"),
    MODEL_REJECTED: Message("failure_rejected"),
    MODEL_UNAVAILABLE: Message("failure_model"),
    SEARCH_UNAVAILABLE: Message("failure_search"),
    SEARCH_REJECTED: Message("failure_search_refused"),
    SEARCH_MALFORMED: Message("failure_search_form"),
    SEARCH_NOT_CONFIGURED: Message("failure_search_settings"),
    CORPUS_UNAVAILABLE: Message("failure_corpus"),
    SEARCH_LIMIT: Message("searches_used_up"),
    RATE_LIMITED: Message("failure_busy"),
    WORKER_LOST: Message("failure_workers"),
    INPUT_UNPROCESSABLE: Message("failure_text"),
    PROCESS_STALLED: Message("failure_processor"),
    STORE_UNAVAILABLE: Message("failure_store"),
    STORAGE_FULL: Message("failure_room"),
    "TimeoutError": Message("failure_time"),
}
"""Failures in plain words; any other is shown by its type name."""
