"""Whether a call may leave: the permission of its run is looked at where the call would be made."""

from typing import Final

from temporalio.exceptions import ApplicationError

from contracts import failures
from contracts.resolved import Permission

NOT_PERMITTED: Final = "not asked: a person has yet to approve the plan of this run (`research approve`)"


def check_permission(permission: Permission | None) -> None:
    """Raise `ApplicationError` of the type `NotPermitted`, which is not tried again, without a valid permission."""
    if permission is None or not permission.is_valid:
        raise ApplicationError(NOT_PERMITTED, type=failures.NOT_PERMITTED, non_retryable=True)
