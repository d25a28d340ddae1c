"""Before a run begins: what is said of it, and what it needs: the index of its folder and an engine."""

import asyncio
from typing import Any

from client.cli import announcing, output
from client.cli.asking import Asked
from client.cli.corpora import index, summary
from client.cli.desk import Desk
from client.cli.estimating import Estimate, estimate
from client.cli.exit_codes import ExitCode
from client.cli.folders import SET_HOME, ensure_folder
from client.cli.run_options import RunOptions
from client.handle import ResearchClient
from client.rendering import duration, printable
from contracts.request import ResearchRequest
from contracts.vocabulary import EngineKind
from providers.prices import load_prices
from workers.embedded import describe_engine


def announce(desk: Desk, request: ResearchRequest, options: RunOptions) -> None:
    """Say where text goes and, before anything is paid, what the run may cost."""
    if options.quiet:
        return
    if desk.settings.uses_cluster:
        output.tell("the cluster's workers decide where text goes: `research status` tells it")
        return
    output.tell(announcing.egress(announcing.engine_of(request, desk.settings), desk.settings))
    expected = _estimate(desk, request)
    if expected is not None:
        output.tell(expected.line())
    for notice in desk.settings.notices():
        output.tell(notice)


def dry_run(desk: Desk, asked: Asked, *, as_json: bool) -> int:
    """Show what would be started; nothing is."""
    shown = _effective(desk, asked)
    if as_json:
        output.document(shown)
        return ExitCode.COMPLETED
    limits = announcing.limits_of(asked.request, desk.settings)
    corpus = asked.request.corpus or "-"
    expected = _estimate(desk, asked.request)
    rows = {
        "question": asked.request.query,
        "strategy": f"{asked.request.strategy.value}, depth {asked.request.depth.value}",
        "corpus": f"{corpus} ({asked.folder})" if asked.folder else corpus,
        "engine": ", ".join([shown["engine"], *sorted(set(shown["models"].values()))]),
        "text": shown["egress"],
        "limits": f"{limits.max_iterations} iterations of {limits.max_sub_queries} sub-queries, "
        f"{limits.max_sources} sources, {duration(limits.deadline_seconds)}",
        "estimate": "no model, no cost" if expected is None else expected.line(),
    }
    for label, value in rows.items():
        output.say(f"{label:<9} {printable(value)}")
    output.tell("nothing was started; --json shows the whole effective request")
    return ExitCode.COMPLETED


async def ready(desk: Desk, asked: Asked, options: RunOptions) -> ResearchClient:
    """The engine's client, when the index of the run's folder is up to date, too: the one comes up beside the other."""
    ensure_folder(desk.settings.home, SET_HOME)
    if options.out is not None:
        ensure_folder(options.out, "choose another --out")
    if not options.quiet and not desk.settings.uses_cluster and describe_engine(desk.settings.home) is None:
        output.tell("starting the engine")
    engine = asyncio.create_task(desk.ensured_client())
    try:
        await index_of(desk, asked, options)
        return await engine
    finally:
        engine.cancel()
        await asyncio.gather(engine, return_exceptions=True)


async def index_of(desk: Desk, asked: Asked, options: RunOptions) -> None:
    """Register the folder and bring the index up to date; a cluster's workers look after their own."""
    name = asked.request.corpus
    if name is None or desk.settings.uses_cluster:
        return
    snapshot = await index(desk, name, asked.folder, quiet=options.quiet)
    if not options.quiet:
        output.tell(f"corpus {name}: {summary(snapshot)}")


def _estimate(desk: Desk, request: ResearchRequest) -> Estimate | None:
    """Null without a model."""
    settings = desk.settings
    if announcing.engine_of(request, settings) is not EngineKind.MODEL:
        return None
    prices = load_prices().with_models(settings.models.prices)
    limits = announcing.limits_of(request, settings)
    return estimate(limits, announcing.models_of(request, settings), prices, thinks=announcing.thinks(request))


def _effective(desk: Desk, asked: Asked) -> dict[str, Any]:
    engine = announcing.engine_of(asked.request, desk.settings)
    expected = _estimate(desk, asked.request)
    return {
        "request": asked.request.model_dump(mode="json", exclude_unset=True),
        "engine": engine.value,
        "models": announcing.models_of(asked.request, desk.settings) if engine is EngineKind.MODEL else {},
        "limits": announcing.limits_of(asked.request, desk.settings).model_dump(mode="json"),
        "corpus_folder": str(asked.folder) if asked.folder else None,
        "egress": announcing.egress(engine, desk.settings),
        "estimate": None if expected is None else expected.as_json(),
    }
