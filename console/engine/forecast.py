"""What would run, without touching anything: launches with their placeholders still readable."""

from collections.abc import Mapping

from console.core.ledger.flops import linear_names
from console.core.ledger.of_lab import architecture_of, prediction_of
from console.core.plan.launch import Launch, plan_launches
from console.core.plan.launch_facts import Finding, LaunchFacts, NodeFacts
from console.core.plan.lint import lint
from console.core.plan.matrix import Configuration
from console.core.plan.profile import Profile

PROGRAM_WORDS = 4
"""`python -m module sft` before the first flag."""


def places_on_paper(profile: Profile, run: str) -> dict[str, Mapping[str, str]]:
    """Placeholders with words a person understands; nothing was asked of a node."""
    shared = profile.shared.replace("{embedded}", "<experiment>/nodes").replace("{home}", "~")
    return {
        node.name: {
            "home": "~",
            "run": f"~/.lab/<experiment>/{run}",
            "python": node.python if node.python != "@console" else "python",
            "shared": shared,
            "embedded": "<experiment>/nodes",
        }
        for node in profile.nodes
    }


def forecast(profile: Profile, config: Configuration) -> tuple[Launch, ...]:
    """The launches of a configuration as they would be. Raises `InputError` when they can't be."""
    port = 29500 if profile.network.master_port == "auto" else profile.network.master_port
    return plan_launches(profile, config, master_port=port, places=places_on_paper(profile, f"{config.id}-1"))


def lint_launches(
    profile: Profile, config: Configuration, launches: tuple[Launch, ...]
) -> tuple[Finding, ...]:
    """What is known to go wrong with these launches, and memory that they would not have."""
    architecture = architecture_of(profile.model)
    found = lint(
        LaunchFacts(
            program="swift" if config.mode == "swift" else "megatron",
            nodes=tuple(
                NodeFacts(node=launch.node, argv=launch.argv[PROGRAM_WORDS:], env=launch.env)
                for launch in launches
            ),
            gpu_name=profile.device,
            model_family=architecture.family if architecture else None,
            model_layers=len(architecture.blocks) if architecture else None,
            linear_names=linear_names(architecture) if architecture else (),
        )
    )
    return (*found, *_without_room(profile, config))


def _without_room(profile: Profile, config: Configuration) -> tuple[Finding, ...]:
    """A warning, for the sums are a prediction: errors of lint keep a plan from running."""
    paper = prediction_of(profile, config)
    if paper.fit != "does not fit":
        return ()
    return (
        Finding(
            rule="memory-fit",
            severity="warning",
            what=f"the predicted memory does not fit {profile.device}: {paper.fit_reason}",
            if_ignored="out of memory, most likely in the first step",
            remedy="a smaller micro batch, full recomputation, or more splitting; "
            "`lab ledger memory` has the terms",
        ),
    )
