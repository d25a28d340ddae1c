"""From an error to one clear line and an exit code; only what nobody foresaw writes a crash file."""

import os
import sys
import tempfile
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from client.cli.exit_codes import ExitCode
from contracts.display_text import visible

LONGEST_QUOTE = 80


class CommandError(Exception):
    """A command cannot do what was asked; the message says what to do next."""

    def __init__(self, message: str, code: ExitCode = ExitCode.USAGE) -> None:
        super().__init__(message)
        self.code = code


def quoted(given: str) -> str:
    """What a person typed, as a message may repeat it: on one line, without control characters, not endless."""
    return repr(given if len(given) <= LONGEST_QUOTE else given[:LONGEST_QUOTE] + "…")


def explain(error: Exception) -> tuple[str, ExitCode] | None:
    """The line and the code of an expected error, or null for one that nobody foresaw."""
    if isinstance(error, CommandError):
        return str(error), error.code
    for translate in (_from_client, _from_workers, _from_providers, _from_machine):
        explained = translate(error)
        if explained is not None:
            return explained
    return None


def write_crash_file(error: BaseException, home: Path) -> Path | None:
    """Keep the traceback of an unforeseen error for a bug report; null when even that is impossible."""
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


def guarded(command: Callable[[], int], home: Callable[[], Path]) -> int:
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


def _from_client(error: Exception) -> tuple[str, ExitCode] | None:
    from client import errors  # noqa: PLC0415  loaded only when something went wrong

    if not isinstance(error, errors.ClientError):
        return None
    usage = (errors.RunUnknown, errors.RunForeign, errors.RunClosed, errors.RunFinished, errors.MessageRefused)
    return str(error), ExitCode.USAGE if isinstance(error, usage) else ExitCode.FAILED


def _from_workers(error: Exception) -> tuple[str, ExitCode] | None:
    settings = sys.modules.get("workers.settings.loading")
    if settings is not None and isinstance(error, settings.SettingsError):
        return f"the configuration cannot be used:\n{error}", ExitCode.USAGE
    engine = sys.modules.get("workers.dev_server.files")
    if engine is not None and isinstance(error, engine.EngineError):
        return str(error), ExitCode.FAILED
    process = sys.modules.get("workers.process")
    if process is not None and isinstance(error, process.PortUnusableError):
        return str(error), ExitCode.USAGE
    pools = sys.modules.get("workers.pools")
    if pools is not None and isinstance(error, pools.UnknownPoolError):
        return str(error), ExitCode.USAGE
    return None


def _from_providers(error: Exception) -> tuple[str, ExitCode] | None:
    errors = sys.modules.get("providers.errors")
    if errors is None or not isinstance(error, errors.ProviderError):
        return None
    if isinstance(error, errors.CorpusUnknown | errors.InvalidCall | errors.NotConfigured | errors.SourceUnreadable):
        return str(error), ExitCode.USAGE
    return str(error), ExitCode.FAILED


def _from_machine(error: Exception) -> tuple[str, ExitCode] | None:
    if isinstance(error, OSError) and error.strerror:
        place = f"{error.filename}: " if error.filename else ""
        return f"{place}{error.strerror.lower()}", ExitCode.FAILED
    return None
