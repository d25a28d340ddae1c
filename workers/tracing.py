"""Traces of runs, sent to an OpenTelemetry collector: run → phase → call → request.

Off unless `[tracing]` names a collector; the libraries come with the extra `tracing`. The SDK's plug-in carries the
context of a span from a workflow to its activities, and makes spans of workflows that a replay does not send again. The
spans themselves are made here, and those of requests in `providers/request_spans.py`: names, ids, counts and statuses,
never a text of a question, a page or an answer.
"""

import asyncio
import logging
import re
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final, NoReturn, Protocol, runtime_checkable

import httpx2
import structlog
from opentelemetry import context as contexts
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Span
from temporalio import activity, workflow
from temporalio.exceptions import ApplicationError
from temporalio.plugin import SimplePlugin
from temporalio.worker import (
    ActivityInboundInterceptor,
    ContinueAsNewInput,
    ExecuteActivityInput,
    ExecuteWorkflowInput,
    Interceptor,
    Plugin,
    StartActivityInput,
    StartChildWorkflowInput,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
    WorkflowOutboundInterceptor,
)

from contracts.names import POOLS
from providers.bounded_request import send_once
from providers.certificates import trusted_certificates
from providers.request_spans import SCOPE, mark_failed
from providers.service_calls import StatusKind, classify
from workers.resolution_inputs import product_version
from workers.settings.loading import Settings
from workers.settings.models import host_of
from workers.settings.places import APPLICATION

PATH: Final = "/v1/traces"
"""Of traces below the address of a collector, by the OTLP specification."""
EXPORT_SECONDS: Final = 5.0
"""Longest time to send one batch, its repetitions included."""
CLOSE_SECONDS: Final = 2.0
"""Longest time that the end of a process waits for its last spans."""
MAX_QUEUE_SPANS: Final = 4_096
"""Spans that wait for a collector, at about 2 kB; further ones replace the oldest."""
BATCH_SPANS: Final = 512
PROBE_SECONDS: Final = 5.0
MAX_ANSWER_BYTES: Final = 100_000
PHASE_NAME: Final = re.compile(r"[a-z][a-z0-9 _-]{0,40}")
"""Names of phases that are shown; a strategy of a package may make others."""
ATTRIBUTES: Final = re.compile(
    r"research\.[a-z_]+|gen_ai\.(operation\.name|request\.(model|max_tokens)|response\.(model|finish_reasons))"
    r"|gen_ai\.usage\.[a-z_.]+|http\.request\.method|http\.response\.status_code|error\.type"
)
"""Names of attributes that leave the process; all others are removed."""
MAX_VALUE_CHARACTERS: Final = 200

logger = structlog.get_logger(__name__)


@asynccontextmanager
async def open_tracing(settings: Settings) -> AsyncIterator[Sequence[Plugin]]:
    """Send the spans of the block to the collector, and yield the plug-ins of the workers; none without a collector.

    At the end waiting spans are sent, for a few seconds. OpenTelemetry has one tracer provider for each process, so
    only the first block of a process sends spans.
    """
    endpoint = settings.tracing.endpoint
    if endpoint is None:
        yield ()
        return
    # Of an extra, and slow to import.
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
    from temporalio.contrib.opentelemetry import OpenTelemetryPlugin, create_tracer_provider  # noqa: PLC0415

    # What they say of a collector that does not answer is said once here, without its answers.
    for library in ("opentelemetry.exporter", "opentelemetry.sdk", "opentelemetry.context"):
        logging.getLogger(library).setLevel(logging.CRITICAL)
    resource = Resource({"service.name": APPLICATION, "service.version": product_version()})
    provider = create_tracer_provider(resource=resource, shutdown_on_exit=False)
    sender = OTLPSpanExporter(
        traces_address(endpoint), headers=settings.tracing_headers(), timeout=EXPORT_SECONDS, session=_session()
    )
    exporter = SpanFilter(sender, host_of(endpoint))
    processor = BatchSpanProcessor(exporter, max_queue_size=MAX_QUEUE_SPANS, max_export_batch_size=BATCH_SPANS)
    provider.add_span_processor(processor)
    trace.set_tracer_provider(provider)
    try:
        yield (OpenTelemetryPlugin(), SimplePlugin("research-spans", interceptors=[SpanInterceptor()]))
    finally:
        exporter.is_closing = True
        closing = threading.Thread(target=provider.shutdown, daemon=True)
        closing.start()
        await asyncio.to_thread(closing.join, CLOSE_SECONDS)
        if closing.is_alive():
            exporter.note(is_away=True)


