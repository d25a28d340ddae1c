"""The provenance of a report as W3C PROV-JSON: what was made of what, by which activity, by whom.

Entities are the question, sources, archived documents, passages, findings, claims and the three forms of the report;
activities are the run, its searches, its readings, the work of each role and the checking of claims; agents are the
product, the roles, the models and the search providers. What a report does not know (single model calls, when a search
began) is not made up: calls of models are counts at the work of their role.
"""

import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from client.exchange.exported_report import ExportedReport, ExportedSource, safe_line

NAMESPACE: Final = "urn:durable-research:"
PREFIXES: Final = {
    "prov": "http://www.w3.org/ns/prov#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
    "research": f"{NAMESPACE}terms#",
    "hash": "urn:hash:sha256:",
}
NOT_LOCAL: Final = re.compile(r"[^A-Za-z0-9._-]")
WRITER: Final = "synthesizer"
FORMS: Final = ("report.md", "report.html", "report.json")

Attributes = dict[str, Any]


class ProvenanceDocument:
    """A PROV-JSON document that grows: records by kind, relations with blank names in order."""

    def __init__(self, research_id: str) -> None:
        self._prefixes = PREFIXES | {"run": f"{NAMESPACE}{_local(research_id)}:"}
        self.records: dict[str, dict[str, Attributes]] = {}

    def add(self, kind: str, name: str, **attributes: Any) -> str:
        """An entity, activity or agent; attributes without a value are left out. A second one of a name adds to it."""
        named = {key.replace("__", ":"): value for key, value in attributes.items() if value not in (None, "", [], {})}
        self.records.setdefault(kind, {}).setdefault(name, {}).update(named)
        return name

    def relate(self, kind: str, **ends: str | None) -> None:
        """A relation between two records."""
        relations = self.records.setdefault(kind, {})
        relations[f"_:{kind}{len(relations) + 1}"] = {f"prov:{end}": name for end, name in ends.items() if name}

    def text(self) -> bytes:
        """The document."""
        document = {"prefix": self._prefixes, **self.records}
        return (json.dumps(document, ensure_ascii=False, indent=1) + "\n").encode("utf-8", "backslashreplace")


def to_prov(report: ExportedReport) -> bytes:
    """The PROV-JSON of a report. Pure: the same report gives the same bytes."""
    made = ProvenanceDocument(report.research_id)
    run = made.add(
        "activity",
        "run:run",
        prov__type=_name("research:Run"),
        prov__label=safe_line(report.research_id),
        prov__startTime=_time(report.started_at),
        prov__endTime=_time(report.ended_at),
        research__strategy=report.strategy,
        research__outcome=report.outcome,
    )
    product = made.add(
        "agent",
        "run:product",
        prov__type=_name("prov:SoftwareAgent"),
        prov__label=f"durable-research {safe_line(report.product_version)}".strip(),
    )
    question = made.add("entity", "run:question", prov__type=_name("research:Question"), prov__value=report.query)
    made.relate("used", activity=run, entity=question)
    made.relate("wasAssociatedWith", activity=run, agent=product)
    roles = _add_roles(made, report, product)
    _add_searches(made, report)
    for source in report.sources:
        _add_source(made, source, product)
    _add_evidence(made, report)
    _add_claims(made, report, product)
    _add_forms(made, report, roles)
    return made.text()


