"""A report from a writer's words to its audit: cleaned, stored, numbered, rendered in all forms, checked again."""

import json
from dataclasses import dataclass
from typing import Any

from activities.reporting.audit import AuditResult, audit
from activities.reporting.inputs import RenderMaterial
from activities.reporting.render import RenderedForms, render
from activities.roles.grounding import RoleWork
from activities.roles.report_writing import ground_report
from activities.roles.untrusted import label_key, label_of
from contracts import roles
from contracts.addresses import digest
from contracts.evidence import Evidence, Source
from contracts.vocabulary import EngineKind
from tests.fakes.killers import HereCalls
from tests.unit.activities.reporting.sample import SAMPLE, make_evidence, make_source, store_of
from tests.unit.activities.scripted import common, finding
from tests.unit.activities.scripted import source as source_of

QUESTION = "How does vacuum prevent wraparound?"


@dataclass(frozen=True)
class Whole:
    """A finished report, and what its audit says."""

    rendering: RenderedForms
    document: dict[str, Any]
    audited: AuditResult
    warnings: list[str]


@dataclass(frozen=True)
class World:
    """Two pages with one cited passage each."""

    sources: list[Source]
    evidence: list[Evidence]
    texts: dict[str, str]

    @classmethod
    def of(
        cls, *pages: str, urls: tuple[str, ...] = ("https://first.test/page", "https://second.test/page")
    ) -> "World":
        """A world in which the whole text of each page is the passage."""
        sources = [make_source(url, "A page", text) for url, text in zip(urls, pages, strict=True)]
        passages = [make_evidence(source, text, text) for source, text in zip(sources, pages, strict=True)]
        return cls(sources, passages, {digest(text): text for text in pages})

    def request(self) -> roles.WriteInput:
        extracts = [source_of(source.text, id=source.id, url=source.url) for source in self.sources]
        findings = [finding(self.words(item)[:300], item) for item in self.evidence]
        return roles.WriteInput(**common(query=QUESTION, sources=extracts, evidence=self.evidence, findings=findings))

    def words(self, item: Evidence) -> str:
        source = next(source for source in self.sources if source.id == item.source_id)
        assert source.text is not None
        return self.texts[source.text.hash][item.start : item.end]

    def marker(self, position: int) -> str:
        return f"[{label_of(self.evidence[position].id, label_key(self.request()))}]"

    async def written(self, markdown: str) -> Whole:
        """The report of a model that writes this."""
        answer = roles.SynthesizerAnswer(markdown=markdown)
        work = RoleWork(roles.SYNTHESIZER, self.request(), answer, self.texts, EngineKind.MODEL)
        output, text = ground_report(work), "".join(work.texts)
        state = SAMPLE.state(
            sources={source.id: source for source in self.sources},
            evidence={item.id: item for item in self.evidence},
            findings=self.request().findings,
            draft=output.draft,
        )
        rendering = render(
            RenderMaterial(state=state, draft=text, texts=self.texts, skipped=[], product_version="0.1.0")
        )
        store = await store_of(self.texts)
        data, html = rendering.document.encode(), rendering.html.encode()
        audited = await audit(
            data,
            store.text_by_hash,
            store.by_hash,
            HereCalls(),
            version="0.1.0",
            markdown=rendering.markdown,
            html=html,
        )
        return Whole(rendering, json.loads(data), audited, work.warnings)
