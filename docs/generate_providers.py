"""Write what is known of the search providers into each file that names them, from their one declaration.

usage: python docs/generate_providers.py      (a test compares the files with what this script would write)

The declaration is `providers/search/services.toml`. Written are the tables of `search-providers.md`, the variables of
`docker-compose.yml`, and the lines of `.env.example`. Kubernetes passes a secret on as a whole and names no provider.
"""  # noqa: INP001 - a folder of pages is no package

import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from providers.search.declarations import BUILT_IN, BY_MODEL, ProviderPage, SearchDeclaration

ROOT: Final = Path(__file__).resolve().parent.parent
OWN_SERVER: Final = "SEARXNG_URL"
"""Compose runs a server for it, whose address is the default; all pools get it."""
SERVICES: Final = [one for one in BUILT_IN if one.name != BY_MODEL]
"""The model's endpoint is set up by the settings of models."""


def page_of(provider: SearchDeclaration) -> ProviderPage:
    """Return what the documentation says of a provider. Raises ValueError if its declaration has no table for it."""
    if provider.page is None:
        raise ValueError(f"services.toml: {provider.name} has no [services.page]")
    return provider.page


def table(columns: str, row: Callable[[SearchDeclaration, ProviderPage], list[str]]) -> str:
    """One row per provider, in the order of use."""
    rows = [f"| `{one.name}` | " + " | ".join(row(one, page_of(one))) + " |" for one in BUILT_IN]
    return "\n".join([columns, "|---" * (columns.count("|") - 1) + "|", *rows])


def providers() -> str:
    """What each needs, looks for and costs, and where queries go."""

    def row(provider: SearchDeclaration, page: ProviderPage) -> list[str]:
        looks_for = page.looks_for or ", ".join(kind.value for kind in provider.source_types)
        return [page.needs, looks_for, page.queries_go_to, page.price]

    return table("| provider | needs | looks for | queries go to | price |", row)


def narrowing() -> str:
    """What each can narrow down."""
    return table(
        "| provider | domains to keep to | domains to avoid | language | dates |",
        lambda _, page: [page.domains_allow, page.domains_deny, page.language, page.dates],
    )


def keys(provider: SearchDeclaration) -> list[str]:
    """Return the variables of a provider except that of its address."""
    return [name for name in provider.variables if name != provider.address_variable]


def addresses() -> list[str]:
    """Return the variables of addresses that have a default."""
    return [one.address_variable for one in SERVICES if one.address_variable not in ("", OWN_SERVER)]


def compose_variables() -> str:
    """The variables of the pools that search."""
    names = [*(name for one in SERVICES for name in keys(one)), *addresses()]
    return "\n".join(f"  {name}: ${{{name}:-}}" for name in names)


def example_keys() -> str:
    """An empty line for each key, with a comment for services that answer without one."""
    lines = list[str]()
    for provider in SERVICES:
        if provider.key_variable and not provider.key_required:
            lines.append(f"# {provider.label} answers without a key, too, but seldom.")
        lines += [f"#{name}=" for name in keys(provider)]
    return "\n".join(lines)


def example_addresses() -> str:
    """An empty line for each address."""
    return "\n".join(f"#{name}=" for name in addresses())


Blocks = Mapping[str, Callable[[], str]]
FILES: Final[Mapping[str, Blocks]] = {
    "docs/search-providers.md": {"providers": providers, "narrowing": narrowing},
    "docker-compose.yml": {"search services": compose_variables},
    ".env.example": {"keys of search services": example_keys, "addresses of search services": example_addresses},
}
BLOCK: Final = re.compile(
    r"(^[ ]*(?:#|<!--) generated: ([a-z ]+?)(?: -->)?\n)(.*?)(^[ ]*(?:# end|<!-- end -->)$)", re.MULTILINE | re.DOTALL
)


def filled(text: str, blocks: Blocks) -> str:
    """Return a file with its blocks renewed. Raises ValueError if it has others than these."""
    if sorted(match[2] for match in BLOCK.finditer(text)) != sorted(blocks):
        raise ValueError(f"a file must have each block once: {', '.join(blocks)}")
    return BLOCK.sub(lambda match: f"{match[1]}{blocks[match[2]]()}\n{match[4]}", text)


def main() -> int:
    """Rewrite the files."""
    for name, blocks in FILES.items():
        path = ROOT / name
        path.write_text(filled(path.read_text(encoding="utf-8"), blocks), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
