"""How good are short answers without a model? Short questions, as people ask first, to real collections.

    python -m benchmarks.short_answers [--only NAME …] [--collection NAME=FOLDER …] [--home DIR]
                                       [--split development|held_out|half_a|half_b|half_c|half_d|half_e]
                                       [--verbose] [--check]

An answer is right if the section "Short answer" holds what the question's pattern says. One that is not right, of a run
that calls itself completed, is confidently wrong. An unanswerable question is admitted by another outcome, or without a
short answer. `--check` runs nothing: it tells whether the patterns stand in the collections, near their subjects, and
whether what is unanswerable is absent. README.md says which packages to install.
"""

import argparse
import asyncio
import json
import multiprocessing
import platform
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Final

from benchmarks.answering import Answer, answer, plain

from contracts.vocabulary import Outcome
from providers.isolation.pool import SubprocessPool
from providers.search.corpus import CorpusLibrary
from providers.search.corpus.index import open_index

QUESTIONS: Final = Path(__file__).with_name("short_questions")
SPLITS: Final = ("development", "held_out")
HALVES: Final = ("half_a", "half_b", "half_c", "half_d", "half_e")
"""Questions to other collections, two halves at a time: who tunes the rules sees `half_a` and `half_c` only; the other
two, `half_b` and `half_d`, are asked at the end. `half_e` has no other half: it is asked before and after a change."""
WITHIN: Final = 400
"""Characters between a subject and what is said of it, where a question says nothing else."""
PROCESSES: Final = 2


@dataclass(frozen=True)
class Collection:
    """Documents that questions are asked to."""

    name: str
    kind: str
    language: str
    folder: Path
    include: tuple[str, ...] = ()
    package: str = ""
    """Debian package that holds it; empty for texts of ours."""


