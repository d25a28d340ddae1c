"""As many distinct pages about one made-up subject as a measurement wants: the same ones for the same numbers.

The pages come in families. All know the subject; what sets a family apart are the words of one kind of query, so that
different queries find different pages.
"""

import random
from typing import Final

from tests.fakes.web_world import Site, page

QUESTION: Final = "How does the Velmar kiln protect its ashen glaze from crazing?"
"""What the pages are about. The fake model's plan asks this, how it works, and which settings there are."""
RELATED: Final = (
    "What protects the ashen glaze of a Velmar kiln from crazing?",
    "Which settings of the Velmar kiln keep ashen glaze from crazing?",
)
FAMILIES: Final = (
    "the Velmar kiln does protect the glaze",
    "how the whole mechanism works",
    "which settings there are",
    "more that sources leave open",
)
"""In order: found first by the question, by how it works, by its settings, and by what is asked about gaps."""

PLACES: Final = ("Ombreth", "Callow Fen", "Tarrindale", "Isk", "Numera", "Pell Harbour", "Vosk", "Garrow", "Lindal")
PEOPLE: Final = ("Ida Marrow", "Teo Quill", "Sana Brook", "Uwe Halder", "Mira Fosse", "Jon Tarn", "Elin Vey", "Ravi Soll")
PARTS: Final = ("damper", "saggar", "flue", "hearth plate", "baffle", "stoke hole", "spy brick", "arch", "grate")
MINERALS: Final = ("feldspar", "wollastonite", "kaolin", "dolomite", "nepheline", "talc", "petalite", "bone ash")
VERBS: Final = ("cools", "settles", "stiffens", "clears", "darkens", "relaxes", "matures", "contracts")
SHAPES: Final = (
    "In {place}, {person} measured that the {part} {verb} {number} minutes after the draught is closed.",
    "A charge with {number} parts of {mineral} {verb} sooner than one that {person} fired in {place}.",
    "{person} replaced the {part} in the year {year} and lost {number} of the jars that were stacked below it.",
    "At {number} degrees the {mineral} in the body {verb}, which potters of {place} hear as a low ring.",
    "Records from {place} name {number} firings in which the {part} held its heat until the {mineral} was spent.",
    "Whoever opens the {part} before {number} minutes have passed will see the {mineral} bloom, {person} wrote.",
)


def pages(count: int, *, hosts: int, paragraphs: int = 12, seed: int = 0) -> list[Site]:
    """So many pages, families in turn, spread over the hosts; about 90 words to a paragraph."""
    return [_page(number, hosts, paragraphs, random.Random(f"{seed}/{number}")) for number in range(count)]


def _page(number: int, hosts: int, paragraphs: int, chance: random.Random) -> Site:
    family = FAMILIES[number % len(FAMILIES)]
    title = f"{chance.choice(PLACES)} notebook {number + 1}"
    degrees, share = 700 + 3 * number, 5 + number % 60
    stated = (
        f"The Velmar kiln of notebook {number + 1} protects its ashen glaze from crazing by holding it at {degrees} "
        f"degrees until {share} of a hundred vents are closed. This page tells {family}."
    )
    text = [f"# {title}", stated, *(_paragraph(chance) for _ in range(paragraphs))]
    return Site(number % hosts, f"/notebooks/{number + 1}", title, page(title, "\n\n".join(text)))


def _paragraph(chance: random.Random) -> str:
    return " ".join(
        chance.choice(SHAPES).format(
            place=chance.choice(PLACES),
            person=chance.choice(PEOPLE),
            part=chance.choice(PARTS),
            mineral=chance.choice(MINERALS),
            verb=chance.choice(VERBS),
            number=chance.randrange(12, 990),
            year=chance.randrange(1710, 1990),
        )
        for _ in range(6)
    )
