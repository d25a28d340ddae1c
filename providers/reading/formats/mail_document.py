"""Mails: subject, sender and date, the body as a reader's program shows it, and mails that were passed on inside.

Attachments are not read. Where a mail has its words twice, those that programs show are taken: the last ones.
"""

import re
from collections.abc import Iterator
from email import message_from_bytes
from email.header import decode_header, make_header
from email.message import Message
from typing import Any, Final

from providers.errors import SourceUnreadable
from providers.reading.canonical_text import BlockKind, Extraction, TextBuilder
from providers.reading.charsets import decode_with_warning
from providers.reading.cleaning import clean, escape_markup, is_name, one_line
from providers.reading.formats.plain_text import write_plain_text
from providers.reading.html.page import extract_html
from providers.reading.page_dates import iso_date

PART: Final = re.compile(rb"^[ \t]*content-type[ \t]*:[ \t]*(?:multipart|message)/", re.IGNORECASE | re.MULTILINE)
MOST_PARTS: Final = 200
"""Parts that hold others: parsing takes time for each of them, for every line."""
MOST_HEADERS: Final = 1_000
LONGEST_HEADER: Final = 2_000
DEEPEST: Final = 5
"""Mails within mails."""
SHOWN: Final = ("From", "To", "Cc", "Date")
NOT_READ: Final = "attachments of the mail that are not read: {count}"
TOO_DEEP: Final = f"mails that were passed on more than {DEEPEST} times are not read"


def extract_mail(raw: bytes) -> Extraction:
    """The canonical text of a mail. Raises `SourceUnreadable` too_large, malformed, no_text."""
    if len(PART.findall(raw)) > MOST_PARTS:
        raise SourceUnreadable("too_large", f"the mail has more than {MOST_PARTS} parts that hold others")
    if raw.partition(b"\n\n")[0].partition(b"\r\n\r\n")[0].count(b"\n") > MOST_HEADERS:
        raise SourceUnreadable("too_large", f"the mail has more than {MOST_HEADERS} lines of headers")
    message = message_from_bytes(raw)
    writer = _MailWriter()
    writer.write(message, 1)
    if not writer.said:
        raise SourceUnreadable("no_text", "the mail holds no text")
    sender = _header(message, "From")
    name = sender.partition("<")[0].strip(' "') or sender
    return writer.builder.finish(
        "message/rfc822",
        title=_header(message, "Subject")[:300],
        authors=[name] if is_name(name) else [],
        published_at=iso_date(_header(message, "Date")),
        warnings=list(writer.warnings()),
    )


class _MailWriter:
    def __init__(self) -> None:
        self.builder = TextBuilder()
        self.said = False
        self._attachments = 0
        self._too_deep = False

    def warnings(self) -> Iterator[str]:
        if self._attachments:
            yield NOT_READ.format(count=self._attachments)
        if self._too_deep:
            yield TOO_DEEP

    def write(self, message: Message, level: int) -> None:
        if level > DEEPEST:
            self._too_deep = True
            return
        subject = _header(message, "Subject") or "Mail without subject"
        self.builder.add(BlockKind.HEADING, subject, before="#" * level + " ", level=level)
        for name in SHOWN:
            if words := _header(message, name):
                self.builder.add(BlockKind.ITEM, f"{name}: {escape_markup(words)}", before="- ")
        self._write_part(message, level)

    def _write_part(self, part: Message, level: int) -> None:
        kind = part.get_content_type()
        inner: Any = part.get_payload()
        if kind == "message/rfc822" and isinstance(inner, list):
            for message in inner:
                self.write(message, level + 1)
        elif part.is_multipart():
            shown = [one for one in inner if isinstance(one, Message)]
            if kind == "multipart/alternative":
                shown = [one for one in shown if one.is_multipart() or one.get_content_maintype() == "text"][-1:]
            for one in shown:
                self._write_part(one, level)
        elif kind in {"text/plain", "text/html"} and part.get_content_disposition() != "attachment":
            self._write_body(part, kind)
        else:
            self._attachments += 1

    def _write_body(self, part: Message, kind: str) -> None:
        payload = part.get_payload(decode=True)
        content = payload if isinstance(payload, bytes) else b""
        charset = str(part.get_param("charset", "") or "")[:100] or None
        text = decode_with_warning(content, markup=kind == "text/html", charset=charset).text
        before = len(self.builder.blocks)
        if kind == "text/plain":
            write_plain_text(self.builder, clean(text))
        elif text.strip():
            try:
                self.builder.extend(extract_html(text))
            except SourceUnreadable as error:
                if error.kind != "no_text":
                    raise
        self.said = self.said or len(self.builder.blocks) > before


def _header(message: Message, name: str) -> str:
    """A header on one line, empty if there is none or it cannot be read."""
    stated = str(message.get(name, ""))[:LONGEST_HEADER]
    try:
        words = str(make_header(decode_header(stated)))
    except (LookupError, UnicodeError, ValueError):
        words = stated
    return one_line(clean(words))