COLLECTIONS: Final = {
    each.name: each
    for each in (
        Collection(
            "postgresql", "manual", "en", Path("/usr/share/doc/postgresql-doc-15/html"), (), "postgresql-doc-15"
        ),
        Collection("sqlite", "manual", "en", Path("/usr/share/doc/sqlite3"), (), "sqlite3-doc"),
        Collection("git", "manual", "en", Path("/usr/share/doc/git-doc"), (), "git-doc"),
        Collection(
            "debian-policy",
            "policy",
            "en",
            Path("/usr/share/doc/debian-policy/policy.html"),
            ("*.html",),
            "debian-policy",
        ),
        Collection(
            "developers-reference-de",
            "handbook",
            "de",
            Path("/usr/share/developers-reference/de"),
            ("*.html",),
            "developers-reference-de",
        ),
        Collection(
            "debian-handbook-fr",
            "handbook",
            "fr",
            Path("/usr/share/doc/debian-handbook/html/fr-FR"),
            ("*.html",),
            "debian-handbook",
        ),
        Collection(
            "debian-reference-es",
            "handbook",
            "es",
            Path("/usr/share/debian-reference"),
            ("*.es.html",),
            "debian-reference-es",
        ),
        Collection("apache", "manual", "en", Path("/usr/share/doc/apache2-doc/manual/en"), (), "apache2-doc"),
        Collection("bash", "manual", "en", Path("/usr/share/doc/bash"), ("bashref.html",), "bash-doc"),
        Collection("postfix", "manual", "en", Path("/usr/share/doc/postfix/html"), (), "postfix-doc"),
        Collection(
            "django",
            "manual",
            "en",
            Path("/usr/share/doc/python-django-doc/html"),
            tuple(f"{part}/*.html" for part in ("faq", "howto", "intro", "misc", "ref", "topics")),
            "python-django-doc",
        ),
        Collection("varnish", "manual", "en", Path("/usr/share/doc/varnish/html"), ("*.html",), "varnish-doc"),
        Collection("debian-faq", "questions", "en", Path("/usr/share/doc/debian/FAQ"), ("*.en.html",), "debian-faq"),
        Collection(
            "debian-faq-it", "questions", "it", Path("/usr/share/doc/debian/FAQ/it"), ("*.html",), "debian-faq-it"
        ),
        Collection(
            "installation-guide-pt",
            "handbook",
            "pt",
            Path("/usr/share/doc/installation-guide-amd64/pt"),
            (),
            "installation-guide-amd64",
        ),
        Collection(
            "png-guide",
            "book",
            "en",
            Path("/usr/share/doc/png-definitive-guide/html"),
            ("*.html",),
            "png-definitive-guide",
        ),
        Collection(
            "shorewall",
            "articles",
            "en",
            Path("/usr/share/doc/shorewall-doc/html"),
            ("*[!_]??.htm*",),
            "shorewall-doc",
        ),
        Collection("ntpsec", "manual", "en", Path("/usr/share/doc/ntpsec-doc/html"), ("*.html",), "ntpsec-doc"),
        Collection(
            "debian-history-de",
            "articles",
            "de",
            Path("/usr/share/doc/debian-history/docs"),
            ("*.de.html",),
            "debian-history",
        ),
        Collection(
            "securing-debian-de",
            "handbook",
            "de",
            Path("/usr/share/doc/harden-doc/html/de-DE"),
            ("*.html",),
            "harden-doc",
        ),
        Collection("gimp-it", "handbook", "it", Path("/usr/share/gimp/2.0/help/it"), ("*.html",), "gimp-help-it"),
        Collection(
            "libreoffice-nl",
            "handbook",
            "nl",
            Path("/usr/share/libreoffice/help/nl/text"),
            ("scalc/*", "swriter/*", "shared/0?/*", "shared/guide/*", "shared/optionen/*"),
            "libreoffice-help-nl",
        ),
        Collection("borgbackup", "manual", "en", Path("/usr/share/doc/borgbackup/html"), (), "borgbackup-doc"),
        Collection("nut", "manual, questions", "en", Path("/usr/share/doc/nut-doc/html"), (), "nut-doc"),
        Collection("aptitude-fr", "manual", "fr", Path("/usr/share/doc/aptitude/html/fr"), (), "aptitude-doc-fr"),
        Collection(
            "weechat-de",
            "manual, questions",
            "de",
            Path("/usr/share/doc/weechat-doc/html"),
            ("*.de.html",),
            "weechat-doc",
        ),
        Collection("halvern", "articles", "en", QUESTIONS / "articles" / "halvern"),
        Collection("lindenau", "articles", "de", QUESTIONS / "articles" / "lindenau"),
    )
}


@dataclass(frozen=True)
class Question:
    """One question, with what tells a right answer from a wrong one."""

    id: str
    language: str
    type: str
    question: str
    answer: tuple[str, ...] = ()
    """Patterns that a right answer holds, all of them; none for a question that the collection does not answer."""
    absent: str = ""
    """Pattern that the collection does not hold, near the subject if one is given."""
    near: str = ""
    """Pattern of the subject."""
    within: int = WITHIN
    """Characters before and after the subject that belong to it."""

    @property
    def held_out(self) -> bool:
        """Whether it is kept from those who tune: a third is, by the hash of the id."""
        return int(sha256(self.id.encode()).hexdigest(), 16) % 3 == 0

    def is_right(self, short: str) -> bool:
        """Whether a plain short answer holds what it must."""
        return bool(self.answer) and all(re.search(pattern, short, re.IGNORECASE) for pattern in self.answer)

    def holds(self, text: str) -> bool:
        """Whether a plain text has the patterns, whichever they are, near one another and near the subject."""
        first, *others = self.answer or (self.absent,)
        wanted = [re.compile(pattern, re.IGNORECASE) for pattern in (*others, self.near)]
        return any(
            all(
                pattern.search(text, max(0, found.start() - self.within), found.end() + self.within)
                for pattern in wanted
            )
            for found in re.finditer(first, text, re.IGNORECASE)
        )

    def fault(self, texts: Iterable[str]) -> str:
        """What is wrong with the question, given all plain texts of its collection; empty if nothing is."""
        found = any(self.holds(text) for text in texts)
        if self.answer:
            return "" if found else "the answer does not stand near the subject"
        return "what should be absent is there" if found else ""


