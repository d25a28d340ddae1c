"""Extraction in a child process: what kills the child becomes a typed reason."""

from providers.errors import ProviderError, SourceUnreadable
from providers.isolation.pool import SubprocessPool, TaskFailed, TaskKilled
from providers.reading.canonical_text import Extraction

KILLED = {
    "timeout": SourceUnreadable("timeout", "reading took too long"),
    "memory": SourceUnreadable("memory", "reading needed too much memory"),
    "crash": SourceUnreadable("malformed", "the document made its reader crash"),
}


def as_unreadable(error: ProviderError) -> SourceUnreadable:
    """The reason why a document cannot be used. Raises anything that is no fault of the document."""
    match error:
        case SourceUnreadable():
            return error
        case TaskKilled(kind=kind):
            return SourceUnreadable(KILLED[kind].kind, str(KILLED[kind]))
        case TaskFailed(type_name=type_name):
            return SourceUnreadable("malformed", f"the document made its reader fail ({type_name})")
        case _:
            raise error


async def extract_document(pool: SubprocessPool, raw: bytes, name: str) -> Extraction:
    """Extract in a child. Raises `SourceUnreadable`."""
    return await _extract(pool, "providers.reading.extraction:extract", raw, name)


async def extract_page(pool: SubprocessPool, body: bytes, kind: str, charset: str | None, url: str) -> Extraction:
    """Extract a document of the web in a child; without its blocks. Raises `SourceUnreadable`."""
    return await _extract(pool, "providers.reading.web_page:read_page", body, kind, charset, url)


async def _extract(pool: SubprocessPool, function: str, *arguments: object) -> Extraction:
    try:
        found = await pool.call(function, *arguments)
    except (TaskKilled, TaskFailed) as error:
        raise as_unreadable(error) from error
    assert isinstance(found, Extraction)
    return found
