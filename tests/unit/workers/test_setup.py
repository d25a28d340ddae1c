"""Setting a cluster up: what is decided without a server."""

from datetime import timedelta

import pytest
from temporalio.service import RPCStatusCode

from contracts.names import COST_ATTRIBUTE, KEYWORD_ATTRIBUTES
from workers import setup

MONTH = timedelta(days=30)


def test_a_cluster_of_others_is_told_what_to_do() -> None:
    """Where the account may not set up, the message names everything that its operator has to make."""
    message = str(setup._refused("lab", MONTH, RPCStatusCode.PERMISSION_DENIED))
    assert all(f"{name} (Keyword)" in message for name in KEYWORD_ATTRIBUTES)
    assert f"{COST_ATTRIBUTE} (Double)" in message
    assert "namespace lab with a retention of 30 days" in message
    assert "internal" in str(setup._refused("lab", MONTH, RPCStatusCode.INTERNAL))


def test_without_a_cluster_there_is_nothing_to_set_up(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The dev server needs no set-up, and asking for one is a mistake that is named."""
    for name in ("TEMPORAL_ADDRESS", "TEMPORAL_PROFILE", "TEMPORAL_CONFIG_FILE"):
        monkeypatch.delenv(name, raising=False)
    assert setup.main([]) == setup.USAGE
    assert "TEMPORAL_ADDRESS" in capsys.readouterr().err


def test_a_silent_cluster_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """When nobody answers in the time given, the exit code says so and the message where."""
    monkeypatch.setenv("TEMPORAL_ADDRESS", "127.0.0.1:9")
    assert setup.main(["--wait-seconds", "0"]) == setup.FAILED
    assert "127.0.0.1:9" in capsys.readouterr().err
