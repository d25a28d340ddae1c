"""What can go wrong between a client and a run: each message says what to do next."""


class ClientError(Exception):
    """Root of the tree; the message is one line for a person."""


class ServerUnreachable(ClientError):
    """No server answers."""


class NoWorker(ClientError):
    """Nothing polls the queue that the message needs."""


class WorkerStuck(ClientError):
    """Workers poll, yet the run does not answer."""


class RunUnknown(ClientError):
    """The server knows no such run; its session may still be stored."""


class RunForeign(ClientError):
    """The id belongs to a workflow of another program."""


class RunClosed(ClientError):
    """The run is over."""


class RunFinished(ClientError):
    """A run of this id exists and is over."""


class IdInUse(ClientError):
    """A run of this id goes on that is not the tenant's own."""


class MessageRefused(ClientError):
    """The run refused a message."""


class DocumentMissing(ClientError):
    """The run has no such document."""
