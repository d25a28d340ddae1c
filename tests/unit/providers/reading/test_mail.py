"""Mails as a mail program shows them, and texts in the character sets of the world."""

import json
from email.message import EmailMessage

import pytest

from providers.errors import SourceUnreadable
from providers.reading.character_sets import decode
from providers.reading.documents import extract
from tests.fakes.office_documents import chapter, epub, mail

TEXTS = {
    "iso-2022-jp": "会費は三月に支払う。", "euc-jp": "会費は三月に支払う。", "shift_jis": "会費は三月に支払う。",
    "gb2312": "会费在三月支付。", "gb18030": "会费在三月支付。", "big5": "會費在三月支付。", "euc-kr": "회비는 삼월에 낸다.",
    "iso-2022-kr": "회비는 삼월에 낸다.", "hz-gb-2312": "会费在三月支付。", "koi8-r": "Взнос в марте.", "windows-1256": "رسوم في مارس",
    "tis-620": "ค่าสมาชิกเดือนมีนาคม", "utf-7": "Fee: 40 £ für alle + mehr", "windows-1252": "It’s €40 – no more.", "utf-8": "Grüße",
}  # fmt: skip
"""A sentence in each declared character set."""


def read(message: EmailMessage | bytes) -> str:
    return extract(bytes(message), "a.eml").text


def body(text: str) -> str:
    return text.rpartition("Date: Fri, 17 May 2024 09:30:00 +0200")[2].strip()


def raw_mail(charset: str, encoding: str, content: bytes, subject: str = "Backups") -> bytes:
    return (
        f"Subject: {subject}\nFrom: ada@site.test\nDate: Fri, 17 May 2024 09:30:00 +0200\nMIME-Version: 1.0\n"
        f'Content-Type: text/plain; charset="{charset}"\nContent-Transfer-Encoding: {encoding}\n\n'
    ).encode() + content


@pytest.mark.parametrize("charset", TEXTS)
def test_a_mail_is_read_in_its_declared_character_set(charset: str) -> None:
    """Whether its bytes are written as they are or in base64, and also where they would fit another set."""
    import base64

    content = TEXTS[charset].encode(charset)
    assert body(read(raw_mail(charset, "8bit", content))) == TEXTS[charset]
    assert body(read(raw_mail(charset, "base64", base64.encodebytes(content)))) == TEXTS[charset]


@pytest.mark.parametrize("text", ["Это сообщение имеет неправильную кодировку.", "Взнос — в марте. Pay by card."])
def test_a_mail_that_declares_ascii_falsely_is_read_in_the_set_that_fits(text: str) -> None:
    """Old programs declare it whatever they send."""
    assert body(read(raw_mail("us-ascii", "8bit", text.encode("cp1251")))) == text


def test_a_western_mail_that_declares_an_eastern_set_is_read_in_a_western_one() -> None:
    """An apostrophe of Windows and the letter behind it would be a Chinese sign."""
    text = "You haven’t paid: it’s 40 euro."
    assert body(read(raw_mail("gb2312", "8bit", text.encode("cp1252")))) == text


@pytest.mark.parametrize(
    ("text", "charset"),
    [
        ("Dear all, the notes of the server are: 这是服务器返回的提示信息，到下列地址的信件投递失败。 Regards, Anna", "gb18030"),
        ("Hello Ivan, please have a look at this: Сообщение доставлено вчера вечером. Best regards to all", "koi8-r"),
        ("Hello team, here is the text that we got: 회비는 삼월에 지불합니다. Best regards", "euc-kr"),
    ],
)  # fmt: skip
def test_words_of_another_script_between_english_ones_are_recognised(text: str, charset: str) -> None:
    """Only words with letters beyond ASCII count for what the character set is."""
    assert decode(text.encode(charset), charset=None) == text


def test_a_header_that_is_not_encoded_is_in_the_set_of_the_text() -> None:
    """A few letters do not say what set they are of."""
    raw = raw_mail("gb2312", "8bit", "邮件无法发送到您指定的地址中。".encode("gb2312"), "@").replace(
        b"@", "邮件传输失败！".encode("gb2312"), 1
    )
    assert extract(raw, "a.eml").title == "邮件传输失败！"
    assert extract(raw_mail("gb2312", "8bit", "会费".encode("gb2312"), "café"), "a.eml").title == "café"


