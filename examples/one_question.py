"""One question to a folder of documents and a follow-up question, from Python; a server is started where none runs.

usage: python examples/one_question.py QUESTION FOLDER FOLLOW_UP_QUESTION
"""

import asyncio
import sys

from durable_research import ResearchError, research


async def main(question: str, corpus: str, next_question: str) -> None:
    """Ask twice, print what was found, save the second report."""
    try:
        found = await research(question, corpus=corpus, depth="light", limits={"max_iterations": 1})
        print(found.outcome, found.cost_usd)
        for source in found.sources:
            print(source.title, source.url)
        more = await found.ask(next_question, progress=print)
        print(more.save("follow-up")[0])
    except ResearchError as error:
        print(f"no report: {error}")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
