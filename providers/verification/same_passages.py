"""What several readers of a page state of the same passage, for a writer: one finding, and each passage once. Pure.

Agents read one page for tasks of their own, and each notes what it finds. Whether two statements mean the same is not
decided here: what counts is where their passages lie, and whether one has a figure or a name that the other lacks.
"""

from collections.abc import Collection, Mapping, Sequence

from contracts.evidence import Evidence, Finding
from providers.verification.rules import find_code_names, find_differences


def findings_for_writer(
    readings: Sequence[Sequence[Finding]], evidence: Mapping[str, Evidence], language: str
) -> dict[str, Finding]:
    """Return the findings of several readings by id, those on the same passages joined, and on shared ones together.

    `evidence` are their passages by id. What one reader made of a passage stays apart, and so does what contradicts
    anything.
    """
    findings: dict[str, Finding] = {}
    readers: dict[str, set[int]] = {}
    for reader, reading in enumerate(readings):
        for finding in reading:
            if finding.id in findings:
                continue
            others = [one for one in findings.values() if reader not in readers[one.id]]
            same = next((one for one in others if _is_same(one, finding, evidence)), None)
            joined = _joined(same, finding, evidence, language) if same else None
            if same is None or joined is None:
                findings[finding.id] = finding
                readers[finding.id] = {reader}
            else:
                findings[same.id] = joined
                readers[same.id].add(reader)
    return _in_groups(findings, evidence)


def _is_same(one: Finding, other: Finding, evidence: Mapping[str, Evidence]) -> bool:
    """Return whether two findings rest on the same passages, and none contradicts anything."""
    if one.contradicts or other.contradicts or not one.evidence_ids:
        return False
    if set(one.evidence_ids) == set(other.evidence_ids):
        return True
    if set(one.source_ids).isdisjoint(other.source_ids):
        return False
    mine = _passages(one, evidence)
    theirs = _passages(other, evidence)
    return _are_among(mine, theirs) and _are_among(theirs, mine)


def _are_among(passages: Sequence[Evidence], others: Sequence[Evidence]) -> bool:
    """Return whether each of some passages is, but for its ends, one of others; false without any."""
    return bool(passages) and all(any(_are_alike(one, other) for other in others) for one in passages)


def _joined(first: Finding, later: Finding, evidence: Mapping[str, Evidence], language: str) -> Finding | None:
    """Return two findings on the same passages as one; None if the later one stands by itself.

    It has the statement that lacks no figure and no name of the other, or both. One of a later iteration stands by
    itself unless it adds nothing, so that later prompts begin as earlier ones.
    """
    is_later = later.iteration != first.iteration
    stated = [first.statement, *first.beside]
    joined = first.with_fields(
        priority=min(first.priority, later.priority), sub_query_count=first.sub_query_count + later.sub_query_count
    )
    if not is_later:
        joined = joined.with_fields(
            evidence_ids=_without_parts([*first.evidence_ids, *later.evidence_ids], evidence),
            source_ids=list(dict.fromkeys([*first.source_ids, *later.source_ids])),
        )
    if not _adds(later.statement, stated, language):
        return joined
    if is_later:
        return None
    if not any(_adds(text, [later.statement], language) for text in stated):
        return joined.with_fields(statement=later.statement, beside=[], remarks=later.remarks)
    return joined.with_fields(
        beside=[*first.beside, later.statement], remarks=list(dict.fromkeys([*first.remarks, *later.remarks]))
    )


def _adds(statement: str, others: Sequence[str], language: str) -> bool:
    """Return whether a statement has a figure, a quotation or a name that none of the others has."""
    return bool(find_differences(statement, others, (), language) or find_code_names(statement, others))


def _passages(finding: Finding, evidence: Mapping[str, Evidence]) -> list[Evidence]:
    return [evidence[key] for key in finding.evidence_ids if key in evidence]


def _without_parts(names: Collection[str], evidence: Mapping[str, Evidence]) -> list[str]:
    """Return the ids of passages, each once, without those that lie within another one."""
    distinct = list(dict.fromkeys(names))
    known = [evidence[name] for name in distinct if name in evidence]

    def is_part(name: str) -> bool:
        one = evidence.get(name)
        return one is not None and any(_contains(other, one) for other in known if other is not one)

    return [name for name in distinct if not is_part(name)]


def _contains(whole: Evidence, part: Evidence) -> bool:
    """Return whether a passage has all of another one, and more."""
    is_longer = whole.end - whole.start > part.end - part.start
    return is_longer and whole.source_id == part.source_id and whole.start <= part.start and part.end <= whole.end


# --- neighbours -------------------------------------------------------------------------------------------------------
def _in_groups(findings: Mapping[str, Finding], evidence: Mapping[str, Evidence]) -> dict[str, Finding]:
    """Return the findings, each after the first one that rests on the same words of a page.

    Several readers of a page state of the same words what each was asked; far apart, a long list hides that. Those of
    a later iteration stand by themselves, so that later prompts begin as earlier ones.
    """
    groups: list[list[Finding]] = []
    placed: dict[tuple[int, str], list[tuple[Evidence, list[Finding]]]] = {}
    for finding in findings.values():
        items = _passages(finding, evidence)
        known = (
            group
            for item in items
            for other, group in placed.get((finding.iteration, item.source_id), ())
            if _share_words(item, other)
        )
        group = next(known, None)
        if group is None:
            group = []
            groups.append(group)
        group.append(finding)
        for item in items:
            placed.setdefault((finding.iteration, item.source_id), []).append((item, group))
    return {finding.id: finding for group in groups for finding in group}


def _share_words(one: Evidence, other: Evidence) -> bool:
    """Return whether two passages of a source have more than half of the shorter one in common."""
    return 2 * _common(one, other) > min(one.end - one.start, other.end - other.start)


def _are_alike(one: Evidence, other: Evidence) -> bool:
    """Return whether two passages have more than half of the longer one in common."""
    return 2 * _common(one, other) > max(one.end - one.start, other.end - other.start)


def _common(one: Evidence, other: Evidence) -> int:
    """Return the number of characters that two passages have in common."""
    if one.source_id != other.source_id:
        return 0
    return max(0, min(one.end, other.end) - max(one.start, other.start))
