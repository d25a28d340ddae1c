"""The sentences that a report prints about itself, in its own language: each says no more than the run can show."""

from contracts.resolved import ResolvedResearch
from contracts.state import ResearchState
from contracts.strategies import writer_engine
from contracts.vocabulary import EngineKind
from providers.text import KNOWN_LANGUAGES, language_data
from providers.told_sentences import translate


class ReportWords:
    """Fixed sentences in one language; those of English where the language is not known."""

    def __init__(self, language: str) -> None:
        self._words = language_data(language)

    @classmethod
    def of(cls, state: ResearchState, resolved: ResolvedResearch) -> "ReportWords":
        """The words of the language that a report is in: the one asked of a model, else that of the question."""
        by_model = writer_engine(state.engine_by_role) is EngineKind.MODEL
        wanted = (resolved.report_language or "").split("-")[0].casefold() if by_model else ""
        return cls(wanted if wanted in KNOWN_LANGUAGES else resolved.language)

    @property
    def code(self) -> str:
        """The two letters of the language."""
        return self._words.code

    def __getitem__(self, name: str) -> str:
        return self._words.report[name]

    def say(self, name: str, /, **values: object) -> str:
        """A sentence with its values; whole numbers in groups of three."""
        shown = {key: self.number(value) if isinstance(value, int) else value for key, value in values.items()}
        return self._words.report[name].format(**shown)

    def number(self, value: int) -> str:
        """A whole number in groups of three."""
        return f"{value:,}".replace(",", self["thousands"])

    def count(self, noun: str, number: int) -> str:
        """A number with its noun: `1 source`, `1,204 sources`."""
        return self.say(f"{noun}_{'one' if number == 1 else 'many'}", count=number)

    def day(self, timestamp: str | None) -> str:
        """The date of an ISO 8601 timestamp, or a statement that it is unknown."""
        return timestamp[:10] if timestamp else self["unknown_day"]

    def moment(self, timestamp: str | None) -> str:
        """Date and minute of an ISO 8601 timestamp with its offset, for people."""
        if not timestamp:
            return self["unknown_moment"]
        offset = f" {timestamp[-6:]}" if timestamp[-6:-5] in "+-" else ""
        zone = " UTC" if timestamp.endswith(("Z", "+00:00")) else offset
        return timestamp[:16].replace("T", " ") + zone

    def told(self, text: str) -> str:
        """A sentence that was made elsewhere, in English, in the report's language; unknown ones stay as they are."""
        return translate(text, self.code)

    def name(self, kind: str, value: str) -> str:
        """What a value (a role, a verdict, a method) is called; one that is not known stands for itself."""
        return self._words.report.get(f"{kind}_{value}", value)
