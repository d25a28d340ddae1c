"""Semantic ranking without a model: a text is the sum of the vectors of its tokens; two texts are compared by cosine.

The vectors and the tokenizer are two files in the wheel of `wordllama`, whose code is not imported. They come with the
extra `semantic`. Loaded once in a process, they take 60 MB of memory; a passage takes about a millisecond.

The result is the same on every machine, whatever instructions its processor has: the vectors are 16-bit floats, whose
sums are exact in 64 bits, and the sum of a dot product is rounded once.
"""

import hashlib
import math
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Final, TypeAlias

from contracts.resolved import VECTOR_TABLE
from providers.errors import NotConfigured

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Vector: TypeAlias = "NDArray[np.float64]"

PACKAGE: Final = "wordllama"
NEEDED: Final = (PACKAGE, "numpy", "safetensors", "tokenizers")
VECTORS: Final = f"weights/{VECTOR_TABLE}.safetensors"
TOKENIZER: Final = "tokenizers/l2_supercat_tokenizer_config.json"
DIGESTS: Final = {
    VECTORS: "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5",
    TOKENIZER: "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68",
}
"""SHA-256 of the files that were measured: with others, workers might order the passages of one run differently."""
MAX_CHARACTERS: Final = 2_000  # of a text that count; a passage is seldom longer
LAST_LATIN: Final = "\u024f"
REMEDY: Final = "pip install 'durable-research[semantic]', or set ranking.semantic = false"

_loading: Final = Lock()


class TokenTable:
    """The vectors of tokens, and the tokenizer that finds the tokens of a text."""

    def __init__(self, folder: Path) -> None:
        """Load both files. Raises `NotConfigured` if one is missing or another version."""
        import numpy as np  # noqa: PLC0415  of an extra, and slow to import
        from safetensors import safe_open  # noqa: PLC0415
        from tokenizers import Tokenizer  # noqa: PLC0415

        for name, digest in DIGESTS.items():
            try:
                with (folder / name).open("rb") as file:
                    found = hashlib.file_digest(file, "sha256").hexdigest()
            except OSError:
                found = ""
            if found != digest:
                raise NotConfigured(f"{PACKAGE} has another file {name} than the one that was measured: {REMEDY}")
        with safe_open(folder / VECTORS, framework="np") as tensors:
            self._vectors: NDArray[np.float16] = tensors.get_tensor("embedding.weight")
        self._tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))

    def vector(self, text: str) -> Vector:
        """Return the sum of the vectors of a text's tokens: 256 numbers, without any rounding."""
        tokens = self._tokenizer.encode(text[:MAX_CHARACTERS], add_special_tokens=False).ids
        total: Vector = self._vectors[tokens].sum(axis=0, dtype="float64")
        return total


def likeness(one: Vector, other: Vector) -> float:
    """Return the cosine of the angle between two vectors, from -1 to 1; 0 if one of them has no length."""
    lengths = math.sqrt(_dot(one, one)) * math.sqrt(_dot(other, other))
    if not lengths:
        return 0.0
    return _dot(one, other) / lengths


def _dot(one: Vector, other: Vector) -> float:
    return math.fsum((one * other).tolist())


def is_installed() -> bool:
    """Return whether the packages of the extra are installed, without importing them."""
    return all(find_spec(name) is not None for name in NEEDED)


def knows_writing(text: str) -> bool:
    """Return whether most letters of a text are Latin: of others the table mostly knows single bytes."""
    letters = [character for character in text if character.isalpha()]
    return 2 * sum(letter <= LAST_LATIN for letter in letters) > len(letters)


def token_table() -> TokenTable:
    """Return the table, loaded once in a process. Raises `NotConfigured` if the extra is not installed."""
    with _loading:
        return _load()


@lru_cache(maxsize=1)
def _load() -> TokenTable:
    specification = find_spec(PACKAGE) if is_installed() else None
    if specification is None or not specification.submodule_search_locations:
        raise NotConfigured(f"this run ranks passages by meaning, and the table for it is not installed: {REMEDY}")
    return TokenTable(Path(specification.submodule_search_locations[0]))
