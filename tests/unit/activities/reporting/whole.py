"""A report from a writer's words to its audit: cleaned, stored, numbered, rendered in all forms, checked again."""

import json
from dataclasses import dataclass
from typing import Any

from activities.reporting.audit import AuditResult, audit
from activities.reporting.render import RenderedForms, render
from activities.roles.grounding import RoleWork
from activities.roles.prompt_rendering import render_role
from activities.roles.synthesizer import ground_report
from contracts import roles
from contracts.addresses import digest
from contracts.evidence import Evidence, Source
from contracts.vocabulary import EngineKind
from providers.extractive.brief import write
from tests.fakes.killers import HereCalls
from tests.unit.activities.reporting.memory_store import MemoryStore
from tests.unit.activities.reporting.sample import Sample, make_evidence, make_source
from tests.unit.activities.scripted import common, finding

QUESTION = "How does vacuum prevent wraparound?"


@dataclass(frozen=True)
class Whole:
    """A finished report, and what its audit says."""

    rendering: RenderedForms
    document: dict[str, Any]
    audited: AuditResult
    warnings: list[str]
    unresolved: list[str]


@dataclass(frozen=True)
class World:
    """Two pages with one cited passage each."""

    sources: list[Source]
    evidence: list[Evidence]
    texts: dict[str, str]

    @classmethod
    def of(
        cls, first: str, second: str, *, urls: tuple[str, str] | None = None, titles: tuple[str, str] = ("A", "B")
    ) -> "World":
        """A world in which the whole text of each page is the passage."""
        addresses = urls or ("https://first.test/page", "https://second.test/page")
        sources = [
            make_source(url, title, text) for url, title, text in zip(addresses, titles, (first, second), strict=True)
        ]
        passages = [
            make_evidence(source, text, text.strip()) for source, text in zip(sources, (first, second), strict=True)
        ]
        return cls(sources, passages, {digest(first): first, digest(second): second})

    def request(self, engine: EngineKind) -> roles.WriteInput:
        """What the writer is given."""
        extracts = [
            roles.SourceExtract(
                id=source.id, url=source.url, title=source.title, quality=source.quality, text=source.text
            )
            for source in self.sources
        ]
        findings = [finding(" ".join(self.words(item).split())[:300], item) for item in self.evidence]
        return roles.WriteInput(
            **common(engine=engine, query=QUESTION, sources=extracts, evidence=self.evidence, findings=findings)
        )

    def words(self, item: Evidence) -> str:
        """The words of a passage."""
        source = next(source for source in self.sources if source.id == item.source_id)
        assert source.text is not None
        return self.texts[source.text.hash][item.start : item.end]

    def prompt(self) -> str:
        """What a model reads."""
        return render_role(roles.SYNTHESIZER, self.request(EngineKind.MODEL), self.texts).prompt

    async def extractive(self, **changes: object) -> Whole:
        """The report of the extractive engine."""
        markdown = write(self.request(EngineKind.EXTRACTIVE), self.texts).markdown
        return await self._finished(EngineKind.EXTRACTIVE, markdown, **changes)

    async def written(self, markdown: str, **changes: object) -> Whole:
        """The report of a model that writes this."""
        return await self._finished(EngineKind.MODEL, markdown, **changes)

    async def _finished(self, engine: EngineKind, markdown: str, **changes: object) -> Whole:
        store = MemoryStore()
        answer = roles.SynthesizerAnswer(markdown=markdown)
        work = RoleWork(roles.SYNTHESIZER, self.request(engine), answer, self.texts, engine)
        output, text = ground_report(work), "".join(work.texts)
        state = Sample().state(
            sources={source.id: source for source in self.sources},
            evidence={item.id: item for item in self.evidence},
            findings=self.request(engine).findings,
            draft=output.draft,
            **changes,
        )
        rendering = render(state, text, self.texts, [], "0.1.0")
        for text in self.texts.values():
            await store.put_text(text)
            await store.put(("raw " + text).encode(), "text/html")
        document = json.loads(rendering.document)
        audited = await audit(
            rendering.document.encode(),
            store.text_by_hash,
            store.by_hash,
            HereCalls(),
            markdown=rendering.markdown,
            html=rendering.html.encode(),
        )
        return Whole(rendering, document, audited, work.warnings, output.draft.unresolved_markers)
