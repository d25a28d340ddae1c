"""Research with the typed handle: events as they come, a result whatever happens.

usage: python examples/typed_handle.py ADDRESS QUESTION CORPUS
"""

import asyncio
import sys
import uuid

from durable_research import ResearchClient


async def main(address: str, question: str, corpus: str) -> None:
    """Start a run, show what happens, fetch its report as JSON."""
    client = await ResearchClient.connect(address)
    request = {"query": question, "corpus": corpus, "depth": "light"}
    handle = await client.start(request, f"r-{uuid.uuid4().hex[:8]}")
    async for event in handle.follow():
        print(event.seq, event.type, event.text)
    result = await handle.result()
    print(result.outcome, result.stop_reason, result.counts.sources_cited)
    print(len(await handle.document("report.json")))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
