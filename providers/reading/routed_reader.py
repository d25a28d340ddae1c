"""One reader for all sources: documents of a corpus from there, everything else from the web."""

from contracts.names import CORPUS_SCHEME
from providers.domains import ANYWHERE, Domains
from providers.interfaces import Corpora, ExtractedDocument, TenantReader


class RoutedReader:
    """Made with the corpora and the reader of the web."""

    def __init__(self, corpora: Corpora, web: TenantReader) -> None:
        self._corpora = corpora
        self._web = web

    async def read(
        self, url: str, *, tenant: str = "default", domains: Domains = ANYWHERE, corpus_digest: str = ""
    ) -> ExtractedDocument:
        """Read by the address; domains are of the web alone. Raises what the reader raises that is responsible."""
        if url.startswith(CORPUS_SCHEME):
            return await self._corpora.read(url, corpus_digest)
        return await self._web.read(url, tenant=tenant, domains=domains)
