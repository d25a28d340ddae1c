"""`search --provider NAME` for the services of the web."""

from client.cli.configured import command_settings
from client.cli.exit_codes import ExitCode
from client.cli.failures import CommandError, quoted
from client.cli.search_options import SearchCommandOptions
from contracts.activities import SearchRequest, SearchResponse
from contracts.request import SourceType
from workers.search_providers import open_search_providers, search_model


async def search_web(query: str, options: SearchCommandOptions) -> SearchResponse:
    """Ask one service one query. Raises `CommandError` for one that is unknown or lacks something (exit code 7)."""
    settings, provider = command_settings(), options.provider
    model = search_model(settings)
    choices = {choice.name: choice for choice in settings.web_search.choices(model_offers_search=model is not None)}
    chosen = choices.get(provider)
    if chosen is None:
        known = ", ".join(["corpus", *choices])
        raise CommandError(f"no search provider is called {quoted(provider)}; there are: {known}")
    if options.corpus is not None:
        raise CommandError("--corpus belongs to the provider corpus: leave one of the two out")
    request = request_of(query, options)
    if not chosen.available:
        message = f"the provider {provider} cannot be asked: {chosen.reason}"
        raise CommandError(message, ExitCode.NOTHING_TO_WORK_WITH)
    contact = settings.web.contact
    async with open_search_providers(settings.web_search, [provider], contact=contact, model=model) as providers:
        return await providers[provider].search(request)


def request_of(query: str, options: SearchCommandOptions) -> SearchRequest:
    """The request that a run would make. Raises `CommandError` for a type that there is not."""
    types = {source_type.value: source_type for source_type in SourceType}
    wanted = types.get(options.source_type or SourceType.WEB.value)
    if wanted is None:
        raise CommandError(f"--type is one of {', '.join(types)}, not {quoted(options.source_type or '')}")
    return SearchRequest(
        research_id="command-line",
        operation="search/command-line",
        provider=options.provider,
        text=query,
        max_results=options.limit,
        source_type=wanted,
        domains_allow=list(options.domains),
        domains_deny=list(options.not_domains),
        language=options.language,
        published_from=options.first,
        published_to=options.last,
    )
