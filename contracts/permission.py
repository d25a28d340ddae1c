"""Permission to ask the world outside: part of what a search, a read or a look at providers is asked with.

The workflow gives it and the activities look for it, so that no strategy can search before a person has agreed.
"""

from contracts.base import Terse
from contracts.request import Approve
from contracts.resolved import EffectiveGates


class Permission(Terse):
    """On what ground a call may leave."""

    approve: Approve = Approve.NONE
    """What the request demands; `none` is a permission by itself."""
    plan_version: int | None = None
    """The version of the plan that a person approved; None where none was."""

    @property
    def is_valid(self) -> bool:
        """Whether nothing had to be approved, or a plan was."""
        return self.approve is Approve.NONE or (self.plan_version or 0) > 0


def permission_of(gates: EffectiveGates, approved_version: int | None) -> Permission | None:
    """The permission of a run; None before its plan is approved where that is demanded."""
    permission = Permission(approve=gates.approve, plan_version=approved_version)
    return permission if permission.is_valid else None
