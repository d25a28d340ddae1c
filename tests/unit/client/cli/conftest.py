"""Tests of commands leave the process as it was; an endpoint that accepts connections."""

import socket
from collections.abc import Iterator

import pytest
import structlog


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    """A command sends log lines to standard error."""
    yield
    structlog.reset_defaults()


@pytest.fixture
def endpoint() -> Iterator[str]:
    """The address of a model endpoint that accepts connections; no request is made."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
