"""Who speaks: sources of one voice do not confirm each other."""

from collections.abc import Iterable
from urllib.parse import urlsplit

from contracts.names import CORPUS_SCHEME
from contracts.vocabulary import TOP_CONFIDENCE, Confidence, Quality

ENOUGH_VOICES = 2


def voice_of(url: str, publisher: str | None = None) -> str:
    """The voice of a source: the collection it belongs to, else its publisher, else the host it was read from."""
    if url.startswith(CORPUS_SCHEME):
        return CORPUS_SCHEME + url.removeprefix(CORPUS_SCHEME).partition("/")[0]
    if publisher and publisher.strip():
        return " ".join(publisher.casefold().split())
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return ""
    return host.removeprefix("www.")


def supported_confidence(sources: Iterable[tuple[str, Quality]]) -> Confidence:
    """The most that sources bear out, by the voice and quality of each.

    Several independent voices of high quality are `high`; one of high quality, or several others, `medium`; else `low`.
    """
    known = [(voice, quality) for voice, quality in sources if voice]
    voices = {voice for voice, _ in known}
    authoritative = {voice for voice, quality in known if quality is Quality.HIGH}
    if len(authoritative) >= ENOUGH_VOICES:
        return Confidence.HIGH
    return Confidence.MEDIUM if authoritative or len(voices) >= ENOUGH_VOICES else Confidence.LOW


def bounded_confidence(claimed: Confidence, supported: Confidence) -> Confidence:
    """What is stored of a confidence that somebody claims: never more than the sources bear out."""
    order = (Confidence.SPECULATION, Confidence.LOW, Confidence.MEDIUM, Confidence.HIGH)
    if claimed in TOP_CONFIDENCE and supported is Confidence.HIGH:
        return claimed
    return min(claimed if claimed in order else Confidence.HIGH, supported, key=order.index)
