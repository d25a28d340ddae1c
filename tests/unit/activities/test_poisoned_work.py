"""Texts that end whoever works on them, through the activities that do: each ends with its reason, and only once."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from activities.assessment.source_assessment import ASSESSED, judge_of
from activities.reading import ReadingActivities
from activities.reporting.render import RENDER, ReportingActivities
from contracts import failures, roles
from contracts.messages import ReadRequest, RenderRequest
from providers.domains import ANYWHERE, Domains
from providers.interfaces import ExtractedDocument
from providers.isolation.pool import SubprocessPool
from providers.storage.sessions import RecordSessionStore
from providers.storage.stored_notebooks import StoredNotebooks
from providers.storage.stored_records import Records
from tests.fakes.killers import CRASH, WALL_SECONDS, PoisonedCalls
from tests.fakes.random_world import whole_change
from tests.fakes.states import PERMITTED
from tests.unit.activities.reporting.memory_store import MemoryStore
from tests.unit.activities.reporting.sample import DOCUMENTS, RESEARCH_ID, Sample
from tests.unit.activities.scripted import (
    MemoryContent,
    environment,
)

TEXT = "Every table must be vacuumed before two billion transactions."
DRAFT = roles.AnalyzerAnswer(findings=[])


@pytest.fixture
async def pool() -> AsyncIterator[SubprocessPool]:
    """One child, for what kills it."""
    async with SubprocessPool(1, wall_seconds=WALL_SECONDS) as started:
        yield started


def poisoned(pool: SubprocessPool, *functions: str, killer: str = CRASH) -> PoisonedCalls:
    """Calls that die of these functions."""
    return PoisonedCalls(pool, lambda function, _: function in functions, killer)


async def failed(work: Any, *arguments: Any) -> ApplicationError:
    """The failure that an activity ends with."""
    with pytest.raises(ApplicationError) as caught:
        await environment().run(work, *arguments)
    return caught.value


async def test_a_report_that_cannot_be_laid_out_is_given_up(pool: SubprocessPool) -> None:
    """The activity ends with its reason, and nothing is stored of the report."""
    sample, store = Sample(), MemoryStore()
    for _, text in DOCUMENTS.values():
        await store.put_text(text)
    state = sample.state()
    assert state.draft is not None
    stored = await store.put_text(sample.draft, "text/markdown")
    state.draft = state.draft.model_copy(update={"document": stored})
    before = dict(store.documents)

    async def skipped_of(_: str, __: str) -> list[Any]:
        return []

    reporting = ReportingActivities(
        store,
        skipped_of,
        "0.1.0",
        poisoned(pool, RENDER),
        RecordSessionStore(Records(Path(), "sessions")),
        StoredNotebooks(store),
    )
    request = RenderRequest(research_id=RESEARCH_ID, change=whole_change(state))
    failure = await failed(reporting.render_report, request)
    assert (failure.type, failure.non_retryable) == (failures.INPUT_UNPROCESSABLE, True)
    assert store.documents == before


async def test_a_page_that_cannot_be_assessed_is_left_out(pool: SubprocessPool) -> None:
    """The kind of the failure is the reason that the source is left out with."""

    class Shelf:
        async def read(
            self, url: str, *, tenant: str = "default", domains: Domains = ANYWHERE, corpus_digest: str = ""
        ) -> ExtractedDocument:
            return ExtractedDocument(url=url, title="t", text=TEXT, raw=b"raw", media_type="text/html")

    content = MemoryContent()
    activities = ReadingActivities(
        Shelf(), content, judge_of(poisoned(pool, ASSESSED), {}.get), StoredNotebooks(content)
    )
    request = ReadRequest(source_id="src-1", url="https://a.test/", permission=PERMITTED)
    failure = await failed(activities.read_source, request)
    assert (failure.type, failure.non_retryable) == (failures.INPUT_UNPROCESSABLE, True)
    assert failure.details == ({"kind": "crash"},)