@dataclass
class Tally:
    """Counts over questions of one group."""

    asked: int = 0
    right: int = 0
    confidently_wrong: int = 0
    unanswerable: int = 0
    admitted: int = 0
    seconds: float = 0.0
    words: int = 0
    """Of the short answers to what can be answered."""

    def add(self, question: Question, given: Answer) -> str:
        """Count one answer; returns what is wrong with it, or nothing."""
        self.seconds += given.seconds
        completed = given.outcome is Outcome.COMPLETED
        if question.absent:
            self.unanswerable += 1
            admitted = not (completed and given.short)
            self.admitted += admitted
            return "" if admitted else "not admitted"
        self.asked += 1
        self.words += len(given.short.split())
        if question.is_right(given.short):
            self.right += 1
            return ""
        self.confidently_wrong += completed
        return "confidently wrong" if completed else f"no answer ({given.outcome.value})"

    def row(self) -> list[str]:
        """Its figures as words."""
        both = self.asked + self.unanswerable
        return [
            share(self.right, self.asked),
            share(self.confidently_wrong, self.asked),
            share(self.admitted, self.unanswerable),
            f"{self.words / self.asked:.0f}" if self.asked else "",
            f"{self.seconds / both:.2f} s" if both else "",
        ]


@dataclass
class Tallies:
    """Tallies by name, made when they are needed."""

    by_name: dict[str, Tally] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Tally:
        return self.by_name.setdefault(name, Tally())


def share(part: int, whole: int) -> str:
    """As a fraction and in per cent; empty where there is nothing to divide by."""
    return f"{part}/{whole} = {100 * part / whole:.0f} %" if whole else ""


def in_second_half(identity: str) -> bool:
    """Whether a question of the later collections is of the half that is not tuned on (b, d): by the hash of its id."""
    return int(sha256(identity.encode()).hexdigest(), 16) // 7 % 2 == 1


def load_questions(collection: str, split: str) -> list[Question]:
    """The questions to one collection; none where a split asks it nothing. Raises OSError, ValueError."""
    path = QUESTIONS / split / f"{collection}.json"
    entries = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    return [Question(**entry | {"answer": tuple(entry.get("answer", ()))}) for entry in entries]


def missing(collections: Iterable[Collection]) -> list[str]:
    """For each collection without a folder, what to do."""
    return [
        f"{each.name}: there is no folder {each.folder}. Install it with `apt install {each.package}`, "
        f"or name another folder with `--collection {each.name}=FOLDER`."
        for each in collections
        if not each.folder.is_dir()
    ]


async def index(home: Path, collections: Iterable[Collection]) -> dict[str, float]:
    """Index every collection; returns size of the index ÷ size of the documents, by name."""
    ratios = {}
    async with SubprocessPool(PROCESSES) as pool:
        library = CorpusLibrary(home, pool)
        for each in collections:
            definition = library.add(each.name, each.folder, include=each.include, language=each.language)
            await library.refresh(each.name)
            skipped = {file.path for file in await library.skipped(each.name)}
            names = [path for path in each.folder.rglob("*") if path.is_file()]
            places = {path.relative_to(each.folder).as_posix(): path for path in names}
            read = [path for name, path in places.items() if definition.selects(name) and name not in skipped]
            size = index_file(home, each.name).stat().st_size
            ratios[each.name] = size / sum(path.stat().st_size for path in read)
    return ratios


def index_file(home: Path, name: str) -> Path:
    """Where the library keeps an index."""
    return home / "indexes" / f"{name}.sqlite3"


def texts_of(home: Path, collection: str) -> list[str]:
    """The plain texts of an indexed collection."""
    with open_index(index_file(home, collection)) as reader:
        found = [reader.document(path=path) for path, _ in reader.hashes()]
    return [plain(document[2]) for document in found if document is not None]


def faults(home: Path, collection: str, split: str) -> list[str]:
    """What is wrong with the questions to an indexed collection."""
    texts = texts_of(home, collection)
    checked = [(question, question.fault(texts)) for question in load_questions(collection, split)]
    return [f"{question.id} {question.question}: {fault}" for question, fault in checked if fault]


