"""Before a run begins: what is said of it, and what it needs: the index of its folder and an engine."""

import asyncio
from typing import Any

from client.cli import announcing, output, reaching
from client.cli.asking import Asked
from client.cli.context import CommandContext
from client.cli.corpora import index, summary
from client.cli.estimating import Estimate, estimate_of
from client.cli.exit_codes import ExitCode
from client.cli.folders import SET_HOME, ensure_folder
from client.cli.run_options import RunOptions
from client.handle import ResearchClient
from client.view.decision_wording import engine_words, searching_words
from client.view.rendering import duration, printable
from contracts.request import EngineChoice, ResearchRequest
from contracts.resolved import ResolvedResearch
from contracts.vocabulary import EngineKind
from providers.models.prices import load_prices
from providers.search.availability import TRAITS
from workers.dev_server.attach import describe_engine
from workers.private_files import files_of_person

EFFECTIVE = {"engine", "models", "providers", "search", "web", "limits", "gates", "egress", "advice"}
"""What of a resolution is the configuration's doing."""


async def announce(
    context: CommandContext,
    request: ResearchRequest,
    options: RunOptions,
    stored: ResolvedResearch | None = None,
    *,
    going_on: bool = False,
) -> None:
    """Say where text goes and, before anything is paid, what the run may cost.

    `stored` is what a run that goes on was given; without it the request is resolved as a worker will do it. Who is to
    be asked is looked at first, unless the run is `going_on` anyway. Raises `CommandError` for what cannot be done
    here.
    """
    if context.settings.uses_cluster:
        if not options.quiet:
            output.tell("the cluster's workers decide where text goes: `research status` tells it")
        return
    if stored is None:
        resolved = _outlook(context, request, options)
    else:
        resolved = reaching.served_here(stored, context.settings, options)
    if not going_on:
        resolved = await reaching.reached(resolved, context.settings)
    if options.quiet:
        return
    output.tell(resolved.egress)
    output.tell(f"engine: {engine_words(resolved)}")
    if searching := searching_words(resolved):
        output.tell(searching)
    expected = _estimate(context, resolved)
    if expected is not None:
        output.tell(expected.line())
    for advice in resolved.advice:
        output.tell(advice)
    for notice in context.settings.notices():
        if notice != context.settings.left_out:  # told before anything else
            output.tell(notice)


async def dry_run(context: CommandContext, asked: Asked, options: RunOptions) -> int:
    """Show what would be started; nothing is. Raises `CommandError` for what could not be done here."""
    resolved = _outlook(context, asked.request, options)
    if not context.settings.uses_cluster:
        resolved = await reaching.reached(resolved, context.settings)
    expected = _estimate(context, resolved)
    if options.as_json:
        output.document(_effective(asked, resolved, expected))
        return ExitCode.COMPLETED
    limits, corpus = resolved.limits, asked.request.corpus or "-"
    rows = {
        "question": resolved.query,
        "strategy": f"{resolved.strategy}, depth {resolved.depth.value}",
        "corpus": f"{corpus} ({asked.folder})" if asked.folder else corpus,
        "web": searching_words(resolved) or "not searched",
        "engine": engine_words(resolved),
        "text": resolved.egress,
        "limits": f"{limits.max_iterations} iterations of {limits.max_sub_queries} sub-queries, "
        f"{limits.max_sources} sources, {duration(limits.deadline_seconds)}",
        "estimate": "no model, no cost" if expected is None else expected.line(),
    }
    for label, value in rows.items():
        output.say(f"{label:<9} {printable(value)}")
    for line in [] if expected is None else expected.lines():
        output.say(f"{'':<9} {printable(line)}")
    for advice in resolved.advice:
        output.tell(advice)
    output.tell("nothing was started; --json shows the whole effective request")
    return ExitCode.COMPLETED


async def ready(context: CommandContext, asked: Asked, options: RunOptions) -> ResearchClient:
    """The engine's client, when the index of the run's folder is up to date, too: the one comes up beside the other."""
    ensure_folder(context.settings.home, SET_HOME)
    if options.out is not None:
        with files_of_person():
            ensure_folder(options.out, "choose another --out")
    if not options.quiet and not context.settings.uses_cluster and describe_engine(context.settings.home) is None:
        output.tell("starting the engine")
    engine = asyncio.create_task(context.ensured_client())
    try:
        await index_of(context, asked, options)
        return await engine
    finally:
        engine.cancel()
        await asyncio.gather(engine, return_exceptions=True)


async def index_of(context: CommandContext, asked: Asked, options: RunOptions) -> None:
    """Register the folder and bring the index up to date; a cluster's workers look after their own."""
    name = asked.request.corpus
    if name is None or context.settings.uses_cluster:
        return
    snapshot = await index(context, name, asked.folder, quiet=options.quiet)
    if not options.quiet:
        output.tell(f"corpus {name}: {summary(snapshot)}")


def _outlook(context: CommandContext, request: ResearchRequest, options: RunOptions) -> ResolvedResearch:
    """What a worker of this machine would make of a request. Raises `CommandError`."""
    if request.engine is not EngineChoice.EXTRACTIVE and not context.settings.uses_cluster:
        reaching.check_model_named(options, context.settings)
    return announcing.outlook(request, context.settings)


def _estimate(context: CommandContext, resolved: ResolvedResearch) -> Estimate | None:
    """Null where nothing is paid: neither a model nor the web is asked."""
    if resolved.engine is not EngineKind.MODEL and not resolved.web:
        return None
    stated = {name: price / 1_000 for name, price in context.settings.search.usd_per_1000.items()}
    known = {name: 0.0 for name, traits in TRAITS.items() if not traits.paid} | stated
    models = context.settings.models
    return estimate_of(resolved, load_prices().with_models(models.prices), known, models.endpoints)


def _effective(asked: Asked, resolved: ResolvedResearch, expected: Estimate | None) -> dict[str, Any]:
    shown = resolved.model_dump(mode="json", include=EFFECTIVE)
    return {
        "request": asked.request.model_dump(mode="json", exclude_unset=True),
        **shown,
        "corpus_folder": str(asked.folder) if asked.folder else None,
        "estimate": None if expected is None else expected.as_json(),
    }
