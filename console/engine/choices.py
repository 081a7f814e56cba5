"""Choices that decisions share, in words that fit the lab: nothing is brought back that was never taken."""

import re

from console.core.plan.profile import Profile
from console.core.plan.service import NoService
from console.core.record.events import Choice

_LASTING = re.compile(
    r"ModuleNotFoundError|ImportError|No module named|undefined symbol|no kernel image"
    r"|cannot open shared object|command not found|No such file or directory|\bexit 12[67]\b"
)
_PASSING = re.compile(
    r"no contact|[Cc]onnection (?:refused|reset)|EADDRINUSE|[Aa]ddress already in use|rendezvous port"
)


def stop_lab(profile: Profile) -> Choice:
    """End the lab here."""
    borrowed = not isinstance(profile.service, NoService)
    leads_to = (
        "the service is brought back now" if borrowed else "nothing more is run; what was measured stays"
    )
    return Choice(id="stop", words="Stop the lab", leads_to=leads_to)


def lasting(raw_error: str) -> bool:
    """Something is missing on the machine: the same once more fails the same way until a person adds it."""
    return _LASTING.search(raw_error) is not None


def passing(raw_error: str) -> bool:
    """The way to a node, or a port that was taken: likely gone by the next attempt."""
    return not lasting(raw_error) and _PASSING.search(raw_error) is not None
