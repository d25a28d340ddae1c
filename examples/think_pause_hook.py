"""A think-pause hook: an activity of yours that sees a run after each phase and may guide the next one.

Run it beside the workers, with the same TEMPORAL_… variables:

    .venv/bin/python examples/think_pause_hook.py

and name it in `research.toml` of the workers:

    [hooks.house-rules]
    activity = "house_rules"
    task_queue = "house-rules"

A request then asks for it: `research run "…" --set gates.hook=house-rules`.
"""

import asyncio
from typing import Any

from temporalio import activity
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.envconfig import ClientConfig
from temporalio.worker import Worker


@activity.defn(name="house_rules")
async def house_rules(state: dict[str, Any], prompt: str) -> str | None:  # noqa: ARG001  every hook gets it
    """Guidance for the next phase, or nothing. `prompt` is the question that the supervisor asks itself."""
    if state["phase"] == "planning" and len(state["plan"]["sub_queries"]) < 3:
        return "Look at how it fails, too."
    return None


async def main() -> None:
    """Serve the hook until the process is stopped."""
    client = await Client.connect(**ClientConfig.load_client_connect_config(), data_converter=pydantic_data_converter)
    async with Worker(client, task_queue="house-rules", activities=[house_rules]):
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
