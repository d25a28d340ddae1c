"""All errors of the outside world as one tree: leaves name the event, parents the reaction.

ProviderError
├── Retryable                 a retry may help
│   ├── RateLimited           a service demands a pause of `retry_after` seconds
│   ├── Unavailable           5xx, overloaded, connection reset, timeout
│   │   ├── ProcessStalled    a child process got no processor time: a paused or overloaded machine
│   │   └── StoreUnavailable  our own store does not answer: documents, sessions
│   │       ├── SharedStateUnavailable  the store that workers share
│   │       │   └── KeyMissing          what is stored is encrypted with a key that this process lacks
│   │       └── NewerSchema             what is stored was written by a newer version of the product
│   ├── CallInFlight          another attempt has the lease of this call (`retry_after`)
│   └── StorageFull           no space left in the data folder
├── Rejected                  a retry cannot help
│   ├── NotConfigured         a key or an address is missing or wrong (the message names the setting)
│   ├── InvalidCall           the provider refuses this call
│   ├── WorkerLost            every worker that tried this call died
│   ├── UnusableText          a text from outside (`kind` is the typed reason)
│   │   ├── InputUnprocessable   processing it failed or ended the process (timeout, memory, crash, failed)
│   │   └── SourceUnreadable     a document that cannot be used
│   ├── CorpusUnknown         no such corpus, or its folder is gone
│   └── ContentMissing        a stored document is gone
│       └── ContentCorrupt    a stored document does not match its hash
└── AnswerUnusable            a paid answer that cannot be used
    ├── InvalidOutput         does not match the schema (the message is fit for a repair prompt)
    ├── AnswerCut             stopped at the output cap
    └── AnswerRefused         the model declined
"""

from collections.abc import Sequence
from typing import cast

from contracts.defects import Defect
from contracts.outcome import Usage
from contracts.tokens import Level


class ProviderError(Exception):
    """Root of the tree. Messages contain no secrets, page text or user text; `usage` is the cost of a failed call."""

    usage: Usage = Usage()


class Retryable(ProviderError):
    """A retry may help."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class RateLimited(Retryable):
    """A service demands a pause of `retry_after` seconds; `service` names it if it refused a call."""

    service: str = ""


class Unavailable(Retryable):
    """The provider did not answer properly: 5xx, overload, a broken connection, a timeout."""


class AnswerMalformed(Unavailable):
    """A service answered in another form than the documented one, as a proxy's page for signing in, or another service.

    An outage behind a proxy may look so for a moment; asked for much longer, it answers the same.
    """


class ProcessStalled(Unavailable):
    """A child process got no processor time: a paused or overloaded machine, or a library that waits for nothing."""


class StoreUnavailable(Unavailable):
    """Our own store of documents or sessions does not answer."""


class SharedStateUnavailable(StoreUnavailable):
    """The store that workers share does not answer, or rejects changes; the message is `problem: remedy`."""

    def __init__(self, problem: str, *, remedy: str = "", retry_after: float | None = None) -> None:
        super().__init__(f"{problem}: {remedy}" if remedy else problem, retry_after=retry_after)
        self.problem = problem
        self.remedy = remedy


class KeyMissing(SharedStateUnavailable):
    """What is stored is encrypted with a key that this process lacks; nothing is lost, and work waits for the key."""

    def __init__(self, key_id: str) -> None:
        remedy = "name its file in [encryption.keys], or add it to RESEARCH_ENCRYPTION_KEYS, and start again"
        super().__init__(f"the encryption key {key_id} is missing", remedy=remedy)
        self.key_id = key_id


class NewerSchema(StoreUnavailable):
    """What is stored was written by a newer version of the product; nothing is lost, and work waits for that version.

    The message is the problem, without the remedy.
    """

    def __init__(self, problem: str) -> None:
        super().__init__(f"{problem}: use the newer version that wrote it")


class CallInFlight(Retryable):
    """Another attempt has the lease of this call."""


class Rejected(ProviderError):
    """A retry cannot help."""


class NotConfigured(Rejected):
    """A setting is missing or wrong; the message names it."""


class InvalidCall(Rejected):
    """The provider refuses this call.

    `kind` is one of: refused, context_too_long, unknown_model, unsupported_parameter, unsupported_caching,
    output_too_long, unknown_address.
    """

    def __init__(self, message: str, *, kind: str = "refused") -> None:
        super().__init__(message)
        self.kind = kind


class WorkerLost(Rejected):
    """Every worker that tried this call died."""


class UnusableText(Rejected):
    """A text from outside that cannot be used; `kind` is the typed reason."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(kind, message)
        self.kind = kind

    @property
    def reason(self) -> str:
        """The message, as a sentence of the product where it is one."""
        return cast("str", self.args[1])

    def __str__(self) -> str:
        return str(self.args[1])


class InputUnprocessable(UnusableText):
    """Processing it ended the process or failed, and would again; `kind`: timeout, memory, crash or failed."""

    defect: Defect | None = None
    """The unforeseen error, if the kind is `failed`."""


class SourceUnreadable(UnusableText):
    """A document that cannot be used.

    `kind` is one of: encrypted, empty, binary, too_large, no_text, not_found, permission_denied, wrong_type,
    timeout, memory, malformed, not_a_file, outside (a path or link that leaves its folder), secret (a text or name like
    that of a key); of the web also too_little_text, asked_to_wait, certificate, http_status, robots, and those that
    start with `refused`: refused_url, refused_scheme, refused_host, refused_port, refused_address, refused_unresolved,
    refused_redirect, refused_private; refused_domains_allow and refused_domains_deny name the list of the run that
    excludes it.
    """


class CorpusUnknown(Rejected):
    """There is no such corpus, or its folder is gone."""


class ContentMissing(Rejected):
    """A stored document is gone."""


class ContentCorrupt(ContentMissing):
    """A stored document does not match its hash."""


class AnswerUnusable(ProviderError):
    """A paid answer that cannot be used: `usage` is its cost, `model` its model."""

    def __init__(self, message: str, *, usage: Usage | None = None, model: str | None = None) -> None:
        super().__init__(message)
        self.usage = usage or Usage()
        self.model = model


class InvalidOutput(AnswerUnusable):
    """The answer does not match the schema: the message is the problem."""


class AnswerCut(AnswerUnusable):
    """The answer stopped at the output cap."""


class AnswerRefused(AnswerUnusable):
    """The model declined to answer."""


class StorageFull(Retryable):
    """No space is left where data is stored."""


class ReservationTooSmall(Exception):
    """No external error: the prompt needs this many input tokens, more than the run has reserved for the call."""

    def __init__(self, needed: int) -> None:
        super().__init__(f"the prompt needs {needed} tokens, more than are reserved")
        self.needed = needed


class SummariesNeeded(Exception):
    """No external error: these texts must be summarised at these levels before the call is paid."""

    def __init__(self, texts: Sequence[tuple[str, Level]]) -> None:
        super().__init__(f"{len(texts)} texts are to be summarised")
        self.texts = texts
