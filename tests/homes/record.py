"""Write a home as this version leaves it: `python -m tests.homes.record NAME`, once for each released version.

Three runs of a model: one completed with every check, a live report, and one that was cancelled in its analysis.
"""

import asyncio
import sys
import tarfile
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

from temporalio.client import Client, WorkflowFailureError
from temporalio.testing import WorkflowEnvironment

from tests.fakes.messages_api import MessagesApi
from tests.fakes.world import model_world
from tests.integration.conftest import FAST, running_workers
from tests.integration.runs import QUESTION, start
from workers.dev_server import find_binary
from workers.temporal import DATA_CONVERTER

FOLDER: Final = Path(__file__).parent
REQUEST: Final = {"query": QUESTION, "corpus": "manual", "gates": {"think": "rules"}}
ENDED: Final = {"r-supervisor": REQUEST, "r-living": REQUEST | {"strategy": "living", "gates": {"approve": "none"}}}
CANCELLED: Final = "r-cancelled"


async def record(client: Client, home: Path) -> None:
    """Let the runs leave their sessions and documents in a folder."""
    async with MessagesApi() as api, running_workers(client, model_world(home, api.base_url)):
        for name, request in ENDED.items():
            await (await start(client, request, id=name)).result()
    async with MessagesApi(by_role={"analyzer": "slow"}) as api:
        async with running_workers(client, model_world(home, api.base_url)):
            handle = await start(client, REQUEST, id=CANCELLED)
            await asyncio.wait_for(api.waiting.wait(), 60)
            await handle.cancel()
            with suppress(WorkflowFailureError):
                await handle.result()


async def main(name: str) -> None:
    """Pack the home, without the journal, which forgets answers after three days."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        async with await WorkflowEnvironment.start_local(
            dev_server_existing_path=str(find_binary()), dev_server_extra_args=[*FAST]
        ) as environment:
            address = environment.client.service_client.config.target_host
            await record(await Client.connect(address, data_converter=DATA_CONVERTER), home)
        with tarfile.open(FOLDER / f"{name}.tar.gz", "w:gz") as archive:
            for part in sorted(path for path in home.iterdir() if path.is_dir()):
                archive.add(part, part.name)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
