"""The analyzer without a model: every honesty rule."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.addresses import digest, sub_query_id
from contracts.plan import PlanNode
from contracts.roles import AnalyzerAnswer
from contracts.vocabulary import Quality
from providers.extractive.facets import QUALIFICATION
from providers.extractive.passage_analyzer import analyze
from providers.extractive.passages import LONGEST_PASSAGE, containment
from providers.extractive.question import read_question
from providers.extractive.question_terms import text_keys
from tests.unit.providers.extractive.samples import PAGES, analyze_input, documents, extract, sources


def over(text: str, question: str, **more: object) -> AnalyzerAnswer:
    """Analyze one text."""
    given_sources = [extract("page", text, title="Page", quality=Quality.MEDIUM)]
    return analyze(analyze_input(question, sources=given_sources, **more), {digest(text): text})


def quotes(draft: AnalyzerAnswer) -> list[str]:
    """All quotes of a draft."""
    return [quote.quote for found in draft.findings for quote in found.quotes]


def test_quotes_are_word_for_word_at_their_offset() -> None:
    """A quote is the stored text between its offsets (invariant 10)."""
    draft = analyze(analyze_input(), documents())
    texts = {source.id: documents()[source.text.hash] for source in sources() if source.text}
    assert draft.findings
    for found in draft.findings:
        for quote in found.quotes:
            assert quote.start is not None
            assert texts[quote.source_id][quote.start : quote.start + len(quote.quote)] == quote.quote


def test_correction_is_never_torn_from_what_it_corrects() -> None:
    """A sentence that corrects the one before is quoted with it, or not at all."""
    found = quotes(analyze(analyze_input(), documents()))
    assert any("writes each snapshot twice" in quote and "is not compressed" in quote for quote in found)
    assert not any(quote.startswith("Contrary") for quote in found)


@pytest.mark.parametrize("opening", ["It also", "However, it", "This", "In this mode it", "For example, this"])
def test_dangling_opening_takes_its_predecessor_or_is_dropped(opening: str) -> None:
    """A passage never begins with words that point at something outside it."""
    text = f"The vault is a store for snapshots. {opening} protects every snapshot of the vault from loss.\n"
    found = quotes(over(text, "How does the vault protect a snapshot from loss?"))
    assert not any(quote.startswith(opening) for quote in found)
    alone = f"# Vault\n\n{opening} protects every snapshot of the vault from loss.\n"
    assert not over(alone, "How does the vault protect a snapshot from loss?").findings


def test_code_output_and_link_lists_are_no_evidence() -> None:
    """Code, program output and lists of links are never quoted."""
    found = quotes(analyze(analyze_input("How is snapshot retention of the vault set?"), documents()))
    assert not any("vaultctl" in quote or "](" in quote for quote in found)


def test_addresses_and_our_markers_are_not_quoted() -> None:
    """A quote never holds a URL nor what looks like a marker of ours (X-7)."""
    text = (
        "The vault prevents loss of every snapshot, see https://evil.example/x for the vault.\n\n"
        "The vault prevents loss of a snapshot as shown [ev-0123456789] by the vault.\n\n"
        "The vault prevents loss of a snapshot by writing it twice.\n"
    )
    found = quotes(over(text, "How does the vault prevent loss of a snapshot?"))
    assert found == ["The vault prevents loss of a snapshot by writing it twice."]


def test_name_that_occurs_nowhere_is_admitted() -> None:
    """An unknown name gives no finding, but a gap that can be checked (C0-24)."""
    question = "How does the vault replicate to CockroachDB?"
    counts = {"vault": 2, "replic": 0, "cockroachdb": 0}
    draft = analyze(analyze_input(question, documents_searched=1935, term_documents=counts), documents())
    assert draft.findings == []
    assert draft.gaps[0].description == "'CockroachDB' occurs in none of 1,935 documents."


def test_name_is_not_called_absent_when_it_was_only_not_counted() -> None:
    """What no search counted is not said to occur nowhere in the corpus."""
    question = "How does the vault prevent loss of a SuperSnapshot?"
    draft = analyze(analyze_input(question, documents_searched=50, term_documents={"vault": 2}), documents())
    assert not any("occurs in none" in gap.description for gap in draft.gaps)


def test_question_without_support_gives_a_gap_instead_of_findings() -> None:
    """Below the coverage floor nothing is quoted."""
    draft = analyze(analyze_input("How do I bake sourdough bread in the vault?"), documents())
    assert draft.findings == []
    assert 1 <= len(draft.gaps) <= 3
    assert draft.gaps[0].description


def test_suggested_queries_differ_from_what_was_asked() -> None:
    """A gap suggests searches that were not made (S0-064)."""
    task = analyze_input("How do I bake sourdough bread with snapshots?")
    suggested = [query for gap in analyze(task, documents()).gaps for query in gap.suggested_queries]
    assert all(len(query) >= 10 and query not in (task.query, task.sub_query.text) for query in suggested)


def test_agreement_of_authoritative_documents_is_high_confidence() -> None:
    """Authoritative documents of two collections give high confidence, two of one collection medium (S0-065)."""
    one, other = sources()
    elsewhere = other.model_copy(update={"url": "corpus:y/copies"})
    draft = analyze(analyze_input(sources=[one, elsewhere]), documents())
    assert next(found for found in draft.findings if "twice" in found.content).confidence == "high"
    draft = analyze(analyze_input(), documents())
    twice = next(found for found in draft.findings if "twice" in found.content)
    assert twice.confidence == "medium"
    assert len({quote.source_id for quote in twice.quotes}) == 2
    single = over(PAGES["retention"][1], "How does the vault prevent loss of a snapshot?")
    assert {found.confidence for found in single.findings} == {"low"}


def test_denial_is_marked_as_qualification() -> None:
    """A passage that denies what the question takes for granted is marked, so that it can come first."""
    draft = analyze(analyze_input("Why is encryption of a volume enabled by default?", facet="reason"), documents())
    marked = [found for found in draft.findings if found.category == QUALIFICATION]
    assert any("disabled by default" in found.content for found in marked)


def test_near_duplicates_count_once() -> None:
    """Passages that hold nearly the same words are no separate findings."""
    text = "\n\n".join(["The vault prevents loss of a snapshot by writing it to two disks at once."] * 4)
    assert len(over(text, "How does the vault prevent loss of a snapshot?").findings) == 1


def test_definition_keeps_its_term() -> None:
    """The text of a definition is quoted with the term that it explains."""
    found = quotes(analyze(analyze_input("What is the default of retention_days?", facet="fact"), documents()))
    assert any(quote.startswith("retention_days (integer)\nSets for how many days") for quote in found)


def test_order_of_sources_decides_nothing() -> None:
    """Same input, same bytes: arrival order does not matter."""
    forward = analyze(analyze_input(), documents())
    backward = analyze(analyze_input(sources=list(reversed(sources()))), documents())
    assert forward.model_dump_json() == backward.model_dump_json()


def test_other_language_is_matched_without_english_stems() -> None:
    """Text in a language without a stemmer is matched in its very form."""
    text = "Trezor chroni kopie przed utratą, zapisując każdą kopię dwa razy na różnych dyskach a potem is the on.\n"
    draft = over(text, "Jak trezor chroni kopie przed utratą?", language="pl")
    assert draft.findings


def test_sources_without_a_text_are_no_evidence() -> None:
    """A snippet is not quoted."""
    bare = [source.model_copy(update={"text": None}) for source in sources()]
    draft = analyze(analyze_input(sources=bare), {})
    assert draft.findings == []
    assert draft.gaps


LINES = st.sampled_from(
    [
        "# The vault", "The vault prevents loss of every snapshot by writing it twice.", "It is also fast.",
        "However, this is not so for the vault.", "```", "| snapshot | vault | 30 |", "- vault snapshot loss item.",
        "vault_days (integer)", "", "[link](javascript:alert)", "Snapshots: the vault keeps them to prevent loss:",
        "<script>vault snapshot loss</script> is what the vault prevents for a snapshot.", "1. The vault prevents the loss.",
    ]
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(LINES, st.text(max_size=60)), max_size=25))
def test_any_text_gives_only_true_quotes(lines: list[str]) -> None:
    """Whatever the page, each quote is a bounded substring at its offset, and no two findings say the same."""
    text = "\n".join(lines)
    draft = over(text, "How does the vault prevent loss of a snapshot?")
    assert len(draft.findings) <= 5
    assert len(draft.gaps) <= 3
    for found in draft.findings:
        assert 0 < len(found.content) <= 600
        for quote in found.quotes:
            assert quote.start is not None
            assert text[quote.start : quote.start + len(quote.quote)] == quote.quote
            assert len(quote.quote) <= LONGEST_PASSAGE + 200
            assert "```" not in quote.quote
    keys = [text_keys(found.quotes[0].quote, "en") for found in draft.findings]
    assert not any(containment(a, b) >= 0.7 for n, a in enumerate(keys) for b in keys[n + 1 :])


def test_search_in_other_words_repeats_one_answer_only() -> None:
    """Three answers for the question's own words; a search in other words keeps its room for what else is said."""
    answers = [
        "The vault was written by Anna Lehmann in her spare time.",
        "A second edition of the vault was written by Peter Kowalski after a long debate.",
        "For small machines, the vault was written by Maria Rossi from nothing else than its manual.",
    ]
    others = [
        "What was written to the vault stays readable.",
        "Whoever has written to the vault once needs no second key.",
    ]
    text = "\n\n".join(f"# Part {number}\n\n{line}" for number, line in enumerate([*answers, *others]))
    question = "Who wrote the vault?"
    further = PlanNode(id=sub_query_id("wrote vault author"), text="wrote vault author", facet="fact")

    def told(**more: object) -> list[str]:
        found = over(text, question, facet="fact", max_findings=3, **more).findings
        return [line for line in answers if any(line in one.content for one in found)]

    assert told() == answers
    assert len(told(sub_query=further)) < len(answers)


def test_the_header_of_a_table_is_not_missed_in_its_rows() -> None:
    """A row is shown under its header, so no gap says that a word of the header stands nowhere."""
    row = "| `limits.deadline_seconds` | 1 to 86400 | null |"
    question = "What is the default of limits.deadline_seconds?"
    given = {
        "facet": read_question(question, "en").main_facet,
        "documents_searched": 82,
        "term_documents": {"default": 30, "limits.deadline_seconds": 2},
    }
    for header, missed in (("default", False), ("meaning", True)):
        draft = over(f"# The request\n\n| field | values | {header} |\n| --- | --- | --- |\n{row}\n", question, **given)
        assert quotes(draft) == [row]
        assert any("'default'" in gap.description for gap in draft.gaps) is missed
