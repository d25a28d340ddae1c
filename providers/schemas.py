"""Schema numbers of what is stored, and the one place in which each kind is brought from the number before to its own.

A version of the product reads the number that it writes and, once that has changed, the number before; what it writes
has its own number. A number changes only where an older form cannot be read as the newer one: a new field with a
default changes none.
"""

import json
import re
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from contracts.names import SCHEMA_VERSION
from providers.errors import ContentCorrupt, NewerSchema

F = TypeVar("F")

UNNUMBERED: Final = 1
"""Number of what was written before texts had one."""
NUMBER: Final = re.compile(r'\{"schema":(\d{1,6})[,}]')
"""Beginning of a JSON object with its number."""


@dataclass(frozen=True)
class StoredSchema(Generic[F]):
    """The form of one kind of stored data."""

    what: str
    """The kind, in messages."""
    number: int
    from_before: Callable[[F], F] | None = None
    """Brings what has the number before to this one; None: nothing of that number is read."""

    def current(self, form: F, number: object, name: str = "") -> F:
        """Return what has a number in the form of today; `name` says in messages which one of its kind it is.

        Raises `NewerSchema`, and `ContentCorrupt` for a number that is too old or none.
        """
        if number == self.number:
            return form
        if number == self.number - 1 and self.from_before is not None:
            return self.from_before(form)
        found = f"{self.what} {name}".rstrip()
        numbers = self.number if self.from_before is None else f"{self.number - 1} and {self.number}"
        if isinstance(number, int) and number > self.number:
            raise NewerSchema(f"{found} has the schema {number}, and this version of the product reads {numbers}")
        raise ContentCorrupt(
            f"{found} has the schema {number}, and this version of the product reads {numbers}: use a version that "
            "reads it, or delete it"
        )

    def write(self, text: str) -> str:
        """Return a JSON object with the number of this form in front. Readers that know no number pass over it."""
        return f'{{"schema":{self.number}{"" if text == "{}" else ","}{text[1:]}'

    def read(self, text: str, name: str = "") -> str:
        """Return a stored JSON object in the form of today. Raises as `current`, and ValueError for what is no JSON."""
        match = NUMBER.match(text)
        number = UNNUMBERED if match is None else int(match[1])
        if number == self.number:
            return text
        form: Any = json.loads(text)
        return json.dumps(self.current(form, number, name), ensure_ascii=False)


SESSION: Final = StoredSchema[dict[str, Any]]("the session", SCHEMA_VERSION)
HEAD: Final = StoredSchema[dict[str, Any]]("the head of the session", 1)
NOTEBOOK: Final = StoredSchema[dict[str, Any]]("the notebook's entry", 1)
ANSWER: Final = StoredSchema[dict[str, Any]]("a paid answer of the journal", 1)
CACHED: Final = StoredSchema[Any]("a cached value", 1)
DAY: Final = StoredSchema[dict[str, Any]]("the money of the day", 1)
QUEUE: Final = StoredSchema[dict[str, Any]]("the queue of runs", 1)
SERVICE: Final = StoredSchema[dict[str, Any]]("the state of a service", 1)
SITE: Final = StoredSchema[dict[str, Any]]("the state of a site", 1)
PAGES: Final = StoredSchema[dict[str, Any]]("the number of the day's pages", 1)
INDEX: Final = StoredSchema[sqlite3.Connection]("the index", 15)
"""Of a corpus: it changes with its tables and stems. `from_before` changes the tables within a transaction."""
