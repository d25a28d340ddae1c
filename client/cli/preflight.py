"""Before a run: build its request, resolve it as a worker would, probe its services, print egress and estimate."""

import asyncio
import json
import os
import re
import socket
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from activities.preparation import NO_PROOF, RunRefused, merge, resolve, resolve_again
from client.cli.context import CommandContext, RunInfo
from client.cli.corpus import find_corpus
from client.cli.options import RunOptions
from client.cli.output import CommandError, ExitCode, print_json, print_progress, print_result, read_start
from client.client_errors import PreviewRefused
from client.view.words import duration, engine_text, printable, providers_text
from contracts.names import RECORDS_QUEUE
from contracts.parse_request import InvalidRequest, error_lines, parse_request
from contracts.presets import highest_limits
from contracts.request import ResearchRequest
from contracts.resolved import CorpusSnapshot, EffectiveLimits, ResolvedResearch
from contracts.state import ResearchState
from contracts.texts import plural
from contracts.vocabulary import EngineKind, Outcome, StopReason
from providers.errors import CorpusUnknown, Unavailable
from providers.models.endpoints import split_name
from providers.search.availability import probe_address
from workers.resolution_inputs import configuration_of
from workers.settings.loading import ENDPOINT_VARIABLES, Settings
from workers.settings.models import PUBLIC_HOST, host_of
from workers.temporal import namespace_of
from workers.tenants import tenant_here

MAX_REQUEST_SIZE: Final = 4_000_000  # bytes; a request with the longest allowed texts is far smaller
LISTS: Final = (
    *("exclude", "protected_sources", "output.sections"),
    *("search.providers", "search.source_types", "search.domains_allow", "search.domains_deny"),
)
"""Request paths whose value may be a comma-separated list."""
EFFECTIVE: Final = frozenset(
    "engine models providers search web limits ceiling cuts gates egress advice estimate".split()
)
"""Fields of a resolution that depend on the configuration."""
NOT_STARTED: Final = "not-started"
PROBE_SECONDS: Final = 2.5
WINDOW_SECONDS: Final = 4.0
"""Longest wait for the windows of models, which are only worth a warning."""
PATIENCE_SECONDS: Final = 1.0
"""Time after which a person is told what is waited for."""
IDENTITY: Final = re.compile(r"\w+-(?P<pid>\d+)@(?P<host>[^/]*)/.*")
RUN_MARK: Final = "+run"
"""Suffix of the mark of workers that live only as long as one `research run`."""


# --- the request ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RequestedRun:
    """A valid request, and the folder to register first as its corpus."""

    request: ResearchRequest
    folder: Path | None = None


async def read_request(context: CommandContext, options: RunOptions) -> RequestedRun:
    """Build the request: `--set` over options over the file. Raises `CommandError`."""
    settings = context.settings
    folder = None
    from_file = {}
    if options.request_file is not None:
        from_file = _read_request_file(options.request_file)
    tenant = {} if settings.tenant is None else {"tenant": settings.tenant}
    values = reduce(merge, (tenant, from_file, options.values(), parse_assignments(options.assignments)))
    if values.get("query") == "-" or not ("query" in values or options.request_file or sys.stdin.isatty()):
        values["query"] = sys.stdin.read(MAX_REQUEST_SIZE).strip()
    if options.model is not None and values.get("engine") in (None, "auto"):
        values["engine"] = "model"  # a named model is required: no fallback to a report without one
    if isinstance(values.get("corpus"), str):
        registered = await context.stores.corpus_folders()
        values["corpus"], folder = find_corpus(values["corpus"], registered, cluster=settings.uses_cluster)
    return RequestedRun(build_request(values), folder)


def _read_request_file(path: Path) -> dict[str, Any]:
    """Read a request as JSON, from standard input for `-`. Raises `CommandError`."""
    piped = path == Path("-")
    if piped:
        data = sys.stdin.buffer.read(MAX_REQUEST_SIZE)
    else:
        data = read_start(path, MAX_REQUEST_SIZE, "the request file")
    name = "the request on standard input" if piped else f"the request file {path}"
    value = None
    try:
        value = json.loads(data)
    except json.JSONDecodeError as error:
        if len(data) < MAX_REQUEST_SIZE:  # a longer one is cut, and so ends where it should not
            problem = f"{error.msg[:1].lower()}{error.msg[1:]} at line {error.lineno}, column {error.colno}"
            raise CommandError(f"{name} is not valid JSON: {problem}") from None
    except (ValueError, RecursionError):
        pass
    if not isinstance(value, dict):
        raise CommandError(f'{name} must be one JSON object of at most {MAX_REQUEST_SIZE:,} bytes: {{"query": "…"}}')
    return value


