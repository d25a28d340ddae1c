"""The form of answer that a question asks for, in each language."""

import pytest

from providers.extractive.asked_form import AnswerForm, read_asked
from providers.language_words import KNOWN_LANGUAGES, language_words
from providers.text import detect_language

F = AnswerForm


@pytest.mark.parametrize(
    ("question", "form"),
    [
        ("Who wrote the harbour rules?", F.PERSON),
        ("When was the bridge opened?", F.TIME),
        ("Where are the keys kept?", F.PLACE),
        ("How many columns can a sheet have?", F.COUNT),
        ("How large can a vault be at most?", F.SIZE),
        ("How much does a ticket cost?", F.AMOUNT),
        ("How long is a lease valid?", F.DURATION),
        ("How often does the sweeper run?", F.FREQUENCY),
        ("What is the default of retention_days?", F.VALUE),
        ("default of retention_days", F.VALUE),
        ("What is the maximum length of a name?", F.SIZE),
        ("What was the top speed of the ferry?", F.NUMBER),
        ("What is a vault?", F.DEFINITION),
        ("How do I create a vault?", F.STEPS),
        ("Why is the second copy not compressed?", F.REASON),
        ("Can a vault be shared?", F.YES_NO),
        ("What is the difference between a vault and a safe?", F.DIFFERENCE),
        ("What replaced the old index?", F.REPLACEMENT),
        ("Which modes are there?", F.ITEMS),
        ("How does the vault prevent loss?", F.MECHANISM),
        ("What happens if a disk fails?", F.CONSEQUENCE),
        ("vault snapshots", F.TOPIC),
        ("Since which version is there a night mode?", F.TIME),
        ("What should I use instead of the old index?", F.REPLACEMENT),
        ("Wer entwarf den Viadukt?", F.PERSON),
        ("Wie kennzeichne ich eine Kiste?", F.STEPS),
        ("Ab wie vielen Kisten braucht man einen Wagen?", F.COUNT),
        ("Was macht der Viadukt?", F.DEFINITION),
        ("Comment ranger un tiroir ?", F.STEPS),
        ("¿Debo copiar la llave?", F.YES_NO),
        ("Wie viele Luchse leben im Wald?", F.COUNT),
        ("Was kostet der Eintritt?", F.MONEY),
        ("Wie lange dauert die Fahrt?", F.DURATION),
        ("Qui a fondé le journal ?", F.PERSON),
        ("Combien de temps dure le voyage ?", F.DURATION),
        ("À quoi sert ce fichier ?", F.PURPOSE),
        ("¿Dónde están las claves?", F.PLACE),
        ("¿Cuántas consolas hay?", F.COUNT),
        ("Chi ha scritto il libro?", F.PERSON),
        ("Quanto costa il biglietto?", F.MONEY),
        ("Onde estão as chaves?", F.PLACE),
        ("Wat is een kluis?", F.DEFINITION),
        ("Hoe vaak vaart de boot?", F.FREQUENCY),
    ],
)
def test_form_by_the_words_of_its_language(question: str, form: AnswerForm) -> None:
    """The language is told by the question, the form by its opening and by what narrows it."""
    assert read_asked(question, detect_language(question)).form is form


def test_words_that_ask_are_no_content() -> None:
    """Question words, auxiliaries, frames and elisions say nothing of the subject."""
    assert read_asked("How many columns can a sheet have at most?", "en").content == ("columns", "sheet")
    assert read_asked("Où est enregistré l'index des paquets ?", "fr").content == ("enregistré", "index", "paquets")


def test_verb_says_which_thing_of_a_name_is_asked_for() -> None:
    """Where only a name is left a plain verb counts: nothing else tells one question about it from another."""
    assert read_asked("How long will Skerrow be supported?", "en").content == ("Skerrow", "supported")
    assert read_asked("How do I back up a vault?", "en").content == ("back-up", "vault")


@pytest.mark.parametrize(
    ("question", "language", "content"),
    [
        ("Wie schalte ich den Webstuhl ab?", "de", ("abschalte", "Webstuhl")),
        ("Hoe voeg ik een voetnoot in?", "nl", ("invoeg", "voetnoot")),
        ("Welches Tor schlägt der Rat vor?", "de", ("Tor", "schlägt", "Rat")),
    ],
)
def test_parted_verb_is_one_word(question: str, language: str, content: tuple[str, ...]) -> None:
    """What parts from its verb in a question is joined to it again; a noun behind the opening is no verb."""
    assert read_asked(question, language).content == content


def test_sides_of_a_difference_are_the_words_that_differ() -> None:
    """What both sides have in common tells them apart in no sentence."""
    assert read_asked("What is the difference between an open and a closed vault?", "en").sides == ("open", "closed")
    assert read_asked("Welcher Unterschied besteht zwischen Tor und Tür?", "de").sides == ("Tor", "Tür")
    assert read_asked("How many vaults and safes are there?", "en").sides is None


def test_long_text_is_read_for_its_question() -> None:
    """Of a long text the sentence that asks counts."""
    text = "We moved to a new office in spring and have two vaults there. " * 3 + "Who holds the keys?"
    assert read_asked(text, "en").form is AnswerForm.PERSON


@pytest.mark.parametrize("code", KNOWN_LANGUAGES)
def test_languages_have_the_same_parts(code: str) -> None:
    """Every language knows every form, every sentence of a brief, and the values that stand in it."""
    english, other = language_words("en"), language_words(code)
    for part in ("asks", "asks_inside", "tells", "other_words", "headings", "missing"):
        assert set(getattr(other, part)) == set(getattr(english, part)), part
    values = {
        "{count}",
        "{what}",
        "{names}",
        "{where}",
        "{share}",
        "{why}",
        "{query}",
        "{name}",
        "{pages}",
        "{language}",
    }
    for name, sentence in other.brief.items():
        assert {one for one in values if one in sentence} == {one for one in values if one in english.brief[name]}, name
