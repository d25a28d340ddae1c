"""Mails as clean HTML: subject, people and date, the text that a mail program shows, and mails inside.

Attachments are not read, and named. The standard library's parser knows the structure and every character set.
"""

from collections.abc import Iterator
from dataclasses import replace
from email import policy
from email.errors import HeaderParseError
from email.header import decode_header
from email.message import Message
from email.parser import BytesParser
from email.utils import parseaddr
from html import escape
from typing import Final

from markdown_it import MarkdownIt

from contracts.texts import plural
from providers.errors import SourceUnreadable
from providers.reading.canonical_text import DocumentFacts, clean, stated_facts
from providers.reading.character_sets import decode_declared
from providers.reading.html_page import read_html

MAX_PARTS: Final = 500
"""Parts, and mails inside mails; the parser nests as deep as they do."""
MAX_HEADER_LENGTH: Final = 20_000
SHOWN_HEADERS: Final = ("Subject", "From", "To", "Cc", "Date")


def read_mail(raw: bytes, plain_text: MarkdownIt) -> tuple[str, DocumentFacts]:
    """Return a mail as clean HTML, and its facts; `plain_text` renders texts without markup.

    Raises `SourceUnreadable` too_large.
    """
    folded = raw.lower()
    if folded.count(b"message/rfc822") + folded.count(b"multipart/") > MAX_PARTS:
        raise SourceUnreadable("too_large", f"the mail has more than {MAX_PARTS} parts in parts")
    message = BytesParser(policy=policy.default).parsebytes(raw)
    reader = _Reader(plain_text)
    html = "".join(reader.mail(message))
    facts = stated_facts(
        _header(message, "Subject"), [parseaddr(_header(message, "From"))[0]], _header(message, "Date")
    )
    warnings = [f"{plural(reader.attachments, 'attachment')} not read"] if reader.attachments else []
    return html, replace(facts, warnings=warnings, links=reader.links)


class _Reader:
    def __init__(self, plain_text: MarkdownIt) -> None:
        self._plain_text = plain_text
        self.attachments = 0
        self.links: list[str] = []

    def mail(self, message: Message) -> Iterator[str]:
        """Yield the headers that a mail program shows, and the text."""
        for name in SHOWN_HEADERS:
            if text := _header(message, name):
                yield f"<p>{name}: {escape(clean(text), quote=False)}</p>\n"
        yield from self._part(message)

    def _part(self, part: Message) -> Iterator[str]:
        """Yield the text of a part and of all parts in it that a mail program shows."""
        content_type = part.get_content_type()
        inner = [each for each in part.get_payload() if isinstance(each, Message)] if part.is_multipart() else None
        if inner is not None and content_type == "message/rfc822":
            for message in inner:
                yield from self.mail(message)
        elif inner is not None:
            if content_type == "multipart/alternative":
                inner = [max(inner, key=_preference)] if inner else []
            elif content_type == "multipart/related":
                self.attachments += sum(each.get_filename() is not None for each in inner[1:])
                inner = inner[:1]
            for each in inner:
                yield from self._part(each)
        elif part.get_content_disposition() == "attachment" or content_type not in {"text/plain", "text/html"}:
            self.attachments += not content_type.startswith(("multipart/", "message/"))
        else:
            yield self._text(part, is_html=content_type == "text/html")

    def _text(self, part: Message, *, is_html: bool) -> str:
        payload = part.get_payload(decode=True)
        text = decode_declared(payload, _charset(part)) if isinstance(payload, bytes) else ""
        if not is_html:
            return str(self._plain_text.render(clean(text)))
        html, facts = read_html(text)
        self.links += facts.links
        return html


def _preference(part: Message) -> int:
    """Return how good an alternative is: HTML, also with its pictures, before plain text before all else."""
    types = {each.get_content_type() for each in part.walk()}
    return 2 * ("text/html" in types) + ("text/plain" in types)


def _charset(part: Message) -> str | None:
    try:
        return part.get_content_charset()
    except (LookupError, UnicodeError, ValueError):
        return None


def _header(message: Message, name: str) -> str:
    """Return a header as its author wrote it, with encoded words decoded; empty if there is none."""
    written = next((str(value) for key, value in message.raw_items() if key.lower() == name.lower()), "")
    raw = written[:MAX_HEADER_LENGTH].encode("utf-8", "surrogateescape")
    if not raw.isascii():
        return " ".join(decode_declared(raw, None).split())
    try:
        pieces = decode_header(raw.decode("ascii"))
    except HeaderParseError:
        return " ".join(raw.decode("ascii").split())
    text = "".join(piece if isinstance(piece, str) else decode_declared(piece, charset) for piece, charset in pieces)
    return " ".join((text.strip() or raw.decode("ascii")).split())