def _add_roles(made: ProvenanceDocument, report: ExportedReport, product: str) -> dict[str, str]:
    """The work of each role with its share of the calls; the activities by role."""
    by_role = report.usage.get("by_role")
    shares: Mapping[str, Any] = by_role if isinstance(by_role, dict) else {}
    models = [
        made.add("agent", f"run:model-{place}", prov__type=_name("prov:SoftwareAgent"), prov__label=safe_line(model))
        for place, model in enumerate(report.models, start=1)
    ]
    for model in models:
        made.relate("actedOnBehalfOf", delegate=model, responsible=product)
    work = {}
    for role, engine in sorted(report.engine_by_role.items()):
        name = _local(role)
        share = shares.get(role)
        calls = share.get("model_calls") if isinstance(share, dict) else None
        agent = made.add(
            "agent", f"run:role-{name}", prov__type=_name("prov:SoftwareAgent"), prov__label=safe_line(role)
        )
        work[role] = made.add(
            "activity",
            f"run:work-{name}",
            prov__type=_name("research:ModelCalls" if engine == "model" else "research:RoleWork"),
            prov__label=f"the work of the {safe_line(role)}",
            research__engine=safe_line(engine),
            research__modelCalls=calls if isinstance(calls, int) and calls else None,
        )
        made.relate("actedOnBehalfOf", delegate=agent, responsible=product)
        made.relate("wasAssociatedWith", activity=work[role], agent=agent)
        made.relate("wasInformedBy", informed="run:run", informant=work[role])
        if engine == "model":
            for model in models:
                made.relate("wasAssociatedWith", activity=work[role], agent=model)
    _add_decisions(made, report, work)
    return work


def _add_decisions(made: ProvenanceDocument, report: ExportedReport, work: Mapping[str, str]) -> None:
    """Each decision as an entity that the work of its role gave."""
    for decision in report.decisions:
        entity = made.add(
            "entity",
            f"run:decision-{decision.seq}",
            prov__type=_name("research:Decision"),
            prov__label=safe_line(decision.action),
            research__phase=decision.phase,
        )
        activity = work.get(decision.agent, "run:run")
        made.relate("wasGeneratedBy", entity=entity, activity=activity, time=_time(decision.timestamp))


def _add_searches(made: ProvenanceDocument, report: ExportedReport) -> None:
    for query in report.queries:
        search = made.add(
            "activity",
            f"run:search-{_local(query.id)}",
            prov__type=_name("research:Search"),
            prov__label=safe_line(query.text),
            research__status=query.status,
            research__results=query.result_count,
        )
        made.relate("used", activity=search, entity="run:question")
        made.relate("wasInformedBy", informed="run:run", informant=search)
        if query.provider:
            made.relate("wasAssociatedWith", activity=search, agent=_add_provider(made, query.provider))


def _add_provider(made: ProvenanceDocument, provider: str) -> str:
    return made.add(
        "agent",
        f"run:provider-{_local(provider)}",
        prov__type=_name("prov:SoftwareAgent"),
        prov__label=safe_line(provider),
    )


def _add_source(made: ProvenanceDocument, source: ExportedSource, product: str) -> None:
    name = made.add(
        "entity",
        f"run:{_local(source.id)}",
        prov__type=_name("research:Source"),
        prov__label=safe_line(source.title),
        prov__location={"$": safe_line(source.url), "type": "xsd:anyURI"},
        research__quality=source.quality,
        research__status=source.status,
        research__publishedAt=source.published_at,
    )
    searches = made.records.get("activity", {})
    for query in source.query_ids:
        if f"run:search-{_local(query)}" in searches:
            made.relate("wasInfluencedBy", influencee=name, influencer=f"run:search-{_local(query)}")
    archived = [value for value in (source.content_hash, source.text_hash) if value]
    if not archived:
        return
    read = made.add(
        "activity",
        f"run:read-{_local(source.id)}",
        prov__type=_name("research:Read"),
        prov__endTime=_time(source.retrieved_at),
    )
    made.relate("used", activity=read, entity=name)
    made.relate("wasAssociatedWith", activity=read, agent=product)
    made.relate("wasInformedBy", informed="run:run", informant=read)
    kinds = {"research:Original": source.content_hash, "research:ArchivedText": source.text_hash}
    for kind, value in kinds.items():
        if value:
            entity = made.add("entity", _hash(value), prov__type=_name(kind))
            made.relate("wasGeneratedBy", entity=entity, activity=read, time=_time(source.retrieved_at))
            made.relate("wasDerivedFrom", generatedEntity=entity, usedEntity=name)


