"""The stored texts that an input refers to: found by walking it, fetched together, each once."""

import asyncio
from collections.abc import Iterator
from typing import Any, Final

from pydantic import BaseModel

from contracts.evidence import DocumentRef
from providers.interfaces import ContentStore

AT_ONCE: Final = 32


def references(value: Any) -> Iterator[DocumentRef]:
    """Every reference within a model, in its order, repetitions included."""
    if isinstance(value, DocumentRef):
        yield value
    elif isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from references(getattr(value, name))
    elif isinstance(value, dict):
        for item in value.values():
            yield from references(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from references(item)


async def load_documents(value: BaseModel, content: ContentStore) -> dict[str, str]:
    """Stored texts by hash. Raises `ContentMissing`, `ContentCorrupt`, `Retryable`."""
    wanted = {reference.hash: reference for reference in references(value)}
    free = asyncio.Semaphore(AT_ONCE)

    async def fetch(reference: DocumentRef) -> str:
        async with free:
            return await content.get_text(reference)

    texts = await asyncio.gather(*(fetch(reference) for reference in wanted.values()))
    return dict(zip(wanted, texts, strict=True))
