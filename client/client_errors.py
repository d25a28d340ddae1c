"""Errors between a client and a run; each message states the problem, then the remedy."""


class ClientError(Exception):
    """Root of the tree."""


class ServerUnreachable(ClientError):
    """No server answers."""


class NoWorker(ClientError):
    """No worker polls the task queue named in the message, or none answers."""


class RunUnknown(ClientError):
    """The server has no such run; its session may still be stored."""


class RunForeign(ClientError):
    """The id belongs to a workflow of another program."""


class RunClosed(ClientError):
    """The run is over."""


class RunOfOtherVersion(ClientError):
    """The history of the run does not fit the code of the workers, so it waits."""

    def __init__(self, research_id: str) -> None:
        super().__init__(
            f"the run {research_id} waits for workers of the version that wrote its history: start one, or continue it "
            f"from its last checkpoint, without paying again: `research resume {research_id} --version new`"
        )


class MessageRefused(ClientError):
    """The run refused a message."""


class PreviewRefused(ClientError):
    """The run would be refused; `stop_reason` as its result would have it."""

    def __init__(self, message: str, stop_reason: str) -> None:
        super().__init__(message)
        self.stop_reason = stop_reason


class DocumentMissing(ClientError):
    """The run has no such document."""


class BundleUnusable(ClientError):
    """A file is not a bundle or a key, or is a bundle that is unsafe to read."""
