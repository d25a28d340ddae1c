"""What others sent, as it came: decoded by us, so that nothing they send can fail a workflow task. Pure."""

import json
from typing import Any

from temporalio.common import RawValue

JSON_ENCODING = b"json/plain"
NULL_ENCODING = b"binary/null"


def json_of(value: RawValue) -> bytes:
    """The JSON of a payload; `null` for one that is none."""
    return value.payload.data if value.payload.metadata.get("encoding") == JSON_ENCODING else b"null"


def plain(value: RawValue) -> Any:
    """A payload as plain data. Raises ValueError if it is no JSON."""
    encoding = value.payload.metadata.get("encoding")
    if encoding == NULL_ENCODING:
        return None
    if encoding != JSON_ENCODING:
        raise ValueError("no JSON")
    try:
        return json.loads(value.payload.data)
    except RecursionError:
        raise ValueError("nested too deeply") from None
