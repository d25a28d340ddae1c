"""Before a run starts: resolve its request as a worker would, probe its services, and print egress and estimate."""

import asyncio
import os
import re
import socket
from typing import Final

from activities.preparation import RunRefused, resolve, resolve_again
from client.cli.context import CommandContext, RunInfo
from client.cli.errors import CommandError, ExitCode, exit_code
from client.cli.options import RunOptions
from client.cli.output import print_json, print_progress, print_result
from client.cli.request import RequestedRun
from client.client_errors import PreviewRefused
from client.view.words import duration, engine_words, printable, providers_words
from contracts.names import RECORDS_QUEUE
from contracts.presets import highest_limits
from contracts.request import EngineChoice, ResearchRequest
from contracts.resolved import CorpusSnapshot, EffectiveLimits, ResolvedResearch
from contracts.texts import plural
from contracts.vocabulary import EngineKind, Outcome, StopReason
from providers.models.endpoints import split_name
from providers.search.availability import probe_address
from workers.resolution_inputs import configuration_of
from workers.settings.loading import Settings
from workers.settings.models import PUBLIC_HOST, host_of

EFFECTIVE: Final = {"engine", "models", "providers", "search", "web", "limits", "gates", "egress", "advice", "estimate"}
"""Fields of a resolution that depend on the configuration."""
PROBE_SECONDS: Final = 2.5
IDENTITY: Final = re.compile(r"\w+-(?P<pid>\d+)@(?P<host>[^/]*)/.*")
OF_RUN: Final = "+run"
"""Ends the mark of workers that live as long as one `research run`."""


# --- the lines before a run ----------------------------------------------------------------------------------------


async def preflight(
    context: CommandContext,
    wanted: RequestedRun,
    options: RunOptions,
    known: RunInfo,
    *,
    works: bool = True,
) -> bool:
    """Print what a run will use, where text goes and, before a paid call, the expected amounts and the cap.

    Those say so who do the work: workers of other commands that are configured differently (any, unless this command
    `works`), else this command. Returns whether others do it. Raises `CommandError` for a request that cannot be met.
    """
    request, settings, stored = wanted.request, context.settings, known.resolved
    others = await _other_workers(context, works=works)
    if known.running and stored is not None:
        resolved = stored
    elif others:
        resolved = await _ask_workers(context, request, options, known)
    elif works or options.dry_run:
        resolved = resolve_here(request, settings, stored, url_given=options.model_url is not None)
        await require_endpoint(resolved, settings)
    else:
        return True  # nobody can say yet what it will use
    notices = ["the workers that are running do the work, with their settings"] if others else settings.notices()
    if options.dry_run and options.as_json:
        effective = resolved.model_dump(mode="json", include=EFFECTIVE)
        print_json({"request": request.model_dump(mode="json", exclude_unset=True), **effective})
    elif options.dry_run or not options.quiet:
        for line in [*_lines(resolved), *notices]:
            (print_result if options.dry_run else print_progress)(printable(line))
    return bool(others)


def _lines(resolved: ResolvedResearch) -> list[str]:
    """Give the lines before a run: egress, engine, search providers, limits, estimate, advice."""
    estimate = resolved.estimate
    lines = [resolved.egress, f"engine: {engine_words(resolved)}"]
    if resolved.web or any(not choice.available for choice in resolved.providers):
        lines.append(f"searching {providers_words(resolved.providers)}")
    limits = highest_limits([resolved.limits, *resolved.choices.values()])
    words = limits_words(limits, paid=estimate is not None and any(estimate.cost_usd or ()))
    lines.append(f"limits: {'at most, as the question needs, ' if resolved.choices else ''}{words}")
    lines += [] if estimate is None else [estimate.words()]
    return [*lines, *resolved.advice]


def limits_words(limits: EffectiveLimits, *, paid: bool = True) -> str:
    """Word the limits of a run, with that of its cost if it is `paid`."""
    steps, queries = plural(limits.max_steps, "step"), plural(limits.max_sub_queries, "sub-query")
    iterations = plural(limits.max_iterations, "iteration")
    work = f"{steps} in {iterations}" if limits.max_steps else f"{iterations} of {queries}"
    amounts = (limits.max_model_calls, "model call"), (limits.max_tokens, "token")
    parts = [plural(amount, noun) for amount, noun in amounts if amount is not None]
    cost = [f"{limits.max_cost_usd:.2f} USD"] if limits.max_cost_usd is not None and paid else []
    time = f"{duration(limits.deadline_seconds)} {'hours' if limits.deadline_seconds >= 3_600 else 'minutes'}"
    return ", ".join([work, plural(limits.max_sources, "source"), time, *parts, *cost])


# --- the workers of other commands ---------------------------------------------------------------------------------


