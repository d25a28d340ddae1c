"""`research export`: what is asked for is checked, and written whole or not at all."""

import json
import re
from pathlib import Path
from unittest.mock import AsyncMock

import pytest

from contracts.outcome import ReportFiles, ResearchResult
from contracts.vocabulary import Outcome, StopReason
from providers.storage.content import ObstoreContentStore, name_of
from providers.storage.sessions import SESSIONS, RecordSessionStore
from providers.storage.stored_records import open_records
from tests.unit.activities.reporting.sample import DOCUMENTS, RESEARCH_ID, SAMPLE, rendered
from tests.unit.client.cli.command_line import research

RENDERING = rendered()


@pytest.fixture
async def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home in which the sample run is over, with its report and its documents."""
    folder = tmp_path / "home"
    monkeypatch.setenv("RESEARCH_HOME", str(folder))
    monkeypatch.chdir(tmp_path)
    content = ObstoreContentStore(folder / "content")
    for _, text in DOCUMENTS.values():
        await content.put_text(text)
        await content.put(("raw " + text).encode(), "text/html")
    texts = (RENDERING.markdown, RENDERING.html, RENDERING.document)
    markdown, html, document = [await content.put_text(text) for text in texts]
    files = ReportFiles(markdown=markdown, html=html, json_document=document)
    ending = {"outcome": Outcome.COMPLETED, "stop_reason": StopReason.NO_ACTIONABLE_GAPS}
    state = SAMPLE.state(result=ResearchResult(research_id=RESEARCH_ID, files=files, report_ref=markdown, **ending))
    sessions = RecordSessionStore(open_records(None, folder, SESSIONS))
    await sessions.save(RESEARCH_ID, json.dumps(state.snapshot()), closed=True)
    return folder


def ran(*arguments: str) -> tuple[int, str]:
    result = research(*arguments)
    return result.exit_code, result.output


@pytest.mark.usefixtures("home")
@pytest.mark.soak
def test_a_name_is_a_run_and_a_path_is_a_file() -> None:
    """A folder here that is called as a run does not hide it; its report is meant by a path."""
    Path(RESEARCH_ID).mkdir()
    assert ran("export", RESEARCH_ID, "--format", "csl") == (0, f"{RESEARCH_ID}.csl.json\n")
    code, said = ran("audit", RESEARCH_ID)
    assert (code, f"no difference in {RESEARCH_ID}" in said) == (0, True)
    assert re.search(r"(?m)^  compared: .* · passages \(\d+\) · findings \(\d+\)", said)
    code, said = ran("audit", f"./{RESEARCH_ID}")
    assert (code, "no such file" in said) == (2, True)


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["last"], "choose one form: --bundle, or --format"),
        (["last", "--bundle", "--out", "b.zip", "--format", "pdf"], "choose one form: --bundle, or --format"),
        (["last", "--format", "odt"], "is not one of 'docx', 'pdf', 'bibtex'"),
        (["last", "--format", "pdf", "--quotes-only"], "--quotes-only and --sign belong to --bundle"),
        (["last", "--bundle", "--sign", "bad.json"], "no private Ed25519 key"),
        (["last", "--bundle", "--out", "."], "is a folder"),
        (["unknown", "--bundle", "--out", "b.zip"], "research list"),
    ],
)
@pytest.mark.usefixtures("no_children")
def test_wrong_usage_writes_nothing(arguments: list[str], words: str) -> None:
    """One clear answer each."""
    Path("bad.json").write_text("[1")
    before = sorted(Path().iterdir())
    code, output = ran("export", *arguments)
    assert (code, words in output) == (2, True)
    assert sorted(Path().iterdir()) == before


@pytest.mark.usefixtures("no_children")
def test_a_text_that_is_gone_is_named_with_the_remedy(home: Path) -> None:
    """A bundle that lacks a text is not made; one of quotes is."""
    text = SAMPLE.sources["glossary.html"].text
    assert text is not None
    (home / "content" / name_of(text)).unlink()
    code, output = ran("export", "last", "--bundle", "--out", "b.zip")
    assert (code, "--quotes-only" in output) == (4, True)
    assert not Path("b.zip").exists()
    assert ran("export", "last", "--bundle", "--out", "b.zip", "--quotes-only")[0] == 0


@pytest.mark.usefixtures("home")
@pytest.mark.usefixtures("no_children")
def test_an_altered_file_is_found_by_the_store() -> None:
    """A `report.json` that agrees with itself is still not the one that was stored."""
    Path("report.json").write_text(RENDERING.document)
    assert ran("audit", "report.json")[0] == 0
    Path("report.json").write_text(RENDERING.document.replace("What freezing costs", "What warming costs"))
    code, output = ran("audit", "report.json")
    assert code == 1
    assert "✖ report_differs report.json: it is not the report that is stored of this run" in output
    assert "→ the file was changed, or the run went on" in output


@pytest.mark.usefixtures("home")
@pytest.mark.soak
def test_an_export_that_needs_too_much_memory_ends_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table of some kilobytes that a document would need gigabytes for costs a process, and writes nothing."""
    monkeypatch.setattr("client.cli.audit.MEMORY_BYTES", 250_000_000)
    report = json.loads(RENDERING.document)
    report["report"]["markdown"] = f"|{'a|' * 1_000}\n|{'-|' * 1_000}\n" + f"|{'b|' * 1_000}\n" * 180
    stored = AsyncMock(return_value=dict.fromkeys(("html", "md", "json"), json.dumps(report).encode()))
    monkeypatch.setattr("client.cli.context.CommandContext.report_documents", stored)
    out = tmp_path / "table.pdf"
    code, said = ran("export", RESEARCH_ID, "--format", "pdf", "--out", str(out))
    assert (code, out.exists()) == (2, False)
    assert f"{RESEARCH_ID} cannot be exported: work on a text from outside" in " ".join(said.split())
