"""Lint: what is known to go wrong with a launch, before it runs.

`lint(facts)` runs every rule and returns the findings, errors first. Whether the launch fits into memory is
the ledger's to say.
"""

from collections.abc import Callable

from console.core.plan.launch_facts import Finding, LaunchFacts, NodeFacts, Severity
from console.core.plan.rules_compatibility import COMPATIBILITY_RULES
from console.core.plan.rules_flags import FLAG_RULES
from console.core.plan.rules_pitfalls import PITFALL_RULES

__all__ = ["RULES", "Finding", "LaunchFacts", "NodeFacts", "Rule", "Severity", "lint"]

Rule = Callable[[LaunchFacts], Finding | None]

RULES: tuple[Rule, ...] = (*PITFALL_RULES, *COMPATIBILITY_RULES, *FLAG_RULES)

_ORDER: dict[Severity, int] = {"error": 0, "warning": 1, "note": 2}


def lint(facts: LaunchFacts) -> tuple[Finding, ...]:
    """All findings for a launch, errors before warnings before notes."""
    found = [finding for rule in RULES if (finding := rule(facts)) is not None]
    return tuple(sorted(found, key=lambda finding: _ORDER[finding.severity]))
