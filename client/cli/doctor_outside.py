"""What `doctor` looks at outside this machine: search services, and the state that workers share."""

import asyncio
import secrets
from collections.abc import AsyncIterator

from client.cli.doctor_checks import Check, Grade
from contracts.resolved import ProviderChoice
from contracts.vocabulary import Tier
from providers.errors import NotConfigured, ProviderError, SharedStateUnavailable
from providers.models.model_directory import DEFAULT_ENDPOINT, split_name
from providers.search.reachability import probe, probe_address
from providers.shared.circuit_breaker import CircuitBreaker, CircuitState
from workers.resolution_inputs import search_choices
from workers.search_pool import CIRCUIT_OPEN, service_of
from workers.search_providers import open_search_providers, search_model
from workers.settings.loading import Settings
from workers.settings.models import PUBLIC_HOST, host_of, key_variable
from workers.shared_state import open_shared_state

SHARED_KEY = "doctor"
SHARED_SECONDS = 5.0
KEEPS_ALL = "noeviction"
REDIS_TROUBLES = {
    "full": (
        "Redis is full and takes no changes",
        "research delete runs that are no longer needed, or raise maxmemory",
    ),
    "read_only": ("Redis is a replica and takes no changes", "let REDIS_URL name the primary server"),
    "too_few_replicas": (
        "Redis takes no changes: too few replicas are connected",
        "bring its replicas back, or lower min-replicas-to-write",
    ),
    "no_disk": ("Redis takes no changes: it cannot write its file", "make room on the server's disk; see its log"),
    "forbidden": (
        "Redis forbids its user what workers need",
        "allow the user of REDIS_URL: ~research:* +eval +get +set +del +time +scan +unlink",
    ),
    "password": ("Redis refuses the user or the password", "check user and password in REDIS_URL"),
}
"""By the kind of the error: what was found, and what to do."""


async def models(settings: Settings) -> AsyncIterator[Check]:
    """Each endpoint that a configured model is at: whether it answers, and whether workers leave it alone for now."""
    if not settings.model_configured:
        yield Check("model", Grade.OK, "none: reports are extractive evidence briefs", settings.model_reason)
        return
    usable = settings.models.usable_endpoints(settings.model_keys())
    names = sorted({name for tier in Tier for name in settings.models.names_for(tier)})
    # Whether Redis can be used is told by its own line; a wrong address of it must not hide the state of the models.
    known = settings if _usable_redis(settings) else settings.model_copy(update={"redis_url": None})
    async with open_shared_state(known) as shared:
        circuits = CircuitBreaker(shared.store)
        for endpoint in usable:
            there = [
                model for name in names for at, model in [split_name(name, settings.models.endpoints)] if at == endpoint
            ]
            address = settings.models.address_of(endpoint) or f"https://{PUBLIC_HOST}"
            found = f"{', '.join(there)} at {host_of(address)}"
            why = await probe_address(address)
            if why is not None:
                setting = "ANTHROPIC_BASE_URL" if endpoint == DEFAULT_ENDPOINT else f"models.endpoints.{endpoint}"
                remedy = f"check {setting} and the network; meanwhile: research run --engine extractive"
                yield Check("model", Grade.WARN if len(usable) > 1 else Grade.FAIL, f"{found}: {why}", remedy)
            elif await circuits.state(f"model/{endpoint}") is not CircuitState.CLOSED:
                remedy = "calls go to the next model meanwhile; see the endpoint's own status"
                yield Check("model", Grade.WARN, f"{found}: failed again and again, left alone for a while", remedy)
            else:
                yield Check("model", Grade.OK, f"{found} (reachable)")
    for endpoint in settings.models.used_endpoints():
        if endpoint not in usable:
            yield Check("model", Grade.WARN, f"{endpoint}: no key", f"set {key_variable(endpoint)}")


async def web_search(settings: Settings) -> Check:
    """Which services of the web a run can ask, whether they answer or are left alone, and what the others lack."""
    choices = search_choices(settings)
    usable = [choice for choice in choices if choice.available]
    missing = [f"{choice.name}: {choice.reason}" for choice in choices if not choice.available]
    left_alone = dict.fromkeys(await _left_alone(settings, usable), CIRCUIT_OPEN)
    troubles = left_alone | {name: why async for name, why in _unreachable(settings, usable)}
    found = ", ".join(
        f"{choice.name} ({troubles[choice.name]})" if choice.name in troubles else choice.name for choice in usable
    )
    silent = len(troubles) == len(usable)
    remedy = "; ".join(missing)
    if usable and silent:
        remedy = "without the web: research run … --corpus ./folder" + (f"; {remedy}" if remedy else "")
    return Check(
        "web search",
        Grade.WARN if troubles or not usable or settings.web_search.broken() else Grade.OK,
        found or "none",
        remedy,
    )


async def shared_state(settings: Settings) -> Check:
    """Where paid calls, caches and limits are kept, and whether it takes changes."""
    if settings.redis_url is None:
        return Check("shared", Grade.OK, "one SQLite file of this machine; for workers on several set REDIS_URL")
    from providers.shared.stores.redis_store import RedisSharedStore  # noqa: PLC0415  only with Redis

    try:
        store = RedisSharedStore(settings.redis_url.get_secret_value())
    except NotConfigured as error:
        return Check("shared", Grade.FAIL, "Redis", str(error))
    policy = None
    try:
        # A full server, and a replica, can be read. What is written here goes by itself.
        await store.swap(f"{SHARED_KEY}/{secrets.token_hex(8)}", None, b"", SHARED_SECONDS)
        await store.get(SHARED_KEY)
        policy = await store.eviction_policy()
    except SharedStateUnavailable as error:
        found, remedy = REDIS_TROUBLES.get(error.kind, (str(error), "check REDIS_URL and the server"))
        return Check("shared", Grade.FAIL, found, f"{remedy}; runs go on meanwhile, each host by itself")
    finally:
        await store.close()
    if policy not in {None, KEEPS_ALL}:
        remedy = f"it holds what was paid for: set maxmemory-policy to {KEEPS_ALL}"
        return Check("shared", Grade.WARN, f"Redis (throws keys away when it is full: {policy})", remedy)
    return Check("shared", Grade.OK, "Redis (takes changes)")


def _usable_redis(settings: Settings) -> bool:
    """Whether the address of Redis, if there is one, is an address."""
    from providers.shared.stores.redis_store import RedisSharedStore  # noqa: PLC0415  only with Redis

    if settings.redis_url is None:
        return True
    try:
        RedisSharedStore(settings.redis_url.get_secret_value())
    except NotConfigured:
        return False
    return True


async def _left_alone(settings: Settings, usable: list[ProviderChoice]) -> list[str]:
    known = settings if _usable_redis(settings) else settings.model_copy(update={"redis_url": None})
    try:
        async with open_shared_state(known) as shared:
            circuits = CircuitBreaker(shared.store)
            states = {choice.name: await circuits.state(service_of(choice.name)) for choice in usable}
    except ProviderError:  # where that is kept has a line of its own
        return []
    return [name for name, state in states.items() if state is not CircuitState.CLOSED]


async def _unreachable(settings: Settings, usable: list[ProviderChoice]) -> AsyncIterator[tuple[str, str]]:
    names = [choice.name for choice in usable]
    model = search_model(settings)
    async with open_search_providers(settings.web_search, names, contact=settings.web.contact, model=model) as opened:
        reasons = await asyncio.gather(*(probe(opened[name]) for name in names))
    for name, why in zip(names, reasons, strict=True):
        if why is not None:
            yield name, why
