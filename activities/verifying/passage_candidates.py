"""Candidates: passages of the whole stored texts of a run that a doubtful claim may rest on instead. Pure."""

from collections.abc import Sequence
from typing import Final

from activities.roles.grounding import Headings
from activities.verifying.claim_weighing import Material, show_passage
from contracts.addresses import digest, evidence_id
from contracts.checking import ShownPassage, WeighedClaim
from contracts.evidence import Evidence
from providers.verification.passage_selection import select_passages

MOST_CANDIDATES: Final = 2
"""For one claim."""
MOST_OF_A_SOURCE: Final = 2
LIKELY: Final = 0.5
"""Relevance from which a passage may bear out a claim that cites nothing."""


def find_candidates(
    claims: Sequence[WeighedClaim], material: Material
) -> tuple[list[list[ShownPassage]], list[Evidence]]:
    """For each claim the passages that say most of it and that it does not cite, and all of them as evidence."""
    sources = [source for source in material.entry.sources if source.text.hash in material.texts]
    texts = [material.texts[source.text.hash] for source in sources]
    chosen = select_passages(
        [each.claim.text for each in claims],
        texts,
        material.entry.language,
        most=MOST_CANDIDATES + 1,
        most_of_a_text=MOST_OF_A_SOURCE,
    )
    known = material.evidence()
    headings: dict[int, Headings] = {}
    evidence: dict[str, Evidence] = {}
    found: list[list[ShownPassage]] = []
    for each, spans in zip(claims, chosen, strict=True):
        cited = [known[identity] for identity in each.claim.evidence_ids if identity in known]
        found.append([])
        for span in spans:
            source, text = sources[span.text], texts[span.text]
            inside = any(
                item.source_id == source.id and item.start <= span.start and span.end <= item.end for item in cited
            )
            if inside or (not each.claim.cited and span.relevance < LIKELY):
                continue
            key = evidence_id(source.id, span.start, span.end)
            if span.text not in headings:
                headings[span.text] = Headings(text)
            evidence[key] = Evidence(
                id=key,
                source_id=source.id,
                start=span.start,
                end=span.end,
                quote_hash=digest(text[span.start : span.end]),
                heading=headings[span.text].above(span.start),
            )
            found[-1].append(show_passage(evidence[key], source, text))
        found[-1] = found[-1][:MOST_CANDIDATES]
    return found, [item for key, item in evidence.items() if key not in known]
