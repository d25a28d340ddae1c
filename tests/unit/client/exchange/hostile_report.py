"""A report whose every word tries to be markup of something."""

import json
from typing import Any

from contracts.report import Report, read_report

TITLES = [
    'A {brace}, another } and "quotes" \\ \\input{/etc/passwd} $x^2_3$ 100 % & #1 ~',
    "One\nTY  - JOUR\r\nER  - \r\nTI  - Two",
    '"}],"x": [{',
    "}\n@misc{evil, title={gotcha}}",
    '#read("/etc/passwd") *bold* $x$ @ref <label> `raw` = Heading \\',
    "null \x00 bell \x07 bidi \u202e last \uffff end",
    "日本語の題 — Ünïcödé 🐘",
    "<w:t>xml</w:t> & ]]>",
]
"""None of them may end a field, begin another, or be anything but words."""


def report_of(**changes: Any) -> Report:
    """A report that cites a source for each hostile title, with hostile text."""
    sources = [
        {
            "id": f"src-{number:032x}",
            "url": f"https://source{number}.test/a_(b)?q=1&r={{x}}#z",
            "title": title,
            "authors": ["A. Writer", "Black and White", "Last, First", title],
            "publisher": title,
            "venue": title if number % 2 else None,
            "doi": "10.1000/18_2",
            "published_at": "2025-03-04",
            "retrieved_at": "2026-11-21T20:15:04+00:00",
            "source_type": ["web", "academic", "news", "file"][number % 4],
            "text_hash": "sha256:" + f"{number:064x}",
        }
        for number, title in enumerate(TITLES, start=1)
    ]
    words = "\n\n".join(f"{title} [{number}]." for number, title in enumerate(TITLES, start=1))
    document: dict[str, Any] = {
        "research_id": "r-20261121-7k3f",
        "product_version": "0.1.0",
        "query": TITLES[4],
        "language": "en",
        "ended_at": "2026-11-21T20:15:15+00:00",
        "outcome": "completed",
        "report": {
            "markdown": f"# {TITLES[4]}\n\n{words}\n\n[out](https://evil.test/) and [in](https://source1.test/x)\n"
        },
        "sources": sources,
        "claims": [
            {"id": f"c-{number}", "text": title, "citation_numbers": [number], "verdict": "partial", "reason": title}
            for number, title in enumerate(TITLES, start=1)
        ],
        "citations": [{"number": number, "source_id": source["id"]} for number, source in enumerate(sources, start=1)],
    }
    report = read_report(json.dumps(document | changes).encode())
    assert isinstance(report, Report), report
    return report
