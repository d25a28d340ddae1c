"""The fixed sentences of a report, by message id, in the language of the report."""

from collections.abc import Mapping
from functools import cache

from contracts.report import VERDICT_SIGNS
from contracts.request import SAME_LANGUAGE
from contracts.sentences import SEPARATOR, Message, Value
from contracts.strategies import writers
from contracts.vocabulary import EngineKind
from providers.text import KNOWN_LANGUAGES, language_data


class ReportMessages:
    """Fixed sentences in one language; in English if the language is unknown."""

    def __init__(self, language: str, report_language: str = "") -> None:
        data = language_data(language)
        self.language = report_language or language
        """The language of the report, which may lack fixed sentences."""
        self.code = data.code
        """Two-letter code of the language of the fixed sentences."""
        self._messages = data.report
        self._sentences = data.sentences
        self.without_model = data.brief["note"]
        """The note in a report written without a model."""

    @classmethod
    def of(cls, engine_by_role: Mapping[str, str], requested: object, question: str) -> "ReportMessages":
        """Make the sentences of a report: in `output.language` if a model wrote it, else in the question's language."""
        known = writers()
        by_model = EngineKind.MODEL.value
        wrote = any(engine == by_model for role, engine in engine_by_role.items() if role in known)
        if wrote and isinstance(requested, str) and requested != SAME_LANGUAGE:
            language = requested
        else:
            language = question
        code = language.split("-")[0].casefold()
        return cls(code if code in KNOWN_LANGUAGES else question, language)

    def __call__(self, message: str, /, **values: object) -> str:
        """Return a sentence with its values filled in; integers with thousands separators."""
        formatted = {key: self.number(value) if isinstance(value, int) else value for key, value in values.items()}
        return self._messages[message].format(**formatted)

    def number(self, value: int) -> str:
        """Return an integer with thousands separators."""
        return f"{value:,}".replace(",", self._messages["thousands"])

    def count(self, noun: str, number: int) -> str:
        """Return a number with its noun: `1 source`, `1,204 sources`."""
        return self(f"{noun}_{'one' if number == 1 else 'many'}", count=number)

    def name(self, kind: str, value: str) -> str:
        """Return the display name of a value (a role, a verdict, a method), or an unknown value itself."""
        return self._messages.get(f"{kind}_{value}", value)

    def sign(self, verdict: str) -> str:
        """Return the sign of a verdict with its name."""
        return f"{VERDICT_SIGNS[verdict]} {self.name('judged', verdict)}"

    def translated(self, text: str) -> str:
        """Return a message of another part of the product in this language; a plain text unchanged."""
        if isinstance(text, Message):
            return text.rendered(self._sentences, self._show)
        return text

    def _show(self, name: str, value: Value) -> str:
        """Return a value of a message as text; roles by their names."""
        if isinstance(value, int):
            return self.number(value)
        if isinstance(value, str):
            return self.translated(self.name(name, value) if name == "role" else value)
        return SEPARATOR.join(map(self.translated, value))

    def day(self, timestamp: str | None) -> str:
        """Return the date of an ISO 8601 timestamp, or a statement that it is unknown."""
        if timestamp:
            return timestamp[:10]
        return self("unknown_day")

    def moment(self, timestamp: str | None) -> str:
        """Return date and minute of an ISO 8601 timestamp, which must be in UTC."""
        if timestamp:
            return timestamp[:16].replace("T", " ") + " UTC"
        return self("unknown_moment")


@cache
def all_signs() -> frozenset[str]:
    """Return the signs of all verdicts with their names in every known language."""
    return frozenset(ReportMessages(code).sign(verdict) for code in KNOWN_LANGUAGES for verdict in VERDICT_SIGNS)
