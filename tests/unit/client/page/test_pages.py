"""What the pages say of stored runs: the list, a run, its sources, and two reports side by side."""

import json
import re
from pathlib import Path

import httpx2
import pytest
from pydantic import SecretStr

from client.assistants.runs import Desk
from client.cli.context import open_context
from client.cli.output import CommandError
from client.page.desk import Facts, PageDesk
from client.page.views import compare_texts, from_markdown, pieces_of, with_passages, with_places
from contracts.evidence import Evidence
from contracts.resolved import FollowUp
from contracts.vocabulary import RunStatus
from providers.certificates import trusted_certificates
from providers.storage.sessions import SESSIONS, RecordSessionStore
from providers.storage.stored_records import Records
from tests.fakes import states
from tests.unit.client.cli.command_line import store_run
from tests.unit.client.page.test_access import allowed, serving
from workers.settings.loading import Flags, Settings

HOSTILE = "<script>alert(1)</script> \"' & \u202e onload=x"


async def test_a_hostile_question_is_shown_as_text(home: Path) -> None:
    """In the list, as a title and in the filter; marks that turn the direction of writing are left out."""
    run = states.state(resolved=states.resolved(query=HOSTILE), status=RunStatus.RUNNING)
    await store_run(home, "r-hostile", run, closed=False)
    async with (
        serving() as (address, access),
        httpx2.AsyncClient(verify=trusted_certificates(), base_url=address, headers=allowed(access)) as browser,
    ):
        for path in ("/", "/runs/r-hostile"):
            page = (await browser.get(path)).text
            assert "<script>alert" not in page
            assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
            assert "\u202e" not in page
        filtered = (await browser.get("/", params={"q": '"><b>x'})).text
        assert '"><b>x' not in filtered
        assert "No run fits this filter." in filtered


async def test_the_list_is_filtered_and_grows_on_request(home: Path) -> None:
    """By words of the question and by state; fifty at first, two thousand at most."""
    for number in range(60):
        run = states.state(resolved=states.resolved(query=f"Question {number}?"), status=RunStatus.RUNNING)
        await store_run(home, f"r-{number:03d}", run, closed=False)
    async with (
        serving() as (address, access),
        httpx2.AsyncClient(verify=trusted_certificates(), base_url=address, headers=allowed(access)) as browser,
    ):
        first = (await browser.get("/")).text
        assert first.count('<tr id="row-') == 50
        more = re.search(r'href="(/\?[^"]*limit=200[^"]*)"', first)
        assert more is not None
        assert (await browser.get(more[1].replace("&amp;", "&"))).text.count('<tr id="row-') == 60
        assert (await browser.get("/?q=question+7")).text.count('<tr id="row-') == 1
        assert (await browser.get("/?status=completed")).text.count('<tr id="row-') == 0
        assert (await browser.get("/?status=interrupted&limit=9")).text.count('<tr id="row-') == 9
        assert (await browser.get("/?limit=nonsense")).status_code == 200


async def test_a_run_that_nothing_works_on_can_be_resumed_from_its_page(home: Path) -> None:
    """It is called interrupted; a run that is unknown has a page that says so."""
    await store_run(home, "r-waits", states.state(status=RunStatus.RUNNING), closed=False)
    async with (
        serving() as (address, access),
        httpx2.AsyncClient(verify=trusted_certificates(), base_url=address, headers=allowed(access)) as browser,
    ):
        page = (await browser.get("/runs/r-waits")).text
        assert "<strong>interrupted</strong>" in page
        assert 'action="/runs/r-waits/resume"' in page
        chosen = await browser.get("/compare?a=r-waits")
        assert (chosen.status_code, "choose one in each column" in chosen.text) == (404, True)
        unknown = await browser.get("/runs/r-nothing")
        assert (unknown.status_code, "there is no run" in unknown.text) == (404, True)
        form = {"form_key": access.form_key}
        refused = await browser.post("/runs/r-waits/resume", data=form)
        assert (refused.status_code, "research serve" in refused.text) == (400, True)
        assert (await browser.post("/runs/r-waits/nonsense", data=form)).status_code == 404


