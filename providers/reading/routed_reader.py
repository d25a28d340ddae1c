"""One reader for all sources: documents of a corpus from their folder, everything else from the web."""

from contracts.names import CORPUS_SCHEME
from providers.domains import ANYWHERE, Domains
from providers.interfaces import ExtractedDocument, Reader, TenantReader


class RoutedReader:
    """Made with the corpora and the reader of the web."""

    def __init__(self, corpora: Reader, web: TenantReader) -> None:
        self._corpora = corpora
        self._web = web

    async def read(self, url: str, *, tenant: str = "default", domains: Domains = ANYWHERE) -> ExtractedDocument:
        """Read by the address; domains are of the web alone. Raises what the reader raises that is responsible."""
        if url.startswith(CORPUS_SCHEME):
            return await self._corpora.read(url)
        return await self._web.read(url, tenant=tenant, domains=domains)
