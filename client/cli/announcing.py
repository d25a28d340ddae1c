"""What a request gets on this machine, before anything is started: the same resolution that a worker makes."""

from activities.preparation import RunRefused, resolve
from client.cli.exit_codes import ExitCode
from client.cli.failures import CommandError
from contracts.request import ResearchRequest
from contracts.resolved import CorpusSnapshot, ResolvedResearch
from contracts.vocabulary import StopReason, ThinkMode
from workers.resolution_inputs import configuration_of
from workers.settings.loading import Settings

UNKNOWN_CORPUS_FILES = 1
"""What a folder holds is known once it is indexed; until then it counts as something to search."""


def outlook(request: ResearchRequest, settings: Settings) -> ResolvedResearch:
    """Engine, models, providers, limits and where text goes. Raises `CommandError` for what cannot be done here."""
    corpus = None if request.corpus is None else CorpusSnapshot(name=request.corpus, files=UNKNOWN_CORPUS_FILES)
    try:
        return resolve("not-started", request, configuration_of(settings), corpus, search_attributes=False)
    except RunRefused as refusal:
        nothing = refusal.reason is StopReason.NO_PROVIDERS
        code = ExitCode.NOTHING_TO_WORK_WITH if nothing else ExitCode.USAGE
        raise CommandError(str(refusal), code) from None


def thinks(resolved: ResolvedResearch) -> bool:
    """Whether the supervisor's think-pauses ask a model."""
    return resolved.gates.think is ThinkMode.MODEL
