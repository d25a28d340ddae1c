"""Measure whether the search in a corpus finds the page that a query names.

    python -m benchmarks.named_pages [--home DIR] [--verbose]

`named_pages.json` has queries as agents write them to find one page of a manual, such as "git stash drop", each with
the path of that page without its ending (Git's manual has each page as HTML and as text); the manuals are those of
Debian's postgresql-doc-15, sqlite3-doc and git-doc. Queries of the set `held_out`
were written with the others and are not looked at while the ranking is changed. Printed by set and by collection: how
many queries have their page as the first hit, and among the first three and five.
"""

import argparse
import asyncio
import json
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Final

from benchmarks.passages import COLLECTIONS, definitions
from contracts.messages import SearchRequest
from providers.isolation.pool import SubprocessPool
from providers.search.corpus.folders import document_url
from providers.search.corpus.library import CorpusLibrary

QUERIES: Final = Path(__file__).parent / "named_pages.json"
AMONG: Final = (1, 3, 5)


async def place(library: CorpusLibrary, collection: str, query: str, page: str) -> int:
    """Return the place of a page among the hits, from 1; 0 if it is none of them."""
    request = SearchRequest(
        research_id="named", operation="search", provider="corpus", text=query, corpus=collection, max_results=50
    )
    response = await library.search(request)
    url = document_url(collection, page)
    return next((hit.rank for hit in response.hits if hit.url.rpartition(".")[0] == url), 0)


async def main() -> None:
    """Measure the queries whose manuals are installed."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--home", type=Path, help="where indexes are kept; a temporary folder by default")
    arguments.add_argument("--verbose", action="store_true", help="a line for each tuned query whose page is not first")
    options = arguments.parse_args()
    places: dict[str, list[int]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as temporary:
        async with SubprocessPool(2) as pool:
            library = CorpusLibrary(options.home or Path(temporary), pool, definitions())
            queries = json.loads(QUERIES.read_text("utf-8"))
            for name in sorted({entry["collection"] for entry in queries}):
                if not COLLECTIONS[name].folder.exists():
                    print(f"{COLLECTIONS[name].folder} is missing; install {COLLECTIONS[name].package}")
                    queries = [entry for entry in queries if entry["collection"] != name]
                    continue
                await library.refresh(name)
            for entry in queries:
                found = await place(library, entry["collection"], entry["query"], entry["page"])
                places[f"set {entry['set']}"].append(found)
                places[f"collection {entry['collection']}"].append(found)
                if options.verbose and entry["set"] != "held_out" and found != 1:
                    print(f"  place {found}: {entry['query']} ({entry['page']})")
    for name, found_places in sorted(places.items()):
        shares = (f"{sum(0 < one <= most for one in found_places)} among the first {most}" for most in AMONG)
        print(f"{name}: of {len(found_places)} pages " + ", ".join(shares))


if __name__ == "__main__":
    asyncio.run(main())
