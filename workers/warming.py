"""What a child process has to have loaded before it can do a role without a model."""

import providers.engines.extractive.engine  # noqa: F401  loading it is the work

FUNCTION = f"{__name__}:loaded"
"""For a `SubprocessPool`: the child that ran it will not have to load anything when a run needs it."""


def loaded() -> None:
    """Nothing more: to find this function a child has loaded the engine."""
