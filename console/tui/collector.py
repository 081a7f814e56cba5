"""The garbage collector of an interactive program: no key waits for a pass over everything."""

import gc

FULL_PASS_AFTER = 1000
"""Young collections between two full ones. Usual is 10, with lines coming in a full one of 10 to 30 ms twice
a second; so many are a minute or more."""


def settle() -> None:
    """Keep what is there now for good, so that no pass goes through it again, and make full passes rare."""
    gc.collect()
    gc.freeze()
    young, middle, _ = gc.get_threshold()
    gc.set_threshold(young, middle, FULL_PASS_AFTER)
