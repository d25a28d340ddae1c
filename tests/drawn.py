"""How many examples a property test draws: few in the gate, where time counts, and many in `make soak`."""

from hypothesis import settings


def draws(number: int) -> settings:
    """So many examples, or those of the profile `exploring`, which are others in each round."""
    return settings() if settings.get_current_profile_name() == "exploring" else settings(max_examples=number)
