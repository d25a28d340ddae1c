"""What an audit says of a report of which one thing is altered, for each of its things, against a recorded table.

`python -m tests.unit.activities.reporting.test_recorded_audit` records. Read the difference before you record.
"""

import asyncio
import copy
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from activities.reporting.audit import AuditResult, audit
from contracts.claims import CheckMethod, Verdict
from tests.unit.activities.reporting.memory_store import MemoryStore
from tests.unit.activities.reporting.sample import DOCUMENTS
from tests.unit.activities.reporting.test_audit import RENDERING, REPORT

FILE = Path(__file__).parent / "recorded_audits" / "alterations.txt"
HASH = re.compile(r"\b[0-9a-f]{64}\b")
Place = tuple[str | int, ...]


def places(value: Any, place: Place = ()) -> Iterator[Place]:
    """Everything in a document, each list and object before what is in it; of long lists the first three."""
    yield place
    if isinstance(value, dict):
        for key, part in value.items():
            yield from places(part, (*place, key))
    elif isinstance(value, list):
        for number, part in enumerate(value[:3]):
            yield from places(part, (*place, number))


def alterations(value: Any) -> dict[str, Any]:
    """Other values in the place of this one, by what was done."""
    if isinstance(value, bool):
        return {"the contrary": not value}
    if isinstance(value, int | float):
        return {"one more": value + 1}
    for words in ([each.value for each in Verdict], [each.value for each in CheckMethod]):
        if value in words:
            return {f"{word} instead": word for word in words if word != value}
    if isinstance(value, str):
        return {"other words": f"{value} indeed", "no words": ""}
    if isinstance(value, list) and value:
        return {"the first is gone": value[1:], "the first twice": [value[0], *value]}
    return {}


async def said_of(report: dict[str, Any], markdown: str | None, html: bytes | None) -> list[str]:
    """The differences, and what could not be compared."""
    store = MemoryStore()
    for _, text in DOCUMENTS.values():
        await store.put_text(text)
        await store.put(("raw " + text).encode(), "text/html")
    try:
        result: AuditResult = await audit(report, store.text_by_hash, store.by_hash, markdown=markdown, html=html)
    except ValueError as error:
        return [f"  refused: {str(error).splitlines()[0]}"]
    told = [f"  {one.kind} {one.id}: {one.message} {one.remedy}".rstrip() for one in result.problems]
    return [HASH.sub("HASH", line) for line in (*told, *(f"  unchecked: {each}" for each in result.unchecked.items()))]


async def table() -> list[str]:
    """One alteration after the other; what an audit does not see is left out."""
    lines = ["all forms", *await said_of(REPORT, RENDERING.markdown, RENDERING.html.encode())]
    lines += ["other forms", *await said_of(REPORT, RENDERING.markdown + " ", RENDERING.html.encode() + b" ")]
    lines += ["no other form", *(usual := await said_of(REPORT, None, None))]
    for place in places(REPORT):
        there: Any = REPORT
        for key in place:
            there = there[key]
        for name, value in alterations(there).items():
            changed: Any = copy.deepcopy(REPORT)
            parent = changed
            for key in place[:-1]:
                parent = parent[key]
            parent[place[-1]] = value
            said = await said_of(changed, None, None)
            if said != usual:
                lines += [f"{'.'.join(map(str, place))}: {name}", *(line for line in said if line not in usual)]
    return lines


async def test_what_an_audit_says_is_what_was_recorded() -> None:
    """Each difference, the words for it and the remedy are, word for word, what they were."""
    assert await table() == FILE.read_text(encoding="utf-8").splitlines()


if __name__ == "__main__":
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text("\n".join(asyncio.run(table())) + "\n", encoding="utf-8")
