"""Tests of commands leave the process as it was."""

from collections.abc import Iterator

import pytest
import structlog


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    """A command sends log lines to standard error."""
    yield
    structlog.reset_defaults()
