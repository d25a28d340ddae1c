"""Diffs of JSON values: a checkpoint sends only the changes since the last one. Pure.

A change is a list whose first item is its kind: `["="]` no change, `["=", value]` replaces, `["{", {key: change},
[removed keys]]` changes an object, `["[", {index: change}, [added items]]` changes a list that only grew.
"""

import base64
import hashlib
import json
import zlib
from typing import Any, Final

REPLACE: Final = "="
IN_OBJECT: Final = "{"
IN_LIST: Final = "["
NOTHING: Final[list[Any]] = [REPLACE]


def change_between(before: Any, after: Any) -> list[Any]:
    """Return the change from `before` to `after`, both JSON values. A number never equals a boolean."""
    kind = type(before)  # in the workflow sandbox, isinstance is fifty times slower
    if kind is not type(after):
        return [REPLACE, after]
    if kind is dict:
        changes = {
            key: change
            for key, value in after.items()
            if (change := change_between(before[key], value) if key in before else [REPLACE, value]) != NOTHING
        }
        removed = [key for key in before if key not in after]
        return [IN_OBJECT, changes, removed] if changes or removed else NOTHING
    if kind is list and len(before) <= len(after):
        pairs = enumerate(zip(before, after, strict=False))
        changed = {str(index): change for index, pair in pairs if (change := change_between(*pair)) != NOTHING}
        added = after[len(before) :]
        return [IN_LIST, changed, added] if changed or added else NOTHING
    return NOTHING if before == after else [REPLACE, after]


def apply_change(before: Any, change: list[Any]) -> Any:
    """Return the value after a change. Raises ValueError for an invalid change, or one that does not fit the value."""
    try:
        return _apply(before, change)
    except (TypeError, KeyError, IndexError, AttributeError) as error:
        raise ValueError("the change does not fit the value") from error


def _apply(before: Any, change: list[Any]) -> Any:
    kind, *arguments = change
    if kind == REPLACE:
        return arguments[0] if arguments else before
    changes, removed_or_added = arguments
    if kind == IN_OBJECT:
        remaining = {key: value for key, value in before.items() if key not in removed_or_added}
        return remaining | {key: _apply(before.get(key), item_change) for key, item_change in changes.items()}
    if kind == IN_LIST:
        items = list(before)
        for index, item_change in changes.items():
            items[int(index)] = _apply(items[int(index)], item_change)
        return items + removed_or_added
    raise ValueError("an unknown kind of change")


def json_digest(value: Any) -> str:
    """Return a 128-bit hash of a JSON value in hexadecimal digits, independent of key order."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def pack_json(value: Any) -> str:
    """Return a JSON value as compressed base64; base85 would be 6 % shorter but fifty times slower."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def unpack_json(packed: str) -> Any:
    """Invert `pack_json`. Raises ValueError if the text is not a packed value."""
    try:
        return json.loads(zlib.decompress(base64.b64decode(packed, validate=True)).decode("utf-8"))
    except zlib.error as error:
        raise ValueError("no packed value") from error
