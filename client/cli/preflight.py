"""Before a run begins: what it gets here, which services it can reach, what it may cost, and what it needs."""

import asyncio
import shlex
from collections.abc import Sequence
from typing import Final

from activities.preparation import RunRefused, resolve, resolve_again
from client.cli import output
from client.cli.command_context import CommandContext
from client.cli.command_errors import CommandError, ExitCode
from client.cli.corpus import index, summary
from client.cli.estimate import Estimate, estimate_of
from client.cli.folders import SET_HOME, ensure_folder
from client.cli.options import RunOptions
from client.cli.request_options import AskedRun
from client.handle import ResearchClient
from client.view.decision_wording import engine_words, searching_words
from client.view.rendering import duration, printable
from contracts.agents import AT_ONCE
from contracts.presets import effective_limits, preset
from contracts.request import Approve, EngineChoice, ResearchRequest
from contracts.resolved import CorpusSnapshot, EffectiveLimits, ProviderChoice, ResolvedResearch, where_text_goes
from contracts.texts import plural
from contracts.vocabulary import EngineKind, StopReason
from providers.models.endpoints import DEFAULT_ENDPOINT, split_name
from providers.models.prices import PriceTable
from providers.search.availability import probe, probe_address
from providers.search.declarations import BY_MODEL, declared_names, search_declaration
from workers.dev_server import describe_server
from workers.private_files import files_of_person
from workers.resolution_inputs import configuration_of, search_choices
from workers.search_providers import open_search_providers, search_model
from workers.settings.loading import Settings
from workers.settings.models import PUBLIC_HOST, host_of
from workflows.rules.provider_choice import with_providers, without

EFFECTIVE = {"engine", "models", "providers", "search", "web", "limits", "gates", "egress", "advice"}
"""What of a resolution is the configuration's doing."""
UNKNOWN_CORPUS_FILES = 1
"""What a folder holds is known once it is indexed; until then it counts as something to search."""
REACH_SECONDS: Final = 2.5
"""All are asked at once; what takes longer than this counts as out of reach."""


async def announce(
    context: CommandContext,
    request: ResearchRequest,
    options: RunOptions,
    stored: ResolvedResearch | None = None,
    *,
    going_on: bool = False,
) -> ResolvedResearch | None:
    """Say where text goes and, before anything is paid, what the run may cost.

    `stored` is what a run that goes on was given; without it the request is resolved as a worker will do it. Unless the
    run is `going_on` anyway, its endpoints and providers are probed first. Raises `CommandError` for what cannot be
    done here. Gives what it told of; None with a cluster, whose workers alone know.
    """
    if context.settings.uses_cluster:
        if not options.quiet:
            output.tell("the cluster's workers decide where text goes: see `research status`")
            known = effective_limits(preset(request.strategy, request.depth), request.limits)
            known = known if stored is None else stored.limits
            output.tell(f"limits, unless the workers are configured otherwise: {limits_words(known)}")
        return None
    resolved = (
        _resolve(context, request, options)
        if stored is None
        else use_local_endpoints(_again(stored, request, context.settings), context.settings, options)
    )
    if not going_on:
        resolved = await check_reachable(resolved, context.settings)
    if options.quiet:
        return resolved
    output.tell(resolved.egress)
    output.tell(f"engine: {engine_words(resolved)}")
    if searching := searching_words(resolved):
        output.tell(searching)
    expected = _estimate(context, resolved)
    output.tell(f"limits: {limits_words(resolved.limits, costs=_has_price(expected))}")
    if expected is not None:
        output.tell(expected.line())
    for advice in resolved.advice:
        output.tell(advice)
    for notice in context.settings.notices():
        output.tell(notice)
    return resolved


