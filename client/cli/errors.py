"""Turn an error into lines on standard error and an exit code, which scripts rely on."""

import os
import sys
import traceback
from collections.abc import Callable
from enum import IntEnum

from client.view.words import pasteable
from contracts.texts import visible
from contracts.vocabulary import Outcome, StopReason


class ExitCode(IntEnum):
    """The meaning of a command's end."""

    COMPLETED = 0
    INTERNAL = 1
    """An internal error, or an audit that found a difference."""
    USAGE = 2
    PARTIAL = 3
    FAILED = 4
    CANCELLED = 5
    TIMED_OUT = 6
    NOTHING_TO_WORK_WITH = 7
    """No model or search provider is available."""
    EMPTY = 8


def exit_code(outcome: Outcome, stop_reason: StopReason) -> ExitCode:
    """Give the code of a run's end."""
    if outcome is not Outcome.REFUSED:
        return ExitCode[outcome.name]
    by_reason = {
        StopReason.INVALID_INPUT: ExitCode.USAGE,
        StopReason.NO_PROVIDERS: ExitCode.NOTHING_TO_WORK_WITH,
        StopReason.NO_EVIDENCE: ExitCode.NOTHING_TO_WORK_WITH,
    }
    return by_reason.get(stop_reason, ExitCode.FAILED)


class CommandError(Exception):
    """A command cannot do its work; the message has the problem, then the remedy."""

    def __init__(self, message: str, code: ExitCode = ExitCode.USAGE) -> None:
        super().__init__(message)
        self.code = code


def quote(given: str) -> str:
    """Quote a typed text for a message: one line without control characters, at most 80 of it."""
    return repr(given if len(given) <= 80 else given[:80] + "…")


def reason_of(error: OSError | ValueError) -> str:
    """Give the system's reason of a failure in small letters."""
    return (getattr(error, "strerror", None) or "not a usable path").lower()


def explain(error: Exception) -> tuple[str, ExitCode] | None:
    """Give the message and the code of an expected error; None for an unforeseen one."""
    if isinstance(error, CommandError):
        return str(error), error.code
    from client import client_errors as client  # noqa: PLC0415  loaded only after an error
    from providers import errors as providers  # noqa: PLC0415
    from workers.dev_server import ServerError  # noqa: PLC0415
    from workers.pools import UnknownPoolError  # noqa: PLC0415
    from workers.process import PortUnusableError  # noqa: PLC0415
    from workers.settings.loading import SettingsError  # noqa: PLC0415

    if isinstance(error, SettingsError):
        return f"invalid configuration:\n{error}", ExitCode.USAGE
    usage = (
        *(PortUnusableError, UnknownPoolError),
        *(client.RunUnknown, client.RunForeign, client.RunClosed, client.MessageRefused),
        *(providers.CorpusUnknown, providers.InvalidCall, providers.NotConfigured, providers.SourceUnreadable),
    )
    if isinstance(error, usage):
        return str(error), ExitCode.USAGE
    if isinstance(error, providers.SharedStateUnavailable):
        return f"{error}: see `research doctor`", ExitCode.FAILED
    if isinstance(error, client.ClientError | ServerError | providers.ProviderError):
        return str(error), ExitCode.FAILED
    if isinstance(error, OSError) and error.strerror:
        return f"{f'{error.filename}: ' if error.filename else ''}{reason_of(error)}", ExitCode.FAILED
    return None


def run_guarded(command: Callable[[], int | None]) -> int:
    """Run a command at the edge of the process: an error becomes a message and a code."""
    try:
        return command() or ExitCode.COMPLETED
    except KeyboardInterrupt:
        complain("stopped")
        return ExitCode.CANCELLED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader is gone: nothing can be flushed
        return ExitCode.COMPLETED
    except Exception as error:  # noqa: BLE001  the edge of the process
        message, code = explain(error) or (None, ExitCode.INTERNAL)
        if message is None:
            sys.stderr.write(visible("".join(traceback.format_exception(error))))
            message = f"internal error ({type(error).__name__}): please report it with the lines above"
        complain(message)
        return code


def complain(message: str) -> None:
    """Print a problem on standard error."""
    lines = pasteable(message).splitlines() or [""]
    sys.stderr.write(visible("research: " + "\n          ".join(lines)) + "\n")