@pytest.mark.parametrize("stated", ["multipart/mixed", 'multipart/mixed; boundary="another"', "multipart/alternative"])
def test_parts_whose_boundary_is_not_the_stated_one_are_found(stated: str) -> None:
    """Mails are cut and forwarded by hand; the lines that divide them are there."""
    parts = "--b1\nContent-Type: text/html\nContent-Transfer-Encoding: base64\n\nPHA+VGhlIHJlZ2F0dGEgc3RhcnRzLjwvcD4=\n--b1--\n"
    raw = f"Subject: A\nMIME-Version: 1.0\nContent-Type: {stated}\n\nPreamble\n{parts}".encode()
    assert read(raw).split("\n\n") == ["Subject: A", "The regatta starts."]


def test_a_damaged_mail_is_read_as_far_as_it_goes() -> None:
    """Bytes of zero, and letters in a form of UTF-7 that no program writes."""
    assert read(b"Subject: A\n\nThe fee\0 is 40 euro.\0") == "Subject: A\n\nThe fee is 40 euro."
    assert body(read(raw_mail("utf-7", "7bit", b"Key +AD4AA- of the day"))) == "Key +AD4AA- of the day"


def test_headers_are_read_as_they_are_written() -> None:
    """Encoded words are decoded in their set; an address that is also a name stays; a broken header is not lost."""
    subject = "=?iso-2022-jp?B?GyRCMnFIcRsoQg==?= =?utf-8?q?_caf=C3=A9?="
    found = extract(raw_mail("utf-8", "8bit", b"Words.", subject), "a.eml")
    assert found.title == "会費 café"
    odd = b"Subject: =?gb2312?B?!!?=\nFrom: ada@site.test <bob@site.test>\n\nWords."
    assert read(odd).split("\n\n") == ["Subject: =?gb2312?B?!!?=", "From: ada@site.test <bob@site.test>", "Words."]


def test_the_better_alternative_of_a_mail_is_read() -> None:
    """HTML, which programs show, also with its pictures; plain text where there is no HTML."""
    message = mail("This mail needs an HTML viewer.")
    message.add_alternative("<p>The <b>regatta</b> starts at eleven.</p>", subtype="html")
    assert body(read(message)) == "The regatta starts at eleven."
    message.get_payload()[1].add_related(b"GIF8", "image", "gif", cid="<a>")
    assert body(read(message)) == "The regatta starts at eleven."
    plain = mail("Plain words.")
    plain.add_alternative("BEGIN:VCALENDAR", subtype="calendar")
    assert body(read(plain)) == "Plain words."


def test_attachments_are_named_and_not_read() -> None:
    """A mail that has nothing else keeps its subject and sender; a text that is attached is no text of the mail."""
    message = EmailMessage()
    message["Subject"], message["From"], message["Date"] = "Bill", "ada@site.test", "Fri, 17 May 2024 09:30:00 +0200"
    message.add_attachment(b"%PDF-1.4 quokka", "application", "pdf", filename="bill.pdf")
    message.add_attachment("quokka", filename="notes.txt")
    found = extract(bytes(message), "a.eml")
    assert found.text == "Subject: Bill\n\nFrom: ada@site.test\n\nDate: Fri, 17 May 2024 09:30:00 +0200"
    assert found.warnings == ["2 attachments not read"]


def test_a_mail_inside_keeps_its_subject_and_sender() -> None:
    """Who forwarded what from whom is part of the text."""
    inner = mail("It is closed in May.")
    inner.replace_header("Subject", "The lock")
    outer = mail("See below.")
    outer.add_attachment(inner)
    found = read(outer)
    assert found.startswith("Subject: Backups\n\nFrom: Ada <ada@site.test>\n\nTo: team@site.test")
    assert (
        found.index("See below.") < found.index("Subject: The lock\n\nFrom: Ada") < found.index("It is closed in May.")
    )


PARTS = "Subject: x\nFrom: a@site.test\nMIME-Version: 1.0\nContent-Type: multipart/{}; boundary=B{}\n\n{}--B--\n"


def mail_of(kind: str, *parts: str, options: str = "") -> str:
    """The text of a mail of parts, each written as its headers and its content."""
    found = read(PARTS.format(kind, options, "".join(f"--B\n{part}\n" for part in parts)).encode())
    return found.removeprefix("Subject: x\n\nFrom: a@site.test").strip()


