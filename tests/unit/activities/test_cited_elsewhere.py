"""A statement that says again what the report cites elsewhere gets that citation in place of a mark."""

from dataclasses import replace
from pathlib import Path

import pytest
from temporalio.testing import ActivityEnvironment

from activities.roles.prompt_rendering import render_role
from activities.verifying import corrections
from activities.verifying.adoption import adopt_first
from activities.verifying.corrections import cite_further, find_doubtful
from activities.verifying.further_passages import MAX_ELSEWHERE, cited_elsewhere, with_elsewhere
from activities.verifying.material import Material, conclude, draw_controls, select_open
from activities.verifying.verification import VerifyingActivities
from contracts.addresses import digest
from contracts.checking import AnswersEntry, AskedEntry, ClaimAnswer, ClaimsEntry, CorrectionAction, ExtractedClaim
from contracts.checking_roles import CHECKER, CheckInput
from contracts.evidence import DocumentRef, ReportDraft, Verdict
from contracts.messages import FinalizeVerificationRequest
from tests.fakes.world import World
from tests.unit.activities.scripted import common, drafted_over, passage_of

LAMP = "The lamp of the lighthouse burns from dusk until dawn."
TIDE = "At spring tide the harbour basin has a depth of 12 metres."
FERRY = "Ferries to the island accept bicycles only with --reserve-place."
PAGES = {
    "src-1": f"# Lighthouse\n\n{LAMP}\n",
    "src-2": f"# Harbour\n\n{TIDE}\n",
    "src-3": f"# Ferries\n\n{FERRY}\n",
}
QUOTES = {"ev-1": ("src-1", LAMP), "ev-2": ("src-2", TIDE), "ev-3": ("src-3", FERRY)}
SECTIONS = (
    "## Light\n\nThe lighthouse lamp burns all night [ev-1].\n\n"
    "## Basin\n\nThe depth of the basin at spring tide is 12 metres [ev-2].\n\n"
    "## Crossing\n\nBicycles need `--reserve-place` on ferries [ev-3].\n"
)
SUMMARY = "The lamp burns all night, and at spring tide the basin has 12 metres [ev-1].\n"
REPORT = f"# Island\n\n## Summary\n\n{SUMMARY}\n{SECTIONS}"


def drafted(markdown: str) -> tuple[str, list[ExtractedClaim], Material]:
    """A draft with its claims, and a run that has read the three pages."""
    passages = [passage_of(PAGES, name, source_id, quote) for name, (source_id, quote) in QUOTES.items()]
    draft, claims, material = drafted_over(markdown, PAGES, passages)
    claims = with_elsewhere(claims, material)
    return draft, claims, replace(material, entry=material.entry.with_fields(claims=claims))


@pytest.mark.parametrize(
    ("summary", "found"),
    [
        (SUMMARY, ["ev-2"]),
        ("The lamp burns all night, and bicycles need `--reserve-place` [ev-1].\n", ["ev-3"]),
        ("At night the lamp of the lighthouse burns from dusk on [ev-1].\n", []),
        ("The lamp burns, and a fee is due for dogs of visitors in winter [ev-1].\n", []),
        ("The lamp burns, the basin has 12 metres at spring tide [ev-1][ev-2].\n", []),
    ],
)
def test_what_a_section_cites_is_shown_where_the_summary_says_it_again(summary: str, found: list[str]) -> None:
    """That is found by words, figures and options that the statement's own passages lack; nothing else is shown."""
    _, (claim, *_), _ = drafted(REPORT.replace(SUMMARY, summary))
    assert claim.others == found


def test_what_a_statement_needs_comes_from_several_sections_up_to_a_limit() -> None:
    """Each further passage adds something that those before it lack."""
    everything = "The lamp burns all night, the basin has 12 metres at spring tide, bicycles need `--reserve-place`"
    _, (claim, *_), _ = drafted(REPORT.replace(SUMMARY, f"{everything} [ev-1].\n"))
    assert sorted(claim.others) == ["ev-2", "ev-3"]
    assert len(claim.others) <= MAX_ELSEWHERE


def test_a_listing_gets_no_passage_of_another_place() -> None:
    """It is the page's own, and is neither cited further nor corrected."""
    _, (listing, *_), material = drafted(
        f"# Island\n\n```\nlamp burns, the basin has 12 metres\n```\n\n[ev-1]\n\n{SECTIONS}"
    )
    assert listing.row
    assert listing.asked
    assert (listing.others, cited_elsewhere(listing, material)) == ([], ["ev-2"])


