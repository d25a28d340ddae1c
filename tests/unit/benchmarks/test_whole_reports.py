"""Whole reports whose sentences were changed, through `verify: full` and `audit`, over a small made-up manual."""

import json

import pytest

from benchmarks.truth.whole_reports import RULES, Told, read_manuals, tally
from contracts.evidence import CheckMethod, Verdict

PAIRS = [
    ("The pump of Tolm Works moves 40 litres of water per minute.", "In a minute the pump of Tolm Works moves 40 litres of water."),
    ("The filter must be changed every six months, or after 500 hours.", "Every six months, or after 500 hours, the filter must be changed."),
    ("The motor was designed by Ilse Brandt and is built in Vellin since 2011.", "Ilse Brandt designed the motor, which is built in Vellin since 2011."),
    ("The valve cannot be opened while the pump is running.", "While the pump is running, the valve cannot be opened."),
    ("A spare seal costs 12 euros and weighs 30 grams.", "A spare seal weighs 30 grams and costs 12 euros."),
    ("Most repairs are finished within three days of the delivery to Dunmore.", "Within three days of the delivery to Dunmore most repairs are finished."),
]  # fmt: skip


@pytest.fixture(scope="module")
def manual(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Told], dict[str, tuple[str, str]]]:
    """The sentences, their passages and the text."""
    folder = tmp_path_factory.mktemp("manuals")
    page = "".join(f"<p>{passage}</p>" for passage, _ in PAIRS)
    (folder / "pump.html").write_text(f"<html><title>Pump</title><body><h1>Pump</h1>{page}</body></html>")
    claims = folder / "claims.jsonl"
    lines = [{"file": "pump.html", "begins": passage[:25], "claim": claim} for passage, claim in PAIRS]
    claims.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return read_manuals(folder, claims)


@pytest.mark.parametrize("checker", [RULES, "lying", "knowing"])
async def test_no_changed_sentence_is_called_supported(
    manual: tuple[list[Told], dict[str, tuple[str, str]]], checker: str
) -> None:
    """Numbers, units, names, denials, citations and sources: flagged, left open, mended or gone; true ones stand."""
    found = await tally(checker, *manual, seeds=(1,))
    kinds = {kind for kind, _ in found.changed}
    assert len(kinds) >= 3
    assert found.changed.total() >= 6
    assert not {outcome for _, outcome in found.changed} & {Verdict.SUPPORTED, CheckMethod.VERBATIM}, found.missed
    assert found.false_alarms == 0
    assert found.audits == {True: 1}
    assert found.addresses == 0
    assert found.forged[False, True] > 0
    assert found.forged[False, False] == 0
