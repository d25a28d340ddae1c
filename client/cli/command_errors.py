"""From an error to one clear line and an exit code, which scripts rely on."""

import os
import sys
import tempfile
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from enum import IntEnum
from pathlib import Path

from contracts.texts import visible
from contracts.vocabulary import Outcome, StopReason


class ExitCode(IntEnum):
    """What the command's end means."""

    COMPLETED = 0
    INTERNAL = 1
    """An internal error, or an audit that found a difference."""
    USAGE = 2
    PARTIAL = 3
    FAILED = 4
    CANCELLED = 5
    TIMED_OUT = 6
    NOTHING_TO_WORK_WITH = 7
    EMPTY = 8
    WAITING = 9
    """The run waits for a person, who is not at this terminal (`--no-wait`)."""


BY_REFUSAL = {
    StopReason.INVALID_INPUT: ExitCode.USAGE,
    StopReason.NO_PROVIDERS: ExitCode.NOTHING_TO_WORK_WITH,
    StopReason.NO_EVIDENCE: ExitCode.NOTHING_TO_WORK_WITH,
}


def exit_code(outcome: Outcome, stop_reason: StopReason) -> ExitCode:
    """The code of a run's ending."""
    if outcome is Outcome.REFUSED:
        return BY_REFUSAL.get(stop_reason, ExitCode.FAILED)
    return ExitCode[outcome.name]


LONGEST_QUOTE = 80


class CommandError(Exception):
    """A command cannot do what was asked; the message says what to do next."""

    def __init__(self, message: str, code: ExitCode = ExitCode.USAGE) -> None:
        super().__init__(message)
        self.code = code


def quote(given: str) -> str:
    """What a person typed, as a message may repeat it: on one line, without control characters, not endless."""
    return repr(given if len(given) <= LONGEST_QUOTE else given[:LONGEST_QUOTE] + "…")


def explain(error: Exception) -> tuple[str, ExitCode] | None:
    """The line and the code of an expected error, or None for an unforeseen one."""
    if isinstance(error, CommandError):
        return str(error), error.code
    from client import client_errors as client  # noqa: PLC0415  loaded only when something went wrong
    from providers import errors as providers  # noqa: PLC0415
    from workers.dev_server import ServerError  # noqa: PLC0415
    from workers.pools import UnknownPoolError  # noqa: PLC0415
    from workers.process import PortUnusableError  # noqa: PLC0415
    from workers.settings.loading import SettingsError  # noqa: PLC0415

    if isinstance(error, SettingsError):
        return f"invalid configuration:\n{error}", ExitCode.USAGE
    usage = (
        PortUnusableError, UnknownPoolError,
        client.RunUnknown, client.RunForeign, client.RunClosed, client.RunFinished, client.MessageRefused,
        providers.CorpusUnknown, providers.InvalidCall, providers.NotConfigured, providers.SourceUnreadable,
    )  # fmt: skip
    if isinstance(error, usage):
        return str(error), ExitCode.USAGE
    if isinstance(error, client.ClientError | ServerError | providers.ProviderError):
        return str(error), ExitCode.FAILED
    if isinstance(error, OSError) and error.strerror:
        return f"{f'{error.filename}: ' if error.filename else ''}{reason_of(error)}", ExitCode.FAILED
    return None


def reason_of(error: OSError) -> str:
    """What the system says of a failure, within a sentence."""
    return (error.strerror or type(error).__name__).lower()


def write_crash_file(error: BaseException, home: Path) -> Path | None:
    """Keep the traceback of an unforeseen error for a bug report; None when even that is impossible."""
    folder = home / "crashes"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        stamp = datetime.now(tz=UTC).strftime("%Y%m%dT%H%M%S")
        handle, name = tempfile.mkstemp(prefix=f"{stamp}-", suffix=".txt", dir=folder, text=True)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write("".join(traceback.format_exception(error)))
    except OSError:
        return None
    return Path(name)


def run_guarded(command: Callable[[], int], home: Callable[[], Path]) -> int:
    """Run a command at the edge of the process: every error becomes a line on standard error and a code."""
    try:
        return command()
    except KeyboardInterrupt:
        complain("stopped")
        return ExitCode.CANCELLED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # whoever read is gone; nothing can be flushed
        return ExitCode.COMPLETED
    except Exception as error:  # noqa: BLE001  the edge of the process
        explained = explain(error)
        if explained is not None:
            complain(explained[0])
            return explained[1]
        path = write_crash_file(error, home())
        complain(f"internal error ({type(error).__name__}); details: {path or 'could not be written'}")
        return ExitCode.INTERNAL


def complain(message: str) -> None:
    """One problem on standard error."""
    lines = message.splitlines() or [""]
    sys.stderr.write(visible("research: " + "\n          ".join(lines)) + "\n")
