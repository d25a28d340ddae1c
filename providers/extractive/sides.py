"""The sides of a comparison, each asked for by itself."""

from providers.extractive.asked_form import AskedForm, read_asked
from providers.language_words import language_words


def what_is(side: str, language: str) -> AskedForm:
    """What is asked about one side: what it is."""
    return read_asked(language_words(language).aspects["what_is"].format(name=side), language)
