"""Whether those that a run would ask answer: looked at before it is announced, by connections alone, nothing paid."""

import asyncio
import shlex
from collections.abc import Sequence
from typing import Final

from client.cli.exit_codes import ExitCode
from client.cli.failures import CommandError
from client.cli.run_options import RunOptions
from contracts.resolved import ProviderChoice, ResolvedResearch
from contracts.vocabulary import EngineKind
from contracts.where_text_goes import where_text_goes
from providers.models.model_directory import DEFAULT_ENDPOINT, split_name
from providers.search.availability import BY_MODEL
from providers.search.reachability import probe, probe_address
from workers.resolution_inputs import search_choices
from workers.search_providers import open_search_providers, search_model
from workers.settings.loading import Settings
from workers.settings.models import PUBLIC_HOST, host_of
from workflows.rules.provider_choice import with_providers, without

REACH_SECONDS: Final = 2.5
"""Everybody is looked at at once; who takes longer than this counts as out of reach."""


async def reached(resolved: ResolvedResearch, settings: Settings) -> ResolvedResearch:
    """The resolution with what cannot be reached now marked as such.

    Raises `CommandError` (exit code 7) where no model or nobody to search with is left.
    """
    silent, lost = await asyncio.gather(_silent_endpoints(resolved, settings), _lost_providers(resolved, settings))
    providers = without(resolved.providers, lost)
    if providers and not any(choice.available for choice in providers):
        raise CommandError(_nobody(providers, settings), ExitCode.NOTHING_TO_WORK_WITH)
    told = [*resolved.advice, *(f"{what}: calls go to the next endpoint meanwhile" for what in silent)]
    known = with_providers(resolved, providers) if lost else resolved
    return known.model_copy(update={"advice": told})


def served_here(stored: ResolvedResearch, settings: Settings, options: RunOptions) -> ResolvedResearch:
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
            "\n".join([*silent, f"start it, check {', '.join(settings_of)}, or ask without: --engine extractive"]),
            ExitCode.NOTHING_TO_WORK_WITH,
        )
    return silent


async def _lost_providers(resolved: ResolvedResearch, settings: Settings) -> dict[str, str]:
    """Of the web's providers that a run would ask: those that cannot be asked now, with the reason."""
    wanted = [choice.name for choice in resolved.providers if choice.available and choice.host is not None]
    if not wanted:
        return {}
    model = search_model(settings)
    here = {choice.name: choice for choice in settings.web_search.choices(model_offers_search=model is not None)}
    able = [name for name in wanted if here[name].available or (name == BY_MODEL and model is not None)]
    lost = {name: here[name].reason for name in wanted if name not in able}
    async with open_search_providers(settings.web_search, able, contact=settings.web.contact, model=model) as opened:
        reasons = await asyncio.gather(*(probe(opened[name], seconds=REACH_SECONDS) for name in able))
    return lost | {name: why for name, why in zip(able, reasons, strict=True) if why is not None}


def _nobody(providers: Sequence[ProviderChoice], settings: Settings) -> str:
    """Who was to be asked and why that fails, and what else could be set up."""
    asked = {choice.name for choice in providers}
    others = [choice for choice in search_choices(settings) if not choice.available and choice.name not in asked]
    return "\n".join(
        [
            "there is nobody to search with: no provider can be reached",
            *(f"{choice.name}: {choice.reason}" for choice in providers),
            *(f"or set up {choice.name}: {choice.reason}" for choice in others),
            "or search a folder: --corpus DIR",
        ]
    )


def _host(model: str, settings: Settings) -> str | None:
    """Where this machine would ask a model, `host` or `host:port`; null where its endpoint cannot be asked."""
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
