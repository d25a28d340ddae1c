"""What becomes of odd drafts, from a model's words to the audit, against a recorded file each.

`python -m tests.unit.activities.reporting.test_recorded_forms` records. Read the difference before you record.
"""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

from activities.roles.labels import label_key, label_of
from contracts.vocabulary import EngineKind
from tests.unit.activities.reporting.hostile import HOSTILE
from tests.unit.activities.reporting.whole import World

FOLDER = Path(__file__).parent / "recorded_forms"
OWN = "https://a.test/page?x=1&y=2"
FIRST = """Every table must be vacuumed at least once every two billion transactions. “Freezing” marks rows as old.

| Setting | Default |
|---|---|
| `freeze_max_age` | 200 million \\| more |

Locks do not prevent wraparound. See https://a.test/page?x=1&y=2 and https://elsewhere.test/.
"""
SECOND = "The daemon starts even if it is disabled. Warnings begin forty million transactions before the end.\n"
LONG = "Every row that is old enough is marked as frozen, which keeps it visible to all that come later. " * 12

DRAFTS = {
    "plain": "# Title\n\nEvery table must be vacuumed at least once every two billion transactions [{a}].\n",
    "no_title": "Locks do not prevent wraparound [{a}]. The daemon starts even if it is disabled [{b}, {a}].\n",
    "closed_title": "# Title of it ##\n\n## Part #\n\nWarnings begin [{b}]\n\nTitle\n===\n\nMore [{a}].",
    "quotations": "# T\n\n> Every table must be vacuumed at least once every two billion transactions. [{a}]\n\n"
    'It says “Locks do not prevent wraparound.” [{a}], and "The daemon starts" [{b}]; «starts even» [{b}].\n\n'
    "> The daemon sleeps all day. [{b}]\n\n> “Warnings begin forty million transactions before the end.” [{b}]\n\n"
    "> Locks do\n> not prevent\n> wraparound. [{a}] The daemon starts even if it is disabled. [{b}]\n",
    "contradictions": "# T\n\nLocks do prevent wraparound [{a}]. Vacuum every 3 billion transactions [{a}].\n\n"
    "The daemon never starts [{b}]. Warnings begin fifty million transactions before the end [{b}].\n\n"
    "Bananas are yellow [{a}][{b}]. Nobody knows. Nothing of this is cited here, although it is long enough.\n",
    "markers": "# T\n\nOne [[{a}]] two \\[{b}\\] three 【{a}】 four ({a}) five [^{b}] six [ev-none] seven [{a}; {b}; x] [12] "
    "`[{a}]` nine [1, 2].\n\n```\ncode [{a}]\n```\n\n    indented [{b}]\n\n[{a}]: https://evil.test/\n\nEnd [{a}]",
    "links": "# T\n\n[own](https://a.test/page?x=1&y=2) [own too](<https://a.test/page?x=1&amp;y=2>) "
    "[foreign](https://evil.test/) <https://a.test/page?x=1&y=2> <https://evil.test/> www.evil.test evil.test/path "
    "![p](https://evil.test/p.png) [r][1] [s][] [t]\n\n[1]: https://a.test/page?x=1&y=2\n[s]: https://evil.test/s\n"
    '> [t]: <https://evil.test/t> "title"\n\nFact [{a}](https://evil.test/m). a\\.b.c https:&#47;&#47;evil.test '
    '[#](#here) <b>bold</b> <script>x</script> a<b [words](https://a.test/page?x=1&y=2 "t")\n',
    "lists": "# T\n\n- one [{a}]\n- two\n  - three [{b}]\n\n1. first\n2. second [{a}]\n\n   more of it\n\n"
    "* a **bold** and *weak* and `code` ~~gone~~ [{b}]\n\n---\n\n1\\. no list [{a}]\n",
    "tables": "# T\n\n| Name | Value | Source |\n|:--|--:|---|\n| `freeze_max_age` | 200 million | [{a}] |\n"
    "| a \\| b | 40 million | [{b}] |\n\nAfter it [{a}].\n",
    "definitions": "# T\n\n**Vacuum**: marks rows [{a}].\n\n**Daemon** – starts [{b}].\n\nTerm\n: meaning [{a}]\n",
    "source_list": "# T\n\nLocks do not prevent wraparound [{a}].\n\n## Sources\n\n1. [A](https://a.test/page?x=1&y=2)\n"
    "2. Somebody, *Something*, 2020. https://evil.test/\n\n## Limits\n\nNone [{b}].\n\n### References\n\n[{a}] A\n",
    "headings": "# T\n\n## One\n\n### Two\n\n#### Three [{a}]\n\n##### Four\n\n## One\n\nText [{b}]\n\n##\n\n## `code` & <i>\n",
    "long": "# " + "A very long title " * 30 + "\n\n" + LONG + "[{a}]\n\n> " + LONG + "[{b}]\n",
    "strange": "# T\u202e\u200b\n\nA\u00adfact\u2028with\x00 signs\x1b[31m [{a}] \ud800 and  two  blanks\t[{b}]\r\nnext &amp; &lt;b&gt; \\* \\[x\\]\n",
    "hostile": "# T\n\nA fact [{a}].\n\n" + "\n\n".join(HOSTILE.values()),
    "meta": "# T\n\n*Short answer*: yes [{a}].\n\n## Method\n\nI was told to keep this. As an AI model I cannot know. [{b}]\n\n"
    "## Gaps\n\n- nothing about cost\n\n## Short answer\n\nVacuum [{a}]. Twice, that is [{a}] [{a}] [{b}][{b}].\n",
}  # fmt: skip


async def made_of(name: str) -> str:
    """Report, claims, page and audit of a draft, as one text."""
    world = World.of(FIRST, SECOND, urls=(OWN, "https://b.test/"), titles=("A [page] of <all>", "B | C"))
    key = label_key(world.request(EngineKind.MODEL))
    first, second = (label_of(item.id, key) for item in world.evidence)
    whole = await world.written(DRAFTS[name].replace("{a}", first).replace("{b}", second))
    document: dict[str, Any] = whole.document
    body = re.sub(r"(?s)^.*?<body[^>]*>", "", whole.rendering.html)
    parts = {
        "report.md": whole.rendering.markdown,
        "claims": "\n".join(json.dumps(claim, ensure_ascii=False) for claim in document["claims"]),
        "numbers": json.dumps(
            {name: document.get(name) for name in ("verification", "citations", "summary", "sections")}
        ),
        "page": body.replace("><", ">\n<"),
        "evidence": "\n".join(json.dumps(item, ensure_ascii=False) for item in document["evidence"]),
        "warnings": "\n".join([*whole.warnings, *whole.unresolved]),
        "audit": repr(whole.audited),
    }
    text = "\n".join(f"=== {part}\n{content}" for part, content in parts.items())
    return text.encode("utf-8", "backslashreplace").decode().replace("\r", "\\r") + "\n"


@pytest.mark.parametrize("name", DRAFTS)
async def test_what_becomes_of_an_odd_draft_is_what_was_recorded(name: str) -> None:
    """Report, claims, page, evidence and audit are, word for word, what they were when somebody read them."""
    recorded = (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    assert (await made_of(name)).splitlines() == recorded.splitlines()


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for draft in DRAFTS:
        (FOLDER / f"{draft}.txt").write_text(asyncio.run(made_of(draft)), encoding="utf-8")
