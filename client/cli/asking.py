"""From the options of `run` and `start` to a request, with the folder behind `--corpus`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from client.cli.exit_codes import ExitCode
from client.cli.failures import CommandError, quoted
from client.cli.folders import exists, folder_named, usable_folder
from client.cli.requests import build_request, merged, read_request_file, settings_of
from client.cli.run_options import RunOptions
from contracts.identity import short_hash
from contracts.request import EngineChoice, ResearchRequest
from workers.settings.loading import Settings

NAME_CHARACTERS = 48


@dataclass(frozen=True)
class Asked:
    """A valid request, and the folder to register before it can be used."""

    request: ResearchRequest
    folder: Path | None = None


def ask(options: RunOptions, settings: Settings, registered: dict[str, Path]) -> Asked:
    """The request of the options over the file. Raises `CommandError` for anything that cannot be used."""
    values: dict[str, Any] = {} if options.request_file is None else read_request_file(options.request_file)
    values = merged(values, _flags(options))
    values = merged(values, settings_of(options.assignments))
    if options.model is not None and values.get("engine") in (None, EngineChoice.AUTO.value):
        values["engine"] = EngineChoice.MODEL.value  # a model that is named is meant: no report without it
    folder = None
    if options.corpus is not None:
        if settings.uses_cluster:
            name = corpus_of_cluster(options.corpus)
        else:
            name, folder = find_corpus(options.corpus, registered)
        values["corpus"] = name
    request = build_request(values)
    named = request.corpus
    if folder is None and named is not None and not settings.uses_cluster and named not in registered:
        raise CommandError(unknown_corpus(named, registered))
    if named is None and request.web is False:
        message = "nothing to search: neither the web nor a folder (--corpus ./folder)"
        raise CommandError(message, ExitCode.NOTHING_TO_WORK_WITH)
    return Asked(request, folder)


def find_corpus(given: str, registered: dict[str, Path]) -> tuple[str, Path | None]:
    """Name, and the folder to register for it: none for a name that is known.

    Raises `CommandError`, also for a name that means two folders: the wrong one would be searched without a word.
    """
    known = None if looks_like_path(given) else registered.get(given)
    if known is None:
        if given.strip() and not exists(given):
            raise CommandError(unknown_corpus(given, registered))
        folder = folder_named(given)
        return name_of_folder(folder, registered), folder
    beside = Path(given).resolve()
    if not beside.is_dir() or beside == known.resolve():
        if not known.is_dir():
            raise CommandError(
                f"the folder of the corpus {given} is gone: {known}; "
                f"name another folder, or forget it with: research corpus remove {given}"
            )
        return given, None
    if known.is_dir():
        raise CommandError(f"{given} is a corpus of another folder and a folder here: write {known} or ./{given}")
    return name_of_folder(beside, registered), usable_folder(beside)


def corpus_of_cluster(given: str) -> str:
    """A name that the cluster's workers may know. Raises `CommandError`."""
    if looks_like_path(given):
        raise CommandError("a cluster's workers do not see your folders: name a corpus of their configuration")
    return given


def looks_like_path(given: str) -> bool:
    """Whether a folder is meant, whatever corpora there are."""
    return "/" in given or given.startswith((".", "~"))


def name_of_folder(folder: Path, registered: dict[str, Path]) -> str:
    """A stable name for a folder: the one it has, else its own, with a hash when that means another folder."""
    for name, path in registered.items():
        if path == folder:
            return name
    allowed = "".join(sign if sign.isascii() and (sign.isalnum() or sign in "._-") else "-" for sign in folder.name)
    plain = allowed.strip("._-")[:NAME_CHARACTERS] or "corpus"
    return plain if plain not in registered else f"{plain}-{short_hash(str(folder))[:6]}"


def unknown_corpus(given: str, registered: dict[str, Path]) -> str:
    """What to say when neither a folder nor a corpus is called so."""
    known = f"known corpora: {', '.join(sorted(registered))}" if registered else "no corpus is registered yet"
    return f"there is no folder and no corpus {quoted(given)}; {known}"


def _flags(options: RunOptions) -> dict[str, Any]:
    given = {
        "query": options.question,
        "strategy": options.strategy,
        "depth": options.depth,
        "engine": options.engine,
        "web": True if options.web else None,
        "models": None if options.model is None else dict.fromkeys(("simple", "analytical", "complex"), options.model),
    }
    return {name: value for name, value in given.items() if value is not None}
