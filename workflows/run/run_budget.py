"""The budget of a run: what each model call may use, reserved before it, and what is reserved for the report."""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from contracts.answer_sizes import rewriting_tokens
from contracts.call_sizes import (
    FINDINGS_PER_SUB_QUERY,
    asked_output,
    likely_call,
    likely_check,
    likely_checks,
    likely_correction,
    likely_corrections,
    likely_cost_share,
    likely_output,
    likely_report,
    likely_statements,
    likely_updates,
    minimal_call,
    reading_output,
    worst_call,
)
from contracts.checking_roles import CHECKER, CORRECTOR, REVIEWER
from contracts.orchestrator_roles import AGENT
from contracts.outcome import Usage
from contracts.recursive_roles import EXECUTOR, EXTRACTOR
from contracts.report_updates import ARRANGER, REPORTER
from contracts.request import Verify
from contracts.resolved import ModelPrice
from contracts.roles import ANALYZER, SYNTHESIZER, AnalyzeInput, RoleInput, RoleSpec
from contracts.strategies import CLOSING_ROLES, declaration, usage_by_share
from contracts.summaries import SUMMARIZER
from contracts.tokens import TokenShare, tokens_left
from contracts.vocabulary import AgentRole, Phase, StopReason
from workflows.run.budget import (
    MIN_PART,
    NOTHING,
    TOLERANCE_USD,
    Reservation,
    Reservations,
    check_reserve,
    correction_reserve,
    part_that_fits,
    refusal,
    report_reserve,
    reservation,
)
from workflows.run.context import RunContext
from workflows.run.inbox import Interrupted

BRIEF_PART: Final = 0.6
"""Of the likely output of a call: what is brief enough to show all of its content."""
BRIEF_READING_PART: Final = 0.45
"""The same of a reading: half of 138 readings by real models wrote less than 0.47 of the most that they might write. A
page that is shown in part costs a second call, and leaves gaps that the rest of it answers."""
READING_PART: Final = 0.5
"""Of a likely call that reads sources: what a call that chooses them leaves for it."""
AGENT_READING_PART: Final = 0.8
"""That part for a turn of an agent. Half of it is less than a prompt that shows a page and its schema needs at all: of
seven agents of a real run three paid a last turn for pages that could not be read then."""
LOOK_PART: Final = 0.75
"""Of what is reserved for the report and its checks, what a last look at gaps leaves of it: all that is for the report,
and the rest has margins. Two real runs used 0.45 of about 0.6 and 0.47 of about 0.69 dollars, and the second look saw
half of its sections; in a third that left no more than this part the writer saw 57 % of its findings.
"""
USEFUL_PART: Final = 0.5
"""Of the output that is expected of an agent's reading: with less room, it is not made."""


class CallRefused(Interrupted):
    """A limit forbids the call, and no call in flight can release enough for it.

    `share` is the token share without room for it; None if a limit of the whole run is the cause.
    """

    def __init__(self, reason: StopReason, share: TokenShare | None = None) -> None:
        super().__init__(reason)
        self.share = share

    @property
    def words(self) -> str:
        """Return the reason for people: `budget_tokens`, `budget_tokens: share of planning`."""
        return self.reason.value + (f": share of {self.share.value}" if self.share else "")


@dataclass(frozen=True)
class Granted:
    """The part of the budget that a call may use."""

    number: int
    """Number that closes its reservation."""
    size: Usage
    bound: Usage
    """The most that a call of this role with this input can use."""
    reservation: Reservation
    is_limited: bool
    """True if a limit of the run counts the call's tokens or their cost."""
    shortens: bool
    """True if the call may show less content, to fit."""


@dataclass(frozen=True)
class Measured:
    """Input tokens that a prompt needs, as its activity found."""

    input_tokens: int
    is_least: bool
    """True if that is the least, with its content shortened."""


