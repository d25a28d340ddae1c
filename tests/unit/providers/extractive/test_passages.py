"""Passages: what is shown for a question, word for word, and what is not."""

import time
from collections.abc import Mapping
from string import Formatter
from typing import Any

import pytest

from activities.reporting.tree import parse_plain_text
from contracts.addresses import digest
from contracts.evidence import DocumentRef, Evidence
from contracts.plan import PlanNode
from contracts.roles import AnalyzeInput, AnalyzerAnswer, SourceExtract, WriteInput
from contracts.vocabulary import Quality
from providers.extractive.blocks import lines_of
from providers.extractive.brief import analyze, write
from providers.text import (
    KNOWN_LANGUAGES,
    detect_language,
    language_data,
    question_stems,
    sentence_spans,
    word_keys,
    words,
)

INDEXED = (
    "alarm",
    "burner",
    "certified engineer",
    "cooling",
    "filter",
    "gas",
    "key",
    "lid",
    "pressure",
    "seals",
    "valve",
)
MANUAL: Mapping[str, str] = {
    "Pumps": """# Pumps

The Kelvar pump moves cooling water through the reactor. It was designed by Ada Lindqvist in 1962.

## Maintenance

The filter of the Kelvar pump is changed every 400 hours. It also needs new seals once a year. However, seals made
before 1999 last only six months.

To change the filter, follow these steps:

1. Close the inlet valve.
2. Open the lid with the long key.
3. Replace the filter and close the lid.

Start the pump again with this command:

```
kelvarctl start --slow
```

## Settings

| Setting | Default | Meaning |
| --- | --- | --- |
| flow_limit | 40 l/min | the most water that may pass |
| pressure_alarm | 6 bar | the pressure at which an alarm rings |

restart_delay (seconds)
How long the pump waits before it starts again after a failure. The default is 30.
""",
    "Boilers": """# Boilers

A boiler heats water with gas. Its burner is checked by a certified engineer every spring.
""",
    "Copy of Pumps": """# Old pages

The filter of the Kelvar pump is changed every 400 hours. It also needs new seals once a year.
""",
    "Index": "# Index\n\n"
    + "\n\n".join(f"{word}, {place}, {len(word)}" for word in INDEXED for place in ("Boilers", "Kelvar pump")),
}


class Shelf:
    """Documents by title, as a run has read them."""

    def __init__(self, documents: Mapping[str, str] = MANUAL, language: str = "en") -> None:
        self.texts = {digest(text): text for text in documents.values()}
        self.sources = [
            SourceExtract(
                id=f"src-{number}",
                url=f"corpus:manual/{number}.md",
                title=title,
                quality=Quality.HIGH,
                text=DocumentRef(hash=digest(text), media_type="text/plain", size=len(text)),
            )
            for number, (title, text) in enumerate(documents.items())
        ]
        self.language = language

    def analyze(self, question: str, facet: str = "question", **changes: Any) -> AnalyzerAnswer:
        fields = {"query": question, "sources": self.sources, "max_findings": 10} | self._counted(question) | changes
        task = AnalyzeInput(language=self.language, sub_query=PlanNode(id="sq-1", text=question, facet=facet), **fields)
        return analyze(task, self.texts)

    def passages(self, question: str, **changes: Any) -> list[str]:
        """The quotes of one question, best first; each is checked against its text."""
        found = [quote for finding in self.analyze(question, **changes).findings for quote in finding.quotes]
        by_id = {source.id: self.texts[source.text.hash] for source in self.sources if source.text}
        assert all(by_id[one.source_id][one.start : (one.start or 0) + len(one.quote)] == one.quote for one in found)
        return [one.quote for one in found]

    def brief(self, question: str, **changes: Any) -> str:
        """The brief of one question as Markdown."""
        found = [quote for finding in self.analyze(question).findings for quote in finding.quotes]
        evidence = [
            Evidence(
                id=f"ev-{number}", source_id=one.source_id, start=one.start or 0, end=(one.start or 0) + len(one.quote)
            )
            for number, one in enumerate(found)
        ]
        fields = {"query": question, "source_count": len(self.sources), "evidence": evidence}
        task = WriteInput(language=self.language, sources=self.sources, **(fields | self._counted(question) | changes))
        return write(task, self.texts).markdown

    def _counted(self, question: str) -> dict[str, Any]:
        """What a search of the shelf knows of the words, as if there were a hundred documents."""
        keys = [{key for word in words(text) for key in word_keys(word, self.language)} for text in self.texts.values()]
        counts = {stem: sum(stem in each for each in keys) for stem in question_stems(question, self.language)}
        return {"documents_searched": 100, "term_documents": counts}


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Who designed the Kelvar pump?", "designed by Ada Lindqvist"),
        ("How often is the filter of the Kelvar pump changed?", "every 400 hours"),
        ("What is the default of the flow limit?", "40 l/min"),
        ("What does flow_limit mean?", "| Setting | Default | Meaning |"),
        ("How long does the pump wait before it starts after a failure?", "The default is 30"),
        ("How do I start the pump again?", "kelvarctl start"),
        ("How do I change the filter?", "Close the inlet valve"),
    ],
)
def test_the_expected_passage_is_among_the_first_three(question: str, expected: str) -> None:
    """Paragraphs, list items, rows under their header and terms are found by the rare words of a question."""
    assert any(expected in passage for passage in Shelf().passages(question)[:3])


