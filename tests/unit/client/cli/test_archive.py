"""The archive of content that models were not shown: real calls write it, commands read it, retention removes it."""

import asyncio
import json
import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from contracts import roles
from contracts.addresses import digest
from contracts.evidence import Source
from contracts.state import EvidenceState, ResearchState, WorkState
from contracts.tokens import CallFidelity, TokenSettings
from contracts.vocabulary import RunStatus
from providers.models.endpoints import EndpointCapabilities
from providers.storage.content import ObstoreContentStore, name_of
from providers.storage.content_archive import RecordArchive
from providers.storage.sessions import SESSIONS, RecordSessionStore
from providers.storage.stored_records import open_records
from tests.every_strategy.joined import begin_trial
from tests.fakes.corpus import MemoryCorpus
from tests.fakes.messages_api import MessagesApi
from tests.fakes.model_engine import engine_for
from tests.fakes.model_tokens import TokenBook
from tests.fakes.world import model_world
from tests.unit.activities.scripted import analyze_input, environment, reference, role_activities, source
from tests.unit.client.cli.command_line import make_old, research, save_run
from workers import retention
from workers.settings.loading import Flags, load_settings
from workers.shared_state import open_shared_state

PROSE = "Vacuum prevents transaction ID wraparound by freezing old rows in every table that it visits. " * 60
TEXTS = [f"Source {number}.\n\n{PROSE}" for number in range(12)]
ON = TokenSettings(allow_content_dropping=True, content_archive_enabled=True)


def analyze(
    home: Path, research_id: str = "r-1", tokens: TokenSettings = ON, archive: Path | None = None, window: int = 10_240
) -> CallFidelity:
    """Have twelve long pages analyzed through a small window; the account of the content."""

    async def work() -> Any:
        own, content = {"default": EndpointCapabilities(window=window)}, ObstoreContentStore(home / "content")
        async with MessagesApi(book=TokenBook(window=window)) as api, engine_for({"default": api}, own=own) as engine:
            activities = role_activities(engine, content, archive=RecordArchive(None, home, archive))
            stored = [await content.put_text(text) for text in TEXTS]
            sources = [
                source(text, id=f"src-{number:010d}", title=f"Page {number}", url=f"https://example.org/{number}")
                for number, text in enumerate(stored)
            ]
            request = analyze_input(sources, research_id=research_id, tokens=tokens)
            first = await environment().run(activities.run, roles.ANALYZER, request)
            again = await environment().run(activities.run, roles.ANALYZER, request)  # as a retry does
        assert again.account.content == first.account.content
        return first.account.content

    return asyncio.run(work())


def records(folder: Path) -> dict[str, dict[str, Any]]:
    """The records of a folder by the digits of their names."""
    return {path.stem: json.loads(path.read_text()) for path in folder.glob("*.json")}


def save(home: Path, research_id: str) -> None:
    """Store a run that is over and has read the pages, long ago."""
    sources = {
        str(number): Source(id=str(number), url="https://host/", title="x", provider="web", text=reference(text))
        for number, text in enumerate(TEXTS)
    }
    save_run(
        home,
        research_id,
        ResearchState(work=WorkState(status=RunStatus.COMPLETED), evidence=EvidenceState(sources=sources)),
        closed=True,
    )
    make_old(home, research_id)


def stored(home: Path) -> set[str]:
    """Hashes of the pages that the content store has."""
    references = [reference(text) for text in TEXTS]
    return {one.hash for one in references if (home / "content" / name_of(one)).exists()}


async def sweep_until_empty(home: Path) -> None:
    """Let a worker sweep by itself until no page is left."""
    settings = load_settings()
    async with open_shared_state(settings) as shared:
        sessions = RecordSessionStore(open_records(None, home, SESSIONS))
        content, archive = ObstoreContentStore(home / "content"), RecordArchive(None, home)
        swept = retention.Retention(sessions, content, shared.calls, None, archive, sole=True)
        task = asyncio.create_task(retention.sweep_periodically(swept, settings.retention_days, shared.store))
        async with asyncio.timeout(60):
            while stored(home):
                await asyncio.sleep(0.01)
        task.cancel()


