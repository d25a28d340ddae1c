"""`doctor`: the report on settings and services, and one read or search as a worker does it."""

import asyncio
import json
import re
import sqlite3
import sys
import threading
import time
from base64 import b64encode
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import pytest
from redis.exceptions import ResponseError
from temporalio.api.worker.v1 import WorkerHeartbeat, WorkerInfo
from temporalio.api.workflowservice.v1 import ListWorkersResponse
from temporalio.service import RPCError, RPCStatusCode

from client.cli.doctor import _check_processes, _check_workers
from client.cli.trials import ADDRESS
from contracts import packages, strategies
from contracts.defects import Defect
from contracts.outcome import RunStatus
from providers.search import declarations
from providers.search.declarations import SearchDeclaration
from providers.shared.day_budget import KEY as DAY_KEY
from providers.shared.run_queue import KEY as QUEUE_KEY
from providers.storage.sessions import SESSIONS, RecordSessionStore
from providers.storage.stored_records import open_records
from tests.fakes import states
from tests.fakes.completions_api import CompletionsApi
from tests.fakes.search_answers import CSE_ID, KEYS, PROVIDERS
from tests.fakes.search_apis import SearchApis
from tests.fakes.valkey import running_valkey
from tests.fakes.web import WebServer, page, redirect
from tests.toy import declared
from tests.toy.roles import TOY
from tests.unit.client.cli.command_line import research, save_run
from workers.shared_state import SHARED_FILE, SPOOL_FOLDER


