"""Logs of a process: one form, no secrets."""

import io
import json
import logging
import time
from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from pydantic import ValidationError
from temporalio.runtime import Runtime, TelemetryConfig

from contracts.messages import DocumentPieceRequest
from workers.telemetry import HIDDEN, LogFormat, configure_logging, core_logging, redaction

SECRET = "sk-ant-0123456789"


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level
    structlog.reset_defaults()


def logged(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_secrets_are_hidden_by_name_and_by_value() -> None:
    """No key reaches the log: not as a field, not nested, not inside a message, not in a traceback."""
    stream = io.StringIO()
    configure_logging("json", secrets=[SECRET], stream=stream)
    log = structlog.get_logger("ours")
    log.info("a", api_key="x", nested={"Authorization": "Bearer y", "list": [{"password": "z"}]})
    try:
        raise ValueError(SECRET)
    except ValueError:
        log.exception("b", url=f"http://{SECRET}@h")
    logging.getLogger("library").error("with %s", SECRET)
    assert SECRET not in stream.getvalue()
    first, second, _ = logged(stream)
    assert first["api_key"] == HIDDEN
    assert first["nested"] == {"Authorization": HIDDEN, "list": [{"password": HIDDEN}]}
    assert "ValueError" in second["exception"]


def test_counts_and_states_are_no_secrets() -> None:
    """Redaction goes by whole names: counts of tokens and "not set" stay visible, and short values stay in words."""
    event = {"input_tokens": 7, "text": "abc", "redis_password": "set", "access_token": "t"}
    assert redaction(["abc"])(None, "info", dict(event)) == {**event, "access_token": HIDDEN}


@pytest.mark.parametrize("form", ["json", "console"])
def test_lines_do_not_drive_a_terminal(form: LogFormat) -> None:
    """What others wrote into an event shows, and is obeyed by no terminal; an exception keeps its lines."""
    stream = io.StringIO()
    configure_logging(form, stream=stream)
    logger = structlog.get_logger("ours")
    logger.info("\x1b[31mred\x9b1m", title="\x1b]0;owned\x07\u202eevil")
    try:
        raise ValueError("\x1b[2J")
    except ValueError:
        logger.exception("failed")
    written = stream.getvalue()
    assert "owned" in written
    assert not set(written) & set("\x1b\x07\x9b\u202e")
    assert ("\nValueError" in written) is (form == "console")


TEXT = "how do I tell my employer about the illness"


class CoreEntry:
    """A line of the SDK's core, as it forwards them."""

    target, level, time = "temporalio_sdk_core::worker::workflow", logging.WARNING, 1_764_000_000.0

    def __init__(self, message: str, **fields: object) -> None:
        self.message, self.fields = message, fields


@pytest.mark.parametrize(
    ("message", "event"),
    [
        ("Found missing events while applying history", "Found missing events while applying history"),
        (f"Failing workflow task: {TEXT}", "Failing workflow task"),
        (f'Unexpected update "{TEXT}" in HistoryUpdate {{ events: [..] }}', "Unexpected update"),
        (f"{{{TEXT}}}", ""),
    ],
)
def test_lines_of_the_core_carry_no_text_of_a_payload(message: str, event: str) -> None:
    """The core logs whole histories; of its lines the log has their own words, and names of ours."""
    stream = io.StringIO()
    configure_logging("json", stream=stream)
    forwarding = core_logging().forwarding
    assert forwarding is not None
    history = {"events": [{"payloads": [{"data": TEXT}]}]}
    error = f'Status {{ code: Unavailable, message: "{TEXT}" }}'
    forwarding._on_logs([CoreEntry(message, history=history, run_id="run-1", workflow_id="r-1", error=error)])  # type: ignore[list-item]
    (line,) = logged(stream)
    assert TEXT not in stream.getvalue()
    assert (line["event"], line["run_id"], line["workflow_id"], line["code"]) == (event, "run-1", "r-1", "Unavailable")


def test_a_real_line_of_the_core_passes_the_filter() -> None:
    """The runtime that workers make sends its lines through it."""
    stream = io.StringIO()
    configure_logging("json", logging.INFO, stream=stream)
    runtime = Runtime(telemetry=TelemetryConfig(logging=core_logging("INFO")))
    runtime._core_runtime.write_test_info_log(f"Received: {TEXT}", TEXT)
    for _ in range(100):
        if stream.getvalue():
            break
        time.sleep(0.02)
    assert [line["event"] for line in logged(stream)] == ["Received"]
    assert TEXT not in stream.getvalue()


def test_an_invalid_payload_is_not_shown_in_its_error() -> None:
    """A traceback with a validation error is logged by the SDK: it names the field and not the value."""
    with pytest.raises(ValidationError) as raised:
        DocumentPieceRequest.model_validate({"research_id": ["r-1"], "name": {TEXT: TEXT}})
    assert "research_id" in str(raised.value)
    assert TEXT not in str(raised.value)
