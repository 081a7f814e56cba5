"""A configuration on a lab -> argv and environment for every node.

Flags are those of ms-swift 4.6 (`swift sft` and `megatron sft` take different names for the same thing). One
process per node; node order is rank order, and the first node is the rendezvous master.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from console.core.errors import InputError
from console.core.plan.matrix import Configuration, Flag, Mode, Settings, effective_settings, guard
from console.core.plan.profile import Dataset, ModelSpec, NodeSpec, Profile
from console.core.plan.topology import ParallelSizes, derive, micro_batches

PLACEHOLDERS = ("home", "shared", "run", "python", "embedded")


@dataclass(frozen=True, slots=True)
class Launch:
    """What one node runs. `shows_log` marks the rank whose log carries the metrics."""

    node: str
    rank: int
    argv: tuple[str, ...]
    env: dict[str, str]
    shows_log: bool


def plan_launches(
    profile: Profile,
    config: Configuration,
    *,
    master_port: int,
    places: Mapping[str, Mapping[str, str]],
    model: ModelSpec | None = None,
    dataset: Dataset | None = None,
    settings: Settings | None = None,
) -> tuple[Launch, ...]:
    """The launches of one configuration, in rank order.

    `places` holds, for each node, the values of the placeholders. `model`, `dataset` and `settings` replace
    the profile's (the checklist's small runs use them). Raises `InputError` when the parallel sizes or the
    batch do not fit, or the mode has no such setting.
    """
    model = model or profile.model
    dataset = dataset or profile.dataset
    settings = settings or effective_settings(profile.settings, config)
    nodes = profile.nodes[: config.nodes]
    accumulation = check_fit(config, settings)
    flags = (
        _swift_flags(model, dataset, settings, accumulation)
        if config.mode == "swift"
        else _megatron_flags(model, dataset, settings, config)
    )
    shown = 0 if config.mode == "swift" else len(nodes) - 1
    return tuple(
        Launch(
            node.name,
            rank,
            tuple(fill(part, places[node.name]) for part in (*_program(config.mode), *flags)),
            run_environment(profile, rank, nodes, master_port, places[node.name], config.env),
            rank == shown,
        )
        for rank, node in enumerate(nodes)
    )


def check_matrices(profile: Profile) -> None:
    """Hold both matrices, also that of the degraded path, to what can be launched. Raises `InputError`."""
    for matrix in (profile.matrix, profile.degraded_matrix):
        if matrix is None:
            continue
        guard(matrix, profile.settings)
        for config in matrix.configurations:
            check_fit(config, effective_settings(profile.settings, config))


def check_fit(config: Configuration, settings: Settings) -> int:
    """Micro-batches that one data-parallel rank works through in a step.

    Raises `InputError` when world size, parallel sizes and batches do not fit together, and for a setting
    that the configuration's mode can't keep.
    """
    _check_mode(config, settings)
    sizes = ParallelSizes.checked(
        tp=config.tensor_parallel,
        pp=config.pipeline_parallel,
        sequence_parallel=config.sequence_parallel,
    )
    topology = derive(config.nodes, sizes)
    return micro_batches(settings.global_batch, settings.micro_batch, topology.dp)


def kept_by(mode: Mode, settings: Settings) -> Settings:
    """The settings with the nearest that the mode can keep; others ms-swift 4.6 refuses there, or takes for
    another value without a word.
    """
    if mode == "swift":
        return settings.model_copy(update={"recompute": "full"} if settings.recompute == "selective" else {})
    epochs = settings.epochs
    return settings.model_copy(
        update={
            "dtype": "bfloat16" if settings.dtype == "float32" else settings.dtype,
            "epochs": None if epochs is None else float(ceil(epochs)),
        }
    )


def _check_mode(config: Configuration, settings: Settings) -> None:
    """Raises `InputError` for a setting that ms-swift 4.6 would not keep in that mode."""
    kept = kept_by(config.mode, settings)
    if kept.recompute != settings.recompute:
        raise InputError(
            f"{config.id}: recompute {settings.recompute} is not to be had in ordinary mode",
            why="swift sft recomputes whole layers or nothing",
            next_step="give full or none",
        )
    if kept.epochs != settings.epochs:
        raise InputError(
            f"{config.id}: {settings.epochs:g} epochs can't be trained in Megatron mode",
            why="megatron sft takes whole epochs only",
            next_step="give whole epochs, or max_steps instead",
        )
    if kept.dtype != settings.dtype:
        raise InputError(
            f"{config.id}: {settings.dtype} can't be trained in Megatron mode",
            why="megatron sft turns it into float16",
            next_step="give bfloat16 or float16",
        )


def fill(text: str, places: Mapping[str, str]) -> str:
    """`text` with its placeholders replaced. Raises `InputError` for one that has no value here."""
    for name in PLACEHOLDERS:
        mark = "{" + name + "}"
        if mark in text:
            if name not in places:
                raise InputError(f"{mark} has no value here", why=f"it stands in {text!r}")
            text = text.replace(mark, places[name])
    return text


def _program(mode: Mode) -> tuple[str, ...]:
    module = "swift.cli.main" if mode == "swift" else "swift.cli._megatron.main"
    return ("{python}", "-m", module, "sft")


def _swift_flags(model: ModelSpec, dataset: Dataset, settings: Settings, accumulation: int) -> list[str]:
    return _flatten(
        _common(model, dataset, settings)
        | {
            "torch_dtype": settings.dtype,
            "per_device_train_batch_size": settings.micro_batch,
            "gradient_accumulation_steps": accumulation,
            "learning_rate": settings.learning_rate,
            "warmup_ratio": settings.warmup_fraction,
            "gradient_checkpointing": settings.recompute != "none",
            "include_num_input_tokens_seen": True,
            # without the bar the metrics are printed in full precision, not in four digits
            "disable_tqdm": True,
            "use_cpu": settings.use_cpu or None,
            "max_steps": settings.max_steps,
            "num_train_epochs": settings.epochs,
            "report_to": "none",
        }
        | settings.flags
        | settings.swift_flags
    )


def _megatron_flags(
    model: ModelSpec, dataset: Dataset, settings: Settings, config: Configuration
) -> list[str]:
    recompute: dict[str, Flag | None] = {"recompute_granularity": settings.recompute}
    if settings.recompute == "full":
        recompute |= {"recompute_method": "uniform", "recompute_num_layers": 1}
    return _flatten(
        _common(model, dataset, settings)
        | recompute
        | {
            "micro_batch_size": settings.micro_batch,
            "global_batch_size": settings.global_batch,
            "tensor_model_parallel_size": config.tensor_parallel,
            "pipeline_model_parallel_size": config.pipeline_parallel,
            "sequence_parallel": config.sequence_parallel or None,
            "finetune": True,
            "cross_entropy_loss_fusion": True,
            "torch_dtype": settings.dtype,
            "lr": settings.learning_rate,
            "min_lr": settings.min_learning_rate,
            "lr_warmup_fraction": settings.warmup_fraction,
            "train_iters": settings.max_steps,
            "num_train_epochs": None if settings.epochs is None else int(settings.epochs),
            "merge_lora": False if settings.tuner == "lora" else None,
            "no_save_optim": True,
            "no_save_rng": True,
        }
        | settings.flags
        | settings.megatron_flags
    )


def _common(model: ModelSpec, dataset: Dataset, settings: Settings) -> dict[str, Flag | None]:
    """Flags that both modes know by the same name. The tuner is always given: the defaults differ."""
    lora: dict[str, Flag | None] = {
        "lora_rank": settings.lora_rank,
        "lora_alpha": settings.lora_alpha,
        "target_modules": settings.target_modules,
    }
    return {
        "model": model.path,
        "model_type": model.model_type,
        "template": model.template,
        "dataset": dataset.sources,
        "split_dataset_ratio": dataset.split_ratio,
        "tuner_type": settings.tuner,
        **(lora if settings.tuner == "lora" else {}),
        "max_length": settings.max_length,
        "packing": settings.packing or None,
        "seed": settings.seed,
        "data_seed": settings.seed,
        "logging_steps": settings.logging_steps,
        "save_steps": settings.save_steps,
        "ddp_timeout": settings.ddp_timeout_seconds,
        "output_dir": "{run}/out",
    }


def _flatten(flags: Mapping[str, Flag | None]) -> list[str]:
    argv: list[str] = []
    for name, value in flags.items():
        if value is None:
            continue
        argv.append(f"--{name}")
        if isinstance(value, bool):
            argv.append("true" if value else "false")
        elif isinstance(value, list):
            argv.extend(str(part) for part in value)
        else:
            argv.append(str(value))
    return argv


def run_environment(
    profile: Profile,
    rank: int,
    nodes: Sequence[NodeSpec],
    master_port: int,
    places: Mapping[str, str],
    extra: Mapping[str, str],
) -> dict[str, str]:
    """What a process of that rank has in its environment; `extra` is a configuration's own and comes last.

    NPROC_PER_NODE is set for one node too: without it `megatron sft` starts without a rendezvous.
    """
    node = nodes[rank]
    env = {
        "NPROC_PER_NODE": "1",
        "NNODES": str(len(nodes)),
        "NODE_RANK": str(rank),
        "MASTER_ADDR": nodes[0].address,
        "MASTER_PORT": str(master_port),
        "MODELSCOPE_CACHE": "{shared}/modelscope",
        "PYTHONUNBUFFERED": "1",
    }
    if node.interface:
        env |= dict.fromkeys(("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME"), node.interface)
    if node.rdma_devices:
        env["NCCL_IB_HCA"] = ",".join(node.rdma_devices)
    if node.gpu is not None:
        env["CUDA_VISIBLE_DEVICES"] = str(node.gpu)
    env |= profile.env | node.env | dict(extra)
    return {name: fill(value, places) for name, value in env.items()}