TABLE = "| Matter | Day | Night |\n|---|---|---|\n| `->>` | off [ev-2] | on [ev-1] |\n| Bicycles | free [ev-3] | free [ev-3] |\n"


def test_the_rows_that_a_sentence_names_are_shown_with_what_they_cite() -> None:
    """It sums them up by their first cells, such as an operator; a row that it does not name in full is not shown."""
    draft = f"# Island\n\n## Summary\n\nDay and night differ in the result of `->>` [ev-3].\n\n## Table\n\n{TABLE}"
    _, (claim, *cells), _ = drafted(draft)
    assert claim.others == ["ev-2", "ev-1"]
    assert all(cell.others == [] for cell in cells)


def test_an_item_is_named_by_its_label() -> None:
    """The words before its colon say what it is about, however its passage puts that."""
    items = "- **Crossing fee:** two coins, at the pier [ev-2]\n- **Winter fee:** one coin, at the pier [ev-3]\n"
    _, (claim, *_), _ = drafted(f"# Island\n\n## Summary\n\nThere is a crossing fee [ev-1].\n\n## Fees\n\n{items}")
    assert claim.others == ["ev-2"]


def test_of_passages_that_say_the_same_one_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second one adds no word that the first does not have."""
    monkeypatch.setitem(PAGES, "src-4", PAGES["src-2"])
    monkeypatch.setitem(QUOTES, "ev-4", ("src-4", TIDE))
    _, (claim, *_), _ = drafted(f"{REPORT}\n## Depth\n\nThe basin has 12 metres at spring tide [ev-4].\n")
    assert len(claim.others) == 1


def test_a_checker_sees_such_a_passage_as_another_one() -> None:
    """It stands in the element of the statement, apart from those that it cites; a control has none."""
    _, claims, material = drafted(REPORT)
    asked = select_open(claims, material, ())
    shown = next(item for item in asked if item.others)
    prompt = render_role(CHECKER, CheckInput(**common(claims=[shown], canary="c4nary")), {}).prompt
    (line,) = [line for line in prompt.splitlines() if "other" in line]
    assert "¦other (src-2" in line
    assert line.endswith(TIDE)
    (control,) = draw_controls(claims[:1], material, AskedEntry(items=asked))
    assert claims[0].others
    assert control.others == []


def answered(claims: list[ExtractedClaim], verdict: Verdict, *evidence_ids: str) -> dict[str, ClaimAnswer]:
    """An answer about the summary, and full support of all others by their own passages."""
    answers = {
        claim.fingerprint: ClaimAnswer(
            fingerprint=claim.fingerprint, verdict=Verdict.SUPPORTED, evidence_ids=claim.evidence_ids
        )
        for claim in claims
    }
    first = claims[0].fingerprint
    return answers | {first: ClaimAnswer(fingerprint=first, verdict=verdict, evidence_ids=list(evidence_ids))}


def test_a_statement_that_shares_a_citation_keeps_only_what_was_quoted_of_it() -> None:
    """The citation of the sentence after it says nothing of it once it has one of its own."""
    summary = "At spring tide the basin has 12 metres. The lamp burns all night [ev-1]."
    draft, claims, material = drafted(f"# Island\n\n## Summary\n\n{summary}\n\n{SECTIONS}")
    adopted = adopt_first(claims, answered(claims, Verdict.SUPPORTED, "ev-2"), material)
    _, after, _, text = cite_further(draft, material, adopted)
    assert "At spring tide the basin has 12 metres [ev-2]. The lamp burns all night [ev-1]." in text
    assert after.entry.claims[0].fingerprint in adopted.answers


@pytest.mark.parametrize(
    ("summary", "cited"),
    [
        ("The basin has 12 metres and a lamp [ev-1]; bicycles need a place [ev-3].", "[ev-1][ev-2]; bicycles"),
        ("A lamp burns all night [ev-1], and bicycles need a place [ev-3].", "need a place [ev-3][ev-2]."),
    ],
    ids=["a middle clause", "in doubt the last"],
)
def test_a_further_citation_follows_the_words_that_lack_it(summary: str, cited: str) -> None:
    """A sentence that cites clause by clause gets it where the passage has most of what no other one says."""
    draft, claims, material = drafted(f"# Island\n\n## Summary\n\n{summary}\n\n{SECTIONS}")
    known = answered(claims, Verdict.SUPPORTED, "ev-1", "ev-2", "ev-3")
    _, _, _, text = cite_further(draft, material, adopt_first(claims, known, material))
    assert cited in text


@pytest.mark.parametrize("verdict", [Verdict.SUPPORTED, Verdict.PARTIAL])
def test_what_is_quoted_of_it_becomes_a_citation(verdict: Verdict) -> None:
    """No word changes, the verdict stays, and a statement that still lacks something is looked at again."""
    draft, claims, material = drafted(REPORT)
    known = answered(claims, verdict, "ev-1", "ev-2")
    adopted = adopt_first(claims, known, material)
    _, corrected, _, text = cite_further(draft, material, adopted)
    assert text == draft.replace(SUMMARY.strip(), SUMMARY.strip().replace("[ev-1]", "[ev-1][ev-2]"))
    assert [item.action for item in adopted.corrections] == [CorrectionAction.CITE]
    known |= adopted.answers
    verdicts = conclude(corrected.entry.claims, known)
    assert [each.verdict for each in verdicts] == [verdict, *[Verdict.SUPPORTED] * 3]
    assert not any(answer.is_second for answer in known.values())
    assert len(find_doubtful(corrected.entry.claims, verdicts, corrected, known).items) == (verdict is Verdict.PARTIAL)


def test_a_citation_follows_the_words_that_had_none() -> None:
    """Where words follow the last citation of a sentence, a further one stands behind them."""
    summary = "The lamp burns all night [ev-1], and at spring tide the basin has 12 metres.\n"
    draft, claims, material = drafted(REPORT.replace(SUMMARY, summary))
    adopted = adopt_first(claims, answered(claims, Verdict.SUPPORTED, "ev-1", "ev-2"), material)
    _, _, _, text = cite_further(draft, material, adopted)
    assert text == draft.replace("12 metres.\n", "12 metres [ev-2].\n", 1)


@pytest.mark.parametrize(
    ("verdict", "quoted"),
    [(Verdict.SUPPORTED, ["ev-1"]), (Verdict.UNSUPPORTED, ["ev-2"]), (Verdict.CONTRADICTED, ["ev-2"])],
)
def test_nothing_is_cited_that_supports_nothing(verdict: Verdict, quoted: list[str]) -> None:
    """What a statement cites already, or what contradicts it, is no further citation."""
    _, claims, material = drafted(REPORT)
    assert adopt_first(claims, answered(claims, verdict, *quoted), material).proposals == []


def test_what_contradicts_a_statement_elsewhere_is_shown_to_its_corrector() -> None:
    """The words that decided come first among the other passages."""
    _, claims, material = drafted(REPORT)
    known = answered(claims, Verdict.CONTRADICTED, "ev-2")
    (item,) = find_doubtful(claims, conclude(claims, known), material, known).items
    assert item.others[0].evidence_id == "ev-2"


def test_a_second_look_has_what_the_first_check_was_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """It shows more of the pages of these passages."""
    monkeypatch.setattr(corrections, "related_to", lambda *_: [])
    _, claims, material = drafted(REPORT)
    known = answered(claims, Verdict.PARTIAL, "ev-1")
    (item,) = find_doubtful(claims, conclude(claims, known), material, known).items
    assert "ev-2" in [each.evidence_id for each in item.others]


async def test_the_end_of_a_first_check_has_the_citations_and_what_was_answered(tmp_path: Path) -> None:
    """The draft with them is the report, and the answers about its new form are stored: no statement is asked about twice."""
    world = World(tmp_path)
    draft, claims, material = drafted(REPORT)
    for text in (*PAGES.values(), draft):
        await world.content.put_text(text)
    stored = DocumentRef(hash=digest(draft))
    entry = material.entry.with_fields(draft=stored)
    given = answered(claims, Verdict.SUPPORTED, "ev-1", "ev-2")
    verifying = VerifyingActivities(world.content, world.sessions, world.notebooks)
    result = await ActivityEnvironment().run(
        verifying.finalize_verification,
        FinalizeVerificationRequest(
            research_id="r-1",
            claims_entry=await world.notebooks.write(entry),
            answers=[await world.notebooks.write(AnswersEntry(items=list(given.values())))],
            by_model=True,
            corrects=True,
        ),
    )
    assert isinstance(result.draft, ReportDraft)
    assert "12 metres [ev-1][ev-2]." in await world.content.get_text(result.draft.document)
    answers = (await world.notebooks.read(result.answers_entry, AnswersEntry)).items
    after = (await world.notebooks.read(result.claims_entry, ClaimsEntry)).claims
    assert [answer.fingerprint for answer in answers] == [after[0].fingerprint]
    assert (result.second_claims, result.sizes) == (0, [])
    assert result.summary.correction_counts == {"cite": 1}