def ask(home: Path, collection: str, question: Question) -> Answer:
    """Answer one question, in a process of its own or not."""

    async def work() -> Answer:
        async with SubprocessPool(1) as pool:
            return await answer(CorpusLibrary(home, pool), collection, question.question)

    return asyncio.run(work())


def answers(home: Path, questions: Sequence[tuple[str, Question]]) -> Iterator[Answer]:
    """All answers, in the order of the questions."""
    with ProcessPoolExecutor(PROCESSES, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(ask, [home] * len(questions), *zip(*questions, strict=True), chunksize=1)


def versions(collections: Iterable[Collection]) -> str:
    """Which versions of packages the figures are of, as far as the machine tells."""
    status = Path("/var/lib/dpkg/status")
    if not status.exists():
        return ""
    known = dict(re.findall(r"^Package: (\S+)$.*?^Version: (\S+)$", status.read_text(), re.MULTILINE | re.DOTALL))
    return ", ".join(f"{each.package} {known[each.package]}" for each in collections if each.package in known)


def report(home: Path, collections: Sequence[Collection], split: str, *, verbose: bool) -> None:
    """Ask all questions of one split, and print its table."""
    questions = [(each.name, question) for each in collections for question in load_questions(each.name, split)]
    by_set, by_language, by_type, all_of_them = Tallies(), Tallies(), Tallies(), Tally()
    for (name, question), given in zip(questions, answers(home, questions), strict=True):
        for tally in (by_set[name], by_language[question.language], by_type[question.type]):
            tally.add(question, given)
        wrong = all_of_them.add(question, given)
        if wrong and verbose:
            print(f"  {question.id} {question.type}: {question.question} | {wrong} | {given.short}", flush=True)
    print(f"\n{split}: {len(questions)} questions\n")
    print("| group | right in the short answer | confidently wrong | admitted | words in it | processor time each |")
    print("|---|---|---|---|---|---|")
    for heading, tallies in (("set", by_set), ("language", by_language), ("type", by_type)):
        for name, tally in sorted(tallies.by_name.items()):
            print(f"| {heading} {name} | " + " | ".join(tally.row()) + " |")
    print("| all | " + " | ".join(all_of_them.row()) + " |", flush=True)


def main() -> int:
    """Check, or ask and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=COLLECTIONS, default=list(COLLECTIONS), metavar="NAME")
    parser.add_argument("--collection", action="append", default=[], metavar="NAME=FOLDER")
    parser.add_argument(
        "--split", choices=(*SPLITS, *HALVES), help="one of them; development and held_out by default, printed apart"
    )
    parser.add_argument("--home", type=Path, help="where indexes are kept; a temporary folder by default")
    parser.add_argument("--verbose", action="store_true", help="a line for every question that was not answered right")
    parser.add_argument("--check", action="store_true", help="check the questions against the collections, ask nothing")
    given = parser.parse_args()
    elsewhere = dict(each.split("=", 1) for each in given.collection)
    splits = [given.split] if given.split else SPLITS
    asked = [name for name in given.only if any(load_questions(name, split) for split in splits)]
    collections = [located(COLLECTIONS[name], elsewhere.get(name)) for name in asked]
    if instructions := missing(collections):
        print("\n".join(instructions), file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as temporary:
        home = given.home or Path(temporary)
        ratios = asyncio.run(index(home, collections))
        if given.check:
            found = [fault for each in collections for split in splits for fault in faults(home, each.name, split)]
            print("\n".join(found) or "all questions fit their collections")
            return bool(found)
        print(f"Python {platform.python_version()}; {versions(collections)}")
        print("index ÷ documents: " + ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items()))
        for split in splits:
            report(home, collections, split, verbose=given.verbose)
    return 0


def located(collection: Collection, folder: str | None) -> Collection:
    """The collection in another folder, if one is named."""
    if folder is None:
        return collection
    return Collection(
        collection.name, collection.kind, collection.language, Path(folder), collection.include, collection.package
    )


if __name__ == "__main__":
    sys.exit(main())