def test_each_part_that_is_shown_is_read_and_no_other() -> None:
    """An empty alternative, a root that is not first, a mail in base64, text of another type, signatures."""
    html, plain = "Content-Type: text/html\n\n<p>{}</p>", "Content-Type: text/plain\n\n{}"
    assert mail_of("alternative", plain.format("Plain."), html.format(" ")) == "Plain."
    picture = "Content-Type: image/png\nContent-ID: <1>\n\nAAAA"
    root = "Content-Type: text/html\nContent-ID: <r>\n\n<p>Root.</p>"
    assert mail_of("related", picture, root, options='; start="<r>"') == "Root."
    inner = "Content-Type: message/rfc822\nContent-Transfer-Encoding: base64\n\nU3ViamVjdDogaW4KCldvcmRzLgo="
    assert mail_of("mixed", inner) == "Subject: in\n\nWords."
    assert mail_of("mixed", plain.format("Seen."), "Content-Type: text/csv\n\na,b") == "Seen.\n\na,b"
    assert mail_of("mixed", "Content-Type: text/enriched\n\n<bold>Big</bold> words") == "Big words"
    signed = PARTS.format(
        "signed", "", f"--B\n{plain.format('Signed.')}\n--B\nContent-Type: application/pgp-signature\n\nx\n"
    )
    assert extract(signed.encode(), "a.eml").warnings == []
    broken = b"Subject: x\nFrom: a@site.test\nContent-Type: multipart/mixed\n\nJust text.\n"
    assert read(broken).endswith("Just text.")


def test_lines_that_a_mail_program_broke_are_joined() -> None:
    """In flowed text a line that ends with a space goes on; quoted lines join only quoted ones."""
    head = b"Subject: x\nFrom: a@site.test\nContent-Type: text/plain; format=flowed\n\n"
    assert read(head + b"The fee is \ndue in March.\nNew line.\n> is it \n> so?\n").endswith(
        "The fee is due in March.\nNew line.\n\nis it so?"
    )


def test_a_file_in_the_text_of_a_mail_is_an_attachment() -> None:
    """Its signs (uuencode) are no words of the mail."""
    found = extract(b"Subject: x\nFrom: a@site.test\n\nBelow.\nbegin 644 a.txt\n#0V%T\n`\nend\nBye.\n", "a.eml")
    assert found.text.endswith("Below.\n\nBye.")
    assert found.warnings == ["1 attachment not read"]


def test_a_mail_of_thousands_of_parts_is_refused() -> None:
    """The parser nests as deep as the parts do."""
    nested = b"Subject: x\nContent-Type: message/rfc822\n\n" * 600 + b"Subject: y\n\nWords."
    with pytest.raises(SourceUnreadable) as caught:
        read(nested)
    assert caught.value.kind == "too_large"


