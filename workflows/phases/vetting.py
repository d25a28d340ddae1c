"""Vetting: a librarian's searches for needs, and candidates read and examined a few at a time.

The record of each need is in the strategy's position, so that a resumed run repeats no search or examination.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from contracts.addresses import canonical_url, sub_query_id
from contracts.plan import CHOSEN_BY_AGENT, PlanNode
from contracts.recursive_roles import (
    LIBRARIAN,
    SCANNED_TOGETHER,
    SCANNER,
    LibrarianInput,
    MentionedWork,
    ScanInput,
    ScannedSource,
    ScannerAnswer,
)
from contracts.roles import QualityUpdate
from contracts.sentences import Message
from contracts.texts import plural, shorten
from contracts.vetting import ExaminedSource, Vetted, need_id
from contracts.vocabulary import EngineKind, NodeStatus, SourceStatus
from workflows.phases.analysis import update_quality
from workflows.phases.gathering import Gathering
from workflows.phases.role_inputs import to_extract
from workflows.rules.duplicates import Identities, assess_by_rules, choose_candidates, interleave_hits, protected_ids
from workflows.run.host import ended_calls, run_parallel
from workflows.run.research_run import ResearchRun, Unanswered

MAX_SHOWN_SEARCHES: Final = 40
"""Latest searches for other needs, shown to the librarian."""
NEED_CHARACTERS: Final = 300
"""Of a need in a run's log."""
SEARCHED: Final = (NodeStatus.COMPLETED, NodeStatus.FAILED)
WITHOUT_SCAN: Final = Message("rated_by_rules")