@pytest.mark.parametrize(
    "question",
    [
        "Who won the football championship in Norway?",
        "How do I deploy Kubernetes on the pump?",
    ],
)
def test_a_question_outside_the_documents_has_no_passages(question: str) -> None:
    """A passage below the floor is not shown; a gap names what was asked."""
    analysis = Shelf().analyze(question)
    assert analysis.findings == []
    assert [gap.description for gap in analysis.gaps] == [f"No passage matches enough of “{question}”."]


def test_a_word_that_few_documents_lack_says_little() -> None:
    """In a folder of a few notes a line with one word of three is shown; among many documents it is not."""
    shelf, question = Shelf({"Notes": "Ben 555 0199\n\nDentist: Dr Okafor, 555 0142"}), "What is Ben's phone number?"
    few = {"documents_searched": 2, "term_documents": {"ben": 1, "phone": 0, "number": 0}}
    assert shelf.passages(question, **few)[0].startswith("Ben 555 0199")
    assert shelf.passages(question, **few | {"documents_searched": 100}) == []


@pytest.mark.parametrize(
    ("sentences", "question", "expected"),
    [
        (
            "The Kelvar pump stands in the cellar. It was painted green by Olga.",
            "Who painted it green?",
            "The Kelvar pump stands in the cellar. It was painted green",
        ),
        (
            "Seals of rubber last a year. However, those made before 1999 last a month.",
            "How long do seals of rubber last?",
            "Seals of rubber last a year. However, those made before 1999",
        ),
    ],
)
def test_sentences_that_need_each_other_stay_together(sentences: str, question: str, expected: str) -> None:
    """A pronoun brings what it stands for, a correction is not cut off."""
    filler = " ".join(f"Room {number} has a window to the garden." for number in range(48))
    shown = Shelf({"House": f"# House\n\n{filler} {sentences} {filler}\n"}).passages(question)
    assert any(expected in passage for passage in shown)


def test_near_duplicates_and_indexes_are_not_shown() -> None:
    """The same words on another page and lines of an index add nothing; what a request excludes is not quoted."""
    shown = Shelf().passages("How often is the filter of the Kelvar pump changed?")
    assert sum("every 400 hours" in passage for passage in shown) == 1
    assert not any("Kelvar pump, 6" in passage for passage in shown)
    excluding = Shelf().passages("seals of the Kelvar pump filter", exclude=["1999"])
    assert excluding
    assert not any("1999" in passage for passage in excluding)


