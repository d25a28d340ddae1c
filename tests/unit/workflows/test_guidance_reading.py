"""What people ask for while a run goes on, as rules read it."""

import pytest

from contracts.resolved import GuidanceWords
from providers.language_words import KNOWN_LANGUAGES, guidance_words
from workflows.rules.guidance_reading import read

OUT, LOOK, ONLY, OTHER = "left_out", "look_at", "only_from", "others"
CASES: tuple[tuple[str, str, dict[str, list[str]]], ...] = (
    ("en", "Leave locks out", {OUT: ["locks"]}),
    ("en", "leave version 9 out, look at the settings of 16", {OUT: ["version 9"], LOOK: ["settings of 16"]}),
    ("en", "Do not cover locks, vacuum or indexes.", {OUT: ["locks", "vacuum", "indexes"]}),
    ("en", "without locks", {OUT: ["locks"]}),
    ("en", "ignore everything about pricing", {OUT: ["pricing"]}),
    ("en", "please skip the chapter about replication", {OUT: ["replication"]}),
    ("en", "locks should be left out", {OUT: ["locks"]}),
    ("en", "I am not interested in costs, but tell me more about speed", {OUT: ["costs"], LOOK: ["speed"]}),
    ("en", "don't use example.org", {OUT: ["example.org"]}),
    ("en", "focus on backups", {LOOK: ["backups"]}),
    ("en", "what about locks?", {LOOK: ["locks"]}),
    ("en", "What happens without WAL?", {LOOK: ["What happens without WAL?"]}),
    ("en", "“How long does a lock last?”", {LOOK: ["“How long does a lock last?”"]}),
    ("en", "Encryption of backups", {LOOK: ["Encryption of backups"]}),
    ("en", "use only sources from example.org and example.com", {ONLY: ["example.org", "example.com"]}),
    ("en", "prefer example.org", {OTHER: ["prefer example.org"]}),
    ("en", "be nicer", {OTHER: ["be nicer"]}),
    ("en", "Write it as a poem!", {OTHER: ["Write it as a poem"]}),
    ("en", "add a table", {OTHER: ["add a table"]}),
    ("en", "leave it out", {OTHER: ["leave it out"]}),
    ("en", "Focus on backups; answer in German", {LOOK: ["backups"], OTHER: ["answer in German"]}),
    ("en", "...", {}),
    ("de", "Lass bitte die Sperren weg und schau dir Indizes an", {OUT: ["Sperren"], LOOK: ["Indizes"]}),
    ("de", "ohne Sperren", {OUT: ["Sperren"]}),
    ("de", "Sperren bitte weglassen", {OUT: ["Sperren"]}),
    ("de", "behandle Sperren nicht", {OUT: ["Sperren"]}),
    ("de", "erwähne keine Preise", {OUT: ["Preise"]}),
    ("de", "verwende nur Quellen von example.org", {ONLY: ["example.org"]}),
    ("de", "mehr über Sicherungen", {LOOK: ["Sicherungen"]}),
    ("de", "schreib es als Gedicht", {OTHER: ["schreib es als Gedicht"]}),
    ("de", "sei netter", {OTHER: ["sei netter"]}),
    ("de", "leave locks out", {OUT: ["locks"]}),
    ("fr", "ignore les verrous", {OUT: ["verrous"]}),
    ("es", "deja los bloqueos fuera", {OUT: ["bloqueos"]}),
    ("it", "lascia i blocchi fuori", {OUT: ["blocchi"]}),
    ("pt", "deixe os bloqueios de fora", {OUT: ["bloqueios"]}),
    ("nl", "laat vergrendelingen weg", {OUT: ["vergrendelingen"]}),
)


@pytest.mark.parametrize(("language", "text", "expected"), CASES, ids=[text for _, text, _ in CASES])
def test_each_wish_is_understood_as_what_it_is(language: str, text: str, expected: dict[str, list[str]]) -> None:
    """Left out, searched for, kept to, or beyond rules; several wishes in one message, in two languages."""
    reading = read(text, guidance_words(language))
    assert {name: subjects for name, subjects in vars(reading).items() if subjects} == expected


@pytest.mark.parametrize("language", KNOWN_LANGUAGES)
def test_every_language_has_its_wordings(language: str) -> None:
    """English comes with each; no wording lacks the place of what it is about, but for those that need none."""
    words = guidance_words(language)
    english = guidance_words("en")
    assert set(english.leave_out) <= set(words.leave_out)
    for name in ("leave_out", "only_from", "look_at"):
        assert all("~" in wording for wording in getattr(words, name)), name
    assert GuidanceWords.model_validate_json(words.model_dump_json()) == words


@pytest.mark.parametrize("unit", ["leave x out, and ", "look at a and ", "please ", "no ", "the ", "a", " ", "a.b/"])
def test_long_guidance_is_read_at_once(unit: str) -> None:
    """A workflow task must not stand still over a message, whatever it is made of: at most so many subjects."""
    reading = read((unit * 2_000)[:2_000], guidance_words("de"))
    assert all(len(subjects) <= 10 for subjects in vars(reading).values())