@dataclass(frozen=True)
class Vetting:
    """Finds sources for needs concurrently; the result does not depend on the order of answers."""

    run: ResearchRun
    known: dict[str, Vetted]
    """Records by need id, updated in place.

    A source is examined once per need. An interrupted round is finished; a complete one is followed by another.
    """
    caller: str
    """Role that calls the librarian."""
    most: int
    """Candidates per need to read and examine, within the run's limits."""
    works: Sequence[MentionedWork] = ()
    """Mentioned works: they inspire searches and rank first if a search finds them, but are not opened directly."""

    async def carry_out(self, needs: Sequence[str]) -> list[Vetted]:
        """Search, read and examine; return the record of each need. Raises `Interrupted`."""
        for need in dict.fromkeys(needs):
            record = self.known.get(need_id(need), Vetted(need=need))
            self.known[need_id(need)] = record.next_round() if record.complete else record
        keys = list(dict.fromkeys(map(need_id, needs)))
        await self._name_searches([key for key in keys if not self.known[key].is_searched])
        candidates = await self._read_candidates(keys)
        await self._examine(candidates)
        for key, names in candidates.items():
            self.known[key] = record = self.known[key].with_fields(complete=True)
            accepted, rejected = ([source.source_id for source in part] for part in (record.accepted, record.rejected))
            need = shorten(record.need, NEED_CHARACTERS)
            count = plural(len(names), "candidate")
            outputs = {"accepted": accepted, "rejected": rejected}
            text = f"{len(accepted)} of {count} vetted: {need}"
            self.run.decide(LIBRARIAN.name, "vet_sources", text, {"need": key}, outputs)
        return [self.known[need_id(need)] for need in needs]

    # --- searches --------------------------------------------------------------------------------------------------
    async def _name_searches(self, keys: Sequence[str]) -> None:
        """Have the librarian propose searches, and add them to the plan in the order of the needs."""
        run = self.run
        state = self.run.state
        works = list(dict.fromkeys(work.search_words for work in self.works))

        async def propose(key: str) -> list[str]:
            record = self.known[key]
            asked = [node.text for node in state.work.plan.nodes if node.id in record.searches]
            elsewhere = [
                text for text in dict.fromkeys(one.text for one in state.evidence.query_ledger) if text not in asked
            ]
            request = LibrarianInput(
                caller=self.caller,
                need=record.need,
                asked=asked,
                asked_elsewhere=elsewhere[-MAX_SHOWN_SEARCHES:],
                works=works,
            )
            return (await run.ask(LIBRARIAN, f"librarian/{key}", request)).searches

        calls = await run_parallel(run.host, [partial(propose, key) for key in keys], run.resolved.limits.max_parallel)
        for key, call in zip(keys, calls, strict=True):
            if call.exception() is None:
                searches = {sub_query_id(text): text for text in call.result()}
                nodes = [
                    PlanNode(id=name, text=text, origin=CHOSEN_BY_AGENT, iteration=state.work.iteration)
                    for name, text in searches.items()
                ]
                state.work.plan = state.work.plan.with_nodes(*map(state.work.plan.newest, nodes))
                named = list(dict.fromkeys([*self.known[key].searches, *searches]))
                self.known[key] = self.known[key].with_fields(searches=named, is_searched=True)
        for call in calls:
            call.result()

    # --- candidates ------------------------------------------------------------------------------------------------
    async def _read_candidates(self, keys: Sequence[str]) -> dict[str, list[str]]:
        """Search, and read this round's candidates; return their source ids by need."""
        run = self.run
        state = self.run.state
        searches = {name for key in keys for name in self.known[key].searches}
        nodes = [node for node in state.work.plan.nodes if node.id in searches]
        if unsearched := [node for node in nodes if node.status not in SEARCHED]:
            await Gathering(run, unsearched, only=frozenset()).carry_out()
        # The sources are examined here instead of being analyzed per search.
        state.work.analyzed_sub_queries = list(
            dict.fromkeys([*state.work.analyzed_sub_queries, *(node.id for node in nodes)])
        )
        chosen = {}
        for key in keys:
            hits = interleave_hits(state, self.known[key].searches, self.works)
            allowed = [hit for hit in hits if not run.is_excluded(hit)]
            chosen[key] = choose_candidates(state, allowed, self.known[key].before, self.most)
        identities = Identities(state.evidence.sources, state.evidence.aliases)
        fetched = state.evidence.fetched_sources()
        new = [hit for hits in chosen.values() for hit in hits if identities.identity_of(hit) not in fetched]
        unread = frozenset(canonical_url(hit.url) for hit in new)
        owners = {
            candidate.sub_query_id
            for candidate in state.evidence.candidates
            if canonical_url(candidate.hit.url) in unread
        }
        if unread:
            await Gathering(run, [node for node in nodes if node.id in owners], only=unread).carry_out()
        identities = Identities(state.evidence.sources, state.evidence.aliases)
        candidates = dict[str, list[str]]()
        for key, hits in chosen.items():
            record = self.known[key]
            # Sources named by the request come first.
            ordered = dict.fromkeys([*self._named_sources(record), *map(identities.identity_of, hits)])
            candidates[key] = [name for name in ordered if name in state.evidence.sources and name not in record.before]
        return candidates

    def _named_sources(self, record: Vetted) -> list[str]:
        """Return the ids of sources that were named by the request and found for this need."""
        state = self.run.state
        of_request = [
            state.evidence.sources[name] for name in protected_ids(state).values() if name in state.evidence.sources
        ]
        return [source.id for source in of_request if not set(source.sub_query_ids).isdisjoint(record.searches)]

    # --- examination -----------------------------------------------------------------------------------------------
    async def _examine(self, candidates: Mapping[str, Sequence[str]]) -> None:
        """Examine the remaining candidates, those of one need together, a few in each call.

        All answers are merged, in the order of needs and candidates. Raises `Interrupted`.
        """
        done = {key: {source.source_id for source in self.known[key].examined} for key in candidates}
        due = {key: [name for name in names if name not in done[key]] for key, names in candidates.items()}
        batches = [(key, batch) for key, names in due.items() for batch in self._batches(key, names)]
        calls = await run_parallel(
            self.run.host, [partial(self._scan, *batch) for batch in batches], self.run.resolved.limits.max_parallel
        )
        answers = dict[tuple[str, str], ScannedSource]()
        unanswered = {(key, name) for key, names in batches for name in names}
        try:
            for (key, names), call, failure in ended_calls(batches, calls):
                answer = call.result() if failure is None else None
                assessed = {name: answer.of(name) if answer else None for name in names}
                answers |= {(key, name): one for name, one in assessed.items() if one is not None}
                unanswered -= {(key, name) for name in names}
                if None in assessed.values():
                    self.run.degrade(WITHOUT_SCAN)
        finally:  # an interruption costs the scans that it cut short, no other
            for key, names in due.items():
                for name in names:
                    if (key, name) not in unanswered:
                        self._take_assessment(key, name, answers.get((key, name)))

    def _batches(self, key: str, names: Sequence[str]) -> list[list[str]]:
        """Divide the candidates that a model examines; rules or the request itself decide on the others."""
        run = self.run
        record = self.known[key]
        if run.resolved.engine is EngineKind.EXTRACTIVE:
            return []
        named = self._named_sources(record)
        sources = run.state.evidence.sources
        scanned = [name for name in names if sources[name].status is SourceStatus.FULL and name not in named]
        return [scanned[start:][:SCANNED_TOGETHER] for start in range(0, len(scanned), SCANNED_TOGETHER)]

    def _take_assessment(self, key: str, name: str, answer: ScannedSource | None) -> None:
        """Record a candidate as examined, by a scan or by rules."""
        record = self.known[key]
        source = self.run.state.evidence.sources[name]
        if answer is None:
            examined = assess_by_rules(source, is_named=name in self._named_sources(record))
        else:
            # A scan moves the rules' label by at most one step.
            opinion = QualityUpdate(source_id=name, quality=answer.credibility)
            self.run.state.evidence.sources[name] = source = update_quality(source, opinion, SCANNER.name)
            reason = f"credibility {answer.credibility.value}, relevance {answer.relevance.value}"
            examined = ExaminedSource(
                source_id=name,
                accepted=answer.accepts(source.quality),
                quality=source.quality,
                reason=answer.reason or reason,
            )
        self.known[key] = record.with_fields(examined=[*record.examined, examined])
        verdict = "accepted" if examined.accepted else "rejected"
        text = f"{verdict} “{shorten(source.title, 80)}”: {shorten(examined.reason, 120)}"
        self.run.note("source.examined", text, need=key, source_id=name, accepted=examined.accepted)

    async def _scan(self, key: str, names: Sequence[str]) -> ScannerAnswer | None:
        """Have candidates scanned; None if no usable answer came back."""
        run = self.run
        record = self.known[key]
        request = ScanInput(
            caller=LIBRARIAN.name,
            sub_query=PlanNode(id=key, text=record.need),
            sources=[to_extract(run.state.evidence.sources[name]) for name in names],
        )
        try:
            return await run.ask(SCANNER, f"scan/{key}/{names[0]}", request)
        except Unanswered:
            return None
