"""Functions that are in memory already, with the code of another text of their file."""

import gc
from pathlib import Path
from types import CodeType, FunctionType


def change_functions(file: Path, before: str, after: str) -> int:
    """Give the functions of a file, as they are in memory, the code of another text of it; how many were found."""
    old, new = (_codes(compile(text, str(file), "exec", dont_inherit=True)) for text in (before, after))
    changed = 0
    for function in gc.get_objects():
        if not isinstance(function, FunctionType) or function.__code__.co_filename != str(file):
            continue
        code = function.__code__
        # Several functions may have one name: they keep their order, while lines may move.
        places = [number for number, other in enumerate(old.get(code.co_qualname, []))
                  if other.co_firstlineno == code.co_firstlineno]  # fmt: skip
        if places and len(new.get(code.co_qualname, [])) > places[0]:
            function.__code__ = new[code.co_qualname][places[0]]
            changed += 1
    return changed


def _codes(code: CodeType) -> dict[str, list[CodeType]]:
    """The code of every function within, by its qualified name, in order."""
    found: dict[str, list[CodeType]] = {}
    waiting = [code]
    while waiting:
        inner = [constant for constant in waiting.pop(0).co_consts if isinstance(constant, CodeType)]
        for each in inner:
            found.setdefault(each.co_qualname, []).append(each)
        waiting += inner
    return found
