"""Spans of requests to services, the innermost part of a trace; without a process that sends traces they cost nothing.

A span has names, ids and counts alone: no address, no header, no text of a prompt, a page or a question.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from opentelemetry import trace
from opentelemetry.trace import Span, Status, StatusCode

SCOPE: Final = "durable_research"
"""Instrumentation scope of all spans of the product; spans of libraries have others, and are not sent."""
STATUS: Final = "http.response.status_code"
ERROR: Final = "error.type"
"""Name of an error's class, or of its type; never its message, which may quote what was sent."""


@contextmanager
def request_span(service: str, attributes: dict[str, str | int] | None = None) -> Iterator[Span]:
    """Record a request during the block: to a model, for a page, or to a service by its name, such as `wikipedia`.

    An error that leaves the block becomes the span's status, by its name alone.
    """
    tracer = trace.get_tracer(SCOPE)
    with tracer.start_as_current_span(
        f"request {service}",
        kind=trace.SpanKind.CLIENT,
        attributes=attributes,
        record_exception=False,
        set_status_on_exception=False,
    ) as span:
        try:
            yield span
        except BaseException as error:
            mark_failed(span, type(error).__name__)
            raise


def mark_failed(span: Span, error: str) -> None:
    """Set the status of a span to an error of this name."""
    span.set_attribute(ERROR, error)
    span.set_status(Status(StatusCode.ERROR))
