"""As many distinct pages about one made-up subject as a measurement wants: the same ones for the same numbers.

The pages come in families. All know the subject; what sets a family apart are the words of one kind of query, so that
different queries find different pages.
"""

import random
from functools import cache
from typing import Final

from tests.fakes.web_world import Site, page

QUESTION: Final = "How does the Velmar kiln protect its ashen glaze from crazing?"
"""What the pages are about. The fake model's plan asks this, how it works, and which settings there are."""
RELATED: Final = (
    "What protects the ashen glaze of a Velmar kiln from crazing?",
    "Which settings of the Velmar kiln keep ashen glaze from crazing?",
)
FAMILIES: Final = (
    "An ashen glaze resists crazing while {degrees} degrees are held until {share} of a hundred vents are closed.",
    "The Velmar kiln protects its ashen glaze from crazing at {degrees} degrees, with {share} of a hundred vents closed.",
    "Set {share} of a hundred vents and {degrees} degrees: with these settings an ashen glaze is free of crazing.",
    "Open sources leave to the Velmar kiln {degrees} degrees and {share} vents; it protects ashen glaze from crazing.",
)
"""In the order of the pages: found first by how it works, by the question, by its settings, by what gaps ask."""

PLACES: Final = ("Ombreth", "Callow Fen", "Tarrindale", "Isk", "Numera", "Pell Harbour", "Vosk", "Garrow", "Lindal")
PEOPLE: Final = (
    "Ida Marrow",
    "Teo Quill",
    "Sana Brook",
    "Uwe Halder",
    "Mira Fosse",
    "Jon Tarn",
    "Elin Vey",
    "Ravi Soll",
)
PARTS: Final = ("damper", "saggar", "flue", "hearth plate", "baffle", "stoke hole", "spy brick", "arch", "grate")
MINERALS: Final = ("feldspar", "wollastonite", "kaolin", "dolomite", "nepheline", "talc", "petalite", "bone ash")
VERBS: Final = ("cools", "settles", "stiffens", "clears", "darkens", "relaxes", "matures", "contracts")
WORDS: Final = {"place": PLACES, "person": PEOPLE, "part": PARTS, "mineral": MINERALS, "verb": VERBS}
SHAPES: Final = (
    "In {place}, {person} measured that the {part} {verb} {number} minutes after the draught is closed.",
    "A charge with {number} parts of {mineral} {verb} sooner than one that {person} fired in {place}.",
    "{person} replaced the {part} in the year {year} and lost {number} of the jars that were stacked below it.",
    "At {number} degrees the {mineral} in the body {verb}, which potters of {place} hear as a low ring.",
    "Records from {place} name {number} firings in which the {part} held its heat until the {mineral} was spent.",
    "Whoever lifts the {part} before {number} minutes have passed will see the {mineral} bloom, {person} wrote.",
)


def pages(count: int, *, hosts: int, paragraphs: int = 12, seed: int = 0) -> list[Site]:
    """So many pages, one family after the other, spread over the hosts; about 100 words to a paragraph."""
    return [
        Site(number % hosts, f"/notebooks/{number + 1}", title, page(title, text))
        for number, (title, text) in enumerate(_texts(count, paragraphs, seed))
    ]


def files(count: int, *, paragraphs: int = 12, seed: int = 0) -> dict[str, str]:
    """The same as Markdown by name, for a corpus that reads no HTML."""
    return {f"notebook-{n}.md": text for n, (_, text) in enumerate(_texts(count, paragraphs, seed), start=1)}


def _texts(count: int, paragraphs: int, seed: int) -> list[tuple[str, str]]:
    each = -(-count // len(FAMILIES))
    return [_text(number, FAMILIES[number // each], paragraphs, seed) for number in range(count)]


@cache
def _text(number: int, family: str, paragraphs: int, seed: int) -> tuple[str, str]:
    chance = random.Random(f"{seed}/{number}")
    title = f"{chance.choice(PLACES)} notebook {number + 1}"
    stated = family.format(degrees=700 + 3 * number, share=5 + number % 60)
    return title, "\n\n".join([f"# {title}", stated, *(paragraph(chance) for _ in range(paragraphs))])


def paragraph(chance: random.Random) -> str:
    return " ".join(_sentence(chance, chance.choice(SHAPES)) for _ in range(6))


def _sentence(chance: random.Random, shape: str) -> str:
    words = {name: chance.choice(choices) for name, choices in WORDS.items()}
    return shape.format(**words, number=chance.randrange(12, 990), year=chance.randrange(1710, 1990))
