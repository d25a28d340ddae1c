"""The sentences of reports: each language has each of them, with the same values, and nothing English is left in one."""

import ast
import re
from pathlib import Path
from string import Formatter
from types import ModuleType

import pytest

from activities.assessment.authorities import load_authorities
from activities.assessment.source_assessment import NOT_SHOWN
from activities.reporting import judged_claims
from activities.reporting.verdict_words import VERDICT_SIGNS
from activities.roles import checker
from activities.verifying import claim_conclusions
from contracts.checking import CorrectionAction
from contracts.evidence import CHOSEN_BY_OPERATOR, CheckMethod, Verdict
from contracts.plan import PlanNode
from contracts.resolved import where_text_goes
from contracts.vocabulary import (
    STOP_REASON_TEXTS,
    AgentRole,
    Completeness,
    EngineKind,
    GapStatus,
    NodeStatus,
    Outcome,
    Quality,
    Severity,
    SourceStatus,
)
from providers.extractive.brief_writer import NOT_ALL_ANSWERED, UNANSWERED
from providers.extractive.facets import FACETS
from providers.language_words import KNOWN_LANGUAGES, LanguageWords, language_words
from providers.told_sentences import translate
from workflows.rules.endings import LOST, WITHOUT_RESEARCH
from workflows.rules.gaps import silent_gap
from workflows.rules.leaving_out import LEFT_OUT

WITH_REASONS = (judged_claims, checker, claim_conclusions)
"""Modules that say why a claim got its verdict."""
OTHERS = tuple(code for code in KNOWN_LANGUAGES if code != "en")
TABLES = ("brief", "headings", "missing", "report", "told", "aspects", "language_names")


def places(sentence: str) -> list[str]:
    """The names of the values of a sentence."""
    return sorted(name for _, name, _, _ in Formatter().parse(sentence) if name is not None)


def table(words: LanguageWords, name: str) -> dict[str, str]:
    """One group of sentences."""
    return dict(getattr(words, name))


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("code", OTHERS)
def test_each_language_has_each_sentence(code: str, name: str) -> None:
    """The same sentences as English, each with the same values."""
    english, own = table(language_words("en"), name), table(language_words(code), name)
    assert own.keys() == english.keys()
    assert {key: places(text) for key, text in own.items()} == {key: places(text) for key, text in english.items()}
    assert all(text.strip() for key, text in own.items() if key != "thousands")


@pytest.mark.parametrize("code", OTHERS)
def test_sentences_are_translated(code: str) -> None:
    """A long sentence that is the English one was forgotten."""
    for name in ("brief", "report", "told"):
        english, own = table(language_words("en"), name), table(language_words(code), name)
        assert [key for key in english if len(english[key].split()) > 2 and own[key] == english[key]] == []


def sentences_in(module: ModuleType) -> list[str]:
    """The whole sentences among the texts of a module, with `1` for each value; no docstrings."""
    tree = ast.parse(Path(str(module.__file__)).read_text("utf-8"))
    passed_over = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    joined = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    passed_over |= {id(part) for node in joined for part in node.values}
    texts = ["".join(str(part.value) if isinstance(part, ast.Constant) else "1" for part in node.values)
             for node in joined]  # fmt: skip
    texts += [node.value for node in ast.walk(tree)
              if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in passed_over
    ]  # fmt: skip
    return [
        text
        for text in texts
        if " " in text and text.endswith((".", ".”", "”")) and (text[0].isupper() or text[0] == "“")
    ]


