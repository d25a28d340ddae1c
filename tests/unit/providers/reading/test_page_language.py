"""The language of a page: words first where they are clear, else what the page declares."""

import pytest

from providers.reading.page_language import page_language

TEXTS = {
    "en": "The worker removes the rows that are dead and makes their space free for others in the same table. ",
    "de": "Der Dienst entfernt die Zeilen, die nicht mehr gebraucht werden, und gibt ihren Platz für andere frei. ",
    "fr": "Le service retire les lignes qui ne sont plus utiles et rend leur place libre pour les autres dans la table. ",
    "es": "El servicio retira las filas que no son útiles y deja su lugar para las otras en la misma tabla del sistema. ",
    "it": "Il servizio toglie le righe che non sono più utili e lascia il loro posto per le altre nel sistema. ",
    "nl": "De dienst verwijdert de rijen die niet meer nodig zijn en geeft het geheugen vrij voor een andere tabel. ",
}


@pytest.mark.parametrize("language", TEXTS)
def test_clear_text_counts_more_than_a_template(language: str) -> None:
    """Many templates say `en` whatever stands in them."""
    assert page_language(TEXTS[language] * 5, "sv") == language
    assert page_language(TEXTS[language] * 5, None) == language


@pytest.mark.parametrize(
    ("text", "declared", "expected"),
    [
        ("Kurz gesagt.", "de", "de"),
        ("Kort sagt.", "no", "no"),
        ("Tjänsten tar bort rader som inte behövs och lämnar plats åt andra. " * 5, "sv", "sv"),
        ("Служба удаляет строки, которые больше не нужны. " * 5, None, "ru"),
        ("Служба видаляє рядки, які більше не потрібні. " * 5, "uk", "uk"),
        ("Служба удаляет строки. " * 5, "en", "ru"),
        ("不要な行を削除して、その場所を空けます。" * 5, "en", "ja"),
        ("服务会删除不再需要的行。" * 5, None, "zh"),
        ("사용하지 않는 행을 삭제합니다. " * 5, None, "ko"),
        ("x = 1\n" * 50, None, None),
        ("```\nthe of and to in is\n```\n" * 20, "fr", "fr"),
        ("", None, None),
    ],
)
def test_where_words_say_little_the_declaration_counts(text: str, declared: str | None, expected: str | None) -> None:
    """Short texts, languages that are not known by their words, scripts that many languages share, and code."""
    assert page_language(text, declared) == expected
