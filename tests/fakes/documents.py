"""Documents made by hand, for tests of reading."""


def pdf_of(objects: list[bytes]) -> bytes:
    """A PDF file of numbered objects; the first one is the catalogue."""
    body, places = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        places.append(len(body))
        body += b"%d 0 obj\n" % number + content + b"\nendobj\n"
    table = b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    table += b"".join(b"%010d 00000 n \n" % place for place in places)
    trailer = b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, len(body))
    return body + table + trailer


def one_page_pdf(words: str, stream: bytes | None = None, filters: bytes = b"") -> bytes:
    """A PDF of one page with one line of text, or with a content stream of your own."""
    content = stream if stream is not None else b"BT /F1 12 Tf 72 700 Td (" + words.encode() + b") Tj ET"
    return pdf_of([
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        b"<<" + filters + b"/Length %d>>stream\n" % len(content) + content + b"\nendstream",
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ])  # fmt: skip
