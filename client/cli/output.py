"""Output to terminal and files: results, progress, errors as messages and exit codes. No text drives a terminal."""

import json
import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterable
from enum import IntEnum
from pathlib import Path
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text
from typer import Abort

from client.view.words import pasteable
from contracts.texts import visible, visible_json
from contracts.vocabulary import Outcome, StopReason


class ExitCode(IntEnum):
    """Exit code of a command."""

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

    @classmethod
    def of(cls, outcome: Outcome, stop_reason: StopReason) -> "ExitCode":
        """Return the exit code for the end of a run."""
        if outcome is not Outcome.REFUSED:
            return cls[outcome.name]
        if stop_reason is StopReason.INVALID_INPUT:
            return cls.USAGE
        lacking = stop_reason in (StopReason.NO_PROVIDERS, StopReason.NO_EVIDENCE)
        if lacking:
            return cls.NOTHING_TO_WORK_WITH
        return cls.FAILED


# --- errors --------------------------------------------------------------------------------------------------------


class CommandError(Exception):
    """A command cannot do its work; the message states the problem, then the remedy."""

    def __init__(self, message: str, code: ExitCode = ExitCode.USAGE) -> None:
        super().__init__(message)
        self.code = code


def quote(text: str) -> str:
    """Quote a person's input for a message: one line without control characters, at most 80 characters of it."""
    return repr(text if len(text) <= 80 else text[:80] + "…")


def reason_of(error: OSError | ValueError) -> str:
    """Return the system's reason for a failure in lower case."""
    return (getattr(error, "strerror", None) or "not a usable path").lower()


def explain(error: Exception) -> tuple[str, ExitCode] | None:
    """Return the message and exit code of an expected error; None for an unexpected one."""
    if isinstance(error, CommandError):
        return str(error), error.code
    from client import client_errors as client  # noqa: PLC0415  loaded only after an error
    from contracts.packages import PackageFault  # noqa: PLC0415
    from providers import errors as providers  # noqa: PLC0415
    from workers.dev_server import ServerError  # noqa: PLC0415
    from workers.pools import UnknownPoolError  # noqa: PLC0415
    from workers.process import PortUnusableError  # noqa: PLC0415
    from workers.settings.loading import SettingsError  # noqa: PLC0415

    usage = (
        *(PortUnusableError, UnknownPoolError, PackageFault),
        *(client.RunUnknown, client.RunForeign, client.RunClosed, client.MessageRefused, client.BundleUnusable),
        *(providers.CorpusUnknown, providers.InvalidCall, providers.NotConfigured, providers.SourceUnreadable),
    )
    if isinstance(error, SettingsError):
        return f"invalid configuration:\n{error}", ExitCode.USAGE
    if isinstance(error, usage):
        return str(error), ExitCode.USAGE
    if isinstance(error, client.ClientError | ServerError | providers.ProviderError):
        if isinstance(error, providers.SharedStateUnavailable):
            remedy = ": see `research doctor`"
        else:
            remedy = ""
        return f"{error}{remedy}", ExitCode.FAILED
    if isinstance(error, OSError) and error.strerror:
        return f"{f'{error.filename}: ' if error.filename else ''}{reason_of(error)}", ExitCode.FAILED
    return None


def run_guarded(command: Callable[[], int | None]) -> int:
    """Run a command at the edge of the process: an error becomes a message and a code."""
    try:
        return command() or ExitCode.COMPLETED
    except (KeyboardInterrupt, Abort):  # Abort: end of input at a prompt
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


# --- output --------------------------------------------------------------------------------------------------------


class SafeConsole(Console):
    """A console that prints control characters in texts as visible symbols."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments to write."""
        for piece in super().render(renderable, options):
            yield piece if piece.control else Segment(visible(piece.text), piece.style)


def print_result(line: str | Text, *, cut: bool = False) -> None:
    """Print a line of the result: on a terminal, `cut` at its width; else wrapped by the terminal."""
    text = line if isinstance(line, Text) else Text(line)
    console = SafeConsole(highlight=False)
    if cut and console.is_terminal:
        console.print(text, no_wrap=True, overflow="ellipsis")
    else:
        console.print(text, soft_wrap=True)


def print_progress(line: str) -> None:
    """Print a line on standard error."""
    sys.stderr.write(visible(line) + "\n")
    sys.stderr.flush()


def print_hint(line: str) -> None:
    """Print a line on standard error whose commands can be pasted."""
    print_progress(pasteable(line))


def print_json(value: Any, *, indent: int | None = 2) -> None:
    """Print one JSON document; without `indent`, on one line."""
    sys.stdout.write(visible_json(json.dumps(value, ensure_ascii=False, indent=indent)) + "\n")
    sys.stdout.flush()


def print_bytes(data: bytes) -> None:
    """Print bytes unchanged for a file or another program; on a terminal as safe text that ends its last line."""
    if sys.stdout.isatty():
        text = visible(data.decode("utf-8", "replace"))
        data = (text if text.endswith("\n") else f"{text}\n").encode("utf-8", "replace")
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


# --- files ---------------------------------------------------------------------------------------------------------


def read_start(path: Path, size: int, noun: str) -> bytes:
    """Read at most `size` bytes of a file, called `noun` in messages. Raises `CommandError`."""
    try:
        if path.is_dir():
            raise CommandError(f"{noun} {path} is a folder: name a file in it")
        with path.open("rb") as file:
            return file.read(size)
    except (OSError, ValueError) as error:
        raise CommandError(f"{noun} {path} cannot be read: {reason_of(error)}") from None


def ensure_folder(path: Path, remedy: str) -> None:
    """Create a folder and check that files can be written there. Raises `CommandError`."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {reason_of(error)}; {remedy}", ExitCode.FAILED) from None
