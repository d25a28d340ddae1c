"""What the status of an answer says: one table for models, searches and pages."""

import httpx2
import pytest

from providers.errors import ProviderError, RateLimited, Unavailable
from providers.models.chat import DEFAULT_SETTING_NAMES, error_for_status
from providers.reading.egress.client import _redirection
from providers.search.declarations import search_declaration
from providers.search.plain_services import WikipediaSearch
from providers.service_calls import StatusKind, classify


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (200, StatusKind.DONE), (204, StatusKind.DONE), (301, StatusKind.MOVED), (400, StatusKind.INVALID),
        (401, StatusKind.DENIED), (402, StatusKind.DENIED), (403, StatusKind.DENIED), (404, StatusKind.UNKNOWN_ADDRESS),
        (405, StatusKind.UNKNOWN_ADDRESS), (407, StatusKind.DENIED), (408, StatusKind.UNAVAILABLE),
        (409, StatusKind.UNAVAILABLE), (410, StatusKind.UNKNOWN_ADDRESS), (413, StatusKind.INVALID),
        (422, StatusKind.INVALID), (425, StatusKind.UNAVAILABLE), (429, StatusKind.BUSY), (451, StatusKind.DENIED),
        (499, StatusKind.UNAVAILABLE), (500, StatusKind.UNAVAILABLE), (529, StatusKind.UNAVAILABLE),
        (599, StatusKind.UNAVAILABLE), (600, StatusKind.INVALID), (999, StatusKind.INVALID), (100, StatusKind.INVALID),
    ],
)  # fmt: skip
def test_each_status_has_one_kind(status: int, kind: StatusKind) -> None:
    """Whether the same call may succeed later does not depend on the service that answers."""
    assert classify(status) is kind


def error_of_page(status: int) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        _redirection(status, httpx2.Headers(), is_document=True)
    return caught.value


@pytest.mark.parametrize("status", [400, 401, 404, 408, 409, 410, 413, 425, 429, 451, 499, 500, 503, 529, 599])
async def test_models_searches_and_pages_retry_the_same_statuses(status: int) -> None:
    """A status that is transient for one of them is transient for all."""
    expected = {StatusKind.BUSY: RateLimited, StatusKind.UNAVAILABLE: Unavailable}.get(classify(status))
    search = WikipediaSearch(httpx2.AsyncClient(), search_declaration("wikipedia"), {})
    found = {
        "model": error_for_status(status, [], "", "m", DEFAULT_SETTING_NAMES),
        "search": search.error(status, [], b""),
        "page": error_of_page(status),
    }
    for name, error in found.items():
        assert type(error) is expected if expected else not isinstance(error, RateLimited | Unavailable), name
