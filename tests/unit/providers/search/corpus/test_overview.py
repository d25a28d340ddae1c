"""What is in a corpus, in a few lines."""

from providers.search.corpus.overview import MAX_FOLDERS, DocumentTitle, overview_of, representative_titles


def document(path: str, title: str = "", language: str = "en", date: str | None = None) -> DocumentTitle:
    return DocumentTitle(path, title, language, date)


def test_folders_are_those_of_the_first_level_that_has_several() -> None:
    """A folder that has everything says nothing; the largest come first, and there are few."""
    paths = ["docs/pg/a/1.html", "docs/pg/b/2.html", "docs/sqlite/3.html", "docs/4.html"]
    folders = overview_of([document(path) for path in paths]).folders
    assert [(folder.path, folder.files) for folder in folders] == [("docs/pg", 2), ("docs/sqlite", 1)]
    assert overview_of([document("docs/1.html"), document("docs/2.html")]).folders == []
    many = overview_of([document(f"f{number}/1.html") for number in range(100)]).folders
    assert len(many) == MAX_FOLDERS


def test_titles_stand_for_the_subjects_of_all_documents() -> None:
    """Titles with words that many titles have come in, near-repetitions do not; the order is that of the documents."""
    commands = [document(f"sql/{number:02}", f"CREATE INDEX variant {number}") for number in range(4)]
    others = [
        document("a", "Streaming replication"),
        document("b", "Logical replication"),
        document("c", "Streaming backup"),
        document("d", "Streaming replication"),
        document("e", "Vacuum"),
        document("f", "Locks"),
    ]
    chosen = representative_titles([*commands, *others], 3)
    assert chosen == ["Streaming replication", "Vacuum", "CREATE INDEX variant 0"]
    named = [*others, *(document(f"x/{number}", f"Manual page {number}") for number in range(9))]
    assert len([title for title in representative_titles(named, 3) if title.startswith("Manual page")]) == 0
    assert representative_titles([document("a"), document("b", "  ")], 3) == []


def test_languages_and_dates_are_those_of_the_documents() -> None:
    """The most frequent language first; dates only of documents that have one."""
    made = overview_of(
        [
            document("a", language="de", date="2021-05-01T10:00:00Z"),
            document("b", language="de"),
            document("c", date="2019-02-28"),
        ]
    )
    assert (made.languages, made.oldest, made.newest) == (["de", "en"], "2019-02-28", "2021-05-01")
    assert overview_of([]).model_dump(exclude_defaults=True) == {}


def test_versions_are_those_of_titles_that_differ_in_numbers_alone() -> None:
    """The last one tells up to when the documents go, by its last number; chapters and few such titles tell nothing."""
    releases = [f"E.{22 - number}. Release 15.{number}" for number in range(1, 21)]
    logs = [f"Log {one} On {day}" for one, day in (("3.9.1", "2015-10-16"), ("3.40.1", "2022-12-28"))]
    logs += [f"Log 3.{number} On 2016-{number}-01" for number in range(10, 13)]
    chapters = [f"{number}.1. Introduction" for number in range(1, 30)]
    few = [f"Migration to {number}.0" for number in range(4)]
    titles = [*releases, *logs, *chapters, *few, "git(1)", "Plain"]
    made = overview_of([document(str(number), title) for number, title in enumerate(titles)])
    assert [(one.last, one.count) for one in made.series] == [
        ("E.2. Release 15.20", 20),
        ("Log 3.40.1 On 2022-12-28", 5),
    ]
