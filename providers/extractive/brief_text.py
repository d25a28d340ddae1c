"""Text of a brief: fixed connecting words without a claim of fact."""

from contracts.vocabulary import STOP_REASON_TEXTS
from providers.language_words import language_words
from providers.told_sentences import translate


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
        return f"{self.number(number)} {self[one] if number == 1 else self[many]}"

    def number(self, value: int) -> str:
        """A whole number in groups of three."""
        return f"{value:,}".replace(",", self._words.report["thousands"])

    def cut_short(self, reason: str) -> str:
        """The sentence that says that the run could not do all it planned."""
        why = self.told(STOP_REASON_TEXTS.get(reason, reason.replace("_", " ")))
        return f"**{self.say('cut_short', why=why)}**"

    def told(self, text: str) -> str:
        """A sentence that another part of the product made, in English."""
        return translate(text, self._words.code)

    def language_name(self, code: str) -> str:
        """What a language is called in this one."""
        return self._words.language_names[code]
