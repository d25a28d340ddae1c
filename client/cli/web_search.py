"""`search --provider NAME` for the services of the web."""

from client.cli.exit_codes import ExitCode
from client.cli.failures import CommandError, quoted
from contracts.activities import SearchRequest, SearchResponse
from workers.search_providers import open_search_providers
from workers.settings import load_settings


async def search_web(query: str, *, provider: str, corpus: str | None, limit: int) -> SearchResponse:
    """Ask one service one query. Raises `CommandError` for one that is unknown or lacks something (exit code 7)."""
    settings = load_settings().web_search
    choices = {choice.name: choice for choice in settings.choices()}
    chosen = choices.get(provider)
    if chosen is None:
        known = ", ".join(["corpus", *choices])
        raise CommandError(f"no search provider is called {quoted(provider)}; there are: {known}")
    if corpus is not None:
        raise CommandError("--corpus belongs to the provider corpus: leave one of the two out")
    if not chosen.available:
        message = f"the provider {provider} cannot be asked: {chosen.reason}"
        raise CommandError(message, ExitCode.NOTHING_TO_WORK_WITH)
    request = SearchRequest(
        research_id="command-line",
        operation="search/command-line",
        provider=provider,
        text=query,
        max_results=limit,
    )
    async with open_search_providers(settings, [provider]) as providers:
        return await providers[provider].search(request)
