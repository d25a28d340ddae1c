"""PROV-JSON: valid by its structure, and whole."""

import json
import re
from typing import Any

import prov.model
import pytest

from activities.reporting.render import render
from client.exchange.exported_report import ExportedReport, read_report
from client.exchange.provenance import to_prov
from tests.unit.activities.reporting.sample import SKIPPED, Sample
from tests.unit.client.exchange.hostile_report import report_of

RELATIONS = {
    "used": ("prov:activity", "prov:entity"),
    "wasGeneratedBy": ("prov:entity", "prov:activity"),
    "wasAssociatedWith": ("prov:activity", "prov:agent"),
    "wasAttributedTo": ("prov:entity", "prov:agent"),
    "wasDerivedFrom": ("prov:generatedEntity", "prov:usedEntity"),
    "wasInformedBy": ("prov:informed", "prov:informant"),
    "wasInfluencedBy": ("prov:influencee", "prov:influencer"),
    "actedOnBehalfOf": ("prov:delegate", "prov:responsible"),
    "specializationOf": ("prov:specificEntity", "prov:generalEntity"),
    "hadMember": ("prov:collection", "prov:entity"),
}
KIND = {"entity": "entity", "activity": "activity", "agent": "agent", "generatedEntity": "entity", "usedEntity": "entity",
        "informed": "activity", "informant": "activity", "delegate": "agent", "responsible": "agent",
        "specificEntity": "entity", "generalEntity": "entity", "collection": "entity"}  # fmt: skip
NAME = re.compile(r"(?:run|hash):[A-Za-z0-9._-]+")
SAMPLE = Sample()


def sample_report() -> ExportedReport:
    """The report of the sample run."""
    return read_report(json.loads(render(SAMPLE.state(), SAMPLE.draft, SAMPLE.texts, SKIPPED, "0.1.0").document))


def checked(document: dict[str, Any]) -> dict[str, Any]:
    """The document, after every rule of PROV-JSON that it could break."""
    assert set(document) <= {"prefix", "entity", "activity", "agent", *RELATIONS}
    names = {kind: set(document.get(kind, {})) for kind in ("entity", "activity", "agent")}
    assert all(NAME.fullmatch(name) for known in names.values() for name in known)
    for kind, ends in RELATIONS.items():
        for relation in document.get(kind, {}).values():
            assert set(relation) - {"prov:time"} == set(ends)
            for end in ends:
                wanted = KIND.get(end.removeprefix("prov:"))
                assert relation[end] in (names[wanted] if wanted else set.union(*names.values()))
    return document


@pytest.mark.parametrize("report", [sample_report(), report_of()], ids=["sample", "hostile"])
def test_the_document_is_valid_and_every_relation_resolves(report: ExportedReport) -> None:
    """A library of others reads it, and writes the same records again."""
    written = to_prov(report)
    document = checked(json.loads(written))
    read = prov.model.ProvDocument.deserialize(content=written.decode(), format="json")
    again = json.loads(read.serialize(format="json"))
    for kind in ("entity", "activity", "agent"):
        assert set(again[kind]) == set(document[kind])
    for kind in set(RELATIONS) & set(document):
        assert len(again[kind]) == len(document[kind])
    assert to_prov(report) == written


def test_the_way_from_the_question_to_the_report_is_there() -> None:
    """Question, search, source, reading, archived text, passage, claim, report: each step is a record."""
    document = json.loads(to_prov(sample_report()))
    types = {name: kind["prov:type"] for name, kind in (document["entity"] | document["activity"]).items()}
    found = {each["$"] for kind in types.values() for each in (kind if isinstance(kind, list) else [kind])}
    assert {"research:Question", "research:Search", "research:Source", "research:Read", "research:ArchivedText",
            "research:Original", "research:Passage", "research:Claim", "research:Verification", "research:Report",
            "research:Decision", "research:RoleWork"} <= found  # fmt: skip
    derived = {(each["prov:generatedEntity"], each["prov:usedEntity"]) for each in document["wasDerivedFrom"].values()}
    source = SAMPLE.sources["routine-vacuuming.html"]
    assert source.text is not None
    text = "hash:" + source.text.hash.removeprefix("sha256:")
    assert (f"run:{SAMPLE.rule.id}", text) in derived
    assert (text, f"run:{source.id}") in derived
    claims = {name for name, entity in document["entity"].items() if "research:verdict" in entity}
    assert len(claims) == 8
    assert {each["prov:entity"] for each in document["hadMember"].values()} == claims


def test_work_of_a_model_names_its_calls_and_its_model() -> None:
    """Calls are counted where the report counts them: at the role."""
    document = json.loads(to_prov(report_of()))
    planner = document["activity"]["run:work-planner"]
    assert planner["prov:type"]["$"] == "research:ModelCalls"
    assert planner["research:modelCalls"] == 2
    assert document["agent"]["run:model-1"]["prov:label"] == "vendor/model:1 {x}"
    assert "research:modelCalls" not in document["activity"]["run:work-analyzer"]
