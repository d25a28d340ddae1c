"""What a sentence says of a setting."""

import pytest

from providers.extractive.settings_table import default_in


@pytest.mark.parametrize(
    ("sentence", "value"),
    [
        ("The default is 128 megabytes (128MB).", "128 megabytes"),
        ("The default (in pages of 8 kB) is 200 pages.", "200 pages"),
        ("The default value is off.", "off"),
        ("It defaults to “replica”.", "replica"),
        ("Der Vorgabewert ist 30 Sekunden.", "30 Sekunden"),
        ("Keeps 64 by default.", "64"),
        ("The default (which nobody changes.", ""),
        ("There is no setting here.", ""),
    ],
)
def test_a_default_is_read_from_its_sentence(sentence: str, value: str) -> None:
    """Behind the word for it, also with a remark in brackets between, in several languages; else there is none."""
    assert default_in(sentence) == value