def build_request(values: Mapping[str, Any]) -> ResearchRequest:
    """Validate a request. Raises `CommandError` with a `path: message` line per problem, without the values."""
    # A misspelt `query` is named as such.
    if not str(values.get("query") or "").strip() and values.keys() <= ResearchRequest.model_fields.keys():
        raise CommandError('the question is empty: research run "How does …?"')
    try:
        request = ResearchRequest.model_validate(dict(values))
        return parse_request(request.model_dump_json(exclude_unset=True))
    except ValidationError as error:
        lines = error_lines(error)
    except InvalidRequest as error:
        lines = error.lines
    raise CommandError("invalid request:\n" + "\n".join(lines))


def parse_assignments(assignments: Sequence[str] | None) -> dict[str, Any]:
    """Turn `--set` assignments into nested values; the request model validates them. Raises `CommandError`."""
    return reduce(merge, map(_parse_assignment, assignments or ()), {})


def _parse_assignment(assignment: str) -> dict[str, Any]:
    path, equals, text = (part.strip() for part in assignment.partition("="))
    if not equals:
        raise CommandError(f"--set {assignment!r}: write it as PATH=VALUE, like limits.max_iterations=2")
    first, *parts = path.split(".")
    value = _parse_value(path, text)
    for part in reversed(parts):
        value = {part: value}
    return {first: value}


def _parse_value(path: str, text: str) -> Any:
    if text == "null":
        return None
    if text.startswith(("[", "{")):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            raise CommandError(f"--set {path}: write the value as JSON") from None
    if path in LISTS:
        return [item.strip() for item in text.split(",") if item.strip()]
    return text


# --- the lines before a run ----------------------------------------------------------------------------------------


async def preflight(
    context: CommandContext, requested: RequestedRun, options: RunOptions, run: RunInfo, *, works: bool = True
) -> bool:
    """Print a run's engine, providers and egress and, before any paid call, the estimate and the limits.

    The workers that will execute the run resolve it: those of other commands with other settings (any, unless this
    command `works`), else those of this command. Returns true for others. Raises `CommandError` for a refused run.
    """
    request = requested.request
    settings = context.settings
    stored = run.resolved
    others = await _other_workers(context, works=works)
    if not others and options.model is not None and not settings.uses_cluster and not settings.model_configured:
        remedy = f"name one with --model-url URL, or set {ENDPOINT_VARIABLES}"
        raise CommandError(f"--model {options.model} has no endpoint: {remedy}")
    warnings: list[str] = []
    if run.running and stored is not None:
        resolved = stored
    elif others:
        resolved = await _ask_workers(context, request, options, run)
    elif works or options.dry_run:
        corpus = None
        if stored is None:
            corpus = await _count_corpus(context, requested)
        resolved = resolve_here(request, settings, stored, corpus, url_given=options.model_url is not None)
        if settings.budgets.is_set:
            resolved = await _with_money(context, request, resolved, run.state)
        warnings = await require_endpoint(resolved, settings)
    else:
        return True  # it is not known yet what the run will use
    if others:
        notices = ["running workers do the work, with their own settings"]
    else:
        notices = settings.notices()
    if options.dry_run and options.as_json:
        effective = resolved.model_dump(mode="json", include=set(EFFECTIVE))
        print_json({"request": request.model_dump(mode="json", exclude_unset=True), **effective})
    elif options.dry_run or not options.quiet:
        print_line = print_result if options.dry_run else print_progress
        for line in [*_lines(resolved), *notices, *warnings]:
            print_line(printable(line))
    return bool(others)


def _lines(resolved: ResolvedResearch) -> list[str]:
    """Return the lines before a run: egress, engine, search providers, limits, estimate, advice."""
    estimate = resolved.estimate
    lines = [resolved.egress, f"engine: {engine_text(resolved)}"]
    if resolved.web or any(not choice.available for choice in resolved.providers):
        lines.append(f"searching {providers_text(resolved.providers)}")
    limits = highest_limits([resolved.limits, *resolved.choices.values()])
    text = limits_text(limits, paid=estimate is not None and bool(estimate.likely_usd))
    if resolved.choices:
        text = f"at most, as the question needs, {text}"
    lines += [f"limits: {text}", *resolved.ceiling_lines]
    if estimate is not None:
        lines.append(estimate.words())
    return [*lines, *resolved.advice]


