"""Research with Temporal's own client: nothing of the product is imported.

usage: python examples/plain_client.py ADDRESS QUESTION CORPUS
"""

import asyncio
import sys
import uuid

from temporalio.client import Client


async def main(address: str, question: str, corpus: str) -> None:
    """Start a run, wait for it, fetch its report as HTML."""
    client = await Client.connect(address)
    research_id = f"r-{uuid.uuid4().hex[:8]}"
    queue = "research-workflows"
    request = {"query": question, "corpus": corpus, "depth": "light"}
    result = await client.execute_workflow(
        "deep-research", request, id=research_id, task_queue=queue, static_summary=question[:100]
    )
    print(result["outcome"], result["stop_reason"], result["usage"]["cost_usd"])
    asked = {"research_id": research_id, "name": "report.html"}
    piece = await client.execute_workflow("research-document", asked, id=f"{research_id}-html", task_queue=queue)
    print(piece["text"][:15], piece["size"])


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
