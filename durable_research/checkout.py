"""Makes `durable_research.contracts` and its siblings names of the folders beside this one.

Left out of the installed package, where they are its own folders. Each name is the same module as in the repository, so
that a class is never there twice.
"""

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import CodeType, ModuleType
from typing import Final

PACKAGE: Final = "durable_research."
FOLDERS: Final = frozenset({"contracts", "workflows", "activities", "providers", "workers", "client"})


class FolderFinder(MetaPathFinder, Loader):
    """Finds `durable_research.NAME` where `NAME` is a module of the folders."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the specification of a module of the folders by its public name; None for all others."""
        del path, target
        name = fullname.removeprefix(PACKAGE)
        if name == fullname or name.partition(".")[0] not in FOLDERS:
            return None
        found = find_spec(name)
        if found is None:
            return None
        package = found.submodule_search_locations is not None
        return ModuleSpec(fullname, self, origin=found.origin, is_package=package)

    def exec_module(self, module: ModuleType) -> None:
        """Put the module of the folders in place of the empty one that was made for the public name."""
        sys.modules[module.__name__] = import_module(module.__name__.removeprefix(PACKAGE))

    def get_code(self, fullname: str) -> CodeType | None:
        """Return the code of a module, which `python -m` runs."""
        name = fullname.removeprefix(PACKAGE)
        found = find_spec(name)
        assert found is not None
        code: CodeType | None = found.loader.get_code(name)  # type: ignore[union-attr]
        return code


sys.meta_path.insert(0, FolderFinder())
