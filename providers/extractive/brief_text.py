"""Text of a brief: fixed connecting words without a claim of fact."""

from contracts.vocabulary import STOP_REASON_TEXTS
from providers.language_words import language_words


class BriefWords:
    """The fixed sentences of a brief in the language of the question; they make no claim of fact."""

    def __init__(self, language: str) -> None:
        self._words = language_words(language)

    def __getitem__(self, name: str) -> str:
        return self._words.brief[name]

    def say(self, name: str, /, **values: object) -> str:
        """A sentence with its values."""
        return self._words.brief[name].format(**values)

    def heading(self, facet: str) -> str:
        """The heading of a part of the answer."""
        return self._words.headings[facet]

    def missing(self, form: str) -> str:
        """What is missing where no passage has a form."""
        return self._words.missing[form]

    def count(self, number: int, one: str, many: str) -> str:
        """A number with its noun."""
        return f"{number:,} {self[one] if number == 1 else self[many]}"

    def cut_short(self, reason: str) -> str:
        """The sentence that says that the run could not do all it planned."""
        return f"**{self.say('cut_short', why=STOP_REASON_TEXTS.get(reason, reason.replace('_', ' ')))}**"
