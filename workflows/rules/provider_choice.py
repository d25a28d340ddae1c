"""Which providers a run goes on with. Pure."""

from collections.abc import Mapping, Sequence

from contracts.resolved import ProviderChoice, ResolvedResearch, where_text_goes


def without(providers: Sequence[ProviderChoice], unavailable: Mapping[str, str]) -> list[ProviderChoice]:
    """The same providers, those that cannot be asked marked with the reason."""
    return [
        choice.model_copy(update={"available": False, "reason": unavailable[choice.name]})
        if choice.name in unavailable
        else choice
        for choice in providers
    ]


def with_providers(resolved: ResolvedResearch, providers: list[ProviderChoice]) -> ResolvedResearch:
    """The resolution with other providers: the line that says where text goes follows them."""
    asked = [choice for choice in providers if choice.available]
    hosts = [choice.host for choice in asked if choice.host is not None]
    web = any(choice.host is not None for choice in asked)
    egress = where_text_goes(resolved.model_host, hosts, pages=web)
    return resolved.model_copy(update={"providers": providers, "web": web, "egress": egress})
