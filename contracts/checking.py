"""What a checker is asked and answers: one claim with the passages that it cites, and the verdict on it.

Both are entries of a run's notebook; the workflow keeps their hashes, the numbers of claims, and counts.
"""

from contracts.base import Terse


class ShownPassage(Terse):
    """A cited passage with the words around it in the stored text of its source."""

    evidence_id: str
    title: str = ""
    before: str = ""
    quote: str
    after: str = ""

    @property
    def text(self) -> str:
        """The passage in its context, as it is stored."""
        return self.before + self.quote + self.after


class AskedClaim(Terse):
    """A claim as a checker is shown it: the sentence in plain text, its parts, and the passages that it cites."""

    fingerprint: str
    """Of its words in their order and of its passages: the same claim need not be judged twice."""
    text: str
    parts: list[str] = []
    """The assertions that it makes, where it makes several."""
    passages: list[ShownPassage] = []


class AskedEntry(Terse):
    """The claims of one text that a checker is to judge."""

    claims: list[AskedClaim] = []


class ClaimAnswer(Terse):
    """What the checker said of a claim, as far as it can be used."""

    fingerprint: str
    verdict: str
    """A verdict, or `unverified` where no usable one was given."""
    reason: str = ""
    quote: str = ""
    """The words of the passages that it rests on, as they are stored."""


class AnswersEntry(Terse):
    """What one call of a checker brought."""

    answers: list[ClaimAnswer] = []
