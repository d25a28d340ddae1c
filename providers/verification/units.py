"""Units, scales and currencies: how they are written in seven languages, and their factors to a base unit."""

from collections.abc import Iterable
from typing import Final

Readings = tuple[float, ...]
"""Factors to the base unit; several where a name has more than one meaning (kB is 1,000 or 1,024 bytes)."""


def _table(rows: Iterable[tuple[str, str, Readings]]) -> dict[str, tuple[str, Readings]]:
    return {name.casefold(): (unit, factors) for names, unit, factors in rows for name in names.split("|")}


_BYTES: Final = (("k", "kilo", "kibi"), ("M", "mega", "mebi"), ("G", "giga", "gibi"), ("T", "tera", "tebi"),
                 ("P", "peta", "pebi"), ("E", "exa", "exbi"))  # fmt: skip


def _byte_rows() -> Iterable[tuple[str, str, Readings]]:
    for power, (sign, decimal, binary) in enumerate(_BYTES, start=1):
        yield f"{sign}B|{decimal}byte|{decimal}bytes", "byte", (1000.0**power, 1024.0**power)
        yield f"{sign}iB|{binary}byte|{binary}bytes", "byte", (1024.0**power,)
        yield f"{sign}bit|{sign}bps|{sign}bit/s|{decimal}bit|{decimal}bits", "bit", (1000.0**power,)


def _prefixed(names: str, unit: str) -> Iterable[tuple[str, str, Readings]]:
    """Give a unit by its sign and names, alone and by the thousand, million, billion and trillion."""
    sign, *words = names.split("|")
    yield names, unit, (1.0,)
    for power, (short, prefix, _) in enumerate(_BYTES[:4], start=1):
        yield "|".join([short + sign, *(prefix + word for word in words)]), unit, (1000.0**power,)


UNITS: Final = _table(
    [
        ("%|percent|per cent|prozent|pour cent|por ciento|per cento|por cento|procent", "%", (1.0,)),
        ("percentage points|percentage point|prozentpunkte|points de pourcentage|puntos porcentuales", "pp", (1.0,)),
        ("byte|bytes|octet|octets", "byte", (1.0,)),
        ("bit|bits", "bit", (1.0,)),
        *_byte_rows(),
        ("ns|nanosecond|nanoseconds|nanosekunden", "second", (1e-9,)),
        ("µs|μs|us|microsecond|microseconds|mikrosekunden", "second", (1e-6,)),
        ("ms|millisecond|milliseconds|millisekunden|millisecondes|milisegundos|millisecondi", "second", (1e-3,)),
        (
            "s|sec|secs|second|seconds|sekunde|sekunden|seconde|secondes|segundo|segundos|secondo|secondi|seconden",
            "second",
            (1.0,),
        ),
        ("min|mins|minute|minutes|minuten|minuto|minutos|minuti|minuut", "second", (60.0,)),
        ("h|hr|hrs|hour|hours|stunde|stunden|heure|heures|hora|horas|ora|ore|uur|uren", "second", (3600.0,)),
        ("day|days|tag|tage|tagen|jour|jours|día|días|dia|dias|giorno|giorni|dag|dagen", "second", (86400.0,)),
        ("week|weeks|woche|wochen|semaine|semaines|semana|semanas|settimana|settimane|weken", "second", (604800.0,)),
        ("month|months|monat|monate|monaten|mois|mes|meses|mese|mesi|mês|maand|maanden", "month", (1.0,)),
        ("year|years|jahr|jahre|jahren|an|ans|année|années|año|años|anno|anni|ano|anos|jaar|jaren", "month", (12.0,)),
        ("decade|decades|jahrzehnt|jahrzehnte|décennie|décennies", "month", (120.0,)),
        ("century|centuries|jahrhundert|jahrhunderte|siècle|siècles|siglo|siglos|secolo|secoli", "month", (1200.0,)),
        ("nm", "metre", (1e-9,)),
        ("mm|millimetre|millimetres|millimeter|millimeters|millimètres", "metre", (1e-3,)),
        ("cm|centimetre|centimetres|centimeter|centimeters|zentimeter|centimètres", "metre", (1e-2,)),
        ("m|metre|metres|meter|meters|metern|mètre|mètres|metro|metros|metri", "metre", (1.0,)),
        (
            "km|kilometre|kilometres|kilometer|kilometers|kilometern|kilomètre|kilomètres|kilómetro|kilómetros|chilometri",
            "metre",
            (1e3,),
        ),
        ("inch|inches|zoll", "metre", (0.0254,)),
        ("ft|foot|feet", "metre", (0.3048,)),
        ("yd|yard|yards", "metre", (0.9144,)),
        ("mi|mile|miles|meilen", "metre", (1609.344,)),
        ("km/h|kph|kmh", "metre/second", (1 / 3.6,)),
        ("mph", "metre/second", (0.44704,)),
        ("m/s", "metre/second", (1.0,)),
        ("km²|km2|square kilometres|square kilometers|quadratkilometer|kilomètres carrés", "square metre", (1e6,)),
        ("m²|m2|square metres|square meters|quadratmeter|mètres carrés", "square metre", (1.0,)),
        ("ha|hectare|hectares|hektar", "square metre", (1e4,)),
        ("acre|acres", "square metre", (4046.8564,)),
        ("ml|millilitre|millilitres|milliliter|milliliters", "litre", (1e-3,)),
        ("l|litre|litres|liter|liters|litro|litros|litri", "litre", (1.0,)),
        ("mg|milligram|milligrams|milligramm", "gram", (1e-3,)),
        ("g|gram|grams|gramm|gramme|grammes|gramo|gramos|grammi", "gram", (1.0,)),
        ("kg|kilogram|kilograms|kilogramm|kilogrammes|kilo|kilos", "gram", (1e3,)),
        ("lb|lbs", "gram", (453.59237,)),
        ("t|tonne|tonnes|tonnen|tons|ton", "gram", (1e6, 907184.74)),
        ("°c|degrees celsius|grad celsius|degrés celsius|celsius", "°C", (1.0,)),
        ("°f|degrees fahrenheit|fahrenheit", "°F", (1.0,)),
        *_prefixed("w|watt|watts", "watt"),
        *_prefixed("wh|watt hours|wattstunden", "watt hour"),
        *_prefixed("hz|hertz", "hertz"),
        ("v|volt|volts", "volt", (1.0,)),
        ("kv|kilovolt|kilovolts", "volt", (1e3,)),
        ("$|us$|usd|dollar|dollars|dólares|dollari", "USD", (1.0,)),
        ("€|eur|euro|euros", "EUR", (1.0,)),
        ("£|gbp|pound|pounds|pfund", "GBP", (1.0,)),
        ("¥|jpy|yen", "JPY", (1.0,)),
        ("cent|cents|pence|centimes|céntimos", "cent", (1.0,)),
        ("chf|franken|francs|franc", "CHF", (1.0,)),
        ("₹|inr|rupees|rupee", "INR", (1.0,)),
        ("cny|rmb|yuan", "CNY", (1.0,)),
    ]
)
"""A name in small letters → the base unit, and the factors to it."""

