"""Traces: what leaves the process, what a collector that is away costs, and what an operator is told."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry import trace
from pydantic import SecretStr
from structlog.testing import capture_logs

from providers.errors import NotConfigured
from providers.request_spans import mark_failed, request_span
from tests.fakes.collector import Collector, own_provider
from tests.fakes.valkey import free_port
from workers.settings.loading import Settings
from workers.settings.sections import TracingSettings
from workers.tracing import open_tracing, probe_collector, traces_address


@pytest.fixture(autouse=True)
def provider() -> Iterator[None]:
    with own_provider():
        yield


def settings_for(address: str, home: Path, header: str | None = None) -> Settings:
    secret = None if header is None else SecretStr(header)
    return Settings(home=home, tracing=TracingSettings(endpoint=address), tracing_header=secret)


async def test_spans_have_names_and_counts_alone(tmp_path: Path) -> None:
    """Unknown attributes, events, words of a status and spans of libraries stay in the process; the header is sent."""
    async with Collector() as collector:
        settings = settings_for(collector.base_url, tmp_path, "Authorization: Bearer planted")
        async with open_tracing(settings) as plugins:
            assert [plugin.name() for plugin in plugins] == ["OpenTelemetryPlugin", "research-spans"]
            with request_span("model", {"research.role": "plan" * 100, "prompt": "a secret question"}) as span:
                span.add_event("a secret question")
                span.set_status(trace.Status(trace.StatusCode.ERROR, "a secret question"))
            with trace.get_tracer("a library").start_as_current_span("a secret question"):
                pass
            with pytest.raises(ValueError, match="secret"), request_span("page"):
                raise ValueError("a secret question")
    failed, sent = sorted(collector.spans, key=lambda span: span.name, reverse=True)
    assert (failed.name, failed.attributes, failed.is_error) == ("request page", {"error.type": "ValueError"}, True)
    assert (sent.name, sent.attributes, sent.is_error) == ("request model", {"research.role": "plan" * 50}, True)
    assert collector.services == {"durable-research"}
    assert all(b"secret" not in request.body for request in collector.requests)
    assert {request.headers["authorization"] for request in collector.requests} == {"Bearer planted"}


@pytest.mark.parametrize("stands_still", [False, True])
async def test_a_collector_that_is_away_costs_nothing(tmp_path: Path, *, stands_still: bool) -> None:
    """Five thousand spans are taken at once, one warning is logged, and the process ends within seconds."""
    async with Collector(status=503, stands_still=stands_still) as collector:
        with capture_logs() as logs:
            async with open_tracing(settings_for(collector.base_url, tmp_path)):
                began = time.process_time()
                for _ in range(5_000):
                    with request_span("page"):
                        pass
                taken = time.process_time() - began
                await asyncio.sleep(0.1)
                ending = time.monotonic()
            ended = time.monotonic() - ending
    assert taken < 5
    assert ended < 4, "of two seconds"
    assert [(line["event"], line["log_level"]) for line in logs] == [("tracing.collector_away", "warning")]
    assert collector.spans == []


async def test_without_a_collector_nothing_is_traced(tmp_path: Path) -> None:
    """Off by default: no plug-in, no provider, and a span that records nothing."""
    async with open_tracing(Settings(home=tmp_path)) as plugins:
        assert plugins == ()
        with request_span("page") as span:
            mark_failed(span, "Unanswered")
            assert not span.is_recording()
    assert trace._TRACER_PROVIDER is None


async def test_the_probe_says_what_a_collector_answers(tmp_path: Path) -> None:
    """Nothing for one that takes spans, the status of one that refuses, and that nothing listens."""
    async with Collector() as collector:
        assert await probe_collector(settings_for(collector.base_url, tmp_path, "X-Key: planted")) == ""
        assert collector.requests[-1].headers["x-key"] == "planted"
        collector.status = 401
        assert await probe_collector(settings_for(f"{collector.base_url}/v1/traces", tmp_path)) == "it answers 401"
    away = await probe_collector(settings_for(f"http://127.0.0.1:{free_port()}", tmp_path))
    assert away == "the connection failed (ConnectError)"


def test_the_address_of_a_collector_is_completed() -> None:
    """Written with or without the path of traces."""
    expected = "https://collector.example.org/otlp/v1/traces"
    assert traces_address("https://collector.example.org/otlp/") == expected
    assert traces_address(expected) == expected


def test_a_header_has_a_name_and_a_value(tmp_path: Path) -> None:
    """What is not `Name: value` is refused by the variable's name, without what it holds."""
    for header in ("planted", "A Name: planted", "Name: planted\r\nOther: 1"):
        with pytest.raises(NotConfigured, match="RESEARCH_TRACING_HEADER: write it as") as refused:
            settings_for("http://127.0.0.1:4318", tmp_path, header).tracing_headers()
        assert "planted" not in str(refused.value)