def limits_words(limits: EffectiveLimits, *, costs: bool = True) -> str:
    """What bounds a run, for a person; `costs` says whether it asks anything whose price is known."""
    if limits.agent_seconds:
        cycles = plural(max(1, limits.max_iterations - 1), "cycle")
        agents = plural(min(AT_ONCE, limits.max_parallel), "agent")
        rounds = f"{plural(limits.max_steps, 'step')}, {cycles} of {agents} at once"
    elif limits.max_steps:
        rounds = f"{plural(limits.max_steps, 'step')} in at most {plural(limits.max_iterations, 'plan')}"
    else:
        rounds = f"{plural(limits.max_iterations, 'iteration')} of {plural(limits.max_sub_queries, 'sub-query')}"
    parts = [
        rounds,
        plural(limits.max_sources, "source"),
        f"{duration(limits.deadline_seconds)} {'hours' if limits.deadline_seconds >= 3_600 else 'minutes'}",
    ]
    if limits.max_model_calls is not None:
        parts.append(plural(limits.max_model_calls, "model call"))
    if limits.max_tokens is not None:
        parts.append(plural(limits.max_tokens, "token"))
    if limits.max_cost_usd is not None and costs:
        parts.append(f"{limits.max_cost_usd:.2f} USD")
    return ", ".join(parts)


async def dry_run(context: CommandContext, asked: AskedRun, options: RunOptions) -> int:
    """Show what would be started; nothing is. Raises `CommandError` for what could not be done here."""
    resolved = _resolve(context, asked.request, options)
    if not context.settings.uses_cluster:
        resolved = await check_reachable(resolved, context.settings)
    expected = _estimate(context, resolved)
    if options.as_json:
        shown = resolved.model_dump(mode="json", include=EFFECTIVE)
        output.document(
            {
                "request": asked.request.model_dump(mode="json", exclude_unset=True),
                **shown,
                "corpus_folder": str(asked.folder) if asked.folder else None,
                "estimate": expected and expected.model_dump(mode="json"),
            }
        )
        return ExitCode.COMPLETED
    corpus = asked.request.corpus or "-"
    rows = {
        "question": resolved.query,
        "strategy": f"{resolved.strategy}, depth {resolved.depth.value}",
        "corpus": f"{corpus} ({asked.folder})" if asked.folder else corpus,
        "web": searching_words(resolved) or "not searched",
        "engine": engine_words(resolved),
        "text": resolved.egress,
        "limits": limits_words(resolved.limits, costs=_has_price(expected)),
        "estimate": "no model, no cost" if expected is None else expected.line(),
    }
    for label, value in rows.items():
        output.say(f"{label:<9} {printable(value)}")
    for role in [] if expected is None else expected.by_role:
        output.say(f"{'':<9} {printable(role.line())}")
    for advice in resolved.advice:
        output.tell(advice)
    output.tell("nothing was started; --json shows the whole effective request")
    return ExitCode.COMPLETED


async def prepare(context: CommandContext, asked: AskedRun, options: RunOptions) -> ResearchClient:
    """The server's client, when the index of the run's folder is up to date, too: the one comes up beside the other."""
    ensure_folder(context.settings.home, SET_HOME)
    if options.out is not None:
        with files_of_person():
            ensure_folder(options.out, "choose another --out")
    if not options.quiet and not context.settings.uses_cluster and describe_server(context.settings.home) is None:
        output.tell("starting the server")
    connecting = asyncio.create_task(context.ensured_client())
    try:
        await update_index(context, asked, options)
        return await connecting
    finally:
        connecting.cancel()
        await asyncio.gather(connecting, return_exceptions=True)


async def update_index(context: CommandContext, asked: AskedRun, options: RunOptions) -> None:
    """Register the folder and bring the index up to date; a cluster's workers look after their own."""
    name = asked.request.corpus
    if name is None or context.settings.uses_cluster:
        return
    snapshot = await index(context, name, asked.folder, quiet=options.quiet)
    if not options.quiet:
        output.tell(f"corpus {name}: {summary(snapshot)}")


def _resolve(context: CommandContext, request: ResearchRequest, options: RunOptions) -> ResolvedResearch:
    """What a worker of this machine would make of a request. Raises `CommandError`."""
    if request.engine is not EngineChoice.EXTRACTIVE and not context.settings.uses_cluster:
        check_model_named(options, context.settings)
    return resolve_here(request, context.settings)


