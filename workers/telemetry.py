"""Logs and metrics of a process: dotted events as JSON or as text, without secrets, configured in one place."""

import logging
import re
import socket
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
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
"""Names whose values are hidden; `input_tokens` is a count, no secret."""
CORE_LOGGER = "temporal.core"
HIDDEN = "[hidden]"
NO_SECRETS = ("", "set", "not set")
"""Values under the name of a secret that only tell whether it is set."""
SHORTEST_SECRET = 6
"""A shorter value would also be replaced within ordinary words."""

HISTOGRAM_SECONDS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1_000.0)
"""Buckets for latencies of work that takes from milliseconds to the deadline of a run."""
LONG_LATENCIES = (
    "temporal_activity_schedule_to_start_latency",
    "temporal_activity_execution_latency",
    "temporal_activity_succeed_endtoend_latency",
    "temporal_workflow_endtoend_latency",
    "research_run_seconds",
)
"""The SDK's own buckets end after ten seconds or a minute."""


@dataclass(frozen=True)
class Redaction:
    """A log processor that hides secrets by name and by value, however deep."""

    secrets: tuple[str, ...]

    @classmethod
    def of(cls, secrets: Collection[str]) -> "Redaction":
        """Values to hide, the longest first."""
        return cls(tuple(sorted({text for text in secrets if len(text) >= SHORTEST_SECRET}, key=len, reverse=True)))

    def __call__(self, logger: Any, method: str, event: EventDict) -> EventDict:
        """The event without secrets."""
        del logger, method
        return {name: self.redact(name, value) for name, value in event.items()}

    def redact(self, name: str, value: Any) -> Any:
        """The value without secrets."""
        if isinstance(value, Mapping):
            return {key: self.redact(str(key), inner) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self.redact(name, inner) for inner in value]
        if SECRET_NAME.search(name) and isinstance(value, str | bytes):
            return value if value in NO_SECRETS else HIDDEN
        return self.without_secrets(value) if isinstance(value, str) else value

    def without_secrets(self, text: str) -> str:
        """The text with every known secret replaced."""
        for secret in self.secrets:
            text = text.replace(secret, HIDDEN)
        return text


def _without_tables(logger: Any, method: str, event: EventDict) -> EventDict:
    """Drop tables from text for people: the configuration in one line fills a screen, and `doctor` shows it."""
    del logger, method
    return {name: value for name, value in event.items() if not isinstance(value, Mapping)}


def _expected_in_one_line(logger: Any, method: str, event: EventDict) -> EventDict:
    """A failure that our code raised on purpose is told in one line: where it was raised is of use to nobody."""
    del logger, method
    given = event.get("exc_info")
    error = given[1] if isinstance(given, tuple) else given
    if isinstance(error, ApplicationError):
        del event["exc_info"]
        event["reason"] = f"{error.type or 'failure'}: {'; '.join(error.message.splitlines())}"
    return event


def configure_logging(
    form: LogFormat = "json", level: int = logging.INFO, *, secrets: Collection[str] = (), stream: TextIO | None = None
) -> None:
    """Send structlog and the standard library's logs to one stream (standard error) in one form."""
    redaction = Redaction.of(secrets)
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    renderers: list[Processor] = (
        [structlog.processors.JSONRenderer(default=str, ensure_ascii=False), lambda *line: visible_json(line[2])]
        if form == "json"
        else [_without_tables, structlog.dev.ConsoleRenderer(colors=False), lambda *line: visible(line[2])]
    )
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared,
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            _expected_in_one_line,
            structlog.processors.format_exc_info,
            redaction,
            *renderers,
        ],
    )
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(formatter)
    # Which call and which run are fields of a line already.
    activity.logger.activity_info_on_message = workflow.logger.workflow_info_on_message = False
    logging.raiseExceptions = False  # a full disk must not print a traceback for every lost line
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for noisy in ("httpx2", "httpcore2", "asyncio", "temporalio.worker"):
        logging.getLogger(noisy).setLevel(max(level, logging.WARNING))
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )


def metrics_address(host: str, port: int) -> str:
    """`host:port` for the metrics of a process; port 0 takes a free one."""
    if port:
        return f"{host}:{port}"
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind((host, 0))
        return f"{host}:{probe.getsockname()[1]}"


def temporal_runtime(metrics: str | None = None) -> Runtime:
    """The SDK's runtime: warnings of its core in our logs, and Prometheus metrics at an address if one is given.

    One process creates one. Raises ValueError if the address cannot be bound.
    """
    core = logging.getLogger(CORE_LOGGER)
    if not core.handlers:
        core.addHandler(logging.NullHandler())  # without logging these warnings are of no use to a person
    prometheus = None
    if metrics is not None:
        buckets = dict.fromkeys(LONG_LATENCIES, HISTOGRAM_SECONDS)
        prometheus = PrometheusConfig(
            bind_address=metrics, durations_as_seconds=True, histogram_bucket_overrides=buckets
        )
    logs = LoggingConfig(
        filter=TelemetryFilter(core_level="WARN", other_level="ERROR"),
        forwarding=LogForwardingConfig(logger=core, append_target_to_name=False),
    )
    return Runtime(telemetry=TelemetryConfig(logging=logs, metrics=prometheus))