@pytest.mark.parametrize(
    ("language", "question", "text", "expected"),
    [
        ("de", "Wer hat die Brücke gebaut?", "Die alten Brücken wurden 1880 von Karl Behrend gebaut.", "Karl Behrend"),
        ("fr", "Qui a construit le pont ?", "Les ponts ont été construits en 1880 par Claire Aubert.", "Claire Aubert"),
        ("nl", "Wie heeft de brug gebouwd?", "De bruggen zijn in 1880 gebouwd door Jan de Wit.", "Jan de Wit"),
    ],
)
def test_stems_and_stop_words_are_those_of_the_language(language: str, question: str, text: str, expected: str) -> None:
    """Nothing else depends on it; the brief speaks it."""
    shelf = Shelf({"A": f"# A\n\n{text}\n", "B": "# B\n\n1880.\n"}, language)
    assert any(expected in passage for passage in shelf.passages(question))
    assert "No language model" not in shelf.brief(question)


@pytest.mark.parametrize(
    ("one", "other", "question"),
    [
        ("The kiln vents at 80 degrees.", "The kiln vents at 90 degrees at night.", "Degrees of a kiln?"),
        ("The WHO is what we are.", "The WHO is an agency.", "What is the WHO?"),
        ("The IT is what we are.", "The IT is an agency.", "What is the IT?"),
        ("The north gate opens at dawn for Ana.", "The south gate opens at dawn for Ana.", "Which gate opens at dawn?"),
    ],
)
def test_short_passages_with_other_words_are_no_duplicates(one: str, other: str, question: str) -> None:
    """Words such as `the` make no two statements the same, other figures make them two; where an acronym is spelt like one, every word counts."""
    assert len(Shelf({"a": one, "b": other}).passages(question)) == 2


def test_the_brief_shows_passages_and_judges_none() -> None:
    """Title, the one line, counts, passages with title, heading path and marker; the same bytes every time."""
    brief = Shelf().brief("How often is the filter of the Kelvar pump changed?")
    lines = brief.splitlines()
    assert lines[0] == "# How often is the filter of the Kelvar pump changed?"
    assert lines[2] == (
        "> No language model wrote this report. These passages match your question best; none was judged to be the answer."
    )
    assert lines[4] == "> Documents searched: 100 · read: 4 · cited: 1"
    assert lines[6] == "## Passages"
    assert lines[8].startswith("*Pumps")
    assert "[ev-0]" in brief
    assert brief == Shelf(dict(MANUAL)).brief("How often is the filter of the Kelvar pump changed?")


def test_the_brief_names_the_words_that_nothing_covers() -> None:
    """Words that no document has."""
    brief = Shelf().brief("Kelvar pump filtre burner", spellings={"filtr": "filter"})
    assert "- In none of 100 documents: filtre (nearest spelling: filter)." in brief
    brief = Shelf().brief("What is a flux capacitor?")
    assert "> No language model wrote this report. No passage matches enough of your question." in brief
    assert "- In none of 100 documents: flux, capacitor." in brief
    assert "## Passages" not in brief


def test_words_of_a_source_are_no_markup() -> None:
    """They are shown as they are; inline code stays code, and nothing looks like a marker of ours."""
    sentence = (
        "The *zeta* value is [ev-1234567890] in `zeta_max` <b>and</b> costs 5 $ | 1. of it, says __zeta__() of a_b."
    )
    brief = Shelf({"Odd": f"# Odd\n\n{sentence}\n"}).brief("What is the zeta value?")
    assert r"The \*zeta\* value is \[ev-1234567890\] in `zeta_max` \<b\>and\</b\> costs 5 \$ \| 1. of it" in brief
    shown = parse_plain_text(brief.replace("\\[", "[").replace("`", ""))
    assert sentence.replace("`", "") in shown