@pytest.fixture
def no_probe(no_children: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Readers in the process of the test: what they may do is tried by the test that is about it."""
    del no_children
    monkeypatch.setattr("providers.isolation.confinement.probe", lambda paths, port: {"network": True})


@contextmanager
def beside(server: Any) -> Iterator[Any]:
    """Serve from a thread, because a command has a loop of its own."""
    running: Future[Any] = Future()
    loop, ending = asyncio.new_event_loop(), asyncio.Event()

    async def serve() -> None:
        async with server as made:
            running.set_result(made)
            await ending.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    try:
        yield running.result(10)
    finally:
        loop.call_soon_threadsafe(ending.set)
        thread.join(10)
        loop.close()


def checks(**variables: str) -> dict[str, dict[str, str]]:
    return {each["name"]: each for each in json.loads(research("doctor", "--json", **variables).stdout)}


@pytest.mark.usefixtures("no_probe")
def test_the_report_has_a_remedy_for_everything_that_lacks_something(home: Path) -> None:
    """Program, home, settings, model, web search with keys to set, store, server (S0-102)."""
    done = research("doctor")
    assert done.exit_code == 0
    lines = {line.split()[1]: line for line in done.stdout.splitlines() if not line.startswith(" ")}
    assert {"program", "home", "settings", "model", "shared", "server"} <= set(lines)
    assert "tavily: set TAVILY_API_KEY; google: set GOOGLE_API_KEY and GOOGLE_CSE_ID" in done.stdout
    assert "not running; `research run`" in lines["server"]


@pytest.mark.usefixtures("no_probe")
def test_doctor_says_with_which_key_texts_are_encrypted(home: Path, tmp_path: Path) -> None:
    """Off, or on with the ids of the keys, and never a key; a payload is encrypted and read back."""
    assert checks()["encryption"]["found"] == "off: texts of runs are stored as they are"
    keys = [b64encode(bytes([number] * 32)).decode() for number in (1, 2)]
    file = tmp_path / "encryption.toml"
    file.write_text('[encryption]\ncurrent = "new"\n', encoding="utf-8")
    variables = {"RESEARCH_CONFIG": str(file), "RESEARCH_ENCRYPTION_KEYS": f"old={keys[0]},new={keys[1]}"}
    done = research("doctor", "--json", **variables)
    (check,) = (each for each in json.loads(done.stdout) if each["name"] == "encryption")
    assert check["grade"] == "ok"
    assert check["found"] == "AES-256-GCM with the key new; also read: old; texts of before are read"
    assert not any(key in done.stdout + done.stderr for key in keys)


@pytest.mark.usefixtures("no_probe")
def test_doctor_says_whether_browsers_and_the_collector_can_be_reached(home: Path, tmp_path: Path) -> None:
    """With its host and its limit of a day, and without a call; a missing key is named."""
    assert "browser" not in checks()
    file = tmp_path / "browser.toml"
    file.write_text('[web.firecrawl]\nurl = "http://127.0.0.1:9"\npages_per_day = 7\n')
    found_all = checks(RESEARCH_CONFIG=str(file), RESEARCH_TRACING_ENDPOINT="http://127.0.0.1:9")
    tracing = found_all["tracing"]
    assert (tracing["grade"], tracing["found"]) == ("warn", "to 127.0.0.1:9: the connection failed (ConnectError)")
    assert tracing["remedy"].startswith("check tracing.endpoint, RESEARCH_TRACING_HEADER")
    found = found_all["browser"]
    assert (found["grade"], found["remedy"]) == ("warn", "check web.firecrawl.url and the network")
    assert "Firecrawl at 127.0.0.1:9, at most 7 pages a day" in found["found"]


@pytest.mark.usefixtures("no_probe")
def test_doctor_names_the_day_on_which_a_service_ends(home: Path) -> None:
    """Before and after that day, with the provider that takes its place."""
    found = checks(GOOGLE_API_KEY="k", GOOGLE_CSE_ID="x", GOOGLE_BASE_URL="http://127.0.0.1:9")["web search"]
    assert found["grade"] == "warn"
    assert "google: its service " in found["remedy"]
    assert "on 2027-01-01; its successor is vertex_ai_search" in found["remedy"]


@pytest.mark.parametrize(("mode", "grade"), [(0o700, "ok"), (0o775, "warn"), (0o777, "fail")])
@pytest.mark.usefixtures("no_probe")
def test_a_home_that_others_can_change_is_called_so(home: Path, mode: int, grade: str) -> None:
    """The mode and the command that mends it are named."""
    home.mkdir(parents=True, exist_ok=True)
    home.chmod(mode)
    found = checks()["home"]
    assert found["grade"] == grade
    assert (f"{mode:04o}" in found["found"], found["remedy"].startswith("chmod 700")) == (grade != "ok",) * 2


@pytest.mark.skipif(sys.platform != "linux", reason="confinement is Linux's")
def test_what_readers_are_refused_is_tried(home: Path) -> None:
    """A reader tries to reach keys, files, network and processes, and the report says what came of it."""
    found = checks()["readers"]
    assert found["grade"] == "ok"
    assert "refused: keys of its parent, files of the user" in found["found"]


@pytest.mark.usefixtures("no_probe")
def test_an_internal_error_of_a_run_is_listed_with_its_frames(home: Path) -> None:
    """The newest runs that had one, each frame in a line; other runs are not opened."""
    frames = ["workflows/driver.py:7 in step", "tests/toy.py:3 in advance"]
    defect = Defect(error="KeyError", place=frames[-1], frames=frames)
    store = RecordSessionStore(open_records(None, home, SESSIONS))
    for name, defects in (("r-1", [defect]), ("r-2", [])):
        state = states.state(defects=defects).snapshot()
        asyncio.run(store.save(name, json.dumps(state), closed=True))
    found = checks()["defects"]
    assert found["grade"] == "warn"
    assert found["found"].splitlines() == [
        f"r-1: internal error: KeyError at {frames[-1]}",
        *(f"    {one}" for one in frames),
    ]


@pytest.mark.usefixtures("no_probe")
def test_packages_are_loaded_and_named_beside_their_defects(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A strategy and a provider that cannot be loaded fail the check and hide no other; a defect goes to its authors."""
    monkeypatch.setitem(strategies._packages, "toy", "the package toy-strategy 1.0")
    monkeypatch.setitem(packages._packages, "tests", "the package toy-strategy 1.0")
    frames = ["workflows/driver.py:7 in step", "tests/toy/strategy.py:3 in advance"]
    state = states.state(defects=[Defect(error="KeyError", place=frames[-1], frames=frames)]).snapshot()
    store = RecordSessionStore(open_records(None, home, SESSIONS))
    asyncio.run(store.save("r-1", json.dumps(state), closed=True))
    with declared(TOY):
        found = checks()
    assert (found["packages"]["grade"], found["packages"]["found"]) == ("ok", "toy-strategy 1.0")
    assert found["defects"]["found"].startswith(f"r-1: internal error: KeyError at {frames[-1]} of the package toy-str")
    assert found["defects"]["remedy"].startswith(
        "report them to the authors of the package toy-strategy 1.0 with these"
    )
    provider = SearchDeclaration("finder", "Finder", "tests.toy.strategy:Finder", address="http://127.0.0.1:9")
    monkeypatch.setitem(declarations._declared, "finder", provider)
    monkeypatch.setitem(declarations._packages, "finder", "the package finders 2.1")
    with declared(replace(TOY, implementation="tests.toy.strategy:ToyStrategi")):
        found = checks()
    assert found["packages"]["grade"] == "fail"
    misspelt = "the strategy toy of the package toy-strategy 1.0 cannot be loaded: tests/toy/strategy.py has no class"
    assert misspelt in found["packages"]["found"]
    assert "the search provider finder of the package finders 2.1 cannot be loaded" in found["packages"]["found"]
    assert "finder" not in found["web search"]["found"]


@pytest.mark.usefixtures("no_probe")
def test_unfinished_runs_are_named_without_a_server(home: Path) -> None:
    """Nothing works on them until somebody resumes one; a run that ended is not among them."""
    for name, is_closed in (("ended", True), ("waits", False)):
        save_run(home, name, states.state(status=RunStatus.RUNNING), closed=is_closed)
    found = checks()["runs"]
    assert (found["grade"], found["found"]) == ("warn", "interrupted: waits")
    assert "research resume ID" in found["remedy"]


@pytest.mark.usefixtures("no_probe")
def test_a_service_that_does_not_answer_fails_and_hides_no_other(home: Path) -> None:
    """A model endpoint and a Redis that are down are named with a setting to check; no password is printed (F16)."""
    down = {"RESEARCH_MODEL": "m", "ANTHROPIC_BASE_URL": "http://127.0.0.1:1", "TAVILY_API_KEY": "planted key"}
    found = checks(**down, REDIS_URL="redis://:secret@127.0.0.1:1")
    for name, variable in (("model", "ANTHROPIC_BASE_URL"), ("shared", "REDIS_URL")):
        assert (found[name]["grade"], variable in found[name]["remedy"]) == ("fail", True)
    assert "server" in found
    done = research("doctor", **down, REDIS_URL="redis://:planted-password@[bad")
    assert (done.exit_code, "fail shared" in done.stdout) == (1, True)
    assert "tavily: TAVILY_API_KEY holds characters that no key has" in done.stdout
    assert "planted" not in done.output


@pytest.mark.usefixtures("no_probe")
def test_a_damaged_value_that_all_runs_need_is_named_with_its_remedy(home: Path) -> None:
    """Each run would wait for the queue, and each paid call for the money of the day."""
    assert checks()["shared"]["grade"] == "ok"
    for key, what in ((QUEUE_KEY, "the queue of runs"), (DAY_KEY, "the money of the day")):
        with closing(sqlite3.connect(home / SHARED_FILE)) as database, database:
            database.execute("INSERT INTO shared (key, value) VALUES (?, ?)", (key.encode(), b"nonsense"))
        found = checks()["shared"]
        assert (found["grade"], found["found"].startswith(f"{what} in the shared store cannot be read")) == (
            "fail",
            True,
        )
        assert found["remedy"] == f"restore the value of the key {key}, or delete that key to begin without it"
        with closing(sqlite3.connect(home / SHARED_FILE)) as database, database:
            database.execute("DELETE FROM shared WHERE key = CAST(? AS BLOB)", (key,))


@pytest.mark.skipif(sys.platform != "linux", reason="the server's disk is filled with a limit of Linux")
@pytest.mark.usefixtures("no_probe")
def test_a_redis_whose_own_disk_is_full_is_named_with_its_remedy(home: Path, tmp_path: Path) -> None:
    """And how many paid answers of this machine wait for it; with room it is as good as before."""
    (tmp_path / "server").mkdir()
    answers = home / SPOOL_FOLDER
    answers.mkdir(parents=True)
    (answers / f"{'a' * 32}-{'b' * 32}").write_text('{"research_id": "r-1", "answer_key": "k"}\nanswer')
    with running_valkey(tmp_path / "server", "--appendonly", "yes") as server:
        server.fill_disk()
        with suppress(ResponseError):  # the first write is taken, and finds no room
            server.command("SET", "of-others", "x")
        found = checks(REDIS_URL=server.url)["shared"]
        assert found["grade"] == "fail"
        assert "cannot save to its own disk" in found["found"]
        assert found["found"].endswith("calls wait, with 1 paid answer of this machine to be stored")
        assert found["remedy"].startswith("make room on that disk")
        server.free_disk()
        until = time.monotonic() + 20
        while (found := checks(REDIS_URL=server.url)["shared"])["grade"] != "ok":
            assert time.monotonic() < until
    assert found["found"] == "Redis"


def read(*inputs: str, **variables: str) -> tuple[int, list[dict[str, Any]]]:
    options = [part for given in inputs for part in ("--read", given)]
    result = research("doctor", "--json", *options, **variables)
    return result.exit_code, [json.loads(line) for line in result.stdout.splitlines()]


@pytest.mark.usefixtures("no_probe")
def test_a_page_is_read_under_its_final_address(home: Path) -> None:
    """One JSON object a line with the same fields for a page and an error, which the exit code shows, too."""
    pages = {"/old": redirect("/new"), "/new": page("Vacuum removes dead rows.", title="Vacuum")}
    with beside(WebServer(pages)) as server:
        allowed = {"RESEARCH_ALLOW_HOSTS": server.host}
        code, lines = read(server.url("/old"), server.url("/none"), "http://127.0.0.1/", **allowed)
        shown = research("doctor", "--read", server.url("/new"), **allowed).stdout
    assert (code, [line["ok"] for line in lines]) == (4, [True, False, False])
    assert (lines[0]["title"], lines[0]["url"]) == ("Vacuum", server.url("/new"))
    assert lines[0]["content_hash"].startswith("sha256:")
    assert [line["error"]["type"] for line in lines[1:]] == ["not_found", "refused_address"]
    assert {tuple(line) for line in lines} == {tuple(lines[0])}
    assert shown.splitlines()[0].startswith("Vacuum   text/html   ")
    assert "Vacuum removes dead rows." in shown


@pytest.mark.parametrize("given", ["http://10.0.0.1/", "FILE:///etc/hostname", "//127.0.0.1/", "h\nttp://127.0.0.1/"])
def test_a_refused_address_is_never_taken_for_a_file(given: str, home: Path) -> None:
    """Nor is a malformed one or one of another scheme."""
    code, (line,) = read(given)
    assert (code, line["ok"], line["error"]["type"][:8]) == (4, False, "refused_")
    assert not any(map(ADDRESS.match, ["a.md", "./a: b.md", "/tmp/x:y.md", "c:\\x.md", "../x", "a/b:c.md"]))


def test_a_provider_is_asked_one_query(home: Path) -> None:
    """Rank, title and address for people, the whole response for programs; a failure is one line (X-16)."""
    query = ("doctor", "--search", "backups", "--provider", "brave")
    with beside(SearchApis()) as server:
        brave = {"BRAVE_API_KEY": KEYS["brave"], "BRAVE_BASE_URL": server.url("brave")}
        shown, given = research(*query, **brave), research(*query, "--json", **brave)
    assert " 2. Result number 1   https://site-1.example/page?id=1" in shown.stdout
    assert "hits" in shown.stderr
    assert [hit["rank"] for hit in json.loads(given.stdout)["hits"]][:2] == [1, 2]
    with beside(SearchApis("401")) as server:
        refused = research(*query, **brave | {"BRAVE_BASE_URL": server.url("brave")})
    assert (refused.exit_code, refused.stdout, refused.stderr.count("\n")) == (2, "", 1)
    assert "see BRAVE_API_KEY" in refused.stderr
    assert KEYS["brave"] not in refused.stderr


def test_every_provider_is_tried_once(home: Path) -> None:
    """One line each: what it found, or its failure with what to do; the others are tried all the same."""
    names = [name for name in PROVIDERS if name not in ("anthropic", "vertex_ai_search")]
    with beside(SearchApis()) as server:
        variables = {f"{name.upper()}_API_KEY": key for name, key in KEYS.items() if name in names}
        variables |= {f"{name.upper()}_BASE_URL": server.url(name) for name in names if name != "searxng"}
        variables |= {"SEARXNG_URL": server.url("searxng"), "GOOGLE_CSE_ID": CSE_ID}
        variables |= {"OPENALEX_API_KEY": "planted-wrong-key"}
        tried = research("doctor", "--search", "backups", **variables)
        given = research("doctor", "--search", "backups", "--json", **variables)
    lines = {line.split()[1]: line for line in tried.stdout.splitlines() if line.startswith(("ok", "fail"))}
    assert set(lines) == set(names)
    assert "10 hits" in lines["arxiv"]
    assert "0.0070 USD" in lines["exa"]
    assert "refuses the key" in lines["openalex"]
    assert "see OPENALEX_API_KEY" in lines["openalex"]
    assert "→ correct the variable that is named" in tried.stdout
    assert tried.exit_code == 1
    assert {check["name"]: check["grade"] for check in json.loads(given.stdout)} == dict.fromkeys(names, "ok") | {
        "openalex": "fail"
    }
    assert "planted" not in tried.stdout + tried.stderr + given.stdout
    assert sum(asked.provider == "crossref" for asked in server.asked) == 2


class Faulty:
    """A provider of a package, with a defect."""

    name = "finder"

    def __init__(self, *_: object) -> None:
        """Take what every provider is given."""

    async def search(self, request: object) -> object:
        """Fail."""
        raise KeyError("a secret")


class Odd(Faulty):
    """One that answers with something else."""

    async def search(self, request: object) -> object:
        """Answer with a list."""
        return []


@pytest.mark.parametrize(
    ("kind", "problem"),
    [
        ("Faulty", r"fails: KeyError at tests/\S+test_doctor\.py:\d+"),
        ("Odd", "fails: TypeError.*: it answers with list"),
    ],
)
def test_a_defect_of_a_package_is_one_line(
    home: Path, monkeypatch: pytest.MonkeyPatch, kind: str, problem: str
) -> None:
    """With the package, its line and what helps, as every failure of a search; a traceback is for our own defects."""
    declared = SearchDeclaration("finder", "Finder", f"{__name__}:{kind}", address="https://finder.example")
    monkeypatch.setitem(declarations._packages, "finder", "the package finders 2.1")
    monkeypatch.setitem(declarations._declared, "finder", declared)
    sys.modules.setdefault(__name__, sys.modules[test_a_defect_of_a_package_is_one_line.__module__])
    whole = f"the search provider finder of the package finders 2.1 {problem}.*; mend or remove the package"
    own = home.parent / "own.toml"
    own.write_text('[search]\nproviders = ["finder"]')
    every = research("doctor", "--search", "backups", RESEARCH_CONFIG=str(own))
    assert every.exit_code == 1
    assert re.search(rf"fail finder +{whole}", every.stdout)
    one = research("doctor", "--search", "backups", "--provider", "finder")
    assert one.exit_code == 2
    assert re.fullmatch(rf"research: {whole}\n", one.stderr)
    assert "secret" not in every.stdout + one.stderr


@pytest.mark.usefixtures("no_probe")
def test_a_folder_is_searched_and_listed(home: Path) -> None:
    """Its index is made first; `corpus` lists, describes and removes it, and the documents stay."""
    folder = home.parent / "manual"
    folder.mkdir()
    (folder / "vacuum.md").write_text("# Vacuum\n\nVacuum removes dead rows.\n")
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7\nnothing")
    footer = "<footer>All of this may be copied.</footer>"
    (folder / "page.html").write_text(f"<html><body><p>Rows are dead when nobody sees them.</p>{footer}</body></html>")
    found = research("doctor", "--search", "dead rows", "--corpus", str(folder))
    assert "corpus:manual/vacuum.md" in found.stdout
    assert "2 documents, 1 skipped" in research("corpus", "list").stdout
    status = json.loads(research("corpus", "status", "manual", "--json").stdout)
    assert [entry["path"] for entry in status["skipped_files"]] == ["broken.pdf"]
    missing = "54% of the words are read; not read: footers (6)"
    assert status["warnings"] == [["page.html", missing]]
    assert f"  warning page.html  {missing}\n" in research("corpus", "status", "manual").stdout
    assert research("corpus", "add", str(folder), "--quiet").stdout.startswith("manual: 2 documents")
    (index,) = home.rglob("manual.sqlite3")
    with closing(sqlite3.connect(index)) as database, database:
        database.execute("UPDATE meta SET value = '99.9 x' WHERE key = 'identity'")
    newer = "the index manual.sqlite3 has the format 99.9, and this version of the product reads "
    assert f"manual               {newer}" in research("corpus", "list").stdout
    assert newer in research("corpus", "add", str(folder)).stderr
    index.unlink()
    assert "manual               not indexed yet" in research("corpus", "list").stdout
    assert "its documents stay" in research("corpus", "remove", "manual").stdout
    assert (folder / "vacuum.md").exists()
    assert "there is no corpus yet" in research("corpus", "list").stderr


@pytest.mark.parametrize(("marks", "grade"), [(("a", "a", "a+run"), "ok"), (("a", "b"), "warn"), ((), "warn")])
async def test_workers_with_different_settings_are_found(marks: tuple[str, ...], grade: str) -> None:
    """Otherwise it is chance which of them a run is resolved by."""
    polled = AsyncMock(polled_by=AsyncMock(return_value=[f"records-1@host/{mark}" for mark in marks]))
    check = await _check_workers(polled)
    assert (check.grade, "different settings" in check.remedy) == (grade, marks == ("a", "b"))


def heartbeat(queue: str, process: str, used: int, free: int, *, silent: int = 2) -> WorkerInfo:
    """What a server lists of a worker that sent its last heartbeat so many seconds ago."""
    worker = WorkerHeartbeat(task_queue=queue)
    worker.host_info.host_name = "host-a"
    worker.host_info.process_id = process
    worker.elapsed_since_last_heartbeat.FromSeconds(silent)
    worker.activity_task_slots_info.current_used_slots = used
    worker.activity_task_slots_info.current_available_slots = free
    return WorkerInfo(worker_heartbeat=worker)


async def test_processes_and_their_places_are_listed_where_the_server_knows_them() -> None:
    """Two processes of a pool are added up; one that is silent for three heartbeats and queues of others are not."""
    listed = [
        heartbeat("research-models", "7", 1, 3),
        heartbeat("research-models", "8", 4, 0),
        heartbeat("research-reading", "7", 2, 30),
        heartbeat("research-search", "9", 5, 5, silent=46),
        heartbeat("of-somebody-else", "10", 1, 1),
    ]
    client = AsyncMock()
    client.temporal.namespace = "default"
    client.temporal.workflow_service.list_workers.return_value = ListWorkersResponse(workers_info=listed)
    check = await _check_processes(client)
    assert check is not None
    assert check.found == "2 on host-a; places in use: models 5 of 8, reading 2 of 32"
    client.temporal.workflow_service.list_workers.side_effect = RPCError("", RPCStatusCode.UNIMPLEMENTED, b"")
    assert await _check_processes(client) is None


@pytest.mark.usefixtures("no_probe")
def test_the_protocol_and_the_real_window_of_a_model_are_named(home: Path) -> None:
    """A server of one's own is asked, for nothing, before it gets a call."""
    models = [{"id": "gemma", "meta": {"n_ctx": 4_096, "n_ctx_train": 32_768}}]
    with beside(CompletionsApi(models=models)) as api:
        model = checks(RESEARCH_MODEL="gemma", OPENAI_BASE_URL=f"{api.base_url}/v1")["model"]
    assert "chat completions; gemma has a window of 4,096 tokens, trained with 32,768" in json.dumps(model)
    assert api.calls == []