def limits_text(limits: EffectiveLimits, *, paid: bool) -> str:
    """Describe the limits of a run, including the cost limit if it is `paid`."""
    iterations = plural(limits.max_iterations, "iteration")
    queries = f"{iterations} of {plural(limits.max_sub_queries, 'sub-query')}"
    if limits.max_steps:
        work = f"{plural(limits.max_steps, 'step')} in {iterations}"
    else:
        work = queries
    amounts = (limits.max_model_calls, "model call"), (limits.max_tokens, "token")
    parts = [plural(amount, noun) for amount, noun in amounts if amount is not None]
    if limits.max_cost_usd is not None and paid:
        parts.append(f"{limits.max_cost_usd:.2f} USD")
    unit = "hours" if limits.deadline_seconds >= 3_600 else "minutes"
    time = f"{duration(limits.deadline_seconds)} {unit}"
    return ", ".join([work, plural(limits.max_sources, "source"), time, *parts])


# --- the workers of other commands ---------------------------------------------------------------------------------


async def _other_workers(context: CommandContext, *, works: bool) -> list[str]:
    """Return the identities of workers that would execute part of the run, differently than this command.

    Raises `CommandError` if they belong to another `research run`, because they end with it.
    """
    client = await context.client_if_running()
    own = context.settings.mark()
    identities = []
    if client is not None:
        identities = await client.polled_by(RECORDS_QUEUE, activities=True)
    marks = {identity: identity.rpartition("/")[2] for identity in identities if not is_gone(identity)}
    others = [identity for identity, mark in marks.items() if not works or mark.removesuffix(RUN_MARK) != own]
    if works and any(marks[identity].endswith(RUN_MARK) for identity in others):
        raise CommandError(
            "another `research run` with other settings is running here and would do a part of this run: wait until it "
            "ends, use the same settings, or set another RESEARCH_HOME"
        )
    return others


def is_gone(identity: str) -> bool:
    """Return whether a worker of this machine has ended; the server lists it for another minute."""
    match = IDENTITY.fullmatch(identity)
    if match is None or match["host"] != socket.gethostname():
        return False
    try:
        os.kill(int(match["pid"]), 0)
    except OSError as error:
        return isinstance(error, ProcessLookupError)
    return False


async def _ask_workers(
    context: CommandContext, request: ResearchRequest, options: RunOptions, run: RunInfo
) -> ResolvedResearch:
    """Have the workers of other commands resolve the run. Raises `CommandError` with their refusal."""
    doers = "running workers (`research serve`) do the work"
    if options.model_url is not None:
        raise CommandError(f"{doers}, with their own model endpoint: omit --model-url, or stop them")
    if run.resolved is not None:
        request = request.with_fields(continue_from=run.research_id)
    client = await context.running_client()
    try:
        return await client.preview(request, run.research_id)
    except PreviewRefused as refusal:
        code = ExitCode.of(Outcome.REFUSED, StopReason(refusal.stop_reason))
        remedy = "restart them with what is missing, or stop them, so that this command starts its own"
        raise CommandError(f"{refusal}\n{doers}, with their own settings: {remedy}", code) from None


# --- resolving ---------------------------------------------------------------------------------------------------


async def _count_corpus(context: CommandContext, requested: RequestedRun) -> CorpusSnapshot | None:
    """Return how much a run has to read, for its estimate; what is not known here counts as one file."""
    name = requested.request.corpus
    if not name:
        return None
    uncounted = CorpusSnapshot(name=name, files=1)
    try:
        counted = await (await context.stores.corpora()).count(name, requested.folder)
    except CorpusUnknown:
        return uncounted
    return counted if counted.files else uncounted


def resolve_here(
    request: ResearchRequest,
    settings: Settings,
    stored: ResolvedResearch | None = None,
    corpus: CorpusSnapshot | None = None,
    *,
    url_given: bool = False,
) -> ResolvedResearch:
    """Resolve a request over a corpus, or resolve that of a resumed run again. Raises `CommandError`.

    A resumed run sends its passages to no new host, unless `--model-url` names it.
    """
    configuration = configuration_of(settings)
    tenant = tenant_here(settings, request.tenant, namespace_of(settings))
    if tenant is None:
        raise CommandError(NO_PROOF)
    request = request.with_fields(tenant=tenant)
    try:
        if stored is None:
            if corpus is None and request.corpus:
                corpus = CorpusSnapshot(name=request.corpus, files=1)
            return resolve(NOT_STARTED, request, configuration, corpus, search_attributes=False)
        if stored.engine is EngineKind.MODEL and request.engine != "extractive" and not url_given:
            _require_known_host(stored, settings)
        return resolve_again(stored, request, configuration)
    except RunRefused as refusal:
        raise CommandError(str(refusal), ExitCode.of(Outcome.REFUSED, refusal.reason)) from None


