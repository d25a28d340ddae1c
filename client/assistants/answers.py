"""Answers of the tools: each has a schema for programs, and a text for hosts that show only text."""

from typing import Final, Self

from pydantic import BaseModel, Field

from contracts.base import CheckedModel
from contracts.texts import plural

PAGE_BYTES: Final = 20_000
"""Most bytes of one page of a report; hosts cut longer answers of tools."""


class Answer(CheckedModel):
    """Answer of a tool; the fields are its structured content."""

    def as_text(self) -> str:
        """Return the answer for hosts that show only text; as JSON, unless a kind of answer has words of its own."""
        return self.model_dump_json()


class StartedRun(Answer):
    """A run that was just started."""

    research_id: str
    question: str
    strategy: str
    searches: str = Field(description="where it searches")
    engine: str = Field(description="the model that works, or that there is none")
    egress: str = Field(description="who receives text of the question and of documents")
    estimate: str = Field(description="what the run likely takes, and the limits that end it")
    likely_usd: float | None = Field(description="likely cost in US dollars; null if unknown, 0 without paid calls")
    likely_minutes: float
    max_cost_usd: float | None = Field(description="the cost at which the run ends, in US dollars; null without a cap")
    advice: list[str] = Field(description="what the operator allows, and settings that would improve the run")
    next: str = Field(description="what to call next")

    def with_end(self, following: str) -> Self:
        """Return the answer of a run that is over, with what to call next."""
        return self.with_fields(next=following)

    def as_text(self) -> str:
        """Return the answer in lines."""
        lines = [f"Started {self.research_id} ({self.strategy}; {self.searches}; {self.engine}; {self.egress})."]
        lines.append(self.estimate or "It makes no paid call.")
        lines += [f"Advice: {line}" for line in self.advice]
        return "\n".join([*lines, f"Next: {self.next}"])


class Asked(BaseModel):
    """An open question of a run to a person."""

    awaited: str
    until: str = Field(description="the time at which the run ends without an answer")
    questions: list[str]
    plan: list[str] = Field(description="lines of the plan to approve; empty if no plan waits")
    plan_version: int = Field(description="version of that plan; 0 if no plan waits")
    phrase: str | None = Field(description="words that the user must write to approve; null if none are required")
    objections: list[str] = Field(description="why queries of the plan are too wide for the run")


class RunState(Answer):
    """State of a run."""

    research_id: str
    question: str
    status: str
    phase: str
    iteration: int
    work: list[str] = Field(description="a line for each unit of the work")
    sources: int
    findings: int
    open_gaps: int
    seconds: int = Field(description="active time of the run; waiting for a person does not count")
    cost: str = Field(description="calls, tokens and cost so far, with the cap")
    news: list[str] = Field(description="the newest events")
    asked: Asked | None = Field(description="what the run asks a person; null if it waits for nobody")
    outcome: str | None = Field(description="how the run ended; null while it goes on")
    summary: str = Field(description="what the report says in short, or why there is none; empty while it goes on")
    seen: str = Field(description="pass it to the next call, which then answers as soon as the state is another")
    next: str = Field(description="what to call next")

    def as_text(self) -> str:
        """Return the answer in lines."""
        state = self.outcome or f"{self.status}{f', {self.phase}' if self.phase else ''}, iteration {self.iteration}"
        lines = [f"{self.research_id} “{self.question}”: {state}"]
        found = f"{plural(self.sources, 'source')}, {plural(self.findings, 'finding')}"
        lines += [f"{found}, {plural(self.open_gaps, 'open gap')} · {self.seconds} s · {self.cost}"]
        lines += [*self.work, *self.news]
        if self.asked is not None:
            asked = self.asked
            lines += [f"It waits for {asked.awaited}, until {asked.until}.", *asked.plan]
            lines += [f"{number}. {question}" for number, question in enumerate(asked.questions, start=1)]
            lines += [f"Objection: {line}" for line in asked.objections]
            if asked.phrase:
                lines += [f"The user must write the phrase: {asked.phrase}"]
        if self.summary:
            lines.append(self.summary)
        return "\n".join([*lines, f"Next: {self.next}"])


class ReportPage(Answer):
    """A page of a report, of its sources, of the verdicts on its claims, or of the questions of its thread."""

    research_id: str
    part: str
    page: int
    pages: int
    outcome: str = Field(description="how the run ended; `draft` for a report that is not finished")
    verdicts: dict[str, int] = Field(description="number of claims by verdict")
    content: str = Field(description="the page, in Markdown")
    next: str = Field(description="what to call for the rest, or for sources and verdicts")

    def as_text(self) -> str:
        """Return the page with its place."""
        counts = ", ".join(f"{count} {verdict.replace('_', ' ')}" for verdict, count in self.verdicts.items())
        checked = f"; claims: {counts}" if counts else ""
        place = f"{self.research_id}, {self.part}, page {self.page} of {self.pages}, {self.outcome}{checked}"
        return f"({place})\n\n{self.content}\n\n({self.next})"


class MessageReply(Answer):
    """Reaction of a run to a message."""

    research_id: str
    reply: str
    next: str = Field(description="what to call next")

    def as_text(self) -> str:
        """Return the answer in lines."""
        return f"{self.research_id}: {self.reply}\nNext: {self.next}"


class Result(BaseModel):
    """A document that `search` found."""

    id: str
    title: str
    url: str


class Results(Answer):
    """Documents that `search` found, best first."""

    results: list[Result]


class Document(Answer):
    """A document, or one page of a long one."""

    id: str
    title: str
    text: str
    url: str
    metadata: dict[str, str]


def pages_of(text: str, size: int) -> list[str]:
    """Cut a text into pages of at most `size` bytes of UTF-8, at the ends of paragraphs, lines or words if possible."""
    pages = []
    data = text.strip().encode()
    while len(data) > size:
        head = data[:size].decode(errors="ignore")
        end = next((place for mark in ("\n\n", "\n", " ") if (place := head.rfind(mark)) > size // 4), len(head))
        pages.append(head[:end].rstrip())
        data = data[len(head[:end].encode()) :].lstrip()
    return [*pages, data.decode()]
