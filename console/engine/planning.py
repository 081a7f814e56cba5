"""Requests for runs: the matrix's and the checklist's small ones, with placeholders filled in."""

from typing import Literal

from console.core.errors import NodeError
from console.core.ledger.of_lab import prediction_of
from console.core.plan.launch import kept_by, plan_launches
from console.core.plan.matrix import Configuration, Mode, Settings, effective_settings
from console.core.plan.profile import Profile, Smoke
from console.core.record.predictions import planned_figures
from console.engine.crew import Crew
from console.engine.running import RunRequest
from console.nodes.probes import run_probe

DEFAULT_PORT = 29500


async def matrix_run(
    profile: Profile,
    crew: Crew,
    experiment: str,
    config: Configuration,
    attempt: int,
    *,
    resumed: bool = False,
) -> RunRequest:
    """An attempt at a configuration. Raises `InputError`, `NodeError`.

    A `resumed` run keeps the launches that the journal has; the port need not be free then.
    """
    run = f"{config.id}-{attempt}"
    return RunRequest(
        id=run,
        config=config.id,
        attempt=attempt,
        purpose="matrix",
        framework=config.mode,
        launches=plan_launches(
            profile,
            config,
            master_port=DEFAULT_PORT if resumed else await master_port(profile, crew),
            places={name: member.in_run(experiment, run) for name, member in crew.items()},
        ),
        settings=matrix_settings(profile, config),
    )


def matrix_settings(profile: Profile, config: Configuration) -> dict[str, object]:
    """What the journal keeps of a configuration's plan: its settings, and what the ledger predicts.

    `predicted_memory_bytes` is what the framework should reserve on the fullest device. Where the ledger
    has no prediction the keys are left out.
    """
    settings: dict[str, object] = effective_settings(profile.settings, config).model_dump(mode="json")
    return settings | planned_figures(prediction_of(profile, config))


async def smoke_run(
    profile: Profile,
    crew: Crew,
    experiment: str,
    which: Literal["ordinary", "megatron"],
    attempt: int,
    limit: float,
) -> RunRequest:
    """The checklist's short run on the first node. Raises `InputError`, `NodeError`."""
    smoke, mode = smoke_of(profile, which)
    run = f"smoke-{which}-{attempt}"
    settings = smoke_settings(profile, smoke, mode)
    config = Configuration(id=f"smoke-{which}", title=f"smoke {which}", mode=mode, varies="nothing")
    return RunRequest(
        id=run,
        config=config.id,
        attempt=attempt,
        purpose="smoke",
        framework=mode,
        launches=plan_launches(
            profile,
            config,
            master_port=await master_port(profile, crew),
            places={name: member.in_run(experiment, run) for name, member in crew.items()},
            model=smoke.model,
            dataset=smoke.dataset,
            settings=settings,
        ),
        settings=settings.model_dump(mode="json"),
        limit_seconds=limit,
    )


def smoke_of(profile: Profile, which: Literal["ordinary", "megatron"]) -> tuple[Smoke, Mode]:
    """What the profile says about one of the two short runs, and its mode."""
    return (profile.smoke_ordinary, "swift") if which == "ordinary" else (profile.smoke_megatron, "megatron")


def smoke_settings(profile: Profile, smoke: Smoke, mode: Mode) -> Settings:
    """The lab's settings with the short run's own, as its mode can keep them. Raises `InputError`."""
    config = Configuration(id="smoke", title="smoke", mode=mode, varies="nothing", settings=smoke.settings)
    return kept_by(mode, effective_settings(profile.settings, config))


async def master_port(profile: Profile, crew: Crew) -> int:
    """The rendezvous port of the first node, seen to be free there.

    Raises `NodeError` when the profile's port is taken.
    """
    first = crew[profile.nodes[0].name]
    wanted = 0 if profile.network.master_port == "auto" else profile.network.master_port
    answer = await run_probe(
        first.node, first.node.target.interpreter, "pair", {"action": "port", "port": wanted}, timeout=30
    )
    if not answer.get("ok"):
        raise NodeError(
            first.name,
            f"the rendezvous port {wanted} is not free",
            why=str(answer.get("error", "")),
            next_step="end what listens there, or give another network.master_port in the profile",
        )
    return int(answer["port"])
