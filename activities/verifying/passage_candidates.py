"""Candidates: passages of a run's pool that a doubtful claim may rest on instead. Pure."""

from collections.abc import Callable
from typing import Final

from activities.verifying.claim_weighing import Material, show_passage
from contracts.checking import ShownPassage, WeighedClaim
from providers.verification.rules_checker import Reader

MOST_CANDIDATES: Final = 3
LIKELY: Final = 0.5
"""Share of a claim's words that a passage has, names counting more, from which it may bear the claim out."""


def candidates_of(material: Material) -> Callable[[WeighedClaim], list[ShownPassage]]:
    """A function that finds, for a claim, the passages of the run that it does not cite and that say most of it."""
    sources = material.sources()
    known = [
        (item, sources[item.source_id])
        for item in material.entry.evidence
        if item.source_id in sources and sources[item.source_id].text.hash in material.texts
    ]
    passages = [show_passage(item, source, material.texts[source.text.hash]) for item, source in known]
    reader = Reader([passage.quote for passage in passages], material.entry.language)

    def find(each: WeighedClaim) -> list[ShownPassage]:
        rated = [
            (-share, place)
            for place, share in enumerate(reader.shares(each.claim.text))
            if share >= LIKELY and passages[place].evidence_id not in each.claim.evidence_ids
        ]
        return [passages[place] for _, place in sorted(rated)[:MOST_CANDIDATES]]

    return find
