"""Logs and metrics of a process: dotted events as JSON or text, without secrets."""

import logging
import re
import socket
import sys
from collections.abc import Collection, Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Any, Literal, TextIO

import structlog
from structlog.typing import EventDict, Processor
from temporalio import activity, workflow
from temporalio.exceptions import ApplicationError
from temporalio.runtime import (
    LogForwardingConfig,
    LoggingConfig,
    PrometheusConfig,
    Runtime,
    TelemetryConfig,
    TelemetryFilter,
)

from contracts.texts import visible, visible_json

LogFormat = Literal["json", "console"]

SECRET_NAME = re.compile(r"(api_?key|authorization|cookie|credential|password|secret|(?<![a-z])token$)", re.IGNORECASE)
"""Names whose values are hidden; `input_tokens` is a count, not a secret."""
CORE_LOGGER = "temporal.core"
CORE_MESSAGE = re.compile(r"[A-Za-z0-9_ .,'/-]{0,200}")
"""The fixed beginning of a line of the core; inserted values follow a colon, quote or bracket."""
CORE_FIELDS = ("workflow_id", "run_id", "workflow_type", "activity_type", "task_queue", "attempt")
"""Fields of the core's log that are passed on; others may contain payloads or a whole history."""
HIDDEN = "[hidden]"
NO_SECRETS = ("", "set", "not set")  # values of secret names that only report whether the secret is set
MIN_SECRET_CHARACTERS = 6  # a shorter value would also be replaced within ordinary words
HISTOGRAM_SECONDS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1_000.0)
"""Histogram buckets from milliseconds to a long run; the SDK's own buckets end at a minute."""
WORKER_HEARTBEAT = timedelta(seconds=15)
"""How often a process tells a server that lists workers of its places in use; one request for all of its pools."""
LONG_LATENCIES = (
    "temporal_activity_schedule_to_start_latency",
    "temporal_activity_execution_latency",
    "temporal_activity_succeed_endtoend_latency",
    "temporal_workflow_endtoend_latency",
    "research_run_seconds",
)


def configure_logging(
    form: LogFormat, level: int = logging.INFO, *, secrets: Collection[str] = (), stream: TextIO | None = None
) -> None:
    """Send logs of structlog and the standard library to one stream (default: standard error) in one format."""
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    to_json = structlog.processors.JSONRenderer(default=str, ensure_ascii=False)
    to_text = structlog.dev.ConsoleRenderer(colors=False)
    as_json: list[Processor] = [to_json, lambda *line: visible_json(line[2])]
    as_text: list[Processor] = [_drop_tables, to_text, lambda *line: visible(line[2])]
    processors: list[Processor] = [
        structlog.stdlib.ProcessorFormatter.remove_processors_meta,
        _shorten_expected,
        structlog.processors.format_exc_info,
        redaction(secrets),
        *(as_json if form == "json" else as_text),
    ]
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(foreign_pre_chain=shared, processors=processors))
    # Activity and run are already fields of the log line.
    activity.logger.activity_info_on_message = workflow.logger.workflow_info_on_message = False
    logging.raiseExceptions = False  # a full disk must not print a traceback for every lost line
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for noisy in ("httpx2", "httpcore2", "asyncio", "temporalio.worker", "mcp", "uvicorn.error"):
        logging.getLogger(noisy).setLevel(max(level, logging.WARNING))
    to_handler = structlog.stdlib.ProcessorFormatter.wrap_for_formatter
    structlog.configure(
        processors=[structlog.stdlib.filter_by_level, *shared, to_handler],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )


def redaction(secrets: Collection[str]) -> Processor:
    """Return a log processor that hides secrets by name and by value, at any depth."""
    hidden = sorted({text for text in secrets if len(text) >= MIN_SECRET_CHARACTERS}, key=len, reverse=True)

    def redact(name: str, value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: redact(str(key), inner) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [redact(name, inner) for inner in value]
        if SECRET_NAME.search(name) and isinstance(value, str | bytes):
            return value if value in NO_SECRETS else HIDDEN
        if isinstance(value, str):
            for secret in hidden:
                value = value.replace(secret, HIDDEN)
        return value

    return lambda _, __, event: redact("", event)


def _drop_tables(_: Any, __: str, event: EventDict) -> EventDict:
    """Remove the configuration, which would fill a terminal; `doctor` shows it."""
    return {name: value for name, value in event.items() if not isinstance(value, Mapping)}


def _shorten_expected(_: Any, __: str, event: EventDict) -> EventDict:
    """Log a failure that our code raised on purpose in one line, without a traceback."""
    exc_info = event.get("exc_info")
    error = exc_info[1] if isinstance(exc_info, tuple) else exc_info
    if isinstance(error, ApplicationError):
        del event["exc_info"]
        event["reason"] = f"{error.type or 'failure'}: {'; '.join(error.message.splitlines())}"
    return event


class CoreFilter(logging.Filter):
    """Reduces a log line of the SDK's core to its fixed text and known fields.

    The core logs the data it works on: under many concurrent updates, whole histories with text of users.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Replace the message by its fixed beginning, and the fields by known ones."""
        entry = record.__dict__.pop("temporal_log", None)
        match = CORE_MESSAGE.match(record.getMessage())
        record.msg = match[0].strip() if match else ""
        record.args = ()
        with suppress(Exception):  # logging must never raise
            fields = dict(entry.fields) if entry else {}
            record.__dict__.update({name: str(fields[name])[:200] for name in CORE_FIELDS if name in fields})
            if code := re.search(r"\bcode: (\w+)", str(fields.get("error", ""))):
                record.code = code[1]
        return True


CORE_FILTER = CoreFilter()


def metrics_address(host: str, port: int) -> str:
    """Return `host:port` for the metrics of a process; port 0 chooses a free one."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind((host, 0))
        return f"{host}:{port or probe.getsockname()[1]}"


def temporal_runtime(metrics: str | None = None) -> Runtime:
    """Create the SDK's runtime: its warnings go to our logs, metrics to an address. Raises ValueError."""
    prometheus = None
    if metrics is not None:
        buckets = dict.fromkeys(LONG_LATENCIES, HISTOGRAM_SECONDS)
        prometheus = PrometheusConfig(metrics, durations_as_seconds=True, histogram_bucket_overrides=buckets)
    telemetry = TelemetryConfig(logging=core_logging(), metrics=prometheus)
    return Runtime(telemetry=telemetry, worker_heartbeat_interval=WORKER_HEARTBEAT)


def core_logging(level: Literal["WARN", "INFO"] = "WARN") -> LoggingConfig:
    """Send log lines of the SDK's core from this level up through `CoreFilter` to our logs."""
    core = logging.getLogger(CORE_LOGGER)
    core.addFilter(CORE_FILTER)
    if not core.handlers:
        core.addHandler(logging.NullHandler())  # commands without a log show none of these
    options = ("append_target_to_name", "prepend_target_on_message", "append_log_fields_to_message")
    forwarding = LogForwardingConfig(logger=core, **dict.fromkeys(options, False))
    return LoggingConfig(filter=TelemetryFilter(core_level=level, other_level="ERROR"), forwarding=forwarding)
