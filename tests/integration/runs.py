"""Starting runs in tests of the integration tier."""

import asyncio
import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from temporalio.client import Client, WorkflowHandle, WorkflowQueryFailedError
from temporalio.service import RPCError

from contracts import names
from contracts.failures import EVENTS_AFTER_TASK
from contracts.outcome import ResearchResult, ResearchStatus

BUILD_ID = "of-a-test"
"""Of a worker or replayer that a test makes: without one, the SDK reads the code of all loaded modules, for a second."""
QUESTION = "How does the engine prevent transaction ID wraparound?"


async def start(client: Client, argument: object, **options: Any) -> WorkflowHandle[Any, ResearchResult]:
    """Start a run as any client would: by name, with plain JSON."""
    identity = options.pop("id", f"r-{uuid.uuid4().hex[:8]}")
    return await client.start_workflow(
        names.DEEP_RESEARCH,
        argument,
        id=identity,
        task_queue=names.WORKFLOWS_QUEUE,
        result_type=ResearchResult,
        **options,
    )


async def until(handle: WorkflowHandle[Any, Any], holds: Callable[[ResearchStatus], bool]) -> ResearchStatus:
    """Poll the query `status` until something holds; while no worker answers, or one has no time to, ask again."""
    while True:
        try:
            patience = timedelta(seconds=5)
            status = await handle.query(names.STATUS, result_type=ResearchStatus, rpc_timeout=patience)
        except RPCError:
            await asyncio.sleep(0.05)
            continue
        except WorkflowQueryFailedError as error:
            # The SDK takes a thread that got no time for a deadlock; a run may have to handle its newest events first.
            if "TMPRL1101" not in str(error) and EVENTS_AFTER_TASK not in str(error):
                raise
            await asyncio.sleep(0.05)
            continue
        if holds(status):
            return status
        await asyncio.sleep(0.05)