def _has_price(expected: Estimate | None) -> bool:
    return expected is not None and expected.stops_at_cap


def _estimate(context: CommandContext, resolved: ResolvedResearch) -> Estimate | None:
    """None where nothing is paid: neither a model nor the web is asked."""
    if resolved.engine is not EngineKind.MODEL and not resolved.web:
        return None
    stated = {name: price / 1_000 for name, price in context.settings.search.usd_per_1000.items()}
    free = ["corpus", *(name for name in declared_names() if not search_declaration(name).paid)]
    known = dict.fromkeys(free, 0.0) | stated
    models = context.settings.models
    return estimate_of(resolved, PriceTable(models.prices), known, models.endpoints)


def resolve_here(request: ResearchRequest, settings: Settings) -> ResolvedResearch:
    """Engine, models, providers, limits and where text goes. Raises `CommandError` for what cannot be done here."""
    corpus = None if request.corpus is None else CorpusSnapshot(name=request.corpus, files=UNKNOWN_CORPUS_FILES)
    try:
        return resolve("not-started", request, configuration_of(settings), corpus, search_attributes=False)
    except RunRefused as refusal:
        nothing = refusal.reason is StopReason.NO_PROVIDERS
        code = ExitCode.NOTHING_TO_WORK_WITH if nothing else ExitCode.USAGE
        raise CommandError(str(refusal), code) from None


async def check_reachable(resolved: ResolvedResearch, settings: Settings) -> ResolvedResearch:
    """The resolution with what cannot be reached now marked as such.

    Raises `CommandError` (exit code 7) where no model or no search provider is reachable.
    """
    silent, lost = await asyncio.gather(_silent_endpoints(resolved, settings), _lost_providers(resolved, settings))
    providers = without(resolved.providers, lost)
    if providers and not any(choice.available for choice in providers):
        raise CommandError(_explain_unreachable(providers, settings), ExitCode.NOTHING_TO_WORK_WITH)
    told = [*resolved.advice, *(f"{what}: calls go to the next endpoint until it answers" for what in silent)]
    known = with_providers(resolved, providers) if lost else resolved
    return known.model_copy(update={"advice": told})


def _again(stored: ResolvedResearch, request: ResearchRequest, settings: Settings) -> ResolvedResearch:
    """What a worker makes of a request for a stored run. Raises `CommandError`."""
    try:
        return resolve_again(stored, request, configuration_of(settings))
    except RunRefused as refusal:
        raise CommandError(str(refusal)) from None


def use_local_endpoints(stored: ResolvedResearch, settings: Settings, options: RunOptions) -> ResolvedResearch:
    """What a stored run gets from the endpoints of this machine: its own models, at an address that may be a new one.

    Raises `CommandError` where no endpoint here is the one that the run used, unless another was named by hand.
    """
    if stored.engine is not EngineKind.MODEL:
        return stored
    before = (stored.model_host or PUBLIC_HOST).split(", ")
    models = list(dict.fromkeys(stored.models.values()))
    hosts = [_host(name, settings) for name in models]
    by_hand = options.model_url is not None
    if not settings.model_configured or any(host is None or (host not in before and not by_hand) for host in hosts):
        raise CommandError(
            f"this run used the model {', '.join(models)} at {', '.join(before)}, and this command has no such "
            f"endpoint: {_how_to_name(stored)}"
        )
    now = settings.model_host
    searched = [choice.host for choice in stored.providers if choice.available and choice.host is not None]
    egress = where_text_goes(now, searched, pages=stored.web)
    return stored.model_copy(update={"model_host": now, "egress": egress})


def model_flags(options: RunOptions) -> str:
    """The flags of the model, as a later command for the same run needs them; a password in an address is left out."""
    url = options.model_url
    shown = "URL" if url is not None and "@" in url else url
    given = {"--model": options.model, "--model-url": shown}
    return "".join(f" {flag} {shlex.quote(value)}" for flag, value in given.items() if value is not None)


