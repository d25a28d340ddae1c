"""Which files of a folder may be documents."""

from pathlib import Path

from providers.search.corpus.scanning import scan_folder


def test_raw_pages_of_sphinx_are_no_documents(tmp_path: Path) -> None:
    """Beside the pages that were made of them they say everything twice; a folder of that name alone is read."""
    made, other = tmp_path / "made", tmp_path / "other"
    for folder in (made, other):
        (folder / "_sources").mkdir(parents=True)
        (folder / "_sources" / "page.rst.txt").write_text("Page\n====\n\nThe house is old.\n")
    (made / "objects.inv").write_bytes(b"# Sphinx inventory")
    (made / "page.html").write_text("<p>The house is old.</p>")
    found = {file.path for file in scan_folder(tmp_path, lambda path: True).files}
    assert found == {"made/objects.inv", "made/page.html", "other/_sources/page.rst.txt"}
