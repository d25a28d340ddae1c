"""The permission of a run in which nothing has to be approved."""

from contracts.request import Approve
from contracts.resolved import Permission

PERMITTED = Permission(approve=Approve.NONE)