def test_quoted_passages_are_marked_in_their_places() -> None:
    """Every character of the archived text stands once, in order, also where passages overlap."""
    text = "One two three four five."
    passages = [
        Evidence(id="b", source_id="s", start=8, end=18),
        Evidence(id="a", source_id="s", start=4, end=13),
        Evidence(id="c", source_id="s", start=9, end=12),
    ]
    pieces = pieces_of(text, passages)
    assert "".join(piece.text for piece in pieces) == text
    assert [(piece.evidence_id, piece.text) for piece in pieces if piece.evidence_id] == [
        ("a", "two three"),
        ("b", " four"),
    ]


def test_each_passage_of_a_report_leads_to_its_place() -> None:
    """By its source, whose id is not trusted; a passage without a known source leads nowhere."""
    html = '<div class="passage" id="ev-1"><a class="close" href="#reading">Close</a></div>'
    html += '<div class="passage" id="ev-2"><a class="close" href="#reading">Close</a></div>'
    linked = with_places(html, "r-1", {"ev-1": 'src-"1'})
    assert 'href="/runs/r-1/sources/src-%221#ev-1"' in linked
    assert linked.count("archived text") == 1
    assert with_places(html, "r-1", {}) == html


def test_a_draft_runs_nothing_and_loads_nothing() -> None:
    """Its HTML is text, its pictures are not loaded, and its links lead to web addresses only."""
    page = from_markdown("<img src=x onerror=alert(1)> ![p](http://evil.example/p.png) [x](javascript:alert(1)) **b**")
    assert "<img" not in page
    assert 'href="javascript' not in page
    assert "<strong>b</strong>" in page


def test_two_reports_stand_side_by_side() -> None:
    """Equal paragraphs share a line; what only one has stands alone in its line."""
    lines = compare_texts("# A\n\nsame\n\nold", "# A\n\nsame\n\nnew\n\nmore")
    assert [(line.left, line.right, line.is_same) for line in lines] == [
        ("# A", "# A", True),
        ("same", "same", True),
        ("old", "new", False),
        ("", "more", False),
    ]


def test_citations_of_a_draft_lead_to_their_passages() -> None:
    """Numbered in the order of the draft, an address of the own page; what is escaped or no citation stays text."""
    text = "A [ev-a1]. B [ev-b2] and again [ev-a1]. Not \\[ev-c3] nor [x].\n\n# Title"
    page = from_markdown(with_passages(text, "r 1"), below=2)
    assert '<a href="/runs/r%201/passages/ev-a1">[1]</a>' in page
    assert page.count("/passages/ev-a1") == 2
    assert '<a href="/runs/r%201/passages/ev-b2">[2]</a>' in page
    assert "ev-c3]" in page
    assert "<h3>Title</h3>" in page


async def test_a_form_with_the_id_of_a_stored_run_starts_nothing(home: Path) -> None:
    """It leads to that run, which stays as it is; an id that names no run in a store is refused."""
    await store_run(home, "r-there", states.state(status=RunStatus.COMPLETED), closed=True)
    async with (
        serving() as (address, access),
        httpx2.AsyncClient(verify=trusted_certificates(), base_url=address, headers=allowed(access)) as browser,
    ):
        form = {"form_key": access.form_key, "query": "Another question?", "research_id": "r-there"}
        sent = await browser.post("/start", data=form)
        assert (sent.status_code, sent.headers["location"]) == (303, "/runs/r-there")
        refused = await browser.post("/start", data=form | {"research_id": "../there"})
        assert (refused.status_code, "no id of a run" in refused.text) == (400, True)