async def _with_money(
    context: CommandContext, request: ResearchRequest, resolved: ResolvedResearch, state: ResearchState | None
) -> ResolvedResearch:
    """Return a run with what it would get of the money of today. Raises `CommandError` if that does not suffice."""
    # Only where the money of a day is limited.
    from activities.records import spent_before, with_money  # noqa: PLC0415
    from providers.shared.day_budget import DayBudget  # noqa: PLC0415
    from workers.retention import open_runs  # noqa: PLC0415
    from workers.shared_state import open_shared_state  # noqa: PLC0415

    settings = context.settings
    client = await context.client_if_running()

    async def list_open() -> Collection[str]:
        if client is None:
            raise Unavailable("no server lists the open runs")
        return await open_runs(client.temporal)

    spent = 0.0 if state is None else spent_before(request, state)
    try:
        async with open_shared_state(settings) as shared:
            budget = DayBudget(shared.store, settings.budgets, namespace_of(settings), list_open)
            return await with_money(resolved, spent, budget, configuration_of(settings), is_trial=True)
    except RunRefused as refusal:
        raise CommandError(str(refusal), ExitCode.of(Outcome.REFUSED, refusal.reason)) from None


def _require_known_host(stored: ResolvedResearch, settings: Settings) -> None:
    used = (stored.model_host or PUBLIC_HOST).split(", ")
    configured_hosts = []
    if settings.model_configured:
        configured_hosts = (settings.model_host or "").split(", ")
    if set(configured_hosts).isdisjoint(used):
        model = next(iter(stored.models.values()))
        if PUBLIC_HOST in used:
            url = "and set ANTHROPIC_API_KEY"
        else:
            url = "--model-url URL (or set ANTHROPIC_BASE_URL)"
        raise CommandError(
            f"this run used the model {model} at {', '.join(used)}, and this command names no model there: "
            f"add --model {model} {url}"
        )


async def require_endpoint(resolved: ResolvedResearch, settings: Settings) -> list[str]:
    """Raise `CommandError` (exit code 7) if no endpoint of the run's models answers; return warnings about windows.

    The workers check search providers themselves, once a person has approved the plan.
    """
    if resolved.engine is not EngineKind.MODEL:
        return []
    named = [split_name(name, settings.models.endpoints)[0] for name in resolved.models.values()]
    endpoints = dict.fromkeys([*named, *settings.models.usable_endpoints(settings.model_keys())])
    addresses = [settings.models.base_url_of(endpoint) for endpoint in endpoints]
    problems = await asyncio.gather(*(probe_address(address, seconds=PROBE_SECONDS) for address in addresses))
    if all(problems):
        details = "; ".join(filter(None, problems))
        message = f"no model endpoint answers: {details}; start it, check --model-url or {settings.address_variable}, "
        raise CommandError(f"{message}or use no model: --engine extractive", ExitCode.NOTHING_TO_WORK_WITH)
    asking = asyncio.create_task(_reduced_windows(resolved, settings))
    answered, _ = await asyncio.wait({asking}, timeout=PATIENCE_SECONDS)
    if not answered:
        print_progress(f"waiting for the model endpoint, at most {WINDOW_SECONDS:.0f} s")
        answered, _ = await asyncio.wait({asking}, timeout=WINDOW_SECONDS - PATIENCE_SECONDS)
    if answered:
        return asking.result()
    asking.cancel()
    await asyncio.wait({asking})
    hosts = ", ".join(map(host_of, addresses))
    return [f"{hosts} took the connection and said nothing in {WINDOW_SECONDS:.0f} s: see the log of that server"]


async def _reduced_windows(resolved: ResolvedResearch, settings: Settings) -> list[str]:
    """Return a line for each model that its server runs with a smaller window than it was trained with."""
    lines = []
    for name in dict.fromkeys(resolved.models.values()):
        endpoint, model = split_name(name, settings.models.endpoints)
        server = settings.model_server(endpoint)
        window = None if server is None else await server.window(model)
        if window is not None and window.is_reduced:
            remedy = "start its server with more (llama.cpp: -c, Ollama: OLLAMA_CONTEXT_LENGTH)"
            lines.append(f"{window.describe(model)}: {remedy}")
    return lines
