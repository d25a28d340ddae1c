"""The canary in prompts, in answers and in addresses."""

import json
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from activities.assessment.source_assessment import judge_of
from activities.reading import ReadingActivities
from activities.reporting.render import render
from activities.roles.prompt_rendering import render_role
from contracts import failures, roles
from contracts.addresses import digest
from contracts.canary import STEERED, contains_canary, exposes_private_text
from contracts.evidence import DocumentRef
from contracts.messages import ReadRequest
from providers.domains import Domains
from providers.interfaces import ExtractedDocument
from providers.reading.document_kinds import HTML
from providers.reading.documents import read_page
from providers.storage.stored_notebooks import Notebooks
from tests.fakes.hostile_pages import HostilePage, hostile_pages
from tests.fakes.killers import HereCalls
from tests.fakes.model_work import unmarked
from tests.unit.activities.reporting.sample import Sample, make_resolved
from tests.unit.activities.scripted import (
    MemoryStore,
    ScriptedEngine,
    analyze_input,
    environment,
    role_activities,
    source,
)

CANARY = "8fbddb3160f16a89af97bab4"


def test_the_canary_is_found_whatever_its_case_and_form() -> None:
    """Full-width letters and capitals are the same text after NFKC; pieces and other texts are not."""
    wide = "".join(chr(ord(sign) + 0xFEE0) for sign in CANARY)
    assert all(contains_canary(f"see {form}.", CANARY) for form in (CANARY, CANARY.upper(), wide))
    assert not contains_canary(CANARY[:12], CANARY)
    assert not contains_canary("anything", "")


def test_an_address_exposes_the_canary_and_private_text() -> None:
    """Twenty letters in a row of a private text count, unless the question, which searches send anyway, has them."""
    private, public = ["The heliotrope memorandum stays among us."], ["How does wraparound prevention work?"]
    assert exposes_private_text(f"https://a.test/{CANARY}", CANARY, [], [])
    assert exposes_private_text("https://a.test/?d=heliotrope-memorandum%20stays", CANARY, private, public)
    assert not exposes_private_text("https://a.test/?q=how+does+wraparound+prevention", CANARY, public, public)
    assert not exposes_private_text("https://a.test/heliotrope", CANARY, private, public)


def draft_with(text: str) -> roles.AnalyzerAnswer:
    """An analysis with a text in its depths."""
    gap = roles.ProposedGap(description="what is missing", suggested_queries=["one", text])
    return roles.AnalyzerAnswer(findings=[], gaps=[gap])


async def test_the_activity_fails_as_for_any_unusable_answer() -> None:
    """The answer was paid, its usage is told, and nothing of it is in the failure."""
    engine = ScriptedEngine(draft_with(CANARY))
    activities = role_activities(engine, MemoryStore())
    with pytest.raises(ApplicationError) as caught:
        await environment().run(activities.run, roles.ANALYZER, analyze_input([], canary=CANARY))
    assert caught.value.type == failures.INVALID_MODEL_OUTPUT
    details: dict[str, Any] = caught.value.details[0]
    assert details["problem"] == STEERED
    assert details["usage"]["model_calls"] == 1
    assert CANARY not in f"{caught.value} {caught.value.details}"


@pytest.mark.parametrize("case", [case for case in hostile_pages() if case.seen], ids=lambda case: case.name)
def test_visible_payloads_stay_inside_their_element(case: HostilePage) -> None:
    """Whatever a page says, it stands in the one genuine element."""
    hostile, clean = (_rendered(case, page.body.encode(), page.title) for page in (case.hostile, case.clean))
    assert case.code_word in hostile.prompt
    shown, expected = unmarked(hostile.prompt), unmarked(clean.prompt)
    assert shown.count("<source ") == shown.count("</source>") == 1
    before, _, rest = shown.partition("<source ")
    inside, _, behind = rest.partition("</source>")
    assert case.code_word in inside
    assert (before, behind) == (expected.partition("<source ")[0], expected.partition("</source>")[2])


def _rendered(case: HostilePage, body: bytes, title: str) -> Any:
    found = read_page(body, HTML, "utf-8", "https://a.test/x")
    stored = DocumentRef(hash=digest(found.text), media_type="text/plain", size=len(found.text))
    request = analyze_input([source(stored, title=title, snippet=f"About {title}")], canary=CANARY)
    return render_role(roles.ANALYZER, request, {stored.hash: found.text})


async def test_an_address_with_private_words_is_never_asked_for() -> None:
    """It is refused with a reason of its own before the reader hears of it."""
    asked: list[str] = []

    class Recorder:
        async def read(self, url: str, *, tenant: str, domains: Domains) -> ExtractedDocument:
            asked.append(url)
            return ExtractedDocument(url=url, title="", text="words", raw=b"words", media_type="text/plain")

    content = MemoryStore()
    activities = ReadingActivities(Recorder(), content, judge_of(HereCalls(), {}.get), Notebooks(content))
    request = ReadRequest(source_id="src-1", url="https://a.test/?d=1", exposes_private_text=True, permitted=True)
    with pytest.raises(ApplicationError) as caught:
        await environment().run(activities.read_source, request)
    assert (caught.value.type, caught.value.details[0]["kind"]) == (failures.SOURCE_UNREADABLE, "refused_private")
    assert caught.value.non_retryable
    assert asked == []


def test_the_report_as_data_does_not_tell_it() -> None:
    """The effective request in `report.json` is without it."""
    sample = Sample()
    state = sample.state(resolved=make_resolved(canary=CANARY))
    result = render(state, sample.draft, sample.texts, [], "0.1.0")
    assert CANARY not in f"{result.markdown} {result.html} {json.dumps(result.document)}"
