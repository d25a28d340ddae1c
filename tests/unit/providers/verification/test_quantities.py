"""Numbers, units, dates and versions in texts."""

import pytest

from providers.verification.quantities import Comparison, compare, find_quantities


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("1,664 columns", "", 1664),
        ("1.664 Spalten", "", 1664),
        ("32 TiB", "byte", 32 * 1024**4),
        ("$5.2bn", "USD", 5.2e9),
        ("5,2 Mrd. Euro", "EUR", 5.2e9),
        ("a fee of 300 Swiss francs, 20 per cent", "%", 20),
        ("three percentage points", "pp", 3),
        ("1.5 minutes", "second", 90),
        ("two weeks", "second", 14 * 86400),
        ("a year of 5 km", "metre", 5000),
        ("20 °C", "°C", 20),
        ("twenty-five pages", "", 25),
        ("100 km/h", "metre/second", 100 / 3.6),
        ("zwölf Stunden", "second", 12 * 3600),
    ],
)
def test_a_number_is_read_with_its_unit(text: str, unit: str, value: float) -> None:
    """Scales, units, currencies and locale forms come to one value in the base unit."""
    found = [quantity for quantity in find_quantities(text, "de" if "ö" in text else "en") if quantity.unit == unit]
    assert any(value == pytest.approx(reading) for quantity in found for reading in quantity.values)


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("on 5 March 2024", "2024-03-05"),
        ("March 5th, 2024", "2024-03-05"),
        ("05.03.2024", "2024-03-05"),
        ("am 3. Oktober 1990", "1990-10-03"),
        ("el 5 de marzo de 2024", "2024-03-05"),
        ("on 4 July", "--07-04"),
        ("release 3.11.2 of it", "3.11.2"),
    ],
)
def test_dates_and_versions_have_a_form(text: str, form: str) -> None:
    """A date is one form whatever it is written like; a version is itself."""
    assert any(form in quantity.forms for quantity in find_quantities(text))


@pytest.mark.parametrize(
    ("claim", "source", "match"),
    [
        ("60 seconds", "one minute", Comparison.EXACT),
        ("a year", "twelve months", Comparison.NONE),
        ("12 months", "1 year", Comparison.EXACT),
        ("about 80", "81", Comparison.APPROXIMATE),
        ("5.2 million", "5,187,000", Comparison.APPROXIMATE),
        ("5.2 million", "5,300,000", Comparison.NONE),
        ("more than 5 million", "5.3 million", Comparison.APPROXIMATE),
        ("more than 5 million", "4.9 million", Comparison.NONE),
        ("at least 5 MB", "at most 5 MB", Comparison.OPPOSED),
        ("5 MB", "5 GB", Comparison.NONE),
        ("20 %", "20 percentage points", Comparison.NONE),
        ("March 2024", "5 March 2024", Comparison.APPROXIMATE),
        ("5 March 2024", "6 March 2024", Comparison.NONE),
        ("2024", "5 March 2024", Comparison.APPROXIMATE),
        ("3.11.2", "3.11.3", Comparison.NONE),
        ("paid annually", "5 crowns a year", Comparison.NONE),
        ("50 cents", "0.50 euros", Comparison.EXACT),
        ("18:00", "6 pm", Comparison.EXACT),
        ("6 millones de dólares", "6 million dollars", Comparison.EXACT),
    ],
)
def test_two_spellings_are_compared_by_what_they_say(claim: str, source: str, match: Comparison) -> None:
    """Rounding is allowed where the claim is the coarser, another unit or year never."""
    mine, other = find_quantities(claim), find_quantities(source)
    results = [compare(one, two) for one in mine for two in other] or [Comparison.NONE]
    assert results[0] is match
