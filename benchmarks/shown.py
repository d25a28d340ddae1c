"""Measure what analyzers are shown: facts of pages that a run reads, and how many of them reach a prompt.

    python -m benchmarks.shown [--depth light|medium|extended] [--tokens N] [--home DIR] [--verbose]

Each question of `shown_questions.json` has the sub-queries that a model planned for it and patterns of facts in the
manuals (Debian's postgresql-doc-15 and sqlite3-doc; the README names the folders). The pages are those that the corpus
search finds for the sub-queries, distributed among analyses and shown as in a run; no model is asked. Printed by
question: facts in pages read, facts shown, analyses, and estimated tokens of the texts shown. With `--tokens` an
analysis is shown at most so many, as for a model with a small window.
"""

import argparse
import asyncio
import json
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.passages import COLLECTIONS, definitions
from contracts.addresses import source_id, sub_query_id
from contracts.evidence import DocumentRef
from contracts.messages import SearchRequest
from contracts.plan import PlanNode
from contracts.presets import preset
from contracts.request import Depth
from contracts.resolved import EffectiveLimits
from contracts.roles import AnalyzeInput, SourceExtract
from providers.isolation.pool import SubprocessPool
from providers.search.corpus.library import CorpusLibrary
from providers.tokens.showing import show_sources
from providers.tokens.shown_sources import token_size
from workflows.rules.reading import PageBatch, PageToRead, distribute_pages

HERE: Final = Path(__file__).parent


@dataclass(frozen=True)
class Measured:
    """One question: its facts, those in pages read, those shown, and what that took."""

    id: str
    facts: int
    read: int
    shown: int
    analyses: int
    tokens: float
    hidden: list[str]


async def measure(question: Mapping[str, Any], library: CorpusLibrary, limits: EffectiveLimits) -> Measured:
    """Search, distribute and show as a run does; count the facts."""
    queries = [PlanNode(id=sub_query_id(text), text=text) for text in question["sub_queries"]]
    pages, texts, titles = dict[str, PageToRead](), dict[str, str](), dict[str, str]()
    for number, query in enumerate(queries):
        response = await library.search(
            SearchRequest(
                research_id="shown",
                operation="search",
                provider="corpus",
                text=query.text,
                corpus=question["collection"],
            )
        )
        for rank, hit in enumerate(response.hits[: limits.max_sources_per_query], start=1):
            name = source_id(hit.url)
            if name in pages or len(pages) >= limits.max_new_sources:
                continue
            texts[name] = (await library.read(hit.url)).text
            titles[name] = hit.title
            pages[name] = PageToRead(id=name, characters=len(texts[name]), query=number, rank=rank)
    batches = distribute_pages(list(pages.values()), limits.analysis_tokens, limits.reading_tokens)
    requests = [_request(question["question"], queries, batch, texts, titles) for batch in batches]
    prompts = [_shown(request, texts) for request in requests]
    read, shown = squeezed(" ".join(texts.values())), squeezed(" ".join(prompts))
    in_pages = [fact for fact in question["facts"] if re.search(fact, read, re.IGNORECASE)]
    hidden = [fact for fact in in_pages if not re.search(fact, shown, re.IGNORECASE)]
    tokens = sum(map(token_size, prompts))
    return Measured(
        question["id"], len(question["facts"]), len(in_pages), len(in_pages) - len(hidden), len(batches), tokens, hidden
    )


def _request(
    question: str,
    queries: Sequence[PlanNode],
    batch: PageBatch,
    texts: Mapping[str, str],
    titles: Mapping[str, str],
) -> AnalyzeInput:
    """Return the request of one analysis."""
    return AnalyzeInput(
        query=question,
        sub_query=queries[0],
        sub_queries=list(queries),
        sources=[SourceExtract(id=name, title=titles[name], text=_reference(name, texts[name])) for name in batch.ids],
        shown_tokens=batch.tokens,
    )


def _shown(request: AnalyzeInput, texts: Mapping[str, str]) -> str:
    """Return the texts that one analysis is shown."""
    documents = {_reference(one.id, texts[one.id]).hash: texts[one.id] for one in request.sources}
    return "\n\n".join(one.excerpt() for one in show_sources(request, documents))


def _reference(name: str, text: str) -> DocumentRef:
    return DocumentRef(hash=f"sha256:{name[4:]:0<64}", size=len(text))


def squeezed(text: str) -> str:
    """Return a text without marks of emphasis and code, and with single blanks."""
    return " ".join(re.sub(r"[`*_\\|]", "", text).split())


async def main() -> None:
    """Measure the questions whose manuals are installed."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--depth", default=Depth.MEDIUM.value, choices=[depth.value for depth in Depth][1:])
    arguments.add_argument("--tokens", type=int, help="shown to one analysis; by default as many as at the depth")
    arguments.add_argument("--home", type=Path, help="where indexes are kept; a temporary folder by default")
    arguments.add_argument("--verbose", action="store_true", help="print the facts that no analysis was shown")
    options = arguments.parse_args()
    limits = preset("supervisor", Depth(options.depth))
    if options.tokens:
        limits = limits.with_fields(analysis_tokens=options.tokens)
    results = []
    with tempfile.TemporaryDirectory() as home:
        async with SubprocessPool(2) as pool:
            library = CorpusLibrary(options.home or Path(home), pool, definitions())
            for question in json.loads((HERE / "shown_questions.json").read_text("utf-8")):
                name = question["collection"]
                collection = COLLECTIONS[name]
                if not collection.folder.exists():
                    print(f"{question['id']}: {collection.folder} is missing; install {collection.package}")
                    continue
                await library.refresh(name)
                results.append(result := await measure(question, library, limits))
                print(
                    f"{result.id:20} facts {result.facts:3}, in pages read {result.read:3}, shown {result.shown:3}, "
                    f"{result.analyses} analyses, {result.tokens / 1_000:.0f} k tokens"
                )
                if options.verbose and result.hidden:
                    print("    not shown:", "; ".join(result.hidden))
    read, shown = sum(one.read for one in results), sum(one.shown for one in results)
    if read:
        print(f"shown {shown} of {read} facts in pages read: {shown / read:.2f}")


if __name__ == "__main__":
    asyncio.run(main())
