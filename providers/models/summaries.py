"""Summaries by an engine: checked before use, and shared by the runs of a tenant."""

import re
from typing import Any, Final

from contracts.canary import STEERED, contains_canary
from contracts.summaries import SummarizeInput, SummarizerAnswer, summary_key
from contracts.vocabulary import EngineKind
from providers.errors import InvalidOutput
from providers.interfaces import Engine, EngineAnswer, EngineTask
from providers.shared.cache import Cache, CacheKind

SUMMARY: Final = CacheKind("summary", 30 * 86_400.0)
CITATION: Final = re.compile(r"\[\^?(?:(?:ev|src|f|gap|sq)-[^\]]{1,80}|\d{1,3}(?:[-–,; ]+\d{1,3})*)\]")


class SummarizingEngine:
    """Performs every role with another engine; a usable summary is made once for all runs of a tenant."""

    kind = EngineKind.MODEL
    paid = True

    def __init__(self, engine: Engine, cache: Cache) -> None:
        self._engine = engine
        self._cache = cache

    async def answer(self, task: EngineTask) -> EngineAnswer:
        """Perform a role; a summary in the cache costs nothing.

        Raises as the engine does, and `InvalidOutput` for a summary that cannot be used.
        """
        if not isinstance(task.input, SummarizeInput):
            return await self._engine.answer(task)
        answers: list[EngineAnswer] = []

        async def make() -> str:
            answers.append(await self._engine.answer(task))
            return checked_summary(task, answers[0])

        tokens = task.input.tokens
        key = summary_key(task.input.text.hash, task.input.level)
        if tokens.summarization_cache_enabled:
            request = f"{task.prompt_version} {tokens.summarization_provider} {tokens.summarization_providers} {key}"
            summary = (await self._cache.get_or_make(SUMMARY, task.input.tenant, request, make, _Texts())).value
        else:
            summary = await make()
        if answers:
            return answers[0]
        return EngineAnswer(SummarizerAnswer(summary=summary), self.kind)

    async def close(self) -> None:
        """Close the engine."""
        await self._engine.close()


class _Texts:
    """Encodes summaries for the cache as JSON."""

    async def encode(self, value: str) -> str:
        return SummarizerAnswer(summary=value).model_dump_json(include={"summary"})

    async def decode(self, text: str) -> str:
        return SummarizerAnswer.model_validate_json(text).summary


def checked_summary(task: EngineTask, answer: EngineAnswer) -> str:
    """Return the text of a summary.

    Raises `InvalidOutput` if it is empty or too long, or has the canary or a citation that its text does not have.
    """
    request: Any = task.input
    summary = str(getattr(answer.content, "summary", "")).strip()
    original = task.documents[request.text.hash]
    problem = ""
    if contains_canary(summary, request.canary):
        problem = STEERED
    elif not 0 < len(summary) <= request.most_characters:
        problem = f"$: the summary has {len(summary)} characters; it may have 1 to {request.most_characters}"
    elif any(citation[0] not in original for citation in CITATION.finditer(summary)):
        problem = "$: the summary has a citation that its text does not have"
    if problem:
        raise InvalidOutput(problem, usage=answer.usage, model=answer.model)
    return summary
