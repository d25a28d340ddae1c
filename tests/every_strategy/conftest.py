"""The toy is declared for every test of this folder."""

from collections.abc import Iterator

import pytest

from tests.every_strategy.joined import toy_declared


@pytest.fixture(autouse=True)
def _declared() -> Iterator[None]:
    with toy_declared():
        yield
