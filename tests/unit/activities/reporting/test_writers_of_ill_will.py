"""Reports of writers that invent, copy and leave out: what is shown, and what the report says of it."""

import json

from activities.reporting.citations import cited_evidence
from activities.reporting.render import RenderedForms, render
from activities.roles.synthesizer import clean_report
from activities.roles.untrusted import label_key, label_of
from contracts.roles import SYNTHESIZER, WriteInput
from contracts.vocabulary import EngineKind
from tests.unit.activities.reporting.sample import SKIPPED, Sample

SAMPLE = Sample()
A, B = SAMPLE.rule.id, SAMPLE.forced.id
INVENTED = f"""# Wraparound

## Summary

Vacuuming prevents it [{A}], as https://evil.test/proof and [this page](https://evil.test/x) say [99].
PostgreSQL was written by two whales in 1877. [1] https://evil.test
It runs daily ([2](http://evil.test)), see <https://evil.test/z> ![](https://evil.test/p.png) and www.evil.test.

[1]: https://evil.test/def

- Whales maintain the project in winter
- Autovacuum is forced [{B}]
"""


def made(draft: str, **changes: object) -> RenderedForms:
    """The report of a model that wrote this draft."""
    state = SAMPLE.state(engine_by_role={SYNTHESIZER.name: EngineKind.MODEL.value})
    assert state.resolved is not None
    state.resolved = state.resolved.model_copy(update=changes)
    return render(state, draft, SAMPLE.texts, SKIPPED, "0.1.0")


def test_uncited_assertion_is_reported() -> None:
    """It is a claim without evidence in `report.json`, counted, and named in the section on the method."""
    forms = made(INVENTED)
    document = json.loads(forms.document)
    uncited = [claim for claim in document["claims"] if not claim["evidence_ids"]]
    assert [claim["text"].split(" in ")[0] for claim in uncited][:1] == ["PostgreSQL was written by two whales"]
    assert any(claim["text"] == "Whales maintain the project in winter" for claim in uncited)
    assert {claim["verdict"] for claim in uncited} == {"unverified"}
    assert document["verification"]["uncited_claims"] == len(uncited)
    assert "The writer cites no passage for" in forms.markdown


def test_source_is_cited_by_its_label_too() -> None:
    """A writer that names the source of its prompt means the passages that it was shown of it."""
    findings = [finding for finding in SAMPLE.state().findings if finding.evidence_ids]
    request = WriteInput(
        research_id="r", engine=EngineKind.MODEL, canary="c" * 24, query="How?", findings=findings,
        evidence=list(SAMPLE.evidence.values()), sources=[],
    )  # fmt: skip
    label = label_of(SAMPLE.rule.source_id, label_key(request))
    report = clean_report(f"It is so [{label}], and so [src-0000000000].", request, {})
    of_source = {item.id for item in SAMPLE.evidence.values() if item.source_id == SAMPLE.rule.source_id}
    shown = {key for finding in findings for key in finding.evidence_ids}
    assert set(cited_evidence(report.blocks)) == of_source & shown != set()
    assert report.unresolved == ["src-0000000000"]