def move_clock(monkeypatch: pytest.MonkeyPatch, hours: float) -> None:
    """Let retention believe that it is so much later."""

    class Later(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:
            return datetime.now(tz) + timedelta(hours=hours)

    monkeypatch.setattr(retention, "datetime", Later)


def test_what_a_call_does_not_show_is_archived(home: Path, tmp_path: Path) -> None:
    """Each dropped item, and each below compressed, has a record named by its hash (S0-161, S0-162, S0-163, C0-19)."""
    content = analyze(home)
    found = records(home / "archive")
    assert {f"sha256:{name}" for name in found} == set(content.archived)
    assert {one["item_id"] for one in found.values() if one["archive_reason"] == "dropped"} == set(content.dropped)
    assert {one["archive_reason"] for one in found.values()} <= {
        "dropped",
        "compressed to headline",
        "compressed to key_points",
    }
    assert 5 < len(content.dropped) <= len(found)
    smaller = analyze(tmp_path / "other", window=12_000)
    assert 5 < len(smaller.dropped) == len(smaller.archived) <= smaller.shortened
    for name, one in found.items():
        number = int(one["item_id"][-2:])
        assert one["content_hash"] == one["content"]["hash"] == digest(TEXTS[number]) == f"sha256:{name}"
        assert one["item_type"] == "source"
        assert one["original_tokens"] > 100
        assert one["metadata"] == {"url": f"https://example.org/{number}", "title": f"Page {number}"}
        assert list(one["runs"]) == ["r-1"]
        age = datetime.fromisoformat(one["runs"]["r-1"]) - datetime.fromisoformat(one["archived_at"])
        assert age == timedelta(hours=168)


def test_the_archive_is_off_by_default(home: Path) -> None:
    """Whatever is dropped: no record, no folder, and the list names the setting (S0-144, S0-179)."""
    content = analyze(home, tokens=TokenSettings(allow_content_dropping=True))
    assert content.dropped
    assert (content.archived, (home / "archive").exists()) == ([], False)
    assert research("archive", "list", "--json").stdout == "[]\n"
    assert "`tokens.content_archive_enabled` of research.toml switches" in research("archive", "list").stderr
    assert research("archive", "verify").exit_code == 0


def test_archived_content_is_listed_restored_and_verified(home: Path, tmp_path: Path) -> None:
    """By a beginning of its hash; a damaged record or text is named and harms nothing else (S0-164)."""
    content = analyze(home)
    listed = json.loads(research("archive", "list", "--json").stdout)
    assert {one["content_hash"] for one in listed} == set(content.archived)
    lines = research("archive", "list").stdout.splitlines()
    assert len(lines) == len(listed)
    assert all(
        re.match(r"[0-9a-f]{12}  .* (dropped|compressed to headline) +\d+ tokens  Page \d", line) for line in lines
    )
    digits = [identity.removeprefix("sha256:") for identity in content.archived]
    shown = json.loads(research("archive", "show", digits[0][:12].upper()).stdout)
    assert shown["content_hash"] == content.archived[0]
    out = tmp_path / "out" / "page.txt"
    assert research("archive", "restore", content.archived[0], "--out", str(out)).exit_code == 0
    assert digest(out.read_text()) == content.archived[0]
    assert research("archive", "verify").exit_code == 0
    (home / "content" / digits[0][:2] / digits[0][2:]).write_text("other words")
    (home / "archive" / f"{digits[1]}.json").write_text("{}")
    for command in (["restore", digits[0], "--out", str(out)], ["show", digits[1]]):
        done = research("archive", *command)
        assert (done.exit_code, f"sha256:{command[1]}" in done.stderr) == (4, True)
    verified = research("archive", "verify")
    assert verified.exit_code == 1
    assert {line.split(": ")[0] for line in verified.stdout.splitlines()} == set(content.archived[:2])
    assert "2 damaged" in verified.stderr
    assert len(json.loads(research("archive", "list", "--json").stdout)) == len(listed) - 1
    assert len(records(home / "archive")) == len(listed)
    for given in ("", "xyz"):
        done = research("archive", "show", given)
        assert (done.exit_code, "is not archived" in done.stderr) == (2, True)


def test_archived_texts_outlive_their_run_until_their_time_is_over(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that goes by its age leaves them; the sweep removes what has expired, by itself (S0-145, S0-164)."""
    content = analyze(home)
    save(home, "r-1")
    assert "removed 1 run older" in research("delete", "--older-than", "1", "--yes").stdout
    assert stored(home) == set(content.archived)
    assert research("archive", "verify").exit_code == 0
    move_clock(monkeypatch, 167.9)
    assert research("delete", "--older-than", "1", "--yes").exit_code == 0
    assert stored(home) == set(content.archived)
    move_clock(monkeypatch, 168.1)
    asyncio.run(sweep_until_empty(home))
    assert records(home / "archive") == {}


def test_what_has_expired_is_removed_when_the_archive_is_looked_at(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No worker has to run for it; the commands say how many, and the texts are gone with their records (S0-164)."""
    content = analyze(home)
    save(home, "r-1")
    assert "removed 1 run older" in research("delete", "--older-than", "1", "--yes").stdout
    move_clock(monkeypatch, 168.1)
    listed = research("archive", "list")
    assert (listed.exit_code, listed.stdout) == (0, "")
    assert f"{len(content.archived)} records expired and were removed" in listed.stderr
    assert (records(home / "archive"), stored(home)) == ({}, set())
    assert "is not archived" in research("archive", "show", content.archived[0]).stderr


def test_a_run_that_is_deleted_by_name_takes_its_records_along(home: Path) -> None:
    """What another run archived as well stays for that one."""
    analyze(home, "r-1")
    content = analyze(home, "r-2", ON.model_copy(update={"runtime_overhead": 0}))
    for research_id in ("r-1", "r-2"):
        save(home, research_id)
    assert research("delete", "r-1", "--yes").exit_code == 0
    found = records(home / "archive")
    assert {one["content_hash"] for one in found.values()} == set(content.archived)
    assert "r-1" not in "".join(path.read_text() for path in (home / "archive").glob("*.json"))
    assert research("delete", "r-2", "--yes").exit_code == 0
    assert (records(home / "archive"), stored(home)) == ({}, set())


def test_two_homes_share_a_folder(home: Path, tmp_path: Path) -> None:
    """Each verifies and deletes its own; `research_archive_dir` may be relative to its file (S0-146)."""
    file, other = tmp_path / "research.toml", tmp_path / "other"
    file.write_text("[tokens]\nresearch_archive_dir = 'shared'\n")
    given = ("--config", str(file))
    assert load_settings(Flags(config=file)).tokens.research_archive_dir == tmp_path / "shared"
    content = analyze(home, "same", archive=tmp_path / "shared")
    analyze(other, "same", archive=tmp_path / "shared")
    assert len(records(tmp_path / "shared")) == len(content.archived)
    save(other, "same")
    assert research("delete", "same", "--yes", *given, RESEARCH_HOME=str(other)).exit_code == 0
    assert research("archive", "verify", *given).exit_code == 0
    assert stored(home) >= set(content.archived)
    verified = research("archive", "verify", *given, RESEARCH_HOME=str(other))
    assert (verified.exit_code, f"{len(content.archived)} of other homes" in verified.stderr) == (0, True)
    done = research(
        "archive", "restore", content.archived[0], "--out", str(tmp_path / "x"), *given, RESEARCH_HOME=str(other)
    )
    assert (done.exit_code, "another home" in done.stderr) == (4, True)


@pytest.mark.parametrize("writable", [True, False])
async def test_the_report_of_a_run_names_what_is_archived(home: Path, *, writable: bool) -> None:
    """By its hashes; where the archive cannot be written the run goes on, and its report says so once (S0-162)."""
    if not writable:
        (home / "archive").write_text("a file")
    tokens = ON.model_copy(update={"model_context_overrides": {"test-model": 11_000}})
    limits = {"max_iterations": 1, "max_sources_per_query": 20}
    async with MessagesApi() as api:
        corpus = MemoryCorpus({f"page-{number}.md": text for number, text in enumerate(TEXTS)})
        world = model_world(home, api.base_url, corpus, tokens=tokens)
        try:
            world.archive = RecordArchive(None, home)
            trial = await begin_trial(world, "supervisor", depth="extended", limits=limits)
            await trial.conduct()
            report = await trial.document()
        finally:
            await world.close()
    hashes = [f"sha256:{name}" for name in records(home / "archive")] if writable else []
    assert report["fidelity"]["dropped_content_ids"]
    assert sorted(report["fidelity"]["content_archive_hashes"]) == sorted(hashes)
    notes = [note for note in report["degraded"] if "archive" in note]
    assert [writable] == [not notes] == [bool(hashes)]
    assert all("tokens.research_archive_dir" in note for note in notes)
    assert len(notes) < 2


@pytest.mark.usefixtures("home")
def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """The doctor and the commands of the archive name the setting."""
    blocked, file = tmp_path / "blocked", tmp_path / "research.toml"
    blocked.write_text("a file")
    file.write_text(f"[tokens]\ncontent_archive_enabled = true\nresearch_archive_dir = '{blocked}'\n")
    checks = json.loads(research("doctor", "--json", "--config", str(file)).stdout)
    (check,) = [check for check in checks if check["name"] == "archive"]
    assert (check["grade"], "tokens.research_archive_dir" in check["remedy"]) == ("fail", True)
    done = research("archive", "list", "--config", str(file))
    assert (done.exit_code, "tokens.research_archive_dir" in done.stderr) == (2, True)
