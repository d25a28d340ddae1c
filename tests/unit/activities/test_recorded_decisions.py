"""What is made of many requests, and what many pages are worth, against recorded tables.

`python -m tests.unit.activities.test_recorded_decisions` records. Read the difference before you record.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from activities.assessment.authorities import load_authorities
from activities.assessment.source_assessment import FULL_LENGTH, assess
from activities.configuration import ResearchConfiguration, WebSearchConfiguration
from activities.preparation import RunRefused, resolve, resolve_again
from activities.reporting.render import render
from contracts.messages import ReadRequest
from contracts.request import ResearchRequest
from contracts.resolved import CorpusSnapshot, Hook, ModelPrice, ProviderChoice
from contracts.usage import Usage
from contracts.vocabulary import Outcome, PageAccess, Quality, StopReason
from providers.interfaces import ExtractedDocument
from tests.unit.activities.reporting.sample import ENDING, SKIPPED, Sample, make_resolved

FOLDER = Path(__file__).parent / "recorded_decisions"
QUERY = "How does autovacuum prevent transaction wraparound in PostgreSQL?"
ANSWER = (
    "Autovacuum freezes old rows of PostgreSQL tables to prevent that transaction identifiers run into wraparound. "
)
FILLER = "The weather in the mountains changed slowly over the afternoon while nobody was looking at the sky at all. "
SERVICES = [
    ProviderChoice(name="searxng", available=True, reason="configured", host="s.test"),
    ProviderChoice(name="brave", available=False, reason="no key", host="b.test"),
]
PLAIN = ResearchConfiguration(web_search=WebSearchConfiguration(choose=lambda _, __: SERVICES), product_version="1")
PRICES = {"small": ModelPrice(input=1, output=5), "big": ModelPrice(input=3, output=4)}
FULL = ResearchConfiguration(
    models={"simple": "small", "analytical": "big", "complex": "big"},
    model_host={"small": "one.test", "big": "two.test", "other": "three.test"}.get,
    candidates={"simple": ["small", "other"], "complex": ["other", "small"]},
    reasoning_tokens={"big": 4_000, "small": 1_000}.get,
    model_price=PRICES.get,
    web_search=WebSearchConfiguration(
        choose=lambda _, __: SERVICES,
        domains_deny=["spam.test"],
        advice=lambda asked: [f"set up more than {choice.name}" for choice in asked],
    ),
    hooks={"house": Hook(name="house", activity="house_rules", task_queue="house")},
    digest="d",
    product_version="1",
)
CORPUS = CorpusSnapshot(name="manual", files=3)
REQUESTS: dict[str, dict[str, Any]] = {
    "German": {"query": "Wie verhindert die Datenbank den Überlauf?", "corpus": "manual"},
    "plain": {},
    "corpus": {"corpus": "manual"},
    "extractive": {"corpus": "manual", "engine": "extractive"},
    "model": {"engine": "model", "corpus": "manual"},
    "one model": {"models": {"simple": "other"}},
    "web too": {"corpus": "manual", "web": True},
    "no web": {"corpus": "manual", "web": False},
    "nothing": {"web": False},
    "deep": {"depth": "extended", "limits": {"max_sources": 7, "deadline_seconds": 100, "max_cost_usd": 0.5}},
    "light": {"depth": "light", "limits": {"max_iterations": 1, "max_model_calls": 3, "max_tokens": 1_000}},
    "gates": {"gates": {"policy": "advisory", "think": "off", "hook": "house"}},
    "unknown hook": {"gates": {"hook": "none"}},
    "search": {
        "search": {"policy": "fan_out", "max_results_per_query": 4, "source_types": ["news"], "domains_allow": ["A.test"]},
        "constraints": {"language": "de", "timeframe": "month", "audience": "cooks", "region": "Europe"},
    },
    "form": {
        "output": {"language": "fr", "target_words": 500, "sections": ["Why"]},
        "verify": "off",
        "on_deadline": "abort",
        "system_prompt": "Be blunt.",
        "context": [{"question": "a", "answer": "b"}],
        "metadata": {"team": "x"},
        "tenant": "acme",
        "priority": 1,
    },
}  # fmt: skip


def dumped(make: Callable[[], Any]) -> Any:
    """The resolution, or why there is none."""
    try:
        return make().model_dump(mode="json")
    except RunRefused as refused:
        return {"refused": refused.reason.value, "message": str(refused)}


def resolutions() -> dict[str, Any]:
    """Each request, for a worker without models and for one that has everything."""
    made = {}
    for worker, configuration in (("plain worker", PLAIN), ("full worker", FULL)):
        for name, fields in REQUESTS.items():
            request = ResearchRequest(**{"query": "How does it work?", **fields})
            corpus = CORPUS if request.corpus else None
            made[f"{worker}, {name}"] = dumped(
                lambda request=request, corpus=corpus, configuration=configuration: resolve(
                    "r-1", request, configuration, corpus, search_attributes=corpus is None
                )
            )
    return made


def resumptions() -> dict[str, Any]:
    """Each request over a run of another one: what changed, or why it may not."""
    made = {}
    for first in ("corpus", "web too", "form"):
        request = ResearchRequest(query="How does it work?", **REQUESTS[first])
        stored = resolve("r-1", request, FULL, CORPUS if request.corpus else None, search_attributes=False)
        before = stored.model_dump(mode="json")
        for name, fields in REQUESTS.items():
            again = ResearchRequest(**{"query": "How does it work?", **fields})
            after = dumped(lambda stored=stored, again=again: resolve_again(stored, again, FULL))
            changed = {key: value for key, value in after.items() if before.get(key) != value}
            made[f"{first}, then {name}"] = changed
        made[f"{first}, then another question"] = dumped(
            lambda stored=stored: resolve_again(stored, ResearchRequest(query="Another question?"), FULL)
        )
    return made


def assessments() -> dict[str, Any]:
    """Pages that differ in one thing each."""
    pages: dict[str, dict[str, Any]] = {"plain": {}}
    for url in ("https://www.postgresql.org/docs/x", "https://cs.stanford.edu/x", "https://en.wikipedia.org/wiki/x",
                "https://arxiv.org/abs/1", "https://medium.com/x", "https://bit.ly/x", "https://a.gov/x",
                "https://www.reddit.com/r/x", "https://declared.test/x", "https://sub.low.test/x"):  # fmt: skip
        pages[url] = {"url": url}
        pages[f"{url} (academic)"] = {"url": url, "mode": "academic"}
        pages[f"{url} (news)"] = {"url": url, "mode": "news"}
    for date in ("2026-11-20", "2026-10-21", "2026-05-01", "2025-11-20", "2024-01-01", "2019-12-31", "2001", "soon",
                 "2027-01-01", "2025-11"):  # fmt: skip
        pages[f"of {date}"] = {"published_at": date}
        pages[f"of {date}, news"] = {"published_at": date, "mode": "news"}
        pages[f"of {date}, asked from 2025"] = {"published_at": date, "published_from": "2025-01-01"}
    for number in (0, 1, 2, 5, 10, 18, 19, 40):
        pages[f"{number} sentences"] = {"text": ANSWER * number}
        pages[f"{number} lines"] = {"text": (ANSWER + "\n") * number}
        pages[f"{number} short lines"] = {"text": "a short line\n" * number * 10}
    for access in PageAccess:
        pages[f"access {access.value}"] = {"access": access}
    pages |= {
        "full length": {"text": (FILLER * 30)[:FULL_LENGTH]},
        "one character less": {"text": (FILLER * 30)[: FULL_LENGTH - 1]},
        "off the point": {"text": FILLER * 25, "title": "Weather", "snippet": ""},
        "off the point, but for its snippet": {"text": FILLER * 25, "title": "Weather", "snippet": ANSWER},
        "off the point, but for its title": {"text": FILLER * 25, "title": QUERY},
        "half": {"text": (ANSWER + FILLER * 5) * 5},
        "German": {"language": "de"},
        "far down": {"text": FILLER * 700 + ANSWER},
        "without a title": {"title": ""},
        "user's": {"url": "https://stackoverflow.com/questions/1"},
    }
    return {name: assessed(**changes) for name, changes in pages.items()}


def assessed(**changes: Any) -> Any:
    """The judgement of a page that answers the query, save for what is changed."""
    page = {"url": "https://example.org/a", "title": "Wraparound", "text": ANSWER * 25, "published_at": "2025-06-01"}
    own = {
        name: changes.pop(name) for name in ("text", "title", "published_at", "access", "language") if name in changes
    }
    url = changes.pop("url", page["url"])
    asked = {"query": QUERY, "date": "2026-11-21", "source_id": "src-1", "url": url, **changes}
    document = ExtractedDocument(**{**page, **own, "url": url, "raw": b"", "media_type": "text/html"})
    declared = {"declared.test": Quality.HIGH, "low.test": Quality.LOW}
    return assess(ReadRequest(**asked), document, load_authorities(), declared).model_dump(mode="json")


def endings() -> dict[str, Any]:
    """What a report says of each way to end, and of each thing that may be missing, beside what all reports say."""
    sample, gone = Sample(), {"draft": None, "citations": []}
    draft = sample.state().draft
    assert draft is not None
    ways = [(outcome, StopReason.BUDGET_TIME) for outcome in Outcome]
    ways += [(Outcome.PARTIAL, reason) for reason in StopReason]
    states: dict[str, tuple[dict[str, Any], str | None]] = {
        f"{outcome.value}: {reason.value}": ({"ending": ENDING | {"outcome": outcome, "stop_reason": reason}}, None)
        for outcome, reason in ways
    }
    partial = ENDING | {"outcome": "partial", "completeness": "partial"}
    states |= {
        "partial": ({"ending": partial}, None),
        "partial, a branch failed": ({"ending": partial, "failed_branches": ["analysis of “cost”: no answer"]}, None),
        "partial, not answered": (
            {"ending": partial, "draft": draft.model_copy(update={"unanswered": "no passage names it"})}, None,
        ),
        "no draft": ({**gone, "ending": partial}, ""),
        "no draft, nothing found": (
            {**gone, "ending": ENDING | {"outcome": "empty"}, "sources": {}, "findings": [], "evidence": {}}, "",
        ),
        "degraded": ({"degraded": ["one", "two"], "fallbacks": {"planner": 1}}, None),
        "no usage": ({"usage": Usage()}, None),
        "paid without a model": ({"usage": Usage(searches=1, cost_usd=0.5)}, None),
        "cost unknown": (
            {"usage": Usage(model_calls=2, input_tokens=1_000, output_tokens=1, cost_usd=None),
             "usage_by_role": {"planner": Usage(model_calls=1, cost_usd=0.1)}}, None,
        ),
        "one of each": (
            {"usage": Usage(model_calls=1, input_tokens=1, output_tokens=1, cost_usd=0.01, cached_tokens=1, searches=1,
                            reads=1, cached_reads=1, cached_searches=1, active_seconds=61)}, None,
        ),
        "over the web": ({"resolved": make_resolved(corpus=None, web=True, egress="words go to s.test")}, None),
        "by a model": (
            {"resolved": make_resolved(engine="model", models={"complex": "big"}), "models_used": ["big", "small"],
             "engine_by_role": {"planner": "extractive", "synthesizer": "model"}}, None,
        ),
        "in German": ({"resolved": make_resolved(language="de", report_language="fr", verify="off")}, None),
    }  # fmt: skip
    plain = set(_report(sample, {}, None))
    return {
        name: [line for line in _report(sample, changes, text) if line not in plain]
        for name, (changes, text) in states.items()
    }


def _report(sample: Sample, changes: dict[str, Any], draft: str | None) -> list[str]:
    words = sample.draft if draft is None else draft or None
    forms = render(sample.state(**changes), words, sample.texts, SKIPPED, "0.1.0")
    return [*forms.markdown.splitlines(), *forms.html.replace("><", ">\n<").splitlines(), *forms.document.splitlines()]


TABLES = {"endings": endings, "resolutions": resolutions, "resumptions": resumptions, "assessments": assessments}


def lines_of(table: dict[str, Any]) -> str:
    """A line for each entry."""
    return "".join(f"{name}: {json.dumps(value, ensure_ascii=False)}\n" for name, value in table.items())


@pytest.mark.parametrize("name", TABLES)
def test_what_is_decided_is_what_was_recorded(name: str) -> None:
    """Every value of every entry is what it was when somebody read it."""
    assert lines_of(TABLES[name]()).splitlines() == (FOLDER / f"{name}.txt").read_text(encoding="utf-8").splitlines()


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for table_name, make_table in TABLES.items():
        (FOLDER / f"{table_name}.txt").write_text(lines_of(make_table()), encoding="utf-8")
