"""What does `verify: full` cost, and what does a checker that lies get past it? `python -m benchmarks.verification`

Three figures. Tokens: what checking and correcting add to whole runs over made-up pages whose writer embroiders every
second to fourth statement, so that much is left to check. Path: the time that they add, in replies of a model that
takes one second for each. Corruptions: labelled pairs and seeded changes of true paraphrases, judged as a run does it,
with a checker to whom everything is supported, one to whom everything but the control statement is, one that calls
supported what comes without a remark of the rules, and one that knows.
"""

import argparse
import asyncio
import json
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any, Final

from activities.roles.claim_checking import ground_verdicts, with_control
from activities.roles.grounding import RoleWork
from activities.roles.untrusted import label_key, label_of
from benchmarks.many_sources import SCENARIO, large_request, large_world
from benchmarks.truth.__main__ import paraphrases, read_pairs
from benchmarks.truth.reports import Cited, corrupt
from contracts.addresses import long_hash
from contracts.checking import AskedClaim, ShownPassage
from contracts.checking_roles import CHECKER, CheckerAnswer, CheckInput, GivenVerdict
from contracts.evidence import Verdict
from contracts.messages import PrepareRequest
from contracts.outcome import ResearchResult
from contracts.request import ResearchRequest
from contracts.state import ClockState, ResearchState, WorkState
from contracts.vocabulary import EngineKind
from providers.verification.rules import check, find_differences
from tests.fakes.messages_api import MessagesApi
from workflows.driver import Driver
from workflows.phases.checking import VERIFICATION
from workflows.run.inbox import Inbox
from workflows.run.research_run import ResearchRun
from workflows.strategies import load_strategy

REPLY_SECONDS: Final = 1.0
RUNS: Final = {
    "25 claims": large_request(25, iterations=1, depth="medium", per_query=5),
    "40 claims": large_request(40, iterations=2, depth="medium", per_query=5),
}
Says = Callable[[str, AskedClaim], str]
"""The verdict of a checker on a claim with this label."""
CHECKERS: Final[tuple[tuple[str, Says, str], ...]] = (
    ("to whom everything is supported", lambda _, __: "supported", "supported"),
    ("everything but the control", lambda _, __: "supported", "unsupported"),
    ("everything without a remark", lambda _, asked: "unsupported" if asked.remarks else "supported", "unsupported"),
    ("who knows the label", lambda label, _: label, "unsupported"),
)


# --- whole runs -------------------------------------------------------------------------------------------------------
async def run_once(folder: Path, fields: dict[str, Any], writer: str, latency: float) -> tuple[ResearchState, float]:
    """A run in this process, and the seconds that its verification took."""
    roles = {"synthesizer": writer, "checker": "believing" if writer == "rewords" else "good"}
    async with MessagesApi(SCENARIO, by_role=roles, latency=latency) as api:
        world = large_world(folder, api.base_url)
        try:
            host = world.host()
            request = ResearchRequest.model_validate({**fields, "verify": "full"})
            prepared = await host.implementations["prepare_research"](
                PrepareRequest(research_id="r-measured", request_json=request.model_dump_json(exclude_unset=True))
            )
            state = ResearchState(
                work=WorkState(resolved=prepared.resolved, resolved_entry=prepared.resolved_entry),
                clock=ClockState(started_at=host.now().isoformat()),
            )
            state.clock.clock_started_at = host.now().timestamp()
            state.clock.deadline_at = state.clock.clock_started_at + prepared.resolved.limits.deadline_seconds
            begun: list[float] = []
            run = _Timed(state, Inbox(), host)
            run.begun = begun
            await Driver(run, load_strategy("supervisor")).conduct()
        finally:
            await world.close()
    return state, begun[1] - begun[0]


class _Timed(ResearchRun):
    """A run that notes when its verification begins and ends."""

    begun: list[float]

    def note(self, kind: str, text: str, /, **data: Any) -> None:
        if data.get("phase") == VERIFICATION:
            self.begun.append(time.perf_counter())
        super().note(kind, text, **data)


async def measure_runs() -> None:
    """Tokens and path of whole runs."""
    print("| run | writer | claims | asked of a model | calls | tokens of the run | added | replies on the path |")
    print("|---|---|---|---|---|---|---|---|")
    for writer, (name, fields) in product(("rewords", "embroiders"), RUNS.items()):
        with tempfile.TemporaryDirectory() as folder:
            slow, seconds = await run_once(Path(folder), fields, writer, REPLY_SECONDS)
        with tempfile.TemporaryDirectory() as folder:
            state, idle = await run_once(Path(folder), fields, writer, 0.0)
        added = state.accounts.usage_by_phase[VERIFICATION]
        rest = state.accounts.usage.tokens - added.tokens
        result: ResearchResult | None = slow.work.result
        summary = result.verification if result else slow.evidence.verification.summary
        share = 100 * added.tokens / rest
        print(
            f"| {name} | {writer} | {summary.claims} | {summary.method_counts.get('model', 0)} | {added.model_calls} "
            f"| {rest:,} | {added.tokens:,} ({share:.1f} %) | {(seconds - idle) / REPLY_SECONDS:.1f} |"
        )
        print(f"  verdicts {summary.verdict_counts}, corrections {summary.correction_counts}")


