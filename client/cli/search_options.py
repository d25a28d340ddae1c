"""What `search` is asked for."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class SearchCommandOptions:
    """The options as given; null means: not given."""

    provider: str = "corpus"
    corpus: str | None = None
    limit: int = 10
    source_type: str | None = None
    domains: Sequence[str] = ()
    not_domains: Sequence[str] = ()
    language: str | None = None
    first: str | None = None
    last: str | None = None

    @property
    def narrow_the_web(self) -> bool:
        """Whether anything is given that only the web's providers know."""
        given = (self.source_type, self.domains, self.not_domains, self.language, self.first, self.last)
        return any(given)
