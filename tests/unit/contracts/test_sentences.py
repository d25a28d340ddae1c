"""Sentences of the product as data: their values, their languages, their way through JSON."""

import copy
import json
import pickle
from string import Formatter

import pytest
from pydantic import BaseModel, Field, ValidationError

from activities.reporting.report_messages import ReportMessages
from contracts.base import CompactModel
from contracts.evidence import ClaimVerdict, Gap
from contracts.outcome import ResearchResult
from contracts.report import take_messages
from contracts.sentences import AS_DATA, SENTENCES, Message, Text, from_data, to_data
from contracts.state import EvidenceState, ResearchState, WorkState
from providers.text import KNOWN_LANGUAGES, language_data

OTHERS = sorted(set(KNOWN_LANGUAGES) - {"en"})
LOST = Message("sources_lost", count=1_200, all=3_000, why=[Message("lost_time"), Message("lost_room")])


class Noted(CompactModel):
    """A value with texts of both kinds."""

    note: Text = Field(default="", max_length=400)
    notes: list[Text] = []


class Plain(BaseModel):
    """The same value of plain strings."""

    note: str = Field(default="", max_length=400)
    notes: list[str] = []


def placeholders(sentence: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(sentence) if name is not None}


@pytest.mark.parametrize("code", OTHERS)
def test_each_language_has_each_sentence_with_its_values(code: str) -> None:
    """A report in any known language shows all that one in English shows."""
    translated = language_data(code).sentences
    assert translated.keys() == SENTENCES.keys()
    for name, sentence in SENTENCES.items():
        assert placeholders(translated[name]) == placeholders(sentence), name


def test_a_message_is_its_english_text() -> None:
    """What prints, compares or joins texts needs to know nothing of messages."""
    assert LOST == ("1,200 of 3,000 sources were not read: no worker read them in time; no room was left to keep them.")
    assert {LOST, str(LOST)} == {LOST}
    assert type(f"{LOST}") is str


def test_a_message_is_shown_in_the_language_of_a_report() -> None:
    """Values that are messages are translated, too, numbers and roles are written as the language does."""
    assert ReportMessages("de").translated(LOST) == (
        "1.200 von 3.000 Quellen wurden nicht gelesen: kein Arbeiter las sie rechtzeitig; es war kein Platz mehr für sie."
    )
    assert ReportMessages("en").translated(LOST) == LOST
    ended = Message("written_from_there", why=Message("stop_budget_time"))
    assert ended.startswith("The time limit was reached; ")
    assert ReportMessages("fr").translated(ended).startswith("La limite de temps était atteinte ; ")
    alone = Message("degraded_refused", role="planner", reason="a limit")
    assert ReportMessages("it").translated(alone).startswith(f"{ReportMessages('it').name('role', 'planner')}: ")


def test_a_plain_text_is_shown_as_it_is() -> None:
    """Texts of models and of runs of earlier versions are no sentences of the product, whatever their words."""
    verdict = ClaimVerdict.model_validate_json(
        '{"claim_id": "c-1", "verdict": "partial", "method": "model", "reason": "So."}'
    )
    assert not isinstance(verdict.reason, Message)
    assert ReportMessages("de").translated(verdict.reason) == "So."


def test_a_message_survives_where_a_process_of_the_product_reads_it() -> None:
    """JSON of a run has the message, JSON for others its English text, and a copy is the same message."""
    noted = Noted(note=LOST, notes=[LOST, "a text of a model"])
    back = Noted.model_validate_json(noted.compact_json())
    assert isinstance(back.note, Message)
    assert [to_data(text) for text in (back.note, *back.notes)] == [LOST.data(), LOST.data(), "a text of a model"]
    assert noted.model_dump(mode="json") == {"note": str(LOST), "notes": [str(LOST), "a text of a model"]}
    assert json.loads(noted.model_dump_json(context=AS_DATA))["note"] == LOST.data()
    for other in (copy.deepcopy(LOST), pickle.loads(pickle.dumps(LOST)), noted.model_copy(deep=True).note):
        assert isinstance(other, Message)
        assert (other, other.data()) == (LOST, LOST.data())


def test_a_stored_state_has_messages_and_one_of_an_earlier_version_its_texts() -> None:
    """A resumed run knows its own sentences again, and shows plain strings of earlier versions as they are."""
    gap = Gap(id="gap-0000000001", description=Message("gap_silent", query="what?"))
    state = ResearchState(
        work=WorkState(degraded=[Message("steered")], limitations=[LOST, "a text of a model"]),
        evidence=EvidenceState(gaps=[gap]),
    )
    back = ResearchState.unpack(state.pack())
    known = [*back.work.degraded, *back.work.limitations[:1], back.evidence.gaps[0].description]
    assert [type(text) for text in known] == [Message] * 3
    assert back == state
    earlier = ResearchState.model_validate({"degraded": ["a checkpoint could not be saved"]})
    assert ReportMessages("de").translated(earlier.work.degraded[0]) == "a checkpoint could not be saved"
    result = {"research_id": "r-1", "outcome": "partial", "stop_reason": "budget_time", "degraded": state.work.degraded}
    assert type(ResearchResult.model_validate(result).degraded[0]) is str


def test_a_field_with_messages_has_the_schema_and_the_limits_of_a_text() -> None:
    """Programs and models that are shown a schema see a string."""
    assert Noted.model_json_schema()["properties"] == Plain.model_json_schema()["properties"]
    for wrong in (5, {"id": "lost_time"}, {"sentence": 5}, "x" * 401):
        with pytest.raises(ValidationError):
            Noted.model_validate({"note": wrong})


def test_a_sentence_of_a_later_version_is_read() -> None:
    """An older process shows what it has of a sentence that it does not know, and of values that it does not expect."""
    assert from_data({"sentence": "later", "values": {"count": 3, "why": "a reason"}}) == "later (3; a reason)"
    assert from_data({"sentence": "later"}) == "later"
    assert from_data({"sentence": "sources_lost", "values": {"count": 3}}) == "sources_lost (3)"
    with pytest.raises(KeyError):
        Message("later")
    with pytest.raises(KeyError):
        Message("sources_lost", count=3)


def test_messages_of_a_document_are_named_by_their_place() -> None:
    """A document for programs has the texts; where and which messages they were is listed beside them."""
    document, messages = take_messages({"a/b": [{"note": LOST.data()}], "n": 1})
    assert document == {"a/b": [{"note": str(LOST)}], "n": 1}
    assert messages == {"/a~1b/0/note": LOST.data()}