LINES: Mapping[str, tuple[str, str, str]] = {
    "prices": ("Winter mooring fee: 300 euro\nCrane fee: 90 euro", "How much is the winter mooring fee?", "300 euro"),
    "prices apart": (
        "# Fees\n\nWinter mooring: 300 euro\n\nCrane: 90 euro\n\nDinghy rack: 40 euro",
        "How much is the crane?",
        "Crane: 90 euro",
    ),
    "rota": ("# On call\n\nWeek 1: Anna\nWeek 2: Ben\nWeek 3: Carla", "Who is on call in week 2?", "Week 2: Ben"),
    "label with text": ("Crane fee\n\nIt is 90 euro for a lift.", "How much is the crane fee?", "It is 90 euro"),
    "label without text": ("Open daily.\n\nCrane fee 90 euro", "How much is the crane fee?", "Crane fee 90 euro"),
    "slide": ("# Budget 2026: 40,000 euro\n\n# Questions", "How large is the budget of 2026?", "40,000 euro"),
    "chat": (
        "[10:02] Ana: when does the lock open tomorrow?\n[10:03] Ben: at ten\n[10:09] Cy: new ropes are here",
        "When does the lock open?",
        "at ten",
    ),
    "questions": (
        "Can I bring a dog?\n\nOn a lead.\n\nIs there a bar?\n\nOn deck two.",
        "Can I bring a dog?",
        "a lead",
    ),
    "long answer": (
        "May we light a fire?\n\n" + "The ring by the lake is the place for it in spring. " * 8 + "Not in July.",
        "May we light a fire?",
        "Not in July.",
    ),
    "log": ("```\n10:02 valve 7 open\n10:09 pump stalled\n```", "When did the pump stall?", "10:09 pump stalled"),
    "address": ("Harbour office\n12 Quay Street\nPhone 555 0199", "What is the phone of the harbour office?", "0199"),
    "names": ("\n\n".join(f"{name} {9 * len(name)}" for name in INDEXED), "Number of the lid?", "lid 27"),
}


@pytest.mark.parametrize("kind", LINES)
def test_any_line_that_matches_is_a_passage(kind: str) -> None:
    """Without a full stop, too: with the lines that it answers, or that answer it, and none that labels nothing."""
    text, question, expected = LINES[kind]
    assert expected in Shelf({"Notes": text}).passages(question)[0]


def test_a_line_that_labels_a_listing_is_quoted_with_it() -> None:
    """Its words are those of the passage: an example is named above, and its commands say little to a reader's words."""
    example = "Undo the last commit\n\n```\n$ git reset --soft HEAD^\n```\n\n1. The files stay as they were.\n"
    other = "To undo a merge is no way to undo the files of it, and the last of its parents stays.\n"
    text = f"# Examples\n\n{other}\nStart\n\n```\n$ git init\n```\n\n{example}"
    first = Shelf({"Notes": text}).passages("How to undo the last commit?")[0]
    assert first.startswith("Undo the last commit\n\n```\n$ git reset --soft")


def test_a_line_comes_with_its_neighbours_and_every_line_once() -> None:
    """Up to one line before it and two after it, none of which another passage has."""
    text = "# Rota\n\n" + "\n".join(
        f"Week {number}: {name}" for number, name in enumerate(("Ana", "Ben", "Cy", "Di"), 1)
    )
    assert Shelf({"Rota": text}).passages("Ben")[0] == "Week 1: Ana\nWeek 2: Ben\nWeek 3: Cy\nWeek 4: Di"
    shown = Shelf({"Rota": text}).passages("Who is it in week 3?")
    assert shown[0] == "Week 3: Cy"
    assert sorted("\n".join(shown).split("\n")) == text.split("\n")[2:]


