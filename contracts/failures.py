"""Type names of failures, shared by raisers and catchers."""

from typing import Final

# Failures that end a run (workflow level).
INVALID_REQUEST: Final = "InvalidRequest"
REFUSED: Final = "Refused"
TIMED_OUT: Final = "TimedOut"
RESEARCH_FAILED: Final = "ResearchFailed"

# Failures of calls to the outside world (activity level).
INVALID_MODEL_OUTPUT: Final = "InvalidModelOutput"
ANSWER_CUT: Final = "AnswerCut"
ANSWER_REFUSED: Final = "AnswerRefused"
MODEL_UNAVAILABLE: Final = "ModelUnavailable"
MODEL_REJECTED: Final = "ModelRejected"
RATE_LIMITED: Final = "RateLimited"
CALL_IN_FLIGHT: Final = "CallInFlight"
CORPUS_UNAVAILABLE: Final = "CorpusUnavailable"
SEARCH_UNAVAILABLE: Final = "SearchUnavailable"
SEARCH_REJECTED: Final = "SearchRejected"
"""A provider refuses one query; others may well be answered."""
SEARCH_NOT_CONFIGURED: Final = "SearchNotConfigured"
"""A provider that cannot be asked at all as it is set up."""
WORKER_LOST: Final = "WorkerLost"
INPUT_UNPROCESSABLE: Final = "InputUnprocessable"
"""A text from outside ended, more than once, the process that worked on it."""
SOURCE_UNREADABLE: Final = "SourceUnreadable"
STORAGE_FULL: Final = "StorageFull"
SESSION_CHANGED: Final = "SessionChanged"
"""The stored session is not the one that a change was made for: the whole state must be sent."""
CONTENT_MISSING: Final = "ContentMissing"
CONTENT_CORRUPT: Final = "ContentCorrupt"
STORE_UNAVAILABLE: Final = "StoreUnavailable"