async def _other_workers(context: CommandContext, *, works: bool) -> list[str]:
    """Give the identities of workers that would do a part of the run, and do it differently than this command.

    Raises `CommandError` where they belong to another `research run`, which takes them with it when it ends.
    """
    client, own = await context.client_if_running(), context.settings.mark()
    identities = [] if client is None else await client.polled_by(RECORDS_QUEUE, activities=True)
    marks = {each: each.rpartition("/")[2] for each in identities if not is_gone(each)}
    others = [each for each, mark in marks.items() if not works or mark.removesuffix(OF_RUN) != own]
    if works and any(marks[each].endswith(OF_RUN) for each in others):
        raise CommandError(
            "another `research run` is at work here with other settings, and would do a part of this run: wait for "
            "its end, use the same settings, or set another RESEARCH_HOME"
        )
    return others


def is_gone(identity: str) -> bool:
    """Return whether a worker of this machine has ended; the server lists it for a minute more."""
    found = IDENTITY.fullmatch(identity)
    if found is None or found["host"] != socket.gethostname():
        return False
    try:
        os.kill(int(found["pid"]), 0)
    except OSError as error:
        return isinstance(error, ProcessLookupError)
    return False


async def _ask_workers(
    context: CommandContext, request: ResearchRequest, options: RunOptions, known: RunInfo
) -> ResolvedResearch:
    """Ask the workers that do the work what the run would use. Raises `CommandError` with what they refuse."""
    doers = "the workers that are running (`research serve`) do the work"
    if options.model_url is not None:
        raise CommandError(f"{doers}, with their own model endpoint: leave --model-url out, or stop them")
    asked = request
    if known.resolved is not None:
        asked = request.model_copy(update={"continue_from": known.research_id})
    client = await context.running_client()
    try:
        return await client.preview(asked, known.research_id)
    except PreviewRefused as refusal:
        code = exit_code(Outcome.REFUSED, StopReason(refusal.stop_reason))
        message = f"{refusal}\n{doers}, and these settings are theirs: start them again with what is missing"
        raise CommandError(f"{message}, or stop them, and this command works by itself", code) from None


# --- resolving ---------------------------------------------------------------------------------------------------


def resolve_here(
    request: ResearchRequest, settings: Settings, stored: ResolvedResearch | None = None, *, url_given: bool = False
) -> ResolvedResearch:
    """Resolve a request, or that of a resumed run again. Raises `CommandError`.

    Passages of a resumed run go to no other host than before, unless `--model-url` names it.
    """
    try:
        if stored is None:
            corpus = request.corpus and CorpusSnapshot(name=request.corpus, files=1)  # counted by the index
            return resolve("not-started", request, configuration_of(settings), corpus or None, search_attributes=False)
        if stored.engine is EngineKind.MODEL and request.engine is not EngineChoice.EXTRACTIVE and not url_given:
            _require_known_host(stored, settings)
        return resolve_again(stored, request, configuration_of(settings))
    except RunRefused as refusal:
        raise CommandError(str(refusal), exit_code(Outcome.REFUSED, refusal.reason)) from None


def _require_known_host(stored: ResolvedResearch, settings: Settings) -> None:
    before = (stored.model_host or PUBLIC_HOST).split(", ")
    now = (settings.model_host or "").split(", ") if settings.model_configured else []
    if set(now).isdisjoint(before):
        model = next(iter(stored.models.values()))
        url = "and set ANTHROPIC_API_KEY" if PUBLIC_HOST in before else "--model-url URL, or set ANTHROPIC_BASE_URL"
        raise CommandError(
            f"this run used the model {model} at {', '.join(before)}, and no such endpoint is configured: "
            f"add --model {model} {url}"
        )


async def require_endpoint(resolved: ResolvedResearch, settings: Settings) -> None:
    """Raise `CommandError` (exit code 7) where no endpoint of the run's models answers.

    The workers check search providers themselves, when a person has approved the plan.
    """
    if resolved.engine is not EngineKind.MODEL:
        return
    named = [split_name(name, settings.models.endpoints)[0] for name in resolved.models.values()]
    endpoints = dict.fromkeys([*named, *settings.models.usable_endpoints(settings.model_keys())])
    addresses = [settings.models.address_of(endpoint) or f"https://{PUBLIC_HOST}" for endpoint in endpoints]
    problems = await asyncio.gather(*(probe_address(address, seconds=PROBE_SECONDS) for address in addresses))
    if all(problems):
        found = ", ".join(f"{host_of(place)} ({why})" for place, why in zip(addresses, problems, strict=True))
        message = f"the model endpoint cannot be used now: {found}; start it, check --model-url or ANTHROPIC_BASE_URL, "
        raise CommandError(f"{message}or use no model: --engine extractive", ExitCode.NOTHING_TO_WORK_WITH)
