"""The background search: what there is, by titles and snippets; no page is fetched."""

import asyncio
from typing import Final

from contracts.addresses import canonical_url, sub_query_id
from contracts.evidence import SearchHit
from contracts.plan import PlanNode
from contracts.reflective_roles import INVESTIGATOR, InvestigateInput
from contracts.vocabulary import AgentRole
from workflows.phases.provider_searches import Answers, Searching
from workflows.rules.query_matching import record_of
from workflows.run.research_run import ResearchRun
from workflows.strategies.reflective.reflective_position import position_of

MOST_QUERIES: Final = 3
HITS_OF_EACH: Final = 5


async def investigate(run: ResearchRun) -> None:
    """Search for two or three things side by side, and keep the first hits of each for the planner."""
    request = InvestigateInput(most_queries=MOST_QUERIES, context=run.resolved.context, corpus=run.resolved.corpus)
    output = await run.ask(INVESTIGATOR, "background", request)
    nodes = [PlanNode(id=sub_query_id(text), text=text) for text in output.queries]
    number = run.decide(AgentRole.GATHERER, "search_background", "", {"queries": len(nodes)})
    searching = Searching(run, nodes)
    answers = await run.within_limits(_search(searching, nodes, run.resolved.limits.max_parallel))
    hits: dict[str, SearchHit] = {}
    for node, answer in zip(nodes, answers, strict=True):
        asked = [record_of(node, name, found=found, source_type=kind) for name, kind, found in answer.asked]
        run.state.query_ledger += asked
        if answer.failed is not None:
            run.note("status", f"background search failed: {node.text}: {answer.failed}", level="warning")
            continue
        for hit in searching.response(answer).hits[:HITS_OF_EACH]:
            hits.setdefault(canonical_url(hit.url), hit)
    position_of(run.state).background = list(hits.values())
    run.decided(number, {"titles": len(hits)})


async def _search(searching: Searching, nodes: list[PlanNode], at_once: int) -> list[Answers]:
    turns = asyncio.Semaphore(at_once)

    async def search(node: PlanNode) -> Answers:
        async with turns:
            return await searching.search(node)

    return list(await asyncio.gather(*(search(node) for node in nodes)))
