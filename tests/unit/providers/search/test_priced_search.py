"""What the operator says that a search costs."""

from contracts.messages import SearchRequest, SearchResponse
from providers.search.decorators import PricedSearch


class Unpriced:
    """A provider that charges by plan."""

    name = "planned"

    async def search(self, request: SearchRequest) -> SearchResponse:
        return SearchResponse(provider=self.name, cost_usd=None)


async def test_the_operators_price_is_taken() -> None:
    """An unknown cost becomes the stated one; everything else passes."""
    request = SearchRequest(research_id="r-1", operation="search/1", provider="planned", text="x")
    answer = await PricedSearch(Unpriced(), 0.008).search(request)
    assert answer == SearchResponse(provider="planned", cost_usd=0.008)