def _add_evidence(made: ProvenanceDocument, report: ExportedReport) -> None:
    texts = {source.id: source.text_hash for source in report.sources if source.text_hash}
    for item in report.evidence:
        passage = made.add(
            "entity",
            f"run:{_local(item.id)}",
            prov__type=_name("research:Passage"),
            prov__value=item.quote,
            research__start=item.start,
            research__end=item.end,
        )
        text = texts.get(item.source_id)
        made.relate(
            "wasDerivedFrom",
            generatedEntity=passage,
            usedEntity=_hash(text) if text else f"run:{_local(item.source_id)}",
        )
    known = {item.id for item in report.evidence}
    for finding in report.findings:
        entity = made.add(
            "entity",
            f"run:{_local(finding.id)}",
            prov__type=_name("research:Finding"),
            prov__value=finding.statement,
            research__confidence=finding.confidence,
        )
        _derive(made, entity, finding.evidence_ids, known)


def _add_claims(made: ProvenanceDocument, report: ExportedReport, product: str) -> None:
    if not report.claims:
        return
    checking = made.add("activity", "run:check-claims", prov__type=_name("research:Verification"))
    made.relate("wasAssociatedWith", activity=checking, agent=product)
    made.relate("wasInformedBy", informed="run:run", informant=checking)
    known = {item.id for item in report.evidence}
    for claim in report.claims:
        entity = made.add(
            "entity",
            f"run:{_local(claim.id)}",
            prov__type=_name("research:Claim"),
            prov__value=claim.text,
            research__verdict=claim.verdict,
            research__method=claim.method,
            research__reason=claim.reason,
        )
        made.relate("used", activity=checking, entity=entity)
        _derive(made, entity, claim.evidence_ids, known)


def _derive(made: ProvenanceDocument, entity: str, evidence_ids: list[str], known: set[str]) -> None:
    for identity in dict.fromkeys(evidence_ids):
        if identity in known:
            made.relate("wasDerivedFrom", generatedEntity=entity, usedEntity=f"run:{_local(identity)}")


def _add_forms(made: ProvenanceDocument, report: ExportedReport, work: Mapping[str, str]) -> None:
    """The report, its forms, its claims as members, and the work that wrote it."""
    kinds = [_name("research:Report"), _name("prov:Collection")]
    whole = made.add("entity", "run:report", prov__type=kinds)
    writing = work.get(WRITER, "run:run")
    made.relate("wasGeneratedBy", entity=whole, activity=writing, time=_time(report.ended_at))
    made.relate("wasAttributedTo", entity=whole, agent="run:product")
    made.relate("wasDerivedFrom", generatedEntity=whole, usedEntity="run:question")
    for _, source in report.numbered():
        made.relate("wasDerivedFrom", generatedEntity=whole, usedEntity=f"run:{_local(source.id)}")
    for claim in report.claims:
        made.relate("hadMember", collection=whole, entity=f"run:{_local(claim.id)}")
    for form in FORMS:
        value = report.forms.get(form)
        entity = made.add("entity", f"run:{form}", prov__type=_name("research:ReportForm"), research__sha256=value)
        made.relate("specializationOf", specificEntity=entity, generalEntity=whole)


def _name(qualified: str) -> Attributes:
    return {"$": qualified, "type": "prov:QUALIFIED_NAME"}


def _local(identity: str) -> str:
    """An id as the local part of a qualified name."""
    return NOT_LOCAL.sub(lambda sign: f"_{ord(sign[0]):x}_", identity)


def _hash(value: str) -> str:
    return f"hash:{_local(value.removeprefix('sha256:'))}"


def _time(timestamp: str | None) -> str | None:
    """A timestamp as xsd:dateTime, or None for what is none."""
    try:
        return datetime.fromisoformat(timestamp).isoformat() if timestamp else None
    except ValueError:
        return None
