"""Packages of others: loading what they declare by entry points, and one line for their authors if that fails."""

import difflib
from collections.abc import Collection, Iterable, Mapping
from importlib.metadata import EntryPoint
from pathlib import PurePath
from types import ModuleType
from typing import Any, Final, Protocol, TypeVar

from contracts.defects import place_within
from contracts.texts import join_alternatives, shorten

REMEDY: Final = "mend or remove the package"
SHOWN: Final = (ImportError, AttributeError, NameError, SyntaxError, TypeError)
"""Errors whose messages name parts of code alone; of others the type and the place are shown."""
MESSAGE_CHARACTERS: Final = 200


class Declaration(Protocol):
    """What a package declares."""

    @property
    def name(self) -> str:
        """Its name, which is that of its entry point."""


D = TypeVar("D", bound=Declaration)


class PackageFault(ValueError):
    """A part of a package cannot be used; the message names the package, file and line, then the remedy."""


_packages: dict[str, str] = {}
"""Top module of a package that declares something → its name and version."""


def note_package(modules: Iterable[str], package: str) -> None:
    """Remember whose these modules are, so that a defect in them is told from one of the product."""
    _packages.update({module.partition(".")[0]: package for module in modules})


def packages_by_module() -> Mapping[str, str]:
    """Return the name and the version of the package by top module, for packages whose declarations are in use."""
    return _packages


def package_of(entry: EntryPoint) -> str:
    """Return the name and the version of the package of an entry point, for messages."""
    if entry.dist is None:
        return "an installed package"
    return f"the package {entry.dist.name} {entry.dist.version}"


def load_declaration(what: str, entry: EntryPoint, kind: type[D]) -> D:
    """Return the declaration that an entry point names, which has its name; `what` says what it declares.

    Raises `PackageFault`.
    """
    problem = f"{what} of {package_of(entry)} cannot be loaded"
    try:
        declaration = entry.load()
    except Exception as error:  # noqa: BLE001  the code of a package may raise anything
        raise PackageFault(f"{problem}: {fault(error, entry.module)}; {REMEDY}") from None
    if not isinstance(declaration, kind):
        raise PackageFault(f"{problem}: {entry.value} is no {kind.__name__}; {REMEDY}")
    if declaration.name != entry.name:
        remedy = f"call both {declaration.name}, or remove the package"
        raise PackageFault(f"{problem}: its declaration has the name {declaration.name}; {remedy}")
    return declaration


def load_class(what: str, implementation: str, methods: Collection[str]) -> type[Any]:
    """Return the class `module:Class` of a package, which has these methods and none that is abstract.

    Raises `PackageFault`. It uses `__import__`, which the sandbox of workflow code controls.
    """
    name, _, class_name = implementation.partition(":")
    try:
        module = __import__(name, fromlist=[class_name])
    except Exception as error:  # noqa: BLE001  the code of a package may raise anything
        raise PackageFault(f"{what} cannot be loaded: {fault(error, name)}; {REMEDY}") from None
    found = getattr(module, class_name, None)
    if not isinstance(found, type):
        classes = {one: value for one, value in vars(module).items() if isinstance(value, type)}
        names = difflib.get_close_matches(class_name, classes, 1)
        nearest = f" (nearest: {names[0]}{_line_of(classes[names[0]], module, ' at line ')})" if names else ""
        problem = f"{_file_of(module)} has no class {class_name}{nearest}"
        raise PackageFault(f"{what} cannot be loaded: {problem}; correct `implementation`, or remove the package")
    absent = {method for method in methods if not callable(getattr(found, method, None))}
    if missing := sorted(absent | set(getattr(found, "__abstractmethods__", ()))):
        place = f"{_file_of(module)}{_line_of(found, module, ':')}"
        problem = f"{class_name} at {place} has no method {join_alternatives(missing)}"
        raise PackageFault(f"{what} cannot be used: {problem}; {REMEDY}")
    return found


def fault(error: BaseException, module: str) -> str:
    """Return an error of a package in one line: type, the innermost line of the package, and what is missing."""
    place = place_within(error, module.partition(".")[0])
    message = str(error)
    if isinstance(error, SyntaxError) and error.filename:
        place = f"{'/'.join(PurePath(error.filename).parts[-2:])}:{error.lineno}"
        message = error.msg
    problem = f"{type(error).__name__} at {place}" if place else type(error).__name__
    lines = message.splitlines()
    if isinstance(error, SHOWN) and lines:
        problem += f": {shorten(lines[0], MESSAGE_CHARACTERS)}"
    return problem


def _file_of(module: ModuleType) -> str:
    """Return the file of a module below its top package."""
    depth = module.__name__.count(".") + 1
    return "/".join(PurePath(module.__file__ or module.__name__).parts[-depth:])


def _line_of(kind: type[Any], module: ModuleType, before: str) -> str:
    """Return the first line of a class with a text before it, or until Python 3.13 that of its first method, if any."""
    codes = [getattr(value, "__code__", None) for value in vars(kind).values()]
    # Classes also have functions of libraries, as protocols do.
    lines = [code.co_firstlineno for code in codes if code is not None and code.co_filename == module.__file__]
    line = getattr(kind, "__firstlineno__", min(lines, default=None))
    return "" if line is None else f"{before}{line}"
