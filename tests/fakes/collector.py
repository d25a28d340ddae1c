"""A collector of traces on the loopback interface: OTLP over HTTP, in protobuf; and the one tracer provider of a process."""

import asyncio
import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from opentelemetry import trace
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from opentelemetry.util._once import Once

from tests.fakes.loopback import HttpRequest, LoopbackServer, response


@dataclass(frozen=True)
class SentSpan:
    """A span as it arrived."""

    name: str
    id: bytes
    parent: bytes
    trace: bytes
    seconds: float
    attributes: dict[str, str | int]
    is_error: bool
    raw: Span = field(repr=False)


class Collector(LoopbackServer):
    """Takes spans at `/v1/traces`, or answers with `status`; with `stands_still`, it never answers."""

    def __init__(self, status: int = 200, *, stands_still: bool = False) -> None:
        super().__init__()
        self.status = status
        self.stands_still = stands_still
        self.requests: list[HttpRequest] = []
        self.spans: list[SentSpan] = []
        self.services: set[str] = set()

    async def serve(self, request: HttpRequest, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        self.requests.append(request)
        if self.stands_still:
            await reader.read()
            return False
        status = self.status if request.target == "/v1/traces" else 404
        if status == 200:
            body = gzip.decompress(request.body) if request.headers.get("content-encoding") == "gzip" else request.body
            self._take(ExportTraceServiceRequest.FromString(body))
        writer.write(response(status, b"", {"content-type": "application/x-protobuf"}))
        await writer.drain()
        return True

    def children(self, parent: SentSpan) -> list[SentSpan]:
        """The spans right below one."""
        return [span for span in self.spans if span.parent == parent.id]

    def _take(self, request: ExportTraceServiceRequest) -> None:
        for resource in request.resource_spans:
            self.services |= {
                one.value.string_value for one in resource.resource.attributes if one.key == "service.name"
            }
            for scope in resource.scope_spans:
                self.spans += map(_read, scope.spans)


def _read(span: Span) -> SentSpan:
    attributes: dict[str, str | int] = {}
    for one in span.attributes:
        kind = one.value.WhichOneof("value")
        assert kind in ("string_value", "int_value"), one
        attributes[one.key] = getattr(one.value, kind)
    return SentSpan(
        name=span.name,
        id=span.span_id,
        parent=span.parent_span_id,
        trace=span.trace_id,
        seconds=(span.end_time_unix_nano - span.start_time_unix_nano) / 1e9,
        attributes=attributes,
        is_error=span.status.code == span.status.STATUS_CODE_ERROR,
        raw=span,
    )


@contextmanager
def own_provider() -> Iterator[None]:
    """Let a test set the tracer provider of its process, which OpenTelemetry allows once."""
    before = trace._TRACER_PROVIDER, trace._TRACER_PROVIDER_SET_ONCE
    trace._TRACER_PROVIDER = None
    trace._TRACER_PROVIDER_SET_ONCE = Once()
    try:
        yield
    finally:
        trace._TRACER_PROVIDER, trace._TRACER_PROVIDER_SET_ONCE = before
