"""A content store in memory, with the checks that the real one makes."""

import hashlib

from contracts.evidence import DocumentRef
from providers.errors import ContentCorrupt, ContentMissing


class MemoryStore:
    """Documents by hash."""

    def __init__(self) -> None:
        self.documents: dict[str, bytes] = {}
        self.loads = 0

    async def put(self, data: bytes, media_type: str) -> DocumentRef:
        """Keep bytes."""
        identity = "sha256:" + hashlib.sha256(data).hexdigest()
        self.documents[identity] = data
        return DocumentRef(hash=identity, media_type=media_type, size=len(data))

    async def put_text(self, text: str, media_type: str = "text/plain") -> DocumentRef:
        """Keep a text."""
        reference = await self.put(text.encode(), media_type)
        return reference.model_copy(update={"size": len(text)})

    async def get(self, reference: DocumentRef) -> bytes:
        """Bytes that are what their hash says."""
        return await self.by_hash(reference.hash)

    async def get_text(self, reference: DocumentRef) -> str:
        """A text that is what its hash says."""
        return await self.text_by_hash(reference.hash)

    async def delete(self, reference: DocumentRef) -> None:
        """Forget a document."""
        self.documents.pop(reference.hash, None)

    async def by_hash(self, identity: str) -> bytes:
        """Bytes by their hash."""
        self.loads += 1
        if identity not in self.documents:
            raise ContentMissing(identity)
        data = self.documents[identity]
        if "sha256:" + hashlib.sha256(data).hexdigest() != identity:
            raise ContentCorrupt(identity)
        return data

    async def text_by_hash(self, identity: str) -> str:
        """A text by its hash."""
        return (await self.by_hash(identity)).decode()
