"""An object store that speaks as much of S3 as tests need: conditional writes, but neither signatures nor parts."""

import asyncio
import hashlib
from datetime import UTC, datetime
from email.utils import format_datetime
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

from tests.fakes.loopback import HttpRequest, LoopbackServer, response

BUCKET = "research"
PAGE = 3
"""Keys in one answer to a listing: even a few make several pages."""

Answer = tuple[int, dict[str, str], bytes]


class ObjectStoreServer(LoopbackServer):
    """One bucket in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.objects: dict[str, bytes] = {}
        self.written_at: dict[str, datetime] = {}
        self.requests: list[tuple[str, str, int]] = []
        """Method, key and bytes answered."""
        self.down = False
        """It answers nothing but errors."""

    def environment(self, prefix: str = "") -> dict[str, str]:
        """What leads a program to it."""
        return {
            "RESEARCH_CONTENT_URL": f"s3://{BUCKET}{prefix}",
            "AWS_ENDPOINT_URL": self.base_url,
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "planted",
            "AWS_SECRET_ACCESS_KEY": "planted-secret",
        }

    async def serve(self, request: HttpRequest, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        address = urlsplit(request.target)
        key = unquote(address.path).removeprefix(f"/{BUCKET}").removeprefix("/")
        query = {name: values[0] for name, values in parse_qs(address.query, keep_blank_values=True).items()}
        status, headers, body = (503, {}, b"") if self.down else self._answer(request, key, query)
        self.requests.append((request.method, key, len(body)))
        answer = response(status, body, headers)
        writer.write(answer.removesuffix(body) if request.method == "HEAD" else answer)
        await writer.drain()
        return True

    def _answer(self, request: HttpRequest, key: str, query: dict[str, str]) -> Answer:
        if not key and request.method == "GET":
            return self._list(query)
        if request.method in {"GET", "HEAD"}:
            return self._get(request, key)
        if request.method == "DELETE":
            self.objects.pop(key, None)
            return 204, {}, b""
        if request.method == "POST":
            return self._delete(request)
        return self._put(request, key)

    def _put(self, request: HttpRequest, key: str) -> Answer:
        present = self.objects.get(key)
        wanted = request.headers.get("if-match")
        if request.headers.get("if-none-match") == "*" and present is not None:
            return 412, {}, b""
        if wanted is not None and (present is None or _etag(present) != wanted):
            return 412, {}, b""
        self.objects[key] = request.body
        self.written_at[key] = datetime.now(UTC)
        return 200, {"etag": _etag(request.body)}, b""

    def _delete(self, request: HttpRequest) -> Answer:
        """Answer a bulk deletion, the only thing that is posted."""
        keys = [found.partition("</Key>")[0] for found in request.body.decode().split("<Key>")[1:]]
        for one in keys:
            self.objects.pop(one, None)
        inner = "".join(f"<Deleted><Key>{one}</Key></Deleted>" for one in keys)
        return 200, {}, f"<DeleteResult>{inner}</DeleteResult>".encode()

    def _get(self, request: HttpRequest, key: str) -> Answer:
        data = self.objects.get(key)
        if data is None:
            return 404, {}, b"<Error><Code>NoSuchKey</Code></Error>"
        headers = {
            "etag": _etag(data),
            "last-modified": format_datetime(self.written_at[key], usegmt=True),
            "content-length": str(len(data)),
        }
        asked = request.headers.get("range", "")
        if not asked:
            return 200, headers, data
        first, _, last = asked.removeprefix("bytes=").partition("-")
        part = data[int(first) : int(last) + 1]
        where = f"bytes {first}-{int(first) + len(part) - 1}/{len(data)}"
        return 206, headers | {"content-length": str(len(part)), "content-range": where}, part

    def _list(self, query: dict[str, str]) -> Answer:
        prefix, after = query.get("prefix", ""), query.get("continuation-token", "")
        keys = sorted(key for key in self.objects if key.startswith(prefix) and key > after)
        shown, more = keys[:PAGE], len(keys) > PAGE
        entries = "".join(
            f"<Contents><Key>{escape(key)}</Key><Size>{len(self.objects[key])}</Size>"
            f"<LastModified>{self.written_at[key]:%Y-%m-%dT%H:%M:%S.000Z}</LastModified>"
            f"<ETag>{escape(_etag(self.objects[key]))}</ETag></Contents>"
            for key in shown
        )
        token = f"<NextContinuationToken>{escape(shown[-1])}</NextContinuationToken>" if more else ""
        flags = f"<IsTruncated>{'true' if more else 'false'}</IsTruncated><KeyCount>{len(shown)}</KeyCount>"
        inner = f"<Name>{BUCKET}</Name><Prefix>{escape(prefix)}</Prefix>{flags}{token}{entries}"
        return 200, {"content-type": "application/xml"}, f"<ListBucketResult>{inner}</ListBucketResult>".encode()


def _etag(data: bytes) -> str:
    return f'"{hashlib.sha256(data).hexdigest()[:32]}"'
