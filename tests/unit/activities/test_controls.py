"""Controls: statements of a text with passages that speak of something else, one in each call of a checker."""

from itertools import combinations, pairwise

import pytest

from activities.roles.claim_checking import control_of, with_control
from activities.verifying.material import CONTROLS_PER_CALL, Material, draw_controls, extract_claims, select_open
from contracts.addresses import digest
from contracts.call_sizes import CLAIMS_PER_CALL
from contracts.checking import AskedClaim, AskedEntry, CheckedSource, ClaimsEntry, ExtractedClaim, ShownSection
from contracts.evidence import DocumentRef, Evidence
from providers.storage.stored_notebooks import controls_for

SUBJECTS = [f"{name}{number}" for number in range(20) for name in ("harbour", "cellar", "orchard", "tunnel")]
SENTENCES = [f"The {name} has its {name}key and its {name}guard." for name in SUBJECTS]


def material_of(texts: list[str]) -> Material:
    """A run whose sources are one passage each, `ev-0` and so on."""
    references = [DocumentRef(hash=digest(text)) for text in texts]
    evidence = [
        Evidence(id=f"ev-{number}", source_id=f"src-{number}", start=0, end=len(text), quote_hash=digest(text))
        for number, text in enumerate(texts)
    ]
    sources = [CheckedSource(id=f"src-{number}", text=text) for number, text in enumerate(references)]
    entry = ClaimsEntry(draft=references[0], evidence=evidence, sources=sources)
    return Material(entry, dict(zip((one.hash for one in references), texts, strict=True)), by_model=True)


def drawn(draft: str, material: Material) -> tuple[list[ExtractedClaim], AskedEntry]:
    """The claims of a draft, and the entry with those that are asked about and the controls."""
    claims = extract_claims(draft, material)
    asked = AskedEntry(items=select_open(claims, material, set()))
    return claims, asked.with_fields(controls=draw_controls(claims, material, asked))


LONG = "".join(
    f"\n## Part {number // 8}\n\n" * (number % 8 == 0)
    + f"Its {name}key and its {name}guard are what the {name} has [ev-{number}].\n\n"
    for number, name in enumerate(SUBJECTS)
)


def test_each_call_has_a_control_of_its_own() -> None:
    """No statement and no passage of a control comes in two calls of a text, by which it would be known."""
    _, asked = drawn(LONG, material_of(SENTENCES))
    calls = [range(start, start + CLAIMS_PER_CALL) for start in range(0, len(asked.items), CLAIMS_PER_CALL)]
    chosen = [control_of([asked.items[number] for number in call], controls_for(list(call), asked)) for call in calls]
    controls = [control for control in chosen if control is not None]
    assert len(controls) == len(calls) == len(SUBJECTS) // CLAIMS_PER_CALL
    assert len({control.text for control in controls}) == len(calls)
    assert len({control.passages[0].evidence_id for control in controls}) == len(calls)
    assert len(asked.controls) == CONTROLS_PER_CALL * len(calls)
    shares = [{control.text for control in controls_for(list(call), asked)} for call in calls]
    assert all(one.isdisjoint(other) for one, other in combinations(shares, 2))


def test_calls_about_other_statements_of_a_text_have_other_controls() -> None:
    """A second look, and a check of corrections, would else show those of the first call again."""
    material = material_of(SENTENCES)
    claims, asked = drawn(LONG, material)
    again = draw_controls(claims, material, AskedEntry(items=asked.items[:2]))
    assert len(again) == CONTROLS_PER_CALL
    assert not {control.text for control in again} & {control.text for control in asked.controls}


def test_a_control_has_as_many_passages_as_other_statements() -> None:
    """It would be known by a single one; none of them shares its words, and its id is that of no statement."""
    material = material_of(SENTENCES[:8])
    claims, asked = drawn(
        f"As the {SUBJECTS[0]} has its {SUBJECTS[0]}key, so the {SUBJECTS[1]} has one [ev-0][ev-1].", material
    )
    (control,) = asked.controls
    assert len(control.passages) == 2
    assert not {passage.evidence_id for passage in control.passages} & {"ev-0", "ev-1"}
    assert control.fingerprint != claims[0].fingerprint


def test_a_control_comes_beside_a_statement_from_under_the_same_headings() -> None:
    """In an order by weight a statement of a section that no other has would stand out."""
    material = material_of(SENTENCES)
    claims, asked = drawn(LONG, material)
    shown = asked.items[:12]
    listed = with_control(shown, draw_controls(claims, material, asked, at_once=2))
    control = next(item for item in listed if item not in shown)
    place = listed.index(control)
    beside = {tuple(item.place.headings) for item in listed[max(0, place - 1) : place + 2] if item is not control}
    assert tuple(control.place.headings) in beside
    assert len({tuple(one.place.headings) for one, other in pairwise(shown)}) > 1


def test_a_control_of_a_second_look_has_a_section() -> None:
    """The other statements of the call have sections; one of its own pages or with its words is not taken."""
    material = material_of(SENTENCES[:6])
    claims, asked = drawn(
        f"Its {SUBJECTS[0]}key and its {SUBJECTS[0]}guard are what the {SUBJECTS[0]} has [ev-0].", material
    )
    sections = [
        ShownSection(id="s-own", source_id="src-0", text=SENTENCES[3]),
        ShownSection(id="s-same", source_id="src-2", text=f"{SENTENCES[3]} {SENTENCES[0]}"),
        ShownSection(id="s-other", source_id="src-3", text=SENTENCES[3]),
    ]
    (control,) = draw_controls(claims, material, asked.with_fields(sections=sections), len(asked.items))[:1]
    assert control.sections == ["s-other"]


def test_without_a_foreign_passage_there_is_no_control() -> None:
    """Where every passage shares words with a statement, one that is true would make a good answer count for nothing."""
    material = material_of(["At noon the ferries keep it in memory.", "The ferries keep it in memory on weekdays."])
    assert drawn("At noon on weekdays the ferries keep it in memory. [ev-0]", material)[1].controls == []
    assert controls_for([0], AskedEntry(items=[AskedClaim(fingerprint="c-1", text="It is.")])) == []


QUOTE = "The store keeps 128 MB of pages in memory by default."


@pytest.mark.parametrize(
    ("between", "count"),
    [
        (" ", 0),
        (f" {'Nothing is said here. ' * 20}", 0),
        (f" {'Nothing is said here. ' * 120}", 1),
        (f" {'Nothing is said here. ' * 120}The store keeps pages in memory. ", 0),
    ],
)
def test_no_control_has_a_passage_beside_one_that_the_statement_cites(between: str, count: int) -> None:
    """A neighbour shares no word with it, and says it with the text around it or continues it; so may a far one that
    is shown with text of the same words.
    """
    text = f"{QUOTE}{between}Ferries leave the harbour at noon on weekdays."
    own = Evidence(id="ev-1", source_id="src-2", start=0, end=len(QUOTE))
    near = Evidence(id="ev-3", source_id="src-2", start=text.index("Ferries"), end=len(text))
    reference = DocumentRef(hash=digest(text))
    source = CheckedSource(id="src-2", title="Ports", text=reference)
    entry = ClaimsEntry(draft=reference, evidence=[own, near], sources=[source])
    material = Material(entry, {reference.hash: text}, by_model=True)
    claims = extract_claims("The store has 128 MB of pages in memory by default [ev-1].", material)
    asked = AskedEntry(items=select_open(claims, material, set()))
    assert len(draw_controls(claims, material, asked)) == count