class RunBudget:
    """The rest of a run's budget: grants each call its part, and reserves the part of the report."""

    def __init__(self, run: RunContext) -> None:
        self._run = run
        self.reservations = Reservations()

    async def reserve(
        self, role: RoleSpec[Any, Any], request: RoleInput, measured: Measured | None, least_output: int
    ) -> Granted:
        """Reserve for a call and return what it may use, waiting while others may release enough.

        Raises `CallRefused`, or `Interrupted` if the run must end.
        """
        run = self._run
        limits = run.resolved.limits
        reservations = self.reservations
        price = self.price(role)
        bound = worst_call(role, request, run.resolved.reasoning_tokens)
        is_limited = limits.max_tokens is not None or (limits.max_cost_usd is not None and price is not None)
        is_least = measured is not None and measured.is_least
        least = max(least_output, request.least_output_tokens, asked_output(request, run.state.accounts.call_sizes))
        while True:
            reserve = NOTHING if self._closes(role) else self._left_by(role, request)
            likely, usual = self._sizes(role, request, bound, measured, least)
            choices = self._choices(role, likely, bound, reserve, is_measured=measured is not None)
            alone = reservations.unexplained, reservations.unexplained_tokens
            refused = self._refusal(role, *alone, reservation(likely, price), reserve)
            is_part = refused is not None
            if refused is not None and measured is None and refused.reason is not StopReason.BUDGET_CALLS:
                # Only a guess of its size does not fit, and measuring a prompt costs nothing.
                number = reservations.open(NOTHING, role.share)
                guess = Usage(output_tokens=likely.output_tokens)
                return Granted(number, guess, bound, NOTHING, is_limited=True, shortens=False)
            if refused is not None:
                # Less than the prompt would ask for is asked for then, down to a part of what such calls usually need.
                useful = max(request.least_output_tokens, self._useful_output(role, likely))
                # A review of a part of a report says nothing of the rest.
                is_whole = is_least or role.name == REVIEWER.name
                choices = self._parts(role, likely, reserve, useful, whole_input=is_whole)
                choices = choices or self._parts(role, usual, reserve, useful, whole_input=is_whole)
            for chosen in choices:
                wanted = reservation(chosen, price)
                if self._refusal(role, reservations.total, reservations.total_tokens, wanted, reserve) is None:
                    number = reservations.open(wanted, role.share)
                    shortens = is_part or is_least
                    return Granted(number, chosen, bound, wanted, is_limited=is_limited, shortens=shortens)
            if role.name == SUMMARIZER.name:  # the call it is for has its own reservation, and is made without it
                raise refused or CallRefused(StopReason.BUDGET_TOKENS)
            if refused is not None and (not choices or not reservations.under_way):
                text = f"no further model call: it does not fit into what is left ({refused.words})"
                run.note("budget.exhausted", text, reason=refused.reason.value)
                raise refused
            changes = reservations.changes
            await run.host.wait_until(
                lambda: reservations.changes != changes or run.inbox.interruption is not None  # noqa: B023
            )
            run.inbox.check_interruption()

    def _closes(self, role: RoleSpec[Any, Any]) -> bool:
        """Return whether a call may use what is reserved for the report and its checks."""
        run = self._run
        if role.writes_report or role.name == ARRANGER.name:
            return True
        if role.name == AgentRole.SUPERVISOR and run.state.work.phase == Phase.SYNTHESIS:
            return True
        # A review comes out of what the next report needs not: the one that is written anyway, or a revision.
        return role in CLOSING_ROLES and role.name != REVIEWER.name

    def _sizes(
        self, role: RoleSpec[Any, Any], request: RoleInput, bound: Usage, measured: Measured | None, least: int
    ) -> tuple[Usage, Usage]:
        """Return what a call likely uses, with `least` tokens of output or more, and what calls of its role usually do.

        The usual size is never above the likely one.
        """
        run = self._run
        usual = likely_call(role, bound, run.state.accounts.call_sizes, run.resolved.reasoning_tokens)
        if measured is not None:
            usual = usual.with_fields(input_tokens=measured.input_tokens)
        likely = usual.with_fields(output_tokens=self._likely_output(role, request, bound, usual, least))
        return likely, usual.with_fields(output_tokens=min(usual.output_tokens, likely.output_tokens))

    def _choices(
        self, role: RoleSpec[Any, Any], likely: Usage, bound: Usage, reserve: Reservation, *, is_measured: bool
    ) -> list[Usage]:
        """Return the sizes that a call may be given, the largest first."""
        most = likely
        if not _reads(role):  # what a reading cannot use would shorten those beside it
            most = likely.with_fields(output_tokens=bound.output_tokens)
        widest = most.with_fields(input_tokens=bound.input_tokens)
        if not is_measured and self._fits_twice(role, widest, reserve):
            return [widest, most, likely]  # a prompt that is refused for its size is made twice
        return [most, likely]

    def _likely_output(
        self, role: RoleSpec[Any, Any], request: RoleInput, bound: Usage, usual: Usage, least: int
    ) -> int:
        """Return the output tokens expected of a call, `least` or more within its bound.

        A reading is expected to write what it asks for, any other call at least what calls of its role usually do.
        """
        output = usual.output_tokens
        if isinstance(request, AnalyzeInput) and _reads(role):
            output = reading_output(
                role, request, self._run.state.accounts.call_sizes, self._run.resolved.reasoning_tokens
            )
        return min(max(output, least), bound.output_tokens)

    @property
    def _is_agent(self) -> bool:
        """Return true for an agent's own budget, which is its share of its run's."""
        return self._run.state.work.task is not None

    def _fits_twice(self, role: RoleSpec[Any, Any], size: Usage, reserve: Reservation) -> bool:
        """Return whether a call of this size fits beside those in flight, and leaves room for another one like it."""
        wanted = reservation(size, self.price(role))
        reservations = self.reservations
        return self._refusal(role, reservations.total, reservations.total_tokens, wanted + wanted, reserve) is None

    def _parts(
        self, role: RoleSpec[Any, Any], likely: Usage, reserve: Reservation, useful: float, *, whole_input: bool
    ) -> list[Usage]:
        """Return the part of a call's likely size that fits without calls in flight; empty if it is too small.

        `useful` are the fewest tokens of output with which it is made.
        """
        price = self.price(role)
        tokens, cost = self._left_for(
            role, self.reservations.unexplained_tokens, self.reservations.unexplained, reserve
        )
        whole = part_that_fits(likely, tokens, cost, price, whole_input=True)
        brief = BRIEF_READING_PART if _reads(role) else BRIEF_PART
        if whole_input or (whole is not None and whole.output_tokens >= brief * likely.output_tokens):
            part = whole  # rather a briefer answer than less to read
        else:
            part = part_that_fits(likely, tokens, cost, price, whole_input=False)
        return [] if part is None or part.output_tokens < useful else [part]

    def _left_for(
        self, role: RoleSpec[Any, Any], reserved_tokens: Mapping[TokenShare, int], *reserved: Reservation
    ) -> tuple[float, float]:
        """Return the tokens and US dollars that a role may still use beside what is reserved; infinity is no limit.

        If tokens are divided into shares, `reserved_tokens` are those of reservations by share.
        """
        limits = self._run.resolved.limits
        used = self._run.state.accounts.usage
        taken = sum(reserved, NOTHING)
        tokens = cost = math.inf
        of_share = self.tokens_left(role.share, reserved_tokens)
        if of_share is not None:
            tokens = of_share
        elif limits.max_tokens is not None:
            tokens = limits.max_tokens - used.tokens - taken.tokens
        if limits.max_cost_usd is not None:
            cost = limits.max_cost_usd - used.known_cost_usd - taken.cost_usd
        return tokens, cost

    def _useful_output(self, role: RoleSpec[Any, Any], likely: Usage) -> float:
        """Return the fewest tokens of output with which a call of a likely size is made.

        An agent whose share leaves room for a finding or two ends, and another agent gets what is left.
        """
        if self._is_agent and role.name == ANALYZER.name:
            return USEFUL_PART * min(role.expected_output_tokens, likely.output_tokens)
        return 0.0

    def _refusal(
        self,
        role: RoleSpec[Any, Any],
        reserved: Reservation,
        reserved_tokens: Mapping[TokenShare, int],
        wanted: Reservation,
        reserve: Reservation,
    ) -> CallRefused | None:
        """Return the refusal of a call by a limit of the run or by its role's token share; None if it fits."""
        left = self.tokens_left(role.share, reserved_tokens)
        if left is not None:
            reserve = replace(reserve, tokens=0)  # shares already reserve tokens for the report
        reason = refusal(self._run.resolved.limits, self._run.state.accounts.usage, reserved, wanted, reserve)
        if reason is not None:
            return CallRefused(reason)
        if left is not None and wanted.tokens > left:
            return CallRefused(StopReason.BUDGET_TOKENS, role.share)
        return None

    def tokens_left(self, share: TokenShare, reserved: Mapping[TokenShare, int]) -> int | None:
        """Return the tokens that a share may still use; None if the run's tokens are not divided into shares.

        An agent has a part of its run's share and does not divide it again.
        """
        resolved = self._run.resolved
        state = self._run.state
        limit = resolved.limits.max_tokens
        if limit is None or not resolved.tokens.token_management_enabled or state.work.task is not None:
            return None
        is_written = state.evidence.draft is not None and state.evidence.draft.iteration > 0
        taken = Counter(usage_by_share(state.accounts.usage_by_role)) + Counter(reserved)
        return tokens_left(share, limit, taken, written=is_written)

    def reserved_for_report(self, expected: int = 0) -> Reservation:
        """Return the reservation that only the report and its checks may use; none for an agent that writes none.

        `expected` is a number of findings still to come, beyond those of an analysis in flight.
        """
        resolved = self._run.resolved
        state = self._run.state
        if state.work.task is not None and not any(role.writes_report for role in declaration(resolved.strategy).roles):
            return NOTHING
        # An analysis in flight may add as many findings as a sub-query usually has.
        findings = len(state.evidence.findings) + FINDINGS_PER_SUB_QUERY
        if not state.evidence.findings:
            findings = FINDINGS_PER_SUB_QUERY * (len(state.work.plan.sub_queries) or resolved.limits.max_sub_queries)
        findings = max(findings, len(state.evidence.findings) + expected)
        sizes = state.accounts.call_sizes
        report = self._report_alone(findings)
        if resolved.verify is not Verify.FULL:
            return report
        statements = findings
        if not declaration(resolved.strategy).live_report:  # of which the last calls write a part
            statements = likely_statements(findings, self._likely_report(findings))
        check = likely_check(sizes, resolved.reasoning_tokens)
        checks = check_reserve(resolved.limits, check, self.price(CHECKER), likely_checks(statements))
        if resolved.checks.correct:
            correction = likely_correction(sizes, resolved.reasoning_tokens)
            price = self.price(CORRECTOR)
            checks += correction_reserve(resolved.limits, correction, price, likely_corrections(statements))
        # The report is written first: until its real cost is known, it may use what is reserved for the checks.
        cost = max(report.cost_usd, likely_cost_share(sizes) * (report + checks).cost_usd)
        return replace(report + checks, cost_usd=cost)

    def _report_alone(self, findings: int) -> Reservation:
        """Return what the text of a report from so many findings likely needs, without its checks."""
        resolved = self._run.resolved
        state = self._run.state
        if declaration(resolved.strategy).live_report:
            sections = len(state.work.plan.outline)
            updates = likely_updates(state.accounts.call_sizes, resolved.reasoning_tokens, sections)
            return report_reserve(resolved.limits, updates, self.price(REPORTER))
        return report_reserve(resolved.limits, self._likely_report(findings), self.price(SYNTHESIZER))

    def _likely_report(self, findings: int) -> Usage:
        """Return the likely size of the call that writes a report from so many findings at once."""
        state = self._run.state
        known = state.evidence.findings
        whole = likely_report(
            known,
            state.evidence.passages,
            max(0, findings - len(known)),
            state.accounts.call_sizes,
            self._run.resolved.reasoning_tokens,
        )
        if state.evidence.draft is None:
            return whole
        # The last report replaces the draft, and must not fall short of it.
        again = rewriting_tokens(state.evidence.draft.word_count)
        return whole.with_fields(output_tokens=max(whole.output_tokens, again))

    def _left_by(self, role: RoleSpec[Any, Any], request: RoleInput) -> Reservation:
        """Return what a call must leave for the report, its checks and the reading that it chooses."""
        reserve = self.reserved_for_report() + self._reserved_for_reading(role)
        if not _looks_at_gaps(request):
            return reserve
        report = self._report_alone(len(self._run.state.evidence.findings))
        return replace(
            reserve,
            tokens=max(report.tokens, math.ceil(LOOK_PART * reserve.tokens)),
            cost_usd=max(report.cost_usd, LOOK_PART * reserve.cost_usd),
        )

    def _reserved_for_reading(self, role: RoleSpec[Any, Any]) -> Reservation:
        """Return what a call that chooses what to read next leaves for reading it, and a review beside the reading.

        Nothing for other roles.
        """
        reader, size = self.likely_reading()
        is_beside = role.name == REVIEWER.name and not self._run.inbox.closing
        is_asked = _chooses_reading(role) or role.name == AGENT.name or is_beside
        if not is_asked or reader is None or reader.name not in self._run.state.accounts.call_sizes:
            return NOTHING
        share = AGENT_READING_PART if self._is_agent else READING_PART
        least = Usage(
            input_tokens=math.ceil(size.input_tokens * share), output_tokens=math.ceil(size.output_tokens * share)
        )
        left = reservation(least, self.price(reader))
        own = self._run.state.accounts.call_sizes[reader.name]
        if not self._is_agent or not own.usd:
            return left
        # The longest page read so far says little of the next one, which may also be read for a briefer answer.
        return replace(left, cost_usd=min(left.cost_usd, own.usd / own.calls))

    def can_still_read(self, role: RoleSpec[Any, Any]) -> bool:
        """Return whether a role chooses what to read next, and a call that reads fits without a call of the role."""
        reader, size = self.likely_reading()
        if not _chooses_reading(role) or reader is None:
            return False
        reserve = self.reserved_for_report()
        price = self.price(reader)
        alone = self.reservations.unexplained, self.reservations.unexplained_tokens
        return any(
            self._refusal(reader, *alone, reservation(part, price), reserve) is None
            for part in self._parts(reader, size, reserve, self._useful_output(reader, size), whole_input=False)
        )

    def payable_pages(self) -> tuple[int, StopReason] | None:
        """Return how many more pages can be analyzed beside the report, at what pages of this run have cost.

        The second value is the limit that bounds them. The last page may be paid in part, down to `MIN_PART`. None if
        no limit bounds them, or no page was analyzed yet.
        """
        reader, _ = self.likely_reading()
        own = None if reader is None else self._run.state.accounts.call_sizes.get(reader.name)
        if reader is None or own is None or not own.pages:
            return None
        tokens, cost = self._left_for(
            reader, self.reservations.total_tokens, self.reservations.total, self.reserved_for_report()
        )
        bounds = [
            (left * own.pages / spent, reason)
            for left, spent, reason in (
                (tokens, own.tokens, StopReason.BUDGET_TOKENS),
                (cost, own.usd, StopReason.BUDGET_COST),
            )
            if spent and not math.isinf(left)
        ]
        if not bounds:
            return None
        pages, reason = min(bounds)
        return (math.ceil(pages - TOLERANCE_USD) if pages >= MIN_PART else 0), reason

    def likely_reading(self) -> tuple[RoleSpec[Any, Any] | None, Usage]:
        """Return the role that reads sources in this run, and the size of its largest call, or a small one's."""
        seen = self._run.state.accounts.call_sizes
        reader = next((role for role in (ANALYZER, EXTRACTOR) if role.name in seen), None)
        if reader is not None:
            output = likely_output(reader, seen, self._run.resolved.reasoning_tokens)
            return reader, Usage(input_tokens=seen[reader.name].input_tokens, output_tokens=output)
        reader = next(
            (role for role in declaration(self._run.resolved.strategy).roles if role in (ANALYZER, EXTRACTOR)), None
        )
        return reader, Usage() if reader is None else minimal_call(reader)

    def price(self, role: RoleSpec[Any, Any]) -> ModelPrice | None:
        """Return the price of a role's model; None if it is not known."""
        prices = self._run.resolved.model_prices.values()
        if role.name == SUMMARIZER.name and prices:  # its models may be of any tier
            return ModelPrice(input=max(price.input for price in prices), output=max(price.output for price in prices))
        return self._run.resolved.model_prices.get(role.tier.value)


def _reads(role: RoleSpec[Any, Any]) -> bool:
    """Return true for a role that writes down what sources say, as many findings as it is asked for at most."""
    return role in (ANALYZER, EXTRACTOR)


def _looks_at_gaps(request: RoleInput) -> bool:
    """Return true for the last look at open gaps before a report."""
    return isinstance(request, AnalyzeInput) and request.for_gaps


def _chooses_reading(role: RoleSpec[Any, Any]) -> bool:
    """Return whether a role or its rules choose what to read; those of a self-check call everything sufficient."""
    return role.share is TokenShare.REFINEMENT and role.name != EXECUTOR.name
