"""Mails as clean HTML: subject, people and date, the text that a mail program shows, and mails inside.

Attachments are not read, and named. The standard library's parser knows the structure and every character set.
"""

import re
from base64 import b64decode
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from email import policy
from email.errors import HeaderParseError
from email.header import decode_header
from email.message import Message as MailMessage
from email.parser import BytesParser
from email.utils import parseaddr
from html import escape
from typing import Final

from markdown_it import MarkdownIt

from contracts.sentences import Message, counted
from providers.errors import SourceUnreadable
from providers.reading.canonical_text import DocumentFacts, clean, stated_facts
from providers.reading.character_sets import decode_declared
from providers.reading.html_page import read_html

MAX_PARTS: Final = 500
"""Parts, and mails inside mails; the parser nests as deep as they do."""
MAX_HEADER_LENGTH: Final = 20_000
SHOWN_HEADERS: Final = ("Subject", "From", "To", "Cc", "Date")
MARKED_UP: Final = frozenset(("text/html", "text/enriched", "text/richtext"))
"""Texts with elements; those of enriched texts have no meaning to the reader of HTML, which writes their words."""
NO_TEXTS: Final = frozenset(("text/calendar", "text/vcard", "text/x-vcard", "text/directory", "text/rfc822-headers"))
SIGNATURES: Final = ("application/pkcs7-signature", "application/x-pkcs7-signature", "application/pgp-signature")
ENCODED_FILE: Final = re.compile(r"(?m)^begin [0-7]{3,4} [^\n]+\n(?:[!-`][ -`]{0,84}\n)+`?\n?end[ \t]*$")
"""A file in the text of a mail, as programs encoded them before there were attachments (uuencode)."""
HAS_WORD: Final = re.compile(r"(?:^|>)[^<>]*[^\W_]")
DIVIDER: Final = re.compile(rb"(?m)^--([0-9A-Za-z'()+_,./:=?-]{1,70})\r?\n")
MAX_MENDED: Final = 3
"""Parts of a mail that are parsed again because their boundary does not occur in them."""
QUOTE_MARKS: Final = re.compile(r"(?:>[ ]?)*")
SIGNATURE_MARK: Final = "-- "


def read_mail(raw: bytes, plain_text: MarkdownIt) -> tuple[str, DocumentFacts]:
    """Return a mail as clean HTML, and its facts; `plain_text` renders texts without markup.

    Raises `SourceUnreadable` too_large.
    """
    folded = raw.lower()
    if folded.count(b"message/rfc822") + folded.count(b"multipart/") > MAX_PARTS:
        raise SourceUnreadable("too_large", Message("skip_mail_parts", count=MAX_PARTS))
    message = BytesParser(policy=policy.default).parsebytes(raw)
    reader = _Reader(plain_text)
    html = "".join(reader.mail(message))
    facts = stated_facts(
        _header(message, "Subject"), [parseaddr(_header(message, "From"))[0]], _header(message, "Date")
    )
    warnings = list[str]()
    if reader.attachments:
        warnings.append(Message("attachments_unread", attachments=counted("attachment", reader.attachments)))
    return html, replace(facts, warnings=warnings, links=reader.links)


class _Reader:
    def __init__(self, plain_text: MarkdownIt) -> None:
        self._plain_text = plain_text
        self.attachments = 0
        self.links: list[str] = []
        self._mended = 0

    def mail(self, message: MailMessage) -> Iterator[str]:
        """Yield the headers that a mail program shows, and the text."""
        for name in SHOWN_HEADERS:
            if text := _header(message, name):
                yield f"<p>{name}: {escape(clean(text), quote=False)}</p>\n"
        yield from self._part(message)

    def _part(self, part: MailMessage) -> Iterator[str]:
        """Yield the text of a part and of all parts in it that a mail program shows."""
        content_type = part.get_content_type()
        inner = None
        if part.is_multipart():
            inner = [each for each in part.get_payload() if isinstance(each, MailMessage)]
        if inner is not None and content_type == "message/rfc822":
            for message in inner:
                yield from self.mail(_decoded_mail(part, message))
        elif inner is not None:
            if content_type == "multipart/alternative":
                yield self._best_of(inner)
                return
            if content_type == "multipart/related":
                root = _root_of(part, inner)
                self.attachments += sum(each.get_filename() is not None for each in inner if each is not root)
                inner = [root] if root is not None else []
            for each in inner:
                yield from self._part(each)
        elif content_type.startswith("multipart/") and self._mended < MAX_MENDED and (mended := _with_parts(part)):
            self._mended += 1
            yield from self._part(mended)
        elif part.get_content_disposition() != "attachment" and _is_text(content_type):
            yield self._text(part, is_html=content_type in MARKED_UP)
        else:
            self.attachments += content_type not in SIGNATURES and not content_type.startswith("message/")

    def _best_of(self, alternatives: list[MailMessage]) -> str:
        """Return the best of the alternatives that has words."""
        attachments = self.attachments
        for each in sorted(alternatives, key=_preference, reverse=True):
            self.attachments = attachments
            html = "".join(self._part(each))
            if HAS_WORD.search(html):
                return html
        return ""

    def _text(self, part: MailMessage, *, is_html: bool) -> str:
        payload = part.get_payload(decode=True)
        text = ""
        if isinstance(payload, bytes):
            text = decode_declared(payload, _charset(part))
        if not is_html:
            text, files = ENCODED_FILE.subn("", clean(text))
            self.attachments += files
            if str(part.get_param("format")).lower() == "flowed":
                text = _unfolded(text, glue="" if str(part.get_param("delsp")).lower() == "yes" else " ")
            return str(self._plain_text.render(text))
        page = read_html(text)
        self.links += page.facts.links
        return page.html


