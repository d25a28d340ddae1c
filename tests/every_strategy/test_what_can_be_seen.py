"""In every strategy: the record of a run names all that was found, read and stored, and a failure before it ends."""

from pathlib import Path

import pytest

from activities.reporting.references import addresses_of
from contracts.evidence import Candidate, DocumentRef
from contracts.outcome import Ending
from contracts.protected_sources import NAMED
from contracts.request import Limits
from contracts.vocabulary import Outcome, SourceStatus
from providers.errors import SourceUnreadable
from tests.every_strategy.joined import NAMES, Trial, trial_of, undisturbed, units_of, whole_run
from tests.fakes import states
from tests.fakes.corpus import MemoryCorpus
from tests.fakes.world import READ_AT
from workflows.rules.sub_queries import pass_over_unread


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", NAMES)
async def test_hits_without_room_are_listed_and_counted(tmp_path: Path, name: str) -> None:
    """With a cap of one source over the run every other page that was found is a source that was not fetched; those
    that were read say when, of what kind they were, and which stored files they have
    (C2-10, S2-004, S2-011, S2-012, S2-035, S2-051).
    """
    corpus = MemoryCorpus()
    async with trial_of(tmp_path, name, corpus=corpus, limits=Limits(max_sources=1)) as trial:
        await trial.conduct()
        state, document = await trial.world.notebooks.complete_state(trial.state), await trial.document()
        unread = {source.url for source in state.evidence.sources.values() if source.status is SourceStatus.NOT_FETCHED}
        assert {source.url: source.title for source in state.evidence.sources.values()} == corpus.found
        assert len(corpus.reads) == 1 < len(corpus.found)
        assert unread == corpus.found.keys() - set(corpus.reads)
        assert state.work.result.counts.not_fetched == len(unread)
        by_url = {source["url"]: source for source in document["sources"]}
        assert {by_url[url]["status"] for url in unread} == {"not_fetched"}
        files = {file["file_id"]: file for file in document["artifacts"]}
        for url in corpus.reads:
            read = by_url[url]
            assert trial.state.evidence.sources[read["id"]].media_type == read["media_type"]
            assert (read["retrieved_at"], read["media_type"]) == (READ_AT.isoformat(), "text/markdown")
            assert set(read["notes"]) <= {finding["id"] for finding in document["findings"]}
            assert files[read["file_id"]]["source_url"] == url
        assert [by_url[url]["retrieved_at"] for url in unread] == [None] * len(unread)
        for file_id in files:
            assert await trial.world.content.get_text(DocumentRef(hash=file_id))


class HeavyCorpus(MemoryCorpus):
    """A corpus whose first document is beyond the limit of a reader."""

    heavy = ""

    async def read(self, url: str):
        self.heavy = self.heavy or url
        if url == self.heavy:
            raise SourceUnreadable("too_large", "the document is too large")
        return await super().read(url)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", NAMES)
async def test_a_document_beyond_a_limit_costs_itself_alone(tmp_path: Path, name: str) -> None:
    """It is a failed source with its reason and without a file, and the run goes on to its report (S2-050)."""
    corpus = HeavyCorpus()
    async with trial_of(tmp_path, name, corpus=corpus) as trial:
        await trial.conduct()
        document = await trial.document()
    failed = [source for source in document["sources"] if source["status"] == "failed"]
    assert [(source["url"], source["status_reason"]) for source in failed] == [(corpus.heavy, "too_large")]
    assert {file["source_url"] for file in document["artifacts"]} == set(corpus.reads) - {corpus.heavy}
    assert document["findings"]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", NAMES)
async def test_a_failure_is_stated_before_the_end(tmp_path: Path, name: str) -> None:
    """A run without a report, because none is wanted after the deadline, keeps its session and has a status of the level
    error, once, before it ends; one with a report has none (S2-041).
    """

    def errors(trial: Trial) -> list[str]:
        return [event.text for event in trial.state.people.events if event.data.get("level") == "error"]

    whole = await whole_run(tmp_path / "whole", name)
    assert errors(whole) == []
    async with trial_of(tmp_path, name, on_deadline="abort") as trial:
        trial.host.acts[units_of(whole)[-1], 1] = trial.run_out_of_time
        assert await trial.conduct() is Outcome.TIMED_OUT
        assert await trial.world.sessions.load("r-unit")
    assert (trial.state.work.result, trial.state.evidence.citations) == (None, [])
    stated, ended = trial.state.people.events[-2:]
    assert errors(trial) == [stated.text] == [ended.text]
    assert (stated.type, ended.type) == ("status", "run.finished")


def test_a_page_that_was_read_or_excluded_is_not_listed() -> None:
    """Under whatever address or DOI it was found; while a run goes on none is, so that a resumed one may read it
    (C2-10).
    """
    known = states.source("https://e.org/read", aliases=["https://e.org/short"], doi="10.1000/a")
    state = states.state(sources=states.sources(known))
    state.work.resolved = state.work.resolved.model_copy(update={"exclude": ["forbidden"]})
    urls = ("short", "left?utm_source=x", "left", "later", "same")
    found = [states.hit(f"https://e.org/{name}", rank) for rank, name in enumerate(urls, start=1)]
    found[-1] = found[-1].model_copy(update={"doi": "10.1000/a"})
    state.evidence.candidates = [Candidate(sub_query_id=f"sq-{hit.rank}", hit=hit) for hit in found]
    pass_over_unread(state)
    forbidden = states.hit("https://e.org/not", 1).model_copy(update={"title": "A forbidden page"})
    state.evidence.candidates = [Candidate(sub_query_id="sq-5", hit=forbidden)]
    assert (state.not_fetched(), state.counts().not_fetched) == ({}, 0)
    ended = {"outcome": "completed", "stop_reason": "no_open_gaps", "completeness": "full", "ended_at": ""}
    state.work.ending = Ending.model_validate(ended)
    assert [(source.url, source.sub_query_ids) for source in state.not_fetched().values()] == [
        ("https://e.org/left?utm_source=x", ["sq-2"]),
        ("https://e.org/later", ["sq-4"]),
    ]
    assert state.counts().not_fetched == 2


def test_an_unread_page_is_no_address_of_a_report() -> None:
    """A page could send a reader there; one that the request names may be named."""
    read, unread, named = (states.source(f"https://e.org/{name}") for name in ("read", "unread", "named"))
    not_fetched = {"status": SourceStatus.NOT_FETCHED}
    sources = [
        read,
        unread.model_copy(update=not_fetched),
        named.model_copy(update=not_fetched | {"provider": NAMED}),
    ]
    assert addresses_of(sources) == [read.url, named.url]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", NAMES)
async def test_a_question_of_one_word_is_searched_for_as_it_is(tmp_path: Path, name: str) -> None:
    """Also without a model, and where all documents have the word: passages are shown, none is asked for more words."""
    trial = await undisturbed(tmp_path, name, query="vacuum")
    assert "vacuum" in [query.text for query in trial.state.searches()]
    assert trial.state.work.result.outcome is Outcome.COMPLETED
    assert trial.state.evidence.citations