def traces_address(endpoint: str) -> str:
    """Return where a collector takes traces: its address may be written with or without the path of traces."""
    return endpoint.rstrip("/").removesuffix(PATH) + PATH


async def probe_collector(settings: Settings) -> str:
    """Send no spans to the collector, and return the problem; empty if it answers well."""
    assert settings.tracing.endpoint is not None
    headers = {"content-type": "application/x-protobuf", **settings.tracing_headers()}
    async with httpx2.AsyncClient(trust_env=False, follow_redirects=False, verify=trusted_certificates()) as client:
        answer = await send_once(
            client,
            "POST",
            traces_address(settings.tracing.endpoint),
            seconds=PROBE_SECONDS,
            max_bytes=MAX_ANSWER_BYTES,
            headers=headers,
            service="collector",
            content=b"",  # a request without spans
        )
    if answer.failure and not answer.status:
        return answer.failure
    if classify(answer.status) is not StatusKind.DONE:
        return f"it answers {answer.status}"
    return ""


def _session() -> Any:
    """Return connections that are independent of the environment: no proxy, no file of passwords."""
    import requests  # noqa: PLC0415

    session = requests.Session()
    session.trust_env = False
    return session


class SpanFilter:
    """Exports spans of the product alone, and of these only known attributes; says once that a collector is away.

    It has the methods of the SDK's `SpanExporter`, and is called in the thread of its processor.
    """

    def __init__(self, exporter: Any, host: str) -> None:
        self._exporter = exporter
        self._host = host
        self._is_away = False
        self.is_closing = False
        """True once the process ends: then nothing more is tried with a collector that is away."""

    def export(self, spans: Sequence[Any]) -> Any:
        """Send a batch, and return the SDK's result."""
        from opentelemetry.sdk.trace.export import SpanExportResult  # noqa: PLC0415

        if self.is_closing and self._is_away:
            return SpanExportResult.FAILURE
        own = [without_texts(span) for span in spans if span.instrumentation_scope.name == SCOPE]
        if not own:
            return SpanExportResult.SUCCESS
        result = self._exporter.export(own)
        self.note(is_away=result is not SpanExportResult.SUCCESS)
        return result

    def note(self, *, is_away: bool) -> None:
        """Log that the collector does not answer, and later that it does again."""
        if is_away and not self._is_away:
            logger.warning("tracing.collector_away", host=self._host, effect="spans are dropped; runs go on")
        elif self._is_away and not is_away:
            logger.info("tracing.collector_back", host=self._host)
        self._is_away = is_away

    def shutdown(self) -> None:
        """Close the connections."""
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Return true: nothing waits here."""
        del timeout_millis
        return True


def without_texts(span: Any) -> Any:
    """Return a copy of a span with known attributes alone, cut to a length; without events and words of its status."""
    from opentelemetry.sdk.trace import ReadableSpan  # noqa: PLC0415
    from opentelemetry.trace import Status  # noqa: PLC0415

    attributes = {
        name: value[:MAX_VALUE_CHARACTERS] if isinstance(value, str) else value
        for name, value in (span.attributes or {}).items()
        if ATTRIBUTES.fullmatch(name)
    }
    return ReadableSpan(
        name=span.name,
        context=span.context,
        parent=span.parent,
        resource=span.resource,
        attributes=attributes,
        kind=span.kind,
        status=Status(span.status.status_code),
        start_time=span.start_time,
        end_time=span.end_time,
        instrumentation_scope=span.instrumentation_scope,
    )


# --- spans of workflows and activities --------------------------------------------------------------------------------
QUEUE_POOLS: Final = {queue: pool for pool, queue in POOLS.items()}


class SpanInterceptor(Interceptor):
    """Makes a span of each run, of each of its phases, and of each attempt of a call."""

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:  # noqa: A002
        """Return the interceptor of activities."""
        return CallSpans(next)

    def workflow_interceptor_class(self, input: WorkflowInterceptorClassInput) -> type[WorkflowInboundInterceptor]:  # noqa: A002
        """Return the interceptor of workflows."""
        del input
        return RunSpans


class CallSpans(ActivityInboundInterceptor):
    """A span for each attempt of an activity."""

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002
        """Run the activity within its span."""
        info = activity.info()
        attributes: dict[str, str | int] = {
            "research.id": info.workflow_id or "",
            "research.call": info.activity_id,
            "research.attempt": info.attempt,
            "research.pool": QUEUE_POOLS.get(info.task_queue, ""),
        }
        with _tracer().start_as_current_span(
            f"call {info.activity_type}",
            kind=trace.SpanKind.CONSUMER,
            attributes=attributes,
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                return await super().execute_activity(input)
            except BaseException as error:
                mark_failed(span, _error_name(error))
                raise


@runtime_checkable
class HasPhase(Protocol):
    """A workflow whose work has phases."""

    @property
    def phase(self) -> str:
        """The current phase; empty before the first one."""


class RunSpans(WorkflowInboundInterceptor):
    """A span for a workflow, and one for each of its phases, from its first call until the next phase.

    A workflow that leaves the memory of its worker is cancelled in the middle of its code: the SDK counts that as a
    replay, in which its plug-in ends no span, and the worker that has it next sends them.
    """

    def __init__(self, next: WorkflowInboundInterceptor) -> None:  # noqa: A002
        super().__init__(next)
        self.run: Span | None = None
        self._phase: Span | None = None
        self._phase_name = ""
        self._attributes: dict[str, str] = {}
        self._started_by: Context | None = None
        """The context that the first of several workflow executions hands on; None in the first one."""

    def init(self, outbound: WorkflowOutboundInterceptor) -> None:
        """Have calls, agents and continuations begin in the context of the phase or the run."""
        super().init(OutgoingContexts(outbound, self))

    async def execute_workflow(self, input: ExecuteWorkflowInput) -> Any:  # noqa: A002
        """Run the workflow within its span."""
        info = workflow.info()
        self._attributes = {"research.id": info.workflow_id, "research.execution": info.run_id}
        if trace.get_current_span().get_span_context().is_valid:
            self._started_by = contexts.get_current()
        self.run = _tracer().start_span(
            f"run {info.workflow_type}", kind=trace.SpanKind.SERVER, attributes=self._attributes
        )
        try:
            result = await super().execute_workflow(input)
        except workflow.ContinueAsNewError:
            self._end()
            raise
        except asyncio.CancelledError:
            self._end("CancelledError")
            raise
        except Exception as error:
            if workflow.is_failure_exception(error):  # any other fails the task alone, which is tried again
                self._end(_error_name(error))
            raise
        self._end()
        return result

    def context(self) -> Context:
        """Return the context for what the workflow starts now: that of its phase, or of the run before it has one."""
        instance = workflow.instance()
        phase = instance.phase if isinstance(instance, HasPhase) else ""
        if phase != self._phase_name:
            self._end_phase()
            self._phase_name = phase
            shown = phase if PHASE_NAME.fullmatch(phase) else "other"
            self._phase = _tracer().start_span(
                f"phase {shown}", self._of(self.run), attributes=self._attributes | {"research.phase": shown}
            )
        return self._of(self._phase or self.run)

    def next_execution(self) -> Context:
        """Return the context for the next workflow execution of the run: all are parts of the first one."""
        return self._started_by or self._of(self.run)

    def _of(self, span: Span | None) -> Context:
        if span is None:
            return Context()
        return trace.set_span_in_context(span, Context())

    def _end(self, error: str = "") -> None:
        self._end_phase()
        assert self.run is not None
        if error:
            mark_failed(self.run, error)
        self.run.end()

    def _end_phase(self) -> None:
        if self._phase is not None:
            self._phase.end()
        self._phase = None


class OutgoingContexts(WorkflowOutboundInterceptor):
    """Starts activities, agents and next executions in the context of a span, which the SDK's plug-in sends along."""

    def __init__(self, next: WorkflowOutboundInterceptor, spans: RunSpans) -> None:  # noqa: A002
        super().__init__(next)
        self._spans = spans

    def start_activity(self, input: StartActivityInput) -> workflow.ActivityHandle[Any]:  # noqa: A002
        """Start an activity in the context of the phase."""
        with _within(self._spans.context()):
            return super().start_activity(input)

    async def start_child_workflow(self, input: StartChildWorkflowInput) -> workflow.ChildWorkflowHandle[Any, Any]:  # noqa: A002
        """Start an agent or a notice in the context of the phase."""
        with _within(self._spans.context()):
            return await super().start_child_workflow(input)

    def continue_as_new(self, input: ContinueAsNewInput) -> NoReturn:  # noqa: A002
        """Continue in the context of the first execution."""
        with _within(self._spans.next_execution()):
            super().continue_as_new(input)


@contextmanager
def _within(context: Context) -> Iterator[None]:
    token = contexts.attach(context)
    try:
        yield
    finally:
        contexts.detach(token)


def _tracer() -> trace.Tracer:
    return trace.get_tracer(SCOPE)


def _error_name(error: BaseException) -> str:
    """Return the type that a failure states, else the name of its class."""
    if isinstance(error, ApplicationError) and error.type:
        return error.type
    return type(error).__name__