def _is_text(content_type: str) -> bool:
    """Return whether a mail program shows a part as text; it does so for parts that are of many parts but have none."""
    return content_type.startswith(("text/", "multipart/")) and content_type not in NO_TEXTS


def _root_of(part: MailMessage, inner: list[MailMessage]) -> MailMessage | None:
    """Return the part that refers to the others: the one that is named as such, else the first."""
    start = str(part.get_param("start", "")).strip()
    named = (each for each in inner if start and str(each.get("Content-ID", "")).strip() == start)
    return next(named, next(iter(inner), None))


def _with_parts(part: MailMessage) -> MailMessage | None:
    """Return a part with the parts in it that its boundary does not divide: another line does, or none is stated."""
    payload = part.get_payload(decode=True)
    divider = None
    if isinstance(payload, bytes):
        divider = DIVIDER.search(payload)
    if not isinstance(payload, bytes) or divider is None:
        return None
    head = b'Content-Type: %b; boundary="%b"\n\n' % (part.get_content_type().encode(), divider[1])
    found = BytesParser(policy=policy.default).parsebytes(head + payload[divider.start() :])
    return found if found.is_multipart() else None


def _decoded_mail(part: MailMessage, message: MailMessage) -> MailMessage:
    """Return a mail inside another one, decoded if a program encoded it against the standard."""
    payload = message.get_payload()
    is_encoded = str(part.get("Content-Transfer-Encoding", "")).strip().lower() == "base64"
    if not is_encoded or message.keys() or not isinstance(payload, str):
        return message
    try:
        return BytesParser(policy=policy.default).parsebytes(b64decode(payload))
    except ValueError:
        return message


def _unfolded(text: str, glue: str) -> str:
    """Join the lines of paragraphs that a program broke: those that end with a space, and have as many quote marks."""
    lines: list[str] = []
    broken = False
    level = 0
    for line in text.split("\n"):
        marks = QUOTE_MARKS.match(line)
        depth = marks[0].count(">") if marks else 0
        words = line[marks.end() if marks and depth else 0 :].removeprefix("" if depth else " ")
        if broken and lines and depth == level:
            lines[-1] = lines[-1].removesuffix(" ") + glue + words
        else:
            lines.append(line if depth else words)
        broken = words.endswith(" ") and words != SIGNATURE_MARK
        level = depth
    return "\n".join(lines)


def _preference(part: MailMessage) -> int:
    """Return how good an alternative is: HTML, also with its pictures, before plain text before all else."""
    types = {each.get_content_type() for each in part.walk()}
    return 2 * ("text/html" in types) + ("text/plain" in types)


def _charset(part: MailMessage) -> str | None:
    try:
        return part.get_content_charset()
    except (LookupError, UnicodeError, ValueError):
        return None


def _header(message: MailMessage, name: str) -> str:
    """Return a header as its author wrote it, with encoded words decoded; empty if there is none.

    One that is not encoded is UTF-8 or, against the standard, of the character set of the text.
    """
    written = next((str(value) for key, value in message.raw_items() if key.lower() == name.lower()), "")
    raw = written[:MAX_HEADER_LENGTH].encode("utf-8", "surrogateescape")
    if not raw.isascii():
        with suppress(UnicodeDecodeError):
            return " ".join(raw.decode("utf-8").split())
        sets = (_charset(part) for part in message.walk() if part.get_content_maintype() == "text")
        return " ".join(decode_declared(raw, next(filter(None, sets), None)).split())
    try:
        pieces = decode_header(raw.decode("ascii"))
    except HeaderParseError:
        return " ".join(raw.decode("ascii").split())
    text = "".join(piece if isinstance(piece, str) else decode_declared(piece, charset) for piece, charset in pieces)
    return " ".join((text.strip() or raw.decode("ascii")).split())