@pytest.mark.parametrize(
    ("text", "charset"),
    [
        ("It’s the members’ duty to pay. The fee is €40 – no more.", "cp1252"),
        ("Fee: 40 €", "cp1252"),
        ("L’été, les élèves reçoivent une réduction de 20 € ; c’est déjà décidé.", "cp1252"),
        ("El año próximo la cuota será de 40 €. ¿Quién paga? Mañana.", "cp1252"),
        ("A taxa não é devolvida; as crianças não pagam.", "cp1252"),
        ("Avgiften är 40 kronor för båtar över åtta meter.", "cp1252"),
        ("Größe und Ähnliches über München – die Gebühr beträgt 40 €.", "cp1252"),
        ("Þú greiðir í september; það er ódýrt.", "cp1252"),
        ("Příliš žluťoučký kůň úpěl ďábelské ódy.", "cp1250"),
        ("Opłata wynosi czterdzieści złotych. Członkowie płacą w październiku.", "cp1250"),
        ("Az őszi idényben fűtött terem áll rendelkezésre.", "cp1250"),
        ("Članarina iznosi četrdeset eura i plaća se u ožujku; žene plaćaju pola.", "cp1250"),
        ("Üyelik ücreti kırk liradır. Şubat ayında ödeme yapılır, değişmez.", "cp1254"),
        ("Nario mokestis yra keturiasdešimt eurų. Nariai moka kovo mėnesį už metus į priekį.", "cp1257"),
        ("Плата составляет сорок рублей. Члены платят в марте.", "cp1251"),
        ("Η συνδρομή είναι σαράντα ευρώ. Τα μέλη πληρώνουν τον Μάρτιο.", "cp1253"),
        ("会費は三月に支払う。水門は九時に閉まります。", "euc_jp"),
        ("会費は三月に支払う。水門は九時に閉まります。", "cp932"),
        ("会費は三月に支払う。", "iso2022_jp"),
        ("会费在三月支付。水闸九点关闭。", "gb18030"),
        ("Příliš žluťoučký kůň úpěl ďábelské ódy.", "iso8859-2"),
        ("Opłata za łódź: źródło, żółty, część, święto.", "iso8859-2"),
        ("Die Gebühr für größere Boote beträgt 40 €.", "iso8859-15"),
        ("Die Gebühr für größere Boote, täglich.", "cp850"),
        ("Le loyer d’été s’élève à 40 francs, où êtes-vous ?", "mac_roman"),
        ("Взнос платят в марте.", "koi8-r"),
        ("Внесок платять у березні. Її ціна є сорок гривень.", "koi8-u"),
        ("Взнос платят в марте. Плата за лодку.", "cp866"),
        ("Взнос платят в марте. Плата за лодку.", "iso8859-5"),
        ("דמי חבר משולמים במרץ.", "cp1255"),
        ("تدفع الشركة رسوم الصيانة في مارس.", "iso8859-6"),
        ("ค่าสมาชิกจ่ายในเดือนมีนาคม", "cp874"),
        ("It’s €40.\nNo more.", "utf-16-le"),
        ("Взнос платят в марте.", "utf-16-be"),
        ("水闸晚上十点关闭。\n价格是 40 欧元。\n", "utf-16-le"),
    ],
)  # fmt: skip
def test_an_undeclared_character_set_is_recognised(text: str, charset: str) -> None:
    """Western unless the letters are those of another alphabet: signs within words are no words of anybody."""
    assert decode(text.encode(charset), charset=None) == text


def test_emphasis_leaves_no_marks_in_books_tables_and_notebooks() -> None:
    """Formatting is not words, and the stars of a table of values are."""
    book = epub({"a.xhtml": chapter("<p>It costs 41,300<i> euro</i>, in<b>deed</b> so.</p>")})
    assert extract(book, "x").text == "It costs 41,300 euro, indeed so."
    assert extract(b"Grade;Note\n*A*;_x_ | y\n", "v.csv").text == "| Grade | Note |\n| --- | --- |\n| *A* | _x_ \\| y |"
    cells = {"nbformat": 3, "worksheets": [{"cells": [
        {"cell_type": "heading", "level": 2, "source": ["Head"]}, {"cell_type": "markdown", "source": ["in**deed**", "so"]},
        {"cell_type": "code", "input": "1/0", "outputs": [{"ename": "ZeroDivisionError", "evalue": "by zero"}]},
    ]}]}  # fmt: skip
    found = extract(json.dumps(cells).encode(), "x.ipynb").text
    assert found == "## Head\n\nindeed\nso\n\n```\n1/0\n```\n\n```\nZeroDivisionError: by zero\n```"


def test_a_book_is_recognised_wherever_it_states_its_type() -> None:
    """Some programs write the media type as the last part of the archive."""
    import zipfile
    from io import BytesIO

    from tests.fakes.office_documents import archive_of

    with zipfile.ZipFile(BytesIO(epub({"a.xhtml": chapter("<p>Words.</p>")}))) as archive:
        parts = {name: archive.read(name) for name in reversed(archive.namelist())}
    assert extract(archive_of(parts), "x").text == "Words."


def test_books_keep_lists_terms_notes_and_formulas() -> None:
    """A chapter is read as a page: numbers, terms and captions stay, marks of notes and of printed pages go."""
    body = (
        "<ol start='3'><li>three</li></ol><dl><dt>Term</dt><dd>What it is.</dd></dl><p>Use <code>a_b</code> here.</p>"
        "<p>Noted<a epub:type='noteref'>1</a> on<span epub:type='pagebreak'>12</span> it.</p>"
        "<table><caption>Fees</caption><tr><th>a</th><th>b</th></tr></table>"
    )
    raw = epub({"a.xhtml": chapter(body).replace("<html ", "<html xmlns:epub='http://www.idpf.org/2007/ops' ")})
    assert extract(raw, "x").text == (
        "3. three\n\nTerm\nWhat it is.\n\nUse `a_b` here.\n\nNoted on it.\n\nFees\n\n| a | b |\n| --- | --- |"
    )
