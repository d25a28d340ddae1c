"""The permission of a run in which nothing has to be approved."""

from contracts.permission import Permission
from contracts.request import Approve

PERMITTED = Permission(approve=Approve.NONE)
