"""What a role is told of a request: language, region, readers, sections. Pure: both ends of a call use it."""

from typing import Any

from contracts.resolved import ResolvedResearch
from contracts.roles import RoleSpec
from contracts.vocabulary import EngineKind


def language_of_call(role: RoleSpec[Any, Any], resolved: ResolvedResearch, engine: EngineKind) -> str:
    """What a role's texts are in: the report in what was asked for, all else in the language that is searched in."""
    wanted = resolved.report_language if role.writes_report and engine is EngineKind.MODEL else None
    return wanted or resolved.language


def wishes_of_call(role: RoleSpec[Any, Any], resolved: ResolvedResearch) -> list[str]:
    """What the request wants beyond the question; the form of the report concerns its writer alone."""
    wishes = [f"The region that matters: {resolved.region}"] if resolved.region else []
    if resolved.audience:
        wishes.append(f"The readers: {resolved.audience}")
    if role.writes_report and resolved.sections:
        headings = "; ".join(resolved.sections)
        wishes.append(f'These sections in this order, in place of the usual ones, each under "## ": {headings}')
    return wishes