def made_elsewhere() -> list[str]:
    """What workflows, activities and contracts say in English and reports print."""
    node = PlanNode(id="sq-1", text="How?", status_reason=STOP_REASON_TEXTS[next(iter(STOP_REASON_TEXTS))])
    statuses = (NodeStatus.FAILED, NodeStatus.SKIPPED, NodeStatus.COMPLETED)
    gaps = [silent_gap(node.model_copy(update={"status": status})).description for status in statuses]
    english = language_words("en")
    return [
        *STOP_REASON_TEXTS.values(),
        *LOST.values(),
        *(text for module in WITH_REASONS for text in sentences_in(module)),
        WITHOUT_RESEARCH,
        f"{LEFT_OUT}: locks",
        *gaps,
        *(tier.phrase for tier in load_authorities().tiers.values()),
        *(words for _, words in NOT_SHOWN.values()),
        CHOSEN_BY_OPERATOR,
        UNANSWERED.format(what=english.missing["person"]),
        NOT_ALL_ANSWERED.format(questions="“How?”"),
        *where_text_goes("api.test", ["search.test"], pages=True).split("; "),
        where_text_goes(None, [], pages=False),
    ]


@pytest.mark.parametrize("code", OTHERS)
@pytest.mark.parametrize("sentence", dict.fromkeys(made_elsewhere()))
def test_what_is_said_elsewhere_is_translated(code: str, sentence: str) -> None:
    """A sentence that changes where it is made must change in the list, too."""
    assert translate(sentence, code) != sentence


def test_sentences_within_sentences_are_translated() -> None:
    """Values that are sentences of ours are in the report's language, values of others stay."""
    why = UNANSWERED.format(what=language_words("en").missing["person"])
    assert translate(f"The question is not answered: {why}.", "de") == (
        "Die Frage ist nicht beantwortet: keine gelesene Stelle nennt einen Namen dazu."
    )
    assert translate("encyclopedia; covers 3 of 4 words; 2021", "fr") == ("encyclopédie; contient 3 mots sur 4; 2021")
    assert translate("analysis gate: findings rest on 29% of the sources, at least 30%", "es") == (
        "control del análisis: los hallazgos se apoyan en 29% de las fuentes, al menos 30%"
    )
    assert translate("The time limit was reached.", "nl") == "De tijdslimiet was bereikt."
    assert translate("left out from here on: “locks”; searched for in the next phase: “WAL”", "de") == (
        "von hier an ausgelassen: “locks”; in der nächsten Phase gesucht: “WAL”"
    )
    assert translate("it has no headings; a paragraph has 300 words", "nl") == (
        "het heeft geen koppen; een alinea heeft 300 woorden"
    )
    assert translate("A gap in a model's own words.", "de") == "A gap in a model's own words."


def test_every_value_of_a_report_has_its_words() -> None:
    """Outcomes, states and roles are named in the table, so that no report fails for want of one."""
    report = language_words("en").report
    names = {
        *(f"outcome_{one.value}" for one in Outcome),
        *(f"complete_{one.value}" for one in Completeness),
        *(f"engine_{one.value}" for one in EngineKind),
        *(f"engine_kind_{one.value}" for one in EngineKind),
        *(f"role_{one.value}" for one in AgentRole),
        *(f"quality_{one.value}" for one in Quality),
        *(f"gap_{one.value}" for one in GapStatus),
        *(f"severity_{one.value}" for one in Severity),
        *(f"query_{one.value}" for one in NodeStatus),
        *(f"judged_{one}" for one in (*Verdict, *VERDICT_SIGNS)),
        *(f"method_{one.value}" for one in CheckMethod),
        *(f"correction_{one.value}" for one in CorrectionAction),
        *(f"status_{one.value}" for one in SourceStatus if one is not SourceStatus.FULL),
    }
    assert names <= report.keys()
    assert {name for name in FACETS if name not in ("fact", "guidance")} <= language_words("en").aspects.keys()


def test_no_sentence_of_a_report_stands_in_the_code() -> None:
    """Whoever lays out a report takes its sentences from the tables."""
    from tests.architecture.repository import ROOT

    english = language_words("en").report.values()
    long = [text for text in english if len(text.split()) > 3 and "{" not in text]
    for path in (ROOT / "activities" / "reporting").glob("*.py"):
        code = re.sub(r'"""(?:.|\n)*?"""', "", path.read_text("utf-8"))
        assert [text for text in long if text in code] == [], path.name
