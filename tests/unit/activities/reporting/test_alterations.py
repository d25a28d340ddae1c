"""Alterations of a finished report by somebody who makes every hash, place and form agree again afterwards."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest

from activities.reporting.audit import AuditResult, audit
from activities.reporting.render import render
from contracts.addresses import digest
from contracts.agents import AgentRecord, AgentTask, TaskResult
from contracts.evidence import ClaimVerdict, DocumentRef, QueryRecord
from contracts.outcome import Guidance, Usage
from contracts.state import ResearchState
from contracts.tokens import FidelityTotals
from contracts.vocabulary import AgentStatus, EngineKind, StopReason
from tests.fakes.killers import HereCalls
from tests.unit.activities.reporting.sample import DOCUMENTS, SKIPPED, Sample, make_evidence, make_resolved, make_source
from tests.unit.activities.scripted import MemoryStore

FREEZING = "# Freezing\n\nOld rows are frozen.\n\n## Age\n\nRows are frozen at an age of 50 million transactions.\n"
PAGES = "[0, 30]"
BY_MODEL = "Rows that are old get a mark which keeps them visible forever."


@dataclass
class Forms:
    """A report as its forms are, to be changed."""

    report: dict[str, Any]
    html: str
    texts: dict[str, str]

    def everywhere(self, old: str, new: str) -> None:
        packed = json.dumps(self.report, ensure_ascii=False)
        assert old in packed
        self.report = json.loads(packed.replace(old, new))
        self.html = self.html.replace(old, new)
        self.texts = {digest(text := each.replace(old, new)): text for each in self.texts.values()}

    def in_text(self, old: str, new: str) -> None:
        assert old in self.report["report"]["markdown"]
        for form in ("markdown", "draft"):
            self.report["report"][form] = self.report["report"][form].replace(old, new, 1)

    def in_page(self, old: str, new: str) -> None:
        assert old in self.html
        self.html = self.html.replace(old, new, 1)

    def seal(self) -> None:
        """Make all places and hashes agree."""
        markdown, place = self.report["report"]["markdown"], 0
        for claim in self.report["claims"]:
            if (found := markdown.find(claim["text"], place)) >= 0:
                claim |= {"start": found, "end": found + len(claim["text"])}
                place = claim["end"]
        for item in self.report["evidence"]:
            item["quote_hash"] = digest(item["quote"])
        self.report["forms"] = {"report.md": digest(markdown), "report.html": digest(self.html)}


def state_and_draft(**changes: object) -> tuple[Sample, ResearchState, str]:
    """A run with everything that a report can name."""
    sample = Sample()
    source = make_source(
        "https://docs.test/freezing",
        "Freezing",
        FREEZING,
        pages=DocumentRef(hash=digest(PAGES)),
        quality="medium",
        quality_reason="a publisher",
    )
    age = make_evidence(source, FREEZING, "Rows are frozen at an age of 50 million transactions.", "Age")
    age = age.model_copy(update={"page": 2})
    sample.sources["freezing"], sample.evidence[age.id] = source, age
    sample.texts[digest(FREEZING)] = FREEZING
    task = AgentTask(id="agent-1", text="Find the age.", strategy="agent")
    done = TaskResult(stop_reason=StopReason.NO_OPEN_GAPS, finding_ids=["f-1", "f-2"])
    usage = Usage(model_calls=4, input_tokens=900, output_tokens=80, searches=3, reads=3, cost_usd=0.02)
    known: dict[str, object] = {
        "resolved": make_resolved(engine=EngineKind.MODEL, egress="passages go to models.test"),
        "engine_by_role": {"planner": "model", "synthesizer": "model"},
        "models_used": ["a-model"],
        "fidelity": {"analysis": FidelityTotals(calls=2, considered=100, shown=80, items=4)},
        "content_archive_hashes": [digest("a text of which a headline was shown")],
        "usage": usage,
        "usage_by_role": {"synthesizer": usage},
        "agents": [AgentRecord(task=task, status=AgentStatus.DONE, result=done)],
        "guidance": [Guidance(origin="person", text="Look at the age.")],
        "degraded": ["the reviewer did not answer"],
        "query_ledger": [
            QueryRecord(
                text="What is transaction ID wraparound?", provider="web", sub_query_id="sq-0000000001", found=5
            ),
            QueryRecord(text="age of freezing", provider="web", sub_query_id="agent-1", found=7),
        ],
    }
    state = sample.state(**(known | changes))
    draft = sample.draft + f"\n## Age\n\nRows are frozen at an age of 50 million transactions. [{age.id}]\n\n"
    return sample, state, draft + f"{BY_MODEL} [{sample.freezing.id}]\n\nThe rest is known. [{sample.rule.id}]\n"


def made(state: ResearchState, draft: str, sample: Sample) -> Forms:
    """The forms of a run, two statements of which a model judged, or failed to."""
    first = render(state, draft, sample.texts, SKIPPED, "0.1.0")
    *_, by_model, unjudged = json.loads(first.document)["claims"]
    verdicts = [
        {"claim_id": by_model["id"], "verdict": "partial", "method": "model", "reason": "The passages say: “frozen”"},
        {"claim_id": unjudged["id"], "verdict": "unverified", "method": "none"}
        | {"reason": "The check did not get to this sentence."},
    ]
    given = [ClaimVerdict.model_validate(each) for each in verdicts]
    rendered = render(state, draft, sample.texts, SKIPPED, "0.1.0", given)
    return Forms(json.loads(rendered.document), rendered.html, {**sample.texts, digest(PAGES): PAGES})


@cache
def packed() -> str:
    sample, state, draft = state_and_draft()
    forms = made(state, draft, sample)
    return json.dumps([forms.report, forms.html, forms.texts])


async def audited(forms: Forms) -> AuditResult:
    store = MemoryStore()
    for text in forms.texts.values():
        await store.put_text(text)
    document, markdown = json.dumps(forms.report).encode(), forms.report["report"]["markdown"]
    return await audit(document, store.text_by_hash, None, HereCalls(), markdown=markdown, html=forms.html.encode())


Alteration = Callable[[Forms], object]


def field(value: object, *path: str | int) -> Alteration:
    """Give a field of `report.json` another value, or what a function makes of it."""

    def change(forms: Forms) -> None:
        place: Any = forms.report
        for key in path[:-1]:
            place = place[key]
        new = value(place[path[-1]]) if callable(value) else value
        assert new != place[path[-1]]
        place[path[-1]] = new

    return change


def text(old: str, new: str) -> Alteration:
    return lambda forms: forms.in_text(old, new)


def page(old: str, new: str) -> Alteration:
    return lambda forms: forms.in_page(old, new)


def both(old: str, new: str) -> Alteration:
    return lambda forms: (forms.in_text(old, new), forms.in_page(old, new))


def everywhere(old: str, new: str) -> Alteration:
    return lambda forms: forms.everywhere(old, new)


def last_dropped(items: list[Any]) -> list[Any]:
    return items[:-1]


def turned(items: list[Any]) -> list[Any]:
    return items[::-1]


FOUND: dict[str, Alteration] = {
    "a word of a quote in all forms": lambda forms: (
        forms.everywhere("two billion", "ten billion"),
        forms.texts.update({digest(each): each for _, each in DOCUMENTS.values()}),
    ),
    "the heading of a passage": field("Never", "evidence", 6, "heading"),
    "the heading of a passage in all forms": lambda forms: (
        field("Never", "evidence", 6, "heading")(forms),
        forms.in_text("§ Age", "§ Never"),
        forms.in_page("§ Age", "§ Never"),
    ),
    "the page of a passage in all forms": lambda forms: (
        field(1, "evidence", 6, "page")(forms),
        forms.in_text("p. 2", "p. 1"),
        forms.in_page("p. 2", "p. 1"),
    ),
    "the page of a passage": field(1, "evidence", 6, "page"),
    "the page of a passage that has none": field(7, "evidence", 0, "page"),
    "the reason of a statement that was not judged": field("It is surely true.", "claims", -1, "reason"),
    "the words that a model's reason quotes": field("The passages say: “never frozen”", "claims", -2, "reason"),
    "a verdict of a model, in report.json alone": field("supported", "claims", -2, "verdict"),
    "the words of a statement": both("mark which keeps", "mark which hides"),
    "a number in a statement": both("an age of 50 million", "an age of 90 million"),
    "a statement without its sign": text(" *(± Supported in part)*", ""),
    "statements in another order": field(turned, "claims"),
    "the passages of a citation": field(
        lambda draft: draft.replace(Sample().rule.id, Sample().freezing.id), "report", "draft"
    ),
    "the number of a citation": text("forever. [1]", "forever. [2]"),
    "the numbers of two sources": lambda forms: [
        citation.update(number=3 - citation["number"]) for citation in forms.report["citations"][:2]
    ],
    "the id of a source": everywhere(Sample().sources["glossary.html"].id, "src-" + 32 * "0"),
    "the id of a passage": everywhere(Sample().rule.id, "ev-" + 32 * "0"),
    "the address of a source": everywhere("https://docs.test/freezing", "https://evil.test/freezing"),
    "the title of a source, in report.json alone": field("Hot", "sources", 3, "title"),
    "the title of a source in the text": text("25.1. Routine Vacuuming", "26.1. Routine Vacuuming"),
    "the quality of a source in the text": text("your documents", "peer-reviewed"),
    "the quality of a source, in report.json alone": field("high", "sources", 3, "quality"),
    "the day of reading, in report.json alone": field("2020-01-01T00:00:00+00:00", "sources", 0, "retrieved_at"),
    "a source that is called cited": field(True, "sources", 2, "cited"),
    "the count of words": field(9, "report", "word_count"),
    "the names of sections": field(turned, "report", "sections"),
    "the share of the content that models were shown": field(1.0, "fidelity", "fidelity"),
    "the number of hits of a search": lambda forms: (
        field(50, "queries", 0, "result_count")(forms),
        field(50, "plan", "nodes", 0, "result_count")(forms),
        forms.in_text("5 results", "50 results"),
        forms.in_page("5 results", "50 results"),
    ),
    "the number of hits of an agent's search": field(70, "queries", -1, "result_count"),
    "a search that is gone": field(last_dropped, "queries"),
    "a search that is gone in all forms": both("age of freezing", "cost of freezing"),
    "the outcome of the work": field("partial", "outcome_before_check"),
    "a limit that ended it": lambda forms: (
        forms.everywhere("no_actionable_gaps", "budget_time"),
        forms.everywhere(
            "the gaps that are left could not be closed with further searches", "the time limit was reached"
        ),
    ),
    "failed work": field(["reading"], "failed_branches"),
    "a limitation that is gone, in report.json alone": field([], "limitations"),
    "a limitation that is gone from both texts": lambda forms: (
        forms.in_text("- All cited documents are pages of one manual: their agreement is not independent.", "- None."),
        forms.in_page("All cited documents are pages of one manual: their agreement is not independent.", "None."),
    ),
    "the severity of a gap": field("minor", "gaps", 0, "severity"),
    "guidance that is gone": field([], "guidance"),
    "what agents found": field(["f-1"], "agents", 0, "result", "finding_ids"),
    "the number of calls": field(1, "usage", "model_calls"),
    **{
        f"{name} of {place[-1]}": field(7, *place, name)
        for name in Usage.model_fields
        if name != "active_seconds"
        for place in (("usage",), ("usage", "by_role", "synthesizer"))
    },
    "an unknown cost of a role": field(None, "usage", "by_role", "synthesizer", "cost_usd"),
    "the cost in both texts": both("0.0200 USD", "0.0001 USD"),
    "the calls in both texts": both("4 model calls", "1 model call"),
    "the end of the run in the text": text("2026-11-21 20:15 UTC.", "2026-11-22 20:15 UTC."),
    "the end of the run, in report.json alone": field("2026-11-22T20:15:15+00:00", "ended_at"),
    "the language": field("de", "language"),
    "the question": field("How are tables dropped?", "query"),
    "the strategy": field("other", "strategy"),
    "the title in the text": text("# How does", "# Why does"),
    "the title of the page": page("<h1>How does", "<h1>Why does"),
    "the title in the window": page("<title>How does", "<title>Why does"),
    "the figures above the text of the page": page('<span class="date">2026-11-21', '<span class="date">2026-11-20'),
    "a reason in the page": page('<p class="reason">The passage is', '<p class="reason">Surely it is'),
    "the words around a quote in the page": page('<span class="context">', '<span class="context">Not so: '),
    "a source's line in the page": page('<p class="about">', '<p class="about">Best of all. '),
    "a link of the page": page("<footer", '<a href="https://evil.test/">more</a><footer'),
    "the style of the page": page("<style>", "<style>.sign { display: none }"),
    "where text goes, in both texts": both("assages go to models.test", "assages go to nobody"),
}
"""One thing that a reader relies on, altered in one form or several; all hashes and places agree."""


def altered(*alterations: Alteration, of: Forms | None = None) -> Forms:
    """The untouched forms with alterations, and all hashes made to agree."""
    forms = of or Forms(*json.loads(packed()))
    for alter in alterations:
        alter(forms)
    forms.seal()
    return forms


def forged(**changes: object) -> Forms:
    sample, state, draft = state_and_draft(**changes)
    return made(state, draft, sample)


SIGNED: dict[str, Callable[[], Forms]] = {
    "a limitation that is gone": lambda: forged(limitations=[]),
    "a degradation that is gone": lambda: forged(degraded=[]),
    "a gap that is gone": lambda: forged(gaps=[]),
    "guidance that is gone": lambda: forged(guidance=[]),
    "a decision that is gone": lambda: forged(decisions=[]),
    "the cost": lambda: forged(usage=Usage(model_calls=1), usage_by_role={}),
    "the title of a source": lambda: altered(everywhere("25.1. Routine Vacuuming", "25.2. Routine Vacuuming")),
    "the title": lambda: altered(
        text("# How does", "# Why does"), page("<title>How", "<title>Why"), page("<h1>How", "<h1>Why")
    ),
    "the words of a degradation": lambda: altered(everywhere("the reviewer did not answer", "all roles answered")),
    "the models": lambda: forged(models_used=["another-model"]),
    "whether a source was analyzed": lambda: altered(
        field(False, "sources", 0, "analyzed"), of=forged(fidelity={}, content_archive_hashes=[])
    ),
    "the time of the run": lambda: forged(started_at="2020-01-01T00:00:00+00:00"),
}
"""What a bundle alone says: nothing else in it shows that it was otherwise, and only a signature does."""


@pytest.mark.parametrize("name", SIGNED)
async def test_what_only_a_signature_shows_is_known(name: str) -> None:
    """The page on reports names these: who renders all forms anew from other facts is found by a signature alone."""
    forms = SIGNED[name]()
    assert forms != Forms(*json.loads(packed()))
    assert (await audited(forms)).problems == []


@pytest.mark.parametrize("name", FOUND)
async def test_an_alteration_is_found_though_every_hash_agrees(name: str) -> None:
    """Whatever follows from something else in a bundle is made again and compared."""
    result = await audited(altered(FOUND[name]))
    assert not result.passed