def test_a_sorted_list_is_an_index_only_where_a_passage_says_as_much() -> None:
    """Lines in alphabetical order are shown where nothing else has as many words of the question."""
    index = "\n\n".join(f"{letter}{number}, Boilers" for letter in "abcdefg" for number in range(3))
    assert Shelf({"Index": index}).passages("Boilers c1?")[0].count("c1, Boilers") == 1
    prose = Shelf({"Index": index, "Boilers": "The boilers of type c1 heat water."}).passages("Boilers c1?")
    assert prose == ["The boilers of type c1 heat water."]


EAST_ASIA: Mapping[str, tuple[str, str, str]] = {
    "zh": (
        "会费在三月支付，逾期加收百分之五。\n\n水闸每天晚上十点关闭，船只在北码头等候。",
        "水闸几点关闭？",
        "十点关闭",
    ),
    "ja": (
        "会費は三月に支払う。\n\n水門は毎晩十時に閉まる。船は北の桟橋で待つ。",
        "水門は何時に閉まりますか。",
        "十時に閉まる",
    ),
    "ko": ("회비는 삼월에 낸다.\n\n수문은 매일 밤 열 시에 닫힌다.", "수문이 몇 시에 닫힙니까?", "열 시에 닫힌다"),
    "th": ("ค่าสมาชิกจ่ายในเดือนมีนาคม\n\nประตูน้ำปิดทุกคืนเวลาสี่ทุ่ม", "ประตูน้ำปิดกี่โมง", "ปิดทุกคืนเวลาสี่ทุ่ม"),
}


@pytest.mark.parametrize("language", EAST_ASIA)
def test_writing_without_spaces_is_compared_by_pairs_of_letters(language: str) -> None:
    """The sentence comes first that shares most of them; what shares none is empty and named."""
    text, question, expected = EAST_ASIA[language]
    assert detect_language(question) == language
    shelf = Shelf({"A": text}, language)
    first = shelf.passages(question)[0]
    assert expected in first
    assert text.partition("\n\n")[0] not in first or language == "th"  # which has no full stop
    other = Shelf({"A": text.split("\n\n")[0]}, language)
    assert other.passages(question) == []


def test_sentences_and_language_of_writing_without_spaces() -> None:
    """A full stop ends a sentence without white space; few letters of its own make a text Japanese."""
    text = "水闸十点关闭。“好！”他说。A sentence. Another one."
    shown = [text[start:end].strip() for start, end in sentence_spans(text)]
    assert shown == ["水闸十点关闭。", "“好！”", "他说。", "A sentence.", "Another one."]
    questions = ("水門の開閉時刻表", "水闸开关时间", "배", "Κανένα", "ค่า", "Когда")
    assert [detect_language(question) for question in questions] == ["ja", "zh", "ko", "und", "th", "ru"]


def test_a_quotation_that_ends_with_a_full_stop_ends_no_sentence_before_a_comma() -> None:
    """The rest of the sentence stays with it, and with its citation."""
    text = 'It ends with "Only skipped commits are left.", a list, and “No more.”; then it stops. It said “No.” Another one.'
    shown = [text[start:end].strip() for start, end in sentence_spans(text)]
    assert shown == [
        'It ends with "Only skipped commits are left.", a list, and “No more.”; then it stops.',
        "It said “No.”",
        "Another one.",
    ]


def test_a_section_of_what_is_not_covered_is_never_empty() -> None:
    """Where nothing was read and so no word is missing, the question itself is what is not covered."""
    brief = Shelf({}).brief("How is *steam*\nmade?", source_count=0, documents_searched=0, term_documents={})
    assert brief.endswith("## Not covered\n\n- How is \\*steam\\* made?\n")


def test_a_question_in_another_language_than_the_documents_names_what_none_of_them_has() -> None:
    """The index counts words by stems of the documents' language, in which `Gebühr` has another one than in German."""
    counts = {"gebühr": 0, "winter": 1}
    brief = Shelf({"A": "The jetty is closed in winter."}, "de").brief(
        "Wie hoch ist die Gebühr im Winter?", documents_searched=3, term_documents=counts
    )
    assert "- In keinem von 3 Dokumenten: Gebühr." in brief