MONEY: Final = frozenset(("USD", "EUR", "GBP", "JPY", "CHF", "INR", "CNY"))
LONGEST_UNIT: Final = 3
"""Words in the longest name of a unit."""

SCALES: Final = {
    name: factor
    for names, factor in [
        ("thousand|thousands|tausend|mille|mil|mila|duizend|tsd", 1e3),
        ("million|millions|mn|mio|millionen|millón|millones|milione|milioni|milhão|milhões|miljoen", 1e6),
        ("billion|billions|bn|mrd|milliarde|milliarden|milliard|milliards|miliardi|miliardo|miljard", 1e9),
        ("trillion|trillions|tn", 1e12),
        ("dozen|dutzend|douzaine|docena|dozzina", 12.0),
        ("hundred|hundert|honderd", 1e2),
    ]
    for name in names.split("|")
}
MONEY_SUFFIXES: Final = {"k": 1e3, "m": 1e6, "b": 1e9, "bn": 1e9, "t": 1e12}
"""Letters that scale an amount of money: $5m are no metres."""

MONTHS: Final = {
    name: number
    for number, names in enumerate(
        (
            "january|jan|januar|janvier|enero|gennaio|janeiro|januari",
            "february|feb|februar|février|febrero|febbraio|fevereiro|februari",
            "march|mar|märz|mars|marzo|março|maart",
            "april|apr|avril|abril|aprile",
            "may|mai|mayo|maggio|maio|mei",
            "june|jun|juni|juin|junio|giugno|junho",
            "july|jul|juli|juillet|julio|luglio|julho",
            "august|aug|août|agosto|augustus",
            "september|sep|sept|septembre|septiembre|settembre|setembro",
            "october|oct|oktober|octobre|octubre|ottobre|outubro",
            "november|nov|novembre|noviembre|novembro",
            "december|dec|dezember|décembre|diciembre|dicembre|dezembro",
        ),
        start=1,
    )
    for name in names.split("|")
}

_COUNTED: Final = {
    "en": """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
    seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety""",
    "de": """null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn
    siebzehn achtzehn neunzehn zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig""",
    "fr": """zéro - deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize dix-sept
    dix-huit dix-neuf vingt trente quarante cinquante soixante soixante-dix quatre-vingts quatre-vingt-dix""",
    "es": """cero - dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciséis diecisiete
    dieciocho diecinueve veinte treinta cuarenta cincuenta sesenta setenta ochenta noventa""",
    "it": """zero - due tre quattro cinque sei sette otto nove dieci undici dodici tredici quattordici quindici sedici
    diciassette diciotto diciannove venti trenta quaranta cinquanta sessanta settanta ottanta novanta""",
    "pt": """zero - dois três quatro cinco seis sete oito nove dez onze doze treze catorze quinze dezesseis dezessete
    dezoito dezenove vinte trinta quarenta cinquenta sessenta setenta oitenta noventa""",
    "nl": """nul - twee drie vier vijf zes zeven acht negen tien elf twaalf dertien veertien vijftien zestien zeventien
    achttien negentien twintig dertig veertig vijftig zestig zeventig tachtig negentig""",
}
"""Words for 0 to 20 and for the tens, in order; a dash for a word that is an article as well."""
_VALUES: Final = (*range(21), *range(30, 100, 10))

NUMBER_WORDS: Final = {
    language: {word: float(value) for word, value in zip(words.split(), _VALUES, strict=True) if word != "-"}
    for language, words in _COUNTED.items()
}
"""Language → word → number."""

SHARES: Final = frozenset(
    """half halves third thirds quarter quarters hälfte drittel viertel moitié tiers quart mitad tercio tercios cuarto
    metà terzo metade terço helft derde kwart""".split()
)
"""Words for a part of a whole, which a claim may give in per cent."""
