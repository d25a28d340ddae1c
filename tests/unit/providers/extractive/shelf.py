"""A small shelf of documents, and the tasks of roles over it."""

from collections.abc import Mapping
from typing import Any

from contracts.addresses import digest
from contracts.evidence import DocumentRef, Evidence
from contracts.plan import PlanNode
from contracts.roles import AnalyzeInput, AnalyzerAnswer, SourceExtract, WriteInput
from contracts.vocabulary import Quality
from providers.extractive.brief import analyze, write
from providers.text import question_stems, word_keys, words

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

The three kinds of boilers are:

- combination boilers, which need no tank
- system boilers, which have a tank of hot water
- back boilers, which stand behind a fireplace
""",
    "Copy of Pumps": """# Old pages

The filter of the Kelvar pump is changed every 400 hours. It also needs new seals once a year.
""",
    "Index": """# Index

filter, Pumps, 12
Kelvar pump, Pumps, 10
seals, Pumps, 12
burner, Boilers, 3
tank, Boilers, 4
valve, Pumps, 13
""",
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
        """The analysis of one sub-query."""
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
