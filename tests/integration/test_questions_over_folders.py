"""Whole runs without a model over folders of documents as people have them: from the question to the report."""

import re
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import docx
import pytest

from benchmarks.passages import answer, passages_of
from providers.isolation.pool import SubprocessPool
from providers.search.corpus.library import CorpusLibrary
from tests.fakes.office_documents import mail, open_document, saved

HARBOURS: Mapping[str, tuple[str, str, str, str]] = {
    "Chinese": (
        "# 港口规定\n\n水闸每天晚上十点关闭，早上六点打开。冬季停泊费为三百欧元。\n\n狗必须拴绳。\n",
        "水闸几点关闭？", "十点关闭", "游泳池在哪里？",
    ),
    "Japanese": (
        "# 港の規則\n\n水門は夜十時に閉まり、朝六時に開きます。\n\n犬はリードをつけてください。\n",
        "水門は何時に閉まりますか？", "十時に閉まり", "温泉プールの住所は？",
    ),
    "Korean": (
        "# 항구 규칙\n\n수문은 밤 열 시에 닫히고 아침 여섯 시에 열립니다.\n\n개는 목줄을 매야 합니다.\n",
        "수문은 몇 시에 닫힙니까?", "열 시에 닫히고", "수영장이 있습니까?",
    ),
    "Thai": (
        "# กฎของท่าเรือ\n\nประตูน้ำปิดเวลาสี่ทุ่มและเปิดเวลาหกโมงเช้า\n\nสุนัขต้องใส่สายจูง\n",
        "ประตูน้ำปิดกี่โมง", "ปิดเวลาสี่ทุ่ม", "ภาษี",
    ),
}  # fmt: skip
"""Text of a folder, a question with what answers it, and one that nothing answers."""


@pytest.fixture
async def library(tmp_path: Path) -> AsyncIterator[CorpusLibrary]:
    async with SubprocessPool(1) as pool:
        yield CorpusLibrary(tmp_path / "home", pool)


async def indexed(library: CorpusLibrary, folder: Path, files: Mapping[str, bytes]) -> None:
    """A folder of files as the corpus `c`."""
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    library.add("c", folder)
    await library.refresh("c")


async def asked(library: CorpusLibrary, question: str) -> tuple[str, list[str], str]:
    """Outcome, passages and the whole report of a question."""
    markdown, _, outcome, _ = await answer(library, "c", question)
    return outcome, passages_of(markdown.partition("\n## Sources\n")[0]), markdown


@pytest.mark.parametrize(
    "writing",
    [pytest.param(each, marks=pytest.mark.soak if each in ("Japanese", "Korean") else ()) for each in HARBOURS],
)
async def test_a_question_without_spaces_is_answered_by_its_sentence(
    writing: str, library: CorpusLibrary, tmp_path: Path
) -> None:
    """The sentence comes alone where it ends with a full stop; forms of a word that is there are not called absent."""
    text, question, expected, absent = HARBOURS[writing]
    await indexed(library, tmp_path / "folder", {"harbour.md": text.encode()})
    outcome, passages, report = await asked(library, question)
    assert outcome == "completed"
    assert expected in passages[0]
    assert "In none of" not in report
    other = text.split("\n\n")[2].strip()
    assert (other in passages[0]) is (writing == "Thai")  # which has no full stop
    outcome, passages, report = await asked(library, absent)
    assert (outcome, passages) == ("empty", [])
    assert "In none of 1 documents: " in report


async def test_documents_of_an_office_are_quoted_as_their_authors_wrote_them(
    library: CorpusLibrary, tmp_path: Path
) -> None:
    """A list of Word with its number, a price of a sheet as it is shown, a mail, a page; what was left out is named."""
    rules = docx.Document()
    rules.add_paragraph("Close the inlet valve of the boiler.", style="List Number")
    rules.add_paragraph("Drain the boiler for ten minutes.", style="List Number")
    cell = "<table:table-cell><text:p>{}</text:p></table:table-cell>".format
    row = "<table:table-row>{}</table:table-row>".format
    prices = row(cell("Kayak hire") + cell("7.50 €")) + row(cell("Crane") + cell("60.00 €"))
    parts = {
        "boiler.docx": saved(rules),
        "prices.ods": open_document("spreadsheet", f"<table:table table:name='Prices'>{prices}</table:table>"),
        "lock.eml": bytes(mail("The lock is closed on 4 May. The divers need six hours.")),
        "jetty.html": b"<html><body><p>Life jackets are worn on the jetty.</p><footer>Ask at the office for more.</footer></body></html>",
    }
    await indexed(library, tmp_path / "folder", parts)
    for question, expected in (
        ("How long is the boiler drained?", "2. Drain the boiler for ten minutes."),
        ("What does it cost to hire a kayak?", "7.50 €"),
        ("When was the lock closed?", "The lock is closed on 4 May."),
        ("Must I wear a life jacket on the jetty?", "Life jackets are worn on the jetty."),
    ):
        outcome, passages, report = await asked(library, question)
        assert (outcome, any(expected in passage for passage in passages)) == ("completed", True)
    assert "wear" not in re.findall(r"In none of 4 documents: (.*)", report)
    assert "**Parts not read:**" in report
    assert "  - jetty: 54% of the words are read; not read: footers (6)" in report


async def test_a_contract_keeps_the_lines_of_its_clauses(library: CorpusLibrary, tmp_path: Path) -> None:
    """Clauses below a numbered title are lines of their own, and are quoted with it."""
    text = "2. Rent\n2.1 The rent is 1,250 euro.\n2.2 The deposit amounts to three rents.\n\n3. Pets\n3.1 No dogs.\n"
    await indexed(library, tmp_path / "folder", {"lease.txt": text.encode()})
    _, passages, report = await asked(library, "How much is the deposit?")
    assert "2.2 The deposit amounts to three rents." in passages[0]
    assert "> 2\\.1 The rent is 1,250 euro" in report or "2.1 The rent is 1,250 euro.\\\n" in report