# --- corruptions ------------------------------------------------------------------------------------------------------
def judge(
    claim: str,
    passages: Sequence[tuple[str, str]],
    language: str,
    label: str,
    says: Says,
    *,
    of_control: str = "unsupported",
) -> tuple[Verdict, bool]:
    """The verdict of a run, and whether a checker was asked; `says` is what that one answers, `of_control` of those."""
    quotes, titles = [quote for quote, _ in passages], [title for _, title in passages if title]
    ruled = check(claim, quotes, titles, language)
    if ruled.verdict is Verdict.SUPPORTED:
        return ruled.verdict, False
    shown = [ShownPassage(evidence_id=f"ev-{number}", title=title, quote=quote)
             for number, (quote, title) in enumerate(passages)]  # fmt: skip
    remarks = [difference.reason for difference in find_differences(claim, quotes, titles, language)]
    asked = AskedClaim(fingerprint="c-" + long_hash(claim, *quotes), text=claim, passages=shown, remarks=remarks)
    controls = [control_of(asked)]
    request = CheckInput(engine=EngineKind.MODEL, language=language, claims=[asked], controls=controls)
    key = label_key(request)
    given = [
        GivenVerdict(
            claim=label_of(each.fingerprint, key),
            verdict=says(label, asked) if each.fingerprint == asked.fingerprint else of_control,
            quotes=[_likeliest(claim, quotes)],
        )
        for each in with_control([asked], controls)
    ]
    output = ground_verdicts(RoleWork(CHECKER, request, CheckerAnswer(verdicts=given), {}, EngineKind.MODEL))
    return output.verdicts[0], True


def control_of(asked: AskedClaim) -> AskedClaim:
    """A control: the same statement, as if of another part of its text, with a passage about something else."""
    passage = ShownPassage(evidence_id="ev-0", title="", quote="An entirely unrelated remark.")
    return asked.model_copy(update={"fingerprint": asked.fingerprint + "0", "passages": [passage], "remarks": []})


def _likeliest(claim: str, quotes: Sequence[str]) -> str:
    """The words of the passages that a checker would name: those around the first word that the claim shares."""
    wanted = {word.casefold() for word in claim.split() if len(word) > 3}
    for quote in quotes:
        for word in quote.split():
            if word.casefold() in wanted:
                place = quote.index(word)
                return quote[place : place + 80]
    return quotes[0][:80] if quotes else ""


def measure_pairs(name: str, says: Says, **of: str) -> None:
    """Labelled pairs with one checker."""
    counts: Counter[str] = Counter()
    for pair in read_pairs():
        verdict, asked = judge(pair.claim, [(pair.passage, pair.title)], pair.language, pair.label, says, **of)
        true = pair.label == Verdict.SUPPORTED
        counts["asked"] += asked
        counts["true" if true else "false"] += 1
        counts["true called supported" if true else "false called supported"] += verdict is Verdict.SUPPORTED
    print(f"{name}: {json.dumps(dict(counts))}")


def measure_corruptions(name: str, claims: Sequence[Cited], says: Says, **of: str) -> None:
    """Seeded changes of true claims: how many are called supported."""
    made, believed, asked_for = Counter[str](), Counter[str](), 0
    for kind, _, new in corrupt(claims):
        passages = [(item.quote, item.title) for item in new.passages]
        verdict, asked = judge(new.words, passages, new.language, "unsupported", says, **of)
        made[kind] += 1
        believed[kind] += verdict is Verdict.SUPPORTED
        asked_for += asked
    shares = {kind: f"{believed[kind]} of {count}" for kind, count in made.items()}
    print(f"{name}: {believed.total()} of {made.total()} called supported, {asked_for} asked; {shares}")


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.verification", description=__doc__)
    parser.add_argument("--pairs-only", action="store_true", help="leave out the whole runs")
    arguments = parser.parse_args()
    true = paraphrases(read_pairs())
    for name, says, control in CHECKERS:
        measure_pairs(f"pairs, {name}", says, of_control=control)
        measure_corruptions(f"changed paraphrases, {name}", true, says, of_control=control)
    if not arguments.pairs_only:
        asyncio.run(measure_runs())


if __name__ == "__main__":
    main()