async def test_a_corpus_that_is_not_there_is_refused_before_anything_starts(home: Path) -> None:
    """In one line with those that exist, at the preview and at the start; no server is needed to know it."""
    async with (
        serving() as (address, access),
        httpx2.AsyncClient(verify=trusted_certificates(), base_url=address, headers=allowed(access)) as browser,
    ):
        form = {"form_key": access.form_key, "query": "How?", "corpus": "gone"}
        for path in ("/preview", "/start"):
            refused = await browser.post(path, data=form)
            assert (refused.status_code, "there is no corpus gone; known: none" in refused.text) == (400, True)


async def test_where_a_tenant_is_set_the_page_shows_its_runs(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a proxy that names users; those of others are not there, in the list and by address."""
    for name, tenant in (("r-ada", "ada"), ("r-bob", "bob")):
        run = states.state(resolved=states.resolved(research_id=name, tenant=tenant), status=RunStatus.COMPLETED)
        await store_run(home, name, run, closed=True)
    monkeypatch.setenv("RESEARCH_TENANT", "ada")
    async with (
        serving() as (address, access),
        httpx2.AsyncClient(verify=trusted_certificates(), base_url=address, headers=allowed(access)) as browser,
    ):
        listed = (await browser.get("/")).text
        assert ("row-r-ada" in listed, "row-r-bob" in listed) == (True, False)
        assert (await browser.get("/runs/r-bob")).status_code == 404


async def test_corpora_of_a_cluster_are_typed(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine does not know them all, so any name can be given there, and a list is offered here."""
    async with (
        serving() as (address, access),
        httpx2.AsyncClient(verify=trusted_certificates(), base_url=address, headers=allowed(access)) as browser,
    ):
        assert '<select id="corpus"' in (await browser.get("/")).text
    monkeypatch.setenv("TEMPORAL_ADDRESS", "127.0.0.1:1")
    async with (
        serving() as (address, access),
        httpx2.AsyncClient(verify=trusted_certificates(), base_url=address, headers=allowed(access)) as browser,
    ):
        assert '<input id="corpus" name="corpus" list="corpora"' in (await browser.get("/")).text


async def test_a_form_offers_what_the_ceiling_of_its_user_allows(home: Path) -> None:
    """Strategies and depths, by the tenant whose runs are started; a user whom nothing proves starts none."""
    limits = {"ceiling": {"depth": "medium", "strategies": ["living"]}, "tenants": {"lab": {"depth": "light"}}}
    async with open_context(Flags()) as context:
        settings = Settings.model_validate({"limits": limits, "home": home})
        proving = settings.with_fields(tenant_keys=SecretStr("*=a-key-of-sixteen-bytes"))
        desk = PageDesk(Desk(proving, context.stores))
        assert desk.choices(None) == (["living"], ["auto", "light", "medium"])
        assert desk.choices("lab") == (["living"], ["auto", "light"])
        unproven = PageDesk(Desk(settings, context.stores))
        for act in (unproven.preview, unproven.start):
            with pytest.raises(
                CommandError, match="runs of the tenant lab cannot be started here, as nothing proves it"
            ):
                await act({"query": "How?"}, "lab")


async def test_a_list_reads_what_workers_store(home: Path) -> None:
    """They leave out what is a default; the facts are those of the whole state, also of a question that follows."""
    follow_up = FollowUp(research_id="r-first", query="First?")
    resolved = states.resolved(strategy="living", follow_up=follow_up)
    for number, request in enumerate((states.resolved(), resolved)):
        state = states.state(resolved=request, status=RunStatus.COMPLETED)
        text = json.dumps(state.snapshot())
        sessions = RecordSessionStore(Records(home, SESSIONS))
        await sessions.save(f"r-{number}", text, closed=True)
    async with open_context(Flags()) as context:
        desk = PageDesk(Desk(context.settings, context.stores))
        listed, _ = await desk.listed("", "", 9, None)
    facts = {run.row.research_id: run.facts for run in listed}
    assert facts == {
        "r-0": Facts(strategy=states.resolved().strategy, cost="0.00", tenant="default"),
        "r-1": Facts(strategy="living", cost="0.00", tenant="default"),
    }