def check_model_named(options: RunOptions, settings: Settings) -> None:
    """A model that is named on the command line is meant. Raises `CommandError` where it cannot be asked."""
    if options.model is None or settings.model_configured:
        return
    raise CommandError(
        f"--model {options.model} cannot be used: set ANTHROPIC_API_KEY, or name its endpoint with --model-url URL "
        "(or ANTHROPIC_BASE_URL); without a model: leave --model out"
    )


async def _silent_endpoints(resolved: ResolvedResearch, settings: Settings) -> list[str]:
    """The endpoints of models that give no answer, while another one does. Raises `CommandError` if none does."""
    if resolved.engine is not EngineKind.MODEL:
        return []
    named = [split_name(name, settings.models.endpoints)[0] for name in resolved.models.values()]
    endpoints = list(dict.fromkeys([*named, *settings.models.usable_endpoints(settings.model_keys())]))
    addresses = [settings.models.address_of(endpoint) or f"https://{PUBLIC_HOST}" for endpoint in endpoints]
    reasons = await asyncio.gather(*(probe_address(address, seconds=REACH_SECONDS) for address in addresses))
    silent = [
        f"the model endpoint {host_of(address)} cannot be used now ({why})"
        for address, why in zip(addresses, reasons, strict=True)
        if why is not None
    ]
    if len(silent) == len(endpoints):
        settings_of = ["--model-url or ANTHROPIC_BASE_URL" if name == DEFAULT_ENDPOINT else f"models.endpoints.{name}"
                       for name in endpoints]  # fmt: skip
        raise CommandError(
            "\n".join([*silent, f"start it, check {', '.join(settings_of)}, or use no model: --engine extractive"]),
            ExitCode.NOTHING_TO_WORK_WITH,
        )
    return silent


async def _lost_providers(resolved: ResolvedResearch, settings: Settings) -> dict[str, str]:
    """Of the web's providers that a run would ask: those that cannot be asked now, with the reason."""
    wanted = [choice.name for choice in resolved.providers if choice.available and choice.host is not None]
    if not wanted or resolved.gates.approve is not Approve.NONE:
        # Before a person has approved the plan no provider hears of the run: the workers look at them afterwards.
        return {}
    model = search_model(settings)
    here = {choice.name: choice for choice in settings.web_search.choices(model_offers_search=model is not None)}
    able = [name for name in wanted if here[name].available or (name == BY_MODEL and model is not None)]
    lost = {name: here[name].reason for name in wanted if name not in able}
    async with open_search_providers(settings.web_search, able, contact=settings.web.contact, model=model) as opened:
        reasons = await asyncio.gather(*(probe(opened[name], seconds=REACH_SECONDS) for name in able))
    return lost | {name: why for name, why in zip(able, reasons, strict=True) if why is not None}


def _explain_unreachable(providers: Sequence[ProviderChoice], settings: Settings) -> str:
    """Why each provider of the run cannot be asked, and what else could be set up."""
    asked = {choice.name for choice in providers}
    others = [choice for choice in search_choices(settings) if not choice.available and choice.name not in asked]
    return "\n".join(
        [
            "no search provider is reachable",
            *(f"{choice.name}: {choice.reason}" for choice in providers),
            *(f"or set up {choice.name}: {choice.reason}" for choice in others),
            "or search a folder: --corpus DIR",
        ]
    )


def _host(model: str, settings: Settings) -> str | None:
    """Where this machine would ask a model, `host` or `host:port`; None where its endpoint cannot be asked."""
    endpoint = split_name(model, settings.models.endpoints)[0]
    address = settings.models.address_of(endpoint)
    if address is None:
        return PUBLIC_HOST if endpoint in settings.model_keys() else None
    return host_of(address)


def _how_to_name(stored: ResolvedResearch) -> str:
    model = next(iter(stored.models.values()))
    named = f"add --model {shlex.quote(model)}"
    if stored.model_host == PUBLIC_HOST:
        return f"{named} and set ANTHROPIC_API_KEY"
    return f"{named} --model-url URL, or set RESEARCH_MODEL and ANTHROPIC_BASE_URL"