def test_a_word_in_another_form_is_not_in_none_of_the_documents() -> None:
    """Only a word of which no document has a single key is named; one in documents that are not shown is no passage's."""
    brief = Shelf({"A": "水闸每天晚上十点关闭。"}, "zh").brief("水闸几点关闭")
    assert "In none" not in brief
    korean = Shelf({"A": "수문은 밤 열 시에 닫히고 여섯 시에 열립니다."}, "ko").brief("수문은 몇 시에 닫힙니까?")
    assert "Not covered" not in korean
    assert "In none" not in Shelf({"A": "Life jackets are worn on the jetty."}).brief(
        "Who wears a jacket on the jetty?"
    )
    scattered = Shelf().brief("What is a flux capacitor burner in Norway?")
    assert "- In the documents, but in no passage that has enough of the question: burner." in scattered
    assert "In none of these passages" not in scattered


def test_letters_with_marks_are_one_word() -> None:
    """Vowel signs, tone marks and accents end no word, and one form of a letter is found by another."""
    assert words("हिन्दी cafe\u0301 d'été") == ["हिन्दी", "cafe\u0301", "d'été"]
    assert word_keys("cafe\u0301", "en") == word_keys("café", "en")
    assert words("ＡＢＣ株式会社は2024年") == ["ＡＢＣ", "株式会社は", "2024", "年"]


def places(sentence: str) -> list[str]:
    return sorted(name for _, name, _, _ in Formatter().parse(sentence) if name is not None)


@pytest.mark.parametrize(
    ("question", "language"),
    [
        *((text, "en") for text in ("kiln door", "C++ compilers", "standard deviation", "word count", "OS interface")),
        ("Was kostet die Pumpe?", "de"),
        ("Comment installer Debian ?", "fr"),
        ("Come si installa?", "it"),
        ("Wie is de voorzitter?", "nl"),
    ],
)
def test_the_language_of_a_few_words_is_recognised(question: str, language: str) -> None:
    """Words that English has as well as another language decide for none of the others by themselves."""
    assert detect_language(question) == language


@pytest.mark.parametrize("code", KNOWN_LANGUAGES)
def test_every_language_has_the_same_sentences_with_the_same_values(code: str) -> None:
    """A message id has a sentence in each language, and no sentence loses a value."""
    english, own = language_data("en"), language_data(code)
    for known, given in ((english.brief, own.brief), (english.report, own.report)):
        assert {key: places(text) for key, text in given.items()} == {key: places(text) for key, text in known.items()}
    assert own.stop
    assert own.openings
    assert len(own.forms) == len(english.forms)


def test_choosing_takes_time_in_proportion_to_the_text() -> None:
    """Lines of two letters, lines that all match, and words that are never near each other."""
    texts = (
        "\n".join(f"{chr(97 + number % 26)}{chr(97 + number // 26 % 26)}" for number in range(20_000)),
        "the fee of the berth\n" * 10_000,
        "fee " * 20_000 + "x " * 9 + "berth " * 20_000,
    )
    for text in texts:
        Shelf({"warm": text[: len(text) // 10]}).passages("What is ab of a fee of a berth?")
        start = time.process_time()
        Shelf({"A": text}).passages("What is ab of a fee of a berth?")
        assert (
            time.process_time() - start < 4
        )  # seconds; under 0.2 on a quiet machine, and minutes where it is quadratic


def test_a_rule_in_a_listing_is_no_passage() -> None:
    """Each line of a listing is one; a line of signs alone has nothing to quote, and Markdown takes it for a rule."""
    text = "# Pumps\n\n```\nPUMP  STATE\n----------\nbilge on\n```"
    assert [text[line.start : line.end] for line in lines_of(text)] == ["PUMP  STATE", "bilge on"]
