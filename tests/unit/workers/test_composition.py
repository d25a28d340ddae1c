"""From the configuration to what the pools run, and to what all workers share."""

import asyncio
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from activities.reporting.render import _load_template
from activities.roles.prompt_files import TEMPLATES, load_prompt, prompt_of
from contracts.names import POOLS
from contracts.request import Depth
from contracts.roles import PLANNER
from contracts.strategies import declared_roles
from providers.isolation.pool import SubprocessPool
from providers.models.answers import schema_text
from providers.shared.answer_spool import AnswerSpool, ReservedRoom
from providers.shared.paid_calls import CallLease, CallStore
from tests.fakes.shared_stores import MemorySharedStore, away
from tests.fakes.world import ACTIVITIES
from workers import composition
from workers.composition import compose, configuration_of, prepare_rendering, prepare_roles
from workers.settings.loading import Settings
from workers.settings.sections import UNVERSIONED, FileSettings, WorkersSettings
from workers.shared_state import ROOM_FILE, SHARED_FILE, SPOOL_FOLDER, SharedState, open_shared_state

NO_CLIENT: Any = None
"""Composing keeps the client for later questions and does not use it."""
CLUSTER = {"TEMPORAL_ADDRESS": "elsewhere:7233"}


def settings(home: Path, **values: Any) -> Settings:
    workers = WorkersSettings(build_id=UNVERSIONED)
    return Settings(home=home, temporal_variables=CLUSTER, workers=workers, **values)


async def test_every_activity_is_on_exactly_one_pool(tmp_path: Path) -> None:
    """All roles and all other signatures have an implementation, each once."""
    async with compose(settings(tmp_path), NO_CLIENT) as contents:
        names = [implementation.__name__ for pool in contents.activities.values() for implementation in pool]
    expected = [role.activity for role in declared_roles()] + [spec.name for spec in ACTIVITIES]
    assert sorted(names) == sorted(expected)
    assert {"workflows", *contents.activities} == set(POOLS)
    assert contents.workflows


async def test_roles_are_prepared_before_their_first_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker loads prompt, schema and shared parts for every role of the product; a package's faulty prompt stays out."""
    monkeypatch.setattr(composition, "PREPARED_AFTER_SECONDS", 0.0)
    monkeypatch.setattr(composition, "PREPARING_PAUSE_SECONDS", 0.0)
    strange = replace(PLANNER, name="strange", module="json.decoder")
    monkeypatch.setattr(composition, "declared_roles", lambda: [strange, *declared_roles()])
    load_prompt.cache_clear()
    schema_text.cache_clear()
    assert TEMPLATES.cache is not None
    TEMPLATES.cache.clear()
    await prepare_roles()
    assert {name for _, name in TEMPLATES.cache} == set(TEMPLATES.list_templates())
    loaded, schemas = load_prompt.cache_info(), schema_text.cache_info()
    for role in declared_roles():
        prompt_of(role)
        if not role.plain_text:
            schema_text(role.answer)
    assert load_prompt.cache_info().misses == loaded.misses >= len(declared_roles())
    assert schema_text.cache_info().misses == schemas.misses > 0


@pytest.mark.usefixtures("no_children")
async def test_a_child_loads_what_a_report_needs_while_the_first_run_waits() -> None:
    """Not before a run waits for its model, so that a worker without work has no child."""
    _load_template.cache_clear()
    begun = asyncio.Event()
    async with SubprocessPool(1) as children:
        preparing = asyncio.create_task(prepare_rendering(children, begun))
        await asyncio.sleep(0)
        assert not _load_template.cache_info().misses
        begun.set()
        await preparing
    assert _load_template.cache_info().misses == 1


async def test_a_child_that_cannot_start_ends_no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rendering tries again, and says what is wrong."""
    begun = asyncio.Event()
    begun.set()
    async with SubprocessPool(1) as children:
        monkeypatch.setattr(sys, "executable", "/nowhere/python")
        await prepare_rendering(children, begun)


def test_presets_and_hooks_reach_the_workflow_by_the_configuration(tmp_path: Path) -> None:
    """`prepare_research` resolves by what an operator wrote."""
    file = FileSettings.model_validate(
        {
            "hooks": {"audit": {"activity": "look", "task_queue": "ours"}},
            "strategy": {"supervisor": {"auto": {"max_iterations": 2}}},
        }
    )
    configuration = configuration_of(settings(tmp_path, hooks=file.hooks, strategy=file.strategy), NO_CLIENT)
    assert configuration.hooks["audit"].task_queue == "ours"
    assert configuration.presets["supervisor", Depth.MEDIUM].max_iterations == 2
    assert len(configuration.presets) == 1


async def journalled(state: SharedState, key: str) -> str | None:
    """Make a call through the journal; its answer if it was made before."""
    begun = await state.calls.begin(key, "r-1", 60.0)
    if isinstance(begun, str):
        return begun
    await state.calls.finish(begun, f"answer of {key}")
    return None


async def test_workers_of_a_machine_share_a_file(tmp_path: Path) -> None:
    """Calls and limits are in one file of RESEARCH_HOME, the journal durably (invariant 12)."""
    async with open_shared_state(settings(tmp_path)) as one, open_shared_state(settings(tmp_path)) as other:
        assert await journalled(one, "k") is None
        assert await journalled(other, "k") == "answer of k"
        await one.store.swap("limit", None, b"1")
        assert (await other.store.get("limit")).value == b"1"
    assert (tmp_path / SHARED_FILE).is_file()
    async with open_shared_state(settings(tmp_path)) as again:
        assert await journalled(again, "k") == "answer of k"


async def test_answers_of_an_ended_worker_reach_the_store(tmp_path: Path) -> None:
    """What the store refused while that worker lived is written by the next one that starts, without any call."""
    room = ReservedRoom(tmp_path / ROOM_FILE)
    ended = CallStore(away(), MemorySharedStore(), spool=AnswerSpool(tmp_path / SPOOL_FOLDER, room))
    lease = CallLease("r-1", "calls/r-1/answer/k", "calls/r-1/lease/k", b"x")
    await ended.finish(lease, "answer of k")
    async with open_shared_state(settings(tmp_path)) as state, asyncio.timeout(20):
        while state.spool.waiting():
            await asyncio.sleep(0.01)
        assert (await state.store.get(lease.answer_key)).value == b"answer of k"


@pytest.mark.parametrize(
    ("url", "place"),
    [
        (None, "{home}/sessions"),
        ("{home}/documents", "{home}/sessions"),
        ("s3://key:secret@bucket/research/?region=eu", "s3://bucket/research/sessions"),
    ],
)
def test_front_ends_get_the_place_of_sessions_and_no_credentials(tmp_path: Path, url: str | None, place: str) -> None:
    """The folder or the store that sessions are written to (S2-054)."""
    settings = Settings(home=tmp_path, content_url=url and url.format(home=tmp_path))
    assert configuration_of(settings).collection == place.format(home=tmp_path)
