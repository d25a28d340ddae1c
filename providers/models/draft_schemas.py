"""The JSON schema of a draft, made once: making it costs more than everything else that a call computes."""

import json
from functools import lru_cache
from typing import Any

from contracts.base import Contract


@lru_cache(maxsize=64)
def schema_text(draft: type[Contract]) -> str:
    """The schema as JSON, fields in the order in which they are declared."""
    return json.dumps(draft.model_json_schema())


def schema_of(draft: type[Contract]) -> dict[str, Any]:
    """The schema; whoever gets it may change it."""
    schema: dict[str, Any] = json.loads(schema_text(draft))
    return schema
