"""The sources of a task with their texts cut into blocks and sentences."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from contracts.roles import SourceExtract
from providers.extractive.text_structure import Structure, structure_of


@dataclass(frozen=True, slots=True)
class Reading:
    """A source with its text cut into sentences."""

    source: SourceExtract
    document: Structure


def readings(sources: Iterable[SourceExtract], documents: Mapping[str, str], language: str) -> list[Reading]:
    """The sources whose text is at hand, each once, in the order of their ids."""
    found = {
        source.id: Reading(source, structure_of(documents[source.text.hash], language))
        for source in sources
        if source.text is not None and source.text.hash in documents
    }
    return [found[key] for key in sorted(found)]
