"""The audit of a report, also of one whose forger makes every hash, place and form agree again."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import pytest

from activities.reporting.audit import DISTRUST, AuditResult, audit
from activities.reporting.inputs import RenderMaterial
from activities.reporting.render import render
from benchmarks.truth.forgery import forge
from contracts.addresses import digest
from contracts.agents import AgentRecord, AgentTask, TaskResult
from contracts.evidence import ClaimVerdict, DocumentRef, Gap, QueryRecord
from contracts.outcome import Guidance, Usage
from contracts.resolved import where_text_goes
from contracts.sentences import Message, from_data
from contracts.state import ResearchState
from contracts.tokens import FidelityTotals
from contracts.vocabulary import AgentStatus, EngineKind, StopReason
from providers.isolation.pool import SubprocessPool
from tests.fakes.killers import HereCalls
from tests.unit.activities.reporting.sample import (
    DOCUMENTS,
    SKIPPED,
    VACUUM,
    Sample,
    make_evidence,
    make_resolved,
    make_source,
    store_of,
)

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


def state_and_draft(*, quality: str = "a publisher", **changes: object) -> tuple[Sample, ResearchState, str]:
    """A run with everything that a report can name; `quality` is the reason for that of a source."""
    sample = Sample()
    named = {"pages": DocumentRef(hash=digest(PAGES)), "quality": "medium", "quality_reason": quality}
    source = make_source("https://docs.test/freezing", "Freezing", FREEZING, **named)
    age = make_evidence(source, FREEZING, "Rows are frozen at an age of 50 million transactions.", "Age")
    age = age.model_copy(update={"page": 2})
    sample.sources["freezing"], sample.evidence[age.id] = source, age
    sample.texts[digest(FREEZING)] = FREEZING
    task = AgentTask(id="agent-1", text="Find the age.", strategy="agent")
    done = TaskResult(stop_reason=StopReason.NO_OPEN_GAPS, finding_ids=["f-1", "f-2"])
    usage = Usage(model_calls=4, input_tokens=900, output_tokens=80, searches=3, reads=3, cost_usd=0.02)
    asked = {"text": "What is transaction ID wraparound?", "sub_query_id": "sq-0000000001", "found": 5}
    by_agent = {"text": "age of freezing", "sub_query_id": "agent-1", "found": 7}
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
        "query_ledger": [QueryRecord(provider="web", **each) for each in (asked, by_agent)],
    }
    state = sample.state(**(known | changes))
    draft = sample.draft + f"\n## Age\n\nRows are frozen at an age of 50 million transactions. [{age.id}]\n\n"
    return sample, state, draft + f"{BY_MODEL} [{sample.freezing.id}]\n\nThe rest is known. [{sample.rule.id}]\n"


LACKING = ["an age", "50 million"]


def made(*, quality: str = "a publisher", **changes: object) -> Forms:
    """The forms of a run, two statements of which a model judged, or failed to."""
    sample, state, draft = state_and_draft(quality=quality, **changes)
    material = RenderMaterial(state=state, draft=draft, texts=sample.texts, skipped=SKIPPED, product_version="0.1.0")
    first = render(material)
    *_, by_model, unjudged = json.loads(first.document)["claims"]
    verdicts = [
        {"claim_id": by_model["id"], "verdict": "partial", "method": "model", "reason": "The passages say: “frozen”"}
        | {"lacking": LACKING},
        {"claim_id": unjudged["id"], "verdict": "unverified", "method": "none"}
        | {"reason": "The check did not get to this sentence."},
    ]
    given = [ClaimVerdict.model_validate(each) for each in verdicts]
    rendered = render(material.model_copy(update={"verdicts": given}))
    return Forms(json.loads(rendered.document), rendered.html, {**sample.texts, digest(PAGES): PAGES})


@cache
def packed() -> str:
    forms = made()
    return json.dumps([forms.report, forms.html, forms.texts])


def untouched() -> Forms:
    return Forms(*json.loads(packed()))


async def audited(
    forms: Forms,
    *,
    damaged: dict[str, bytes | None] | None = None,
    pool: SubprocessPool | None = None,
    version: str = "0.1.0",
) -> AuditResult:
    """The audit of a report, over a store in which some documents may be damaged or gone."""
    store = await store_of(forms.texts)
    for identity, data in (damaged or {}).items():
        if data is None:
            del store.documents[identity]
        else:
            store.documents[identity] = data
    document, markdown, html = (
        json.dumps(forms.report).encode(),
        forms.report["report"]["markdown"],
        forms.html.encode(),
    )
    forms_of = {"markdown": markdown, "html": html}
    return await audit(document, store.text_by_hash, store.by_hash, pool or HereCalls(), version=version, **forms_of)


async def kinds_of(forms: Forms) -> set[str]:
    return {problem.kind for problem in (await audited(forms)).problems}


Alteration = Callable[[Forms], object]


def field(path: str, value: object) -> Alteration:
    """Give a field of `report.json` another value, or what a function makes of it."""
    *keys, last = [int(key) if key.lstrip("-").isdigit() else key for key in path.split(".")]

    def change(forms: Forms) -> None:
        place: Any = forms.report
        for key in keys:
            place = place[key]
        new = value(place[last]) if callable(value) else value
        assert new != place[last]
        place[last] = new

    return change


def text(old: str, new: str) -> Alteration:
    return lambda forms: forms.in_text(old, new)


def page(old: str, new: str) -> Alteration:
    return lambda forms: forms.in_page(old, new)


def both(old: str, new: str) -> Alteration:
    return lambda forms: (forms.in_text(old, new), forms.in_page(old, new))


def everywhere(old: str, new: str) -> Alteration:
    return lambda forms: forms.everywhere(old, new)


def altered(*alterations: Alteration, of: Forms | None = None, seal: bool = True) -> Forms:
    """The untouched forms with alterations, and all hashes made to agree."""
    forms = of or untouched()
    for alter in alterations:
        alter(forms)
    if seal:
        forms.seal()
    return forms


# --- sentences of the product ----------------------------------------------------------------------------------------
def german() -> Forms:
    """The forms of a report in German, of a run with sentences of the product in several places."""
    lost = Message("sources_lost", count=2, all=5, why=[Message("lost_time")])
    gap = Gap(id="gap-0000000001", description=Message("gap_silent", query="What does freezing cost?"))
    resolved = make_resolved(
        engine=EngineKind.MODEL, language="de", egress=where_text_goes("models.test", [], pages=True)
    )
    forms = made(resolved=resolved, limitations=[lost, "a text of a model"], gaps=[gap], quality=Message("site_wiki"))
    assert {"/effective_request/egress", "/limitations/0", "/gaps/0/description"} <= forms.report["messages"].keys()
    return forms


async def test_a_report_in_another_language_follows_from_its_messages() -> None:
    """The text is in the language of the report, `report.json` in English, and one follows from the other."""
    forms = german()
    assert (
        "2 von 5 Quellen wurden nicht gelesen: kein Arbeiter las sie rechtzeitig." in forms.report["report"]["markdown"]
    )
    assert forms.report["limitations"] == [
        "2 of 5 sources were not read: no worker read them in time.",
        "a text of a model",
    ]
    assert forms.report["messages"]["/gaps/0/description"] == {
        "sentence": "gap_silent",
        "values": {"query": "What does freezing cost?"},
    }
    assert "Lexikon, das jeder ändern kann" in forms.report["report"]["markdown"]
    assert "encyclopedia that anybody can edit" in {source["quality_reason"] for source in forms.report["sources"]}
    assert (await audited(forms)).problems == []


@pytest.mark.parametrize("path", ["limitations.0", "gaps.0.description"])
async def test_a_changed_sentence_of_the_product_is_found(path: str) -> None:
    """Neither the English text of a message nor its data can be changed alone, nor both without the text."""
    pointer = f"/{path.replace('.', '/')}"
    value = ("values", "count", 1) if path.startswith("l") else ("values", "query", "Nothing?")

    def data(forms: Forms) -> None:
        message = forms.report["messages"][pointer]
        message[value[0]][value[1]] = value[2]

    def in_both(forms: Forms) -> None:
        data(forms)
        field(path, str(from_data(forms.report["messages"][pointer])))(forms)

    for alteration in (field(path, "Nothing was lost."), data, in_both):
        assert await kinds_of(altered(alteration, of=german())) != set()


# --- what is compared ------------------------------------------------------------------------------------------------
async def test_untouched_report_passes_and_everything_is_counted() -> None:
    """What was compared is counted, what cannot be compared is counted too, and nothing differs."""
    result = await audited(untouched())
    assert (result.problems, result.passed) == ([], True)
    counts = {
        "stored texts": 4,
        "stored originals": 4,
        "passages": 7,
        "findings": 1,
        "claims": 17,
        "word for word claims": 7,
        "claims judged by rules": 4,
        "claims without a citation": 4,
        **dict.fromkeys(("text in report.json", "report.md", "report.html"), 1),
        "fields of the report": 51,
        "sections of the text": 7,
    }
    assert result.checked | counts == result.checked
    assert result.unchecked == {
        "headings that the stored text does not have": 6,
        "verdicts of a model, which no rule gives again": 1,
        "claims that no comparison of words can check": 1,
    }


async def test_a_report_of_another_version_is_sent_to_that_version() -> None:
    """Where other rules wrote the report, a verdict that differs may be theirs, and a word of a source may not."""
    forms = untouched()
    forms.report["claims"][8]["method"] = "verbatim"
    other = {one.kind: one.remedy for one in (await audited(forms, version="0.2.0")).problems}
    assert "written by durable-research 0.1.0, and this is 0.2.0" in other["verdict_differs"]
    same = {one.kind: one.remedy for one in (await audited(forms)).problems}
    assert same["verdict_differs"] == DISTRUST
    forms = untouched()
    forms.report["evidence"][0]["quote"] = "Other words."
    words = {one.kind: one.remedy for one in (await audited(forms, version="0.2.0")).problems}
    assert words["quote_differs"] == DISTRUST


async def test_a_process_that_can_be_killed_finds_the_same() -> None:
    """Counts and differences come back from the child as they were found."""
    forms = altered(field("evidence.0.quote", "Other words."))
    async with SubprocessPool(1) as pool:
        there = await audited(forms, pool=pool)
    assert not there.passed
    assert there == await audited(forms)


@pytest.mark.parametrize("position", [0, len(VACUUM.encode()) - 1])
@pytest.mark.parametrize(("prefix", "kind"), [("", "text_differs"), ("raw ", "original_differs")])
async def test_one_altered_byte_of_a_stored_file_is_found(position: int, prefix: str, kind: str) -> None:
    """One changed byte of a stored text or of a stored original fails the audit."""
    data = bytearray((prefix + VACUUM).encode())
    data[position] ^= 1
    result = await audited(untouched(), damaged={digest(prefix + VACUUM): bytes(data)})
    assert {problem.kind for problem in result.problems} == {kind}


async def test_missing_file_is_a_problem_and_its_passages_are_counted_as_unchecked() -> None:
    """A document that is gone fails the audit; its passages are counted as unchecked, not skipped in silence."""
    result = await audited(untouched(), damaged={digest(VACUUM): None})
    assert [problem.kind for problem in result.problems] == ["text_missing"]
    assert result.unchecked["passages without their text"] == 4
    (problem,) = (await audited(untouched(), damaged={digest(PAGES): None})).problems
    assert (problem.kind, problem.message) == ("page_list_missing", "the stored page list is gone")
    assert problem.remedy.startswith("compare the archive with a backup")


KINDS: list[tuple[str, str, Any]] = [
    ("malformed", "schema_version", 2),
    ("quote_differs", "evidence.0.quote", "Other words."),
    ("offset_differs", "evidence.0.start", lambda start: start + 1),
    ("evidence_without_source", "evidence.0.source_id", "src-0000000000"),
    ("evidence_without_text", "sources.0.text_hash", None),
    ("place_differs", "evidence.0.page", 3),
    ("finding_differs", "findings.0.source_ids", []),
    ("id_differs", "findings.0.statement", "Tables need no vacuum."),
    ("text_altered", "report.markdown", lambda text: text.replace("two billion", "two million")),
    ("section_altered", "report.markdown", lambda text: text + "\nSee https://evil.test/x now.\n"),
    ("section_altered", "report.markdown", lambda text: text + "\n[x][y]\n\n[y]: //evil.test\n"),
    ("field_differs", "evidence", lambda items: [*items, items[0]]),
    ("field_differs", "sources", lambda items: [*items, items[0]]),
    ("field_differs", "claims.1.start", lambda start: start + 1),
    ("verdict_differs", "claims.8.method", "verbatim"),
    ("verdict_differs", "claims.8", lambda claim: claim | {"method": "none", "verdict": "supported"}),
    ("verdict_differs", "claims.1", lambda claim: claim | {"method": "rules", "verdict": "unsupported"}),
    ("outcome_differs", "stop_reason", "budget_time"),
    ("not_renderable", "effective_request", {}),
]


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("kind", "path", "value"), KINDS, ids=[f"{kind}-{n}" for n, (kind, *_) in enumerate(KINDS)])
async def test_an_altered_field_is_found_by_its_kind(kind: str, path: str, value: object) -> None:
    """A report in which one thing was changed fails the audit with the kind of the change."""
    assert kind in await kinds_of(altered(field(path, value), seal=False))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("method", ["verbatim", "rules", "model"])
@pytest.mark.parametrize("place", [1, 8])
@pytest.mark.parametrize("new_id", [False, True])
async def test_a_sentence_that_is_forged_throughout_is_found(method: str, place: int, new_id: bool) -> None:
    """Text, claim and hashes agree; the id of the claim, or its verdict, does not follow from its words.

    What a model is to have judged follows from nothing, but the rest of the report does not agree.
    """
    forms = untouched()
    claim = forms.report["claims"][place]
    words = claim["text"].replace("two ", "nine ", 1).replace("200", "900", 1)
    assert words != claim["text"]
    forms.report = forge(forms.report, place, words, "supported", method, new_id=new_id)
    kinds = await kinds_of(forms)
    assert ("verdict_differs" if new_id and method != "model" else "field_differs") in kinds
    assert "text_altered" not in kinds


@pytest.mark.parametrize("cover", ["\0", "<div>" * 3_000])
async def test_nothing_hides_a_link_of_a_page_from_the_audit(cover: str) -> None:
    """What a parser stops at is no end of the page: browsers read on."""
    forms = untouched()
    forms.html += f'{cover}<a href="https://evil.test/">'
    forms.seal()
    assert await kinds_of(forms) == {"page_differs"}


# --- forged with all hashes ------------------------------------------------------------------------------------------
USED = [name for name in Usage.model_fields if name != "active_seconds"]
DERIVED = [
    *"evidence.0.prefix evidence.0.page evidence.6.page evidence.6.heading sources.2.cited sources.3.title".split(),
    *"sources.0.retrieved_at claims claims.1.id claims.1.text claims.1.section claims.1.evidence_ids".split(),
    *"claims.1.citation_numbers claims.8.reason claims.-1.reason findings.0.evidence_ids".split(),
    *"citations.1.number citations_count report.word_count report.sections confidence_summary.high".split(),
    *"verification.verdict_counts.supported verification.effective_citations verification.mode".split(),
    *"queries queries.-1.result_count queries_failed failed_branches limitations guidance fidelity.fidelity".split(),
    *"agents.0.result.finding_ids language query strategy".split(),
    *(f"usage.{name}" for name in USED),
    *(f"usage.by_role.synthesizer.{name}" for name in USED),
]
"""Fields of `report.json` that follow from others."""


def another(value: Any) -> Any:
    """Another value of the same kind: one more, one item or letter less."""
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case []:
            return ["more"]
        case list():
            return value[:-1]
        case None:
            return 7
    return value[1:]


@pytest.mark.one_in(4)
@pytest.mark.parametrize("path", DERIVED)
async def test_a_field_that_follows_from_others_cannot_be_altered(path: str) -> None:
    """Whatever of `report.json` follows from something else in it is made again and compared."""
    assert await kinds_of(altered(field(path, another))) - {"malformed"}


LIMITATION = "All cited documents are pages of one manual: their agreement is not independent."
FOUND: dict[str, list[Alteration]] = {
    "a word of a quote in all forms": [
        everywhere("two billion", "ten billion"),
        lambda forms: forms.texts.update({digest(each): each for _, each in DOCUMENTS.values()}),
    ],
    "the heading of a passage in all forms": [field("evidence.6.heading", "Never"), both("§ Age", "§ Never")],
    "the page of a passage in all forms": [field("evidence.6.page", 1), both("p. 2", "p. 1")],
    "a verdict of a model, in report.json alone": [field("claims.-2.verdict", "supported")],
    "the words that a model's reason quotes": [field("claims.-2.reason", "The passages say: “never frozen”")],
    "a number in a statement": [both("an age of 50 million", "an age of 90 million")],
    "a statement without its sign": [text(" *(± Supported in part)*", "")],
    "the passages of a citation": [
        field("report.draft", lambda draft: draft.replace(Sample().rule.id, Sample().freezing.id))
    ],
    "the number of a citation": [text("forever. [1]", "forever. [2]")],
    "the numbers of two sources": [field("citations.0.number", 2), field("citations.1.number", 1)],
    "the id of a source": [everywhere(Sample().sources["glossary.html"].id, "src-" + 32 * "0")],
    "the id of a passage": [everywhere(Sample().rule.id, "ev-" + 32 * "0")],
    "the address of a source": [everywhere("https://docs.test/freezing", "https://evil.test/freezing")],
    "the quality of a source in the text": [text("your documents", "peer-reviewed")],
    "the quality of a source, in report.json alone": [field("sources.3.quality", "high")],
    "the number of hits of a search": [
        field("queries.0.result_count", 50),
        field("plan.nodes.0.result_count", 50),
        both("5 results", "50 results"),
    ],
    "a search that is gone in all forms": [both("age of freezing", "cost of freezing")],
    "the outcome": [field("outcome", "partial")],
    "a limit that ended it": [
        everywhere("no_actionable_gaps", "budget_time"),
        everywhere("the gaps that are left could not be closed with further searches", "the time limit was reached"),
    ],
    "a limitation that is gone from both texts": [text(f"- {LIMITATION}", "- None."), page(LIMITATION, "None.")],
    "the severity of a gap": [field("gaps.0.severity", "minor")],
    "an unknown cost of a role": [field("usage.by_role.synthesizer.cost_usd", None)],
    "the cost in both texts": [both("0.0200 USD", "0.0001 USD")],
    "the end of the run, in report.json alone": [field("ended_at", "2026-11-22T20:15:15+00:00")],
    "the title in the text": [text("# How does", "# Why does")],
    "a title that was the question, in both texts": [
        text("# How does", "# Why does"),
        page("<title>How", "<title>Why"),
        page("<h1>How", "<h1>Why"),
    ],
    "the words around a quote in the page": [page('<span class="context">', '<span class="context">Not so: ')],
    "a link of the page": [page("<footer", '<a href="https://evil.test/">more</a><footer')],
    "where text goes, in both texts": [both("assages go to models.test", "assages go to nobody")],
}
"""One thing that a reader relies on, altered in one form or several; all hashes and places agree."""


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", FOUND)
async def test_an_alteration_is_found_though_every_hash_agrees(name: str) -> None:
    """Words, numbers and verdicts cannot be changed in one form or in all of them."""
    assert await kinds_of(altered(*FOUND[name]))


SIGNED: dict[str, Callable[[], Forms]] = {
    "a limitation that is gone": partial(made, limitations=[]),
    "a degradation that is gone": partial(made, degraded=[]),
    "a gap that is gone": partial(made, gaps=[]),
    "guidance that is gone": partial(made, guidance=[]),
    "a decision that is gone": partial(made, decisions=[]),
    "the cost": partial(made, usage=Usage(model_calls=1), usage_by_role={}),
    "the title of a source": lambda: altered(everywhere("25.1. Routine Vacuuming", "25.2. Routine Vacuuming")),
    "the words of a degradation": lambda: altered(everywhere("the reviewer did not answer", "all roles answered")),
    "the models": partial(made, models_used=["another-model"]),
    "whether a source was analyzed": lambda: altered(
        field("sources.0.analyzed", False), of=made(fidelity={}, content_archive_hashes=[])
    ),
    "the time of the run": partial(made, started_at="2020-01-01T00:00:00+00:00"),
}
"""What a bundle alone says: nothing else in it shows that it was otherwise, and only a signature does."""


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", SIGNED)
async def test_what_only_a_signature_shows_is_known(name: str) -> None:
    """The page on reports names these: who renders all forms anew from other facts is found by a signature alone."""
    forms = SIGNED[name]()
    assert forms != untouched()
    assert await kinds_of(forms) == set()


def test_a_report_names_the_words_without_a_passage() -> None:
    """They are fields of the statement, and stand beside it in the list of doubtful statements."""
    forms = untouched()
    (claim,) = [claim for claim in forms.report["claims"] if claim["verdict"] == "partial"]
    assert claim["lacking"] == LACKING
    assert "(no passage has: an age; 50 million)" in forms.report["report"]["markdown"]
