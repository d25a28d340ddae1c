"""The sentences that a report prints about itself, by message id, in its own language."""

from collections.abc import Mapping
from functools import cache

from contracts.report import VERDICT_SIGNS
from contracts.request import SAME_LANGUAGE
from contracts.strategies import writers
from contracts.vocabulary import EngineKind
from providers.text import KNOWN_LANGUAGES, language_data, translate


class ReportWords:
    """Fixed sentences in one language; those of English where the language is not known."""

    def __init__(self, language: str, written: str = "") -> None:
        words = language_data(language)
        self.language = written or language
        """The language of the report, in which its fixed sentences may not be known."""
        self.code = words.code
        """The two letters of the language."""
        self._messages = words.report
        self.without_model = words.brief["note"]
        """What a report of passages says of itself."""

    @classmethod
    def of(cls, engine_by_role: Mapping[str, str], asked: object, question: str) -> "ReportWords":
        """Make the words of a report: in `output.language` if a model wrote it, else in that of the question."""
        known, by_model = writers(), EngineKind.MODEL.value
        wrote = any(engine == by_model for role, engine in engine_by_role.items() if role in known)
        written = asked if wrote and isinstance(asked, str) and asked != SAME_LANGUAGE else question
        chosen = written.split("-")[0].casefold()
        return cls(chosen if chosen in KNOWN_LANGUAGES else question, written)

    def __call__(self, message: str, /, **values: object) -> str:
        """Return a sentence with its values; whole numbers in groups of three."""
        shown = {key: self.number(value) if isinstance(value, int) else value for key, value in values.items()}
        return self._messages[message].format(**shown)

    def number(self, value: int) -> str:
        """Return a whole number in groups of three."""
        return f"{value:,}".replace(",", self._messages["thousands"])

    def count(self, noun: str, number: int) -> str:
        """Return a number with its noun: `1 source`, `1,204 sources`."""
        return self(f"{noun}_{'one' if number == 1 else 'many'}", count=number)

    def name(self, kind: str, value: str) -> str:
        """Return the name of a value (a role, a verdict, a method); an unknown one is its own name."""
        return self._messages.get(f"{kind}_{value}", value)

    def sign(self, verdict: str) -> str:
        """Return the sign of a verdict with its words."""
        return f"{VERDICT_SIGNS[verdict]} {self.name('judged', verdict)}"

    def translated(self, text: str) -> str:
        """Return an English sentence of another part of the product in this language; others unchanged."""
        return translate(text, self.code)

    def day(self, timestamp: str | None) -> str:
        """Return the date of an ISO 8601 timestamp, or a statement that it is unknown."""
        return timestamp[:10] if timestamp else self("unknown_day")

    def moment(self, timestamp: str | None) -> str:
        """Return date and minute of an ISO 8601 timestamp in UTC, as all of a run are."""
        return timestamp[:16].replace("T", " ") + " UTC" if timestamp else self("unknown_moment")


@cache
def all_signs() -> frozenset[str]:
    """Return the signs of verdicts with their words in every language."""
    return frozenset(ReportWords(code).sign(verdict) for code in KNOWN_LANGUAGES for verdict in VERDICT_SIGNS)
