"""The workers of a server say what a run would use, before it is started."""

from pathlib import Path

import pytest

from client.client_errors import PreviewRefused
from client.handle import ResearchClient
from contracts.names import RECORDS_QUEUE
from contracts.request import ResearchRequest
from workers.composition import compose
from workers.pools import run_pools
from workers.settings.loading import Settings
from workers.settings.models import ModelsSettings
from workers.temporal import open_connection

pytestmark = pytest.mark.integration

POOLS = ("workflows", "records")


async def test_workers_say_what_a_run_would_use(server_home: Path) -> None:
    """Their model and its host, the expected amounts and the cap; or why they would refuse it."""
    models = ModelsSettings(default="m", base_url="http://127.0.0.1:9")
    settings = Settings(home=server_home, models=models)
    temporal = (await open_connection(settings)).client
    client = ResearchClient(temporal)
    async with compose(settings, temporal, POOLS) as contents, run_pools(temporal, contents, POOLS):
        shown = await client.preview(ResearchRequest(query="Why?", corpus="manual"), "r-1")
        assert (shown.egress, shown.models["complex"]) == ("passages go to 127.0.0.1:9 (this machine)", "m")
        assert shown.estimate is not None
        assert "the run stops at 2.00 USD" in shown.estimate.words()
        with pytest.raises(PreviewRefused, match="no hook of that name"):
            await client.preview(ResearchRequest.model_validate({"query": "Why?", "gates": {"hook": "none"}}), "r-1")
        assert {each.rpartition("/")[2] for each in await client.polled_by(RECORDS_QUEUE, activities=True)} == {
            settings.mark()
        }
