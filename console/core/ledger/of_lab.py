"""A lab's configuration in the ledger's terms: the bridge from profile and matrix to the sums."""

from typing import Any

from console.core.errors import InputError
from console.core.ledger.architecture import Architecture
from console.core.ledger.catalogue import device as known_device
from console.core.ledger.catalogue import model as known_model
from console.core.ledger.columns import QUANTITIES, Column, Value
from console.core.ledger.devices import Device
from console.core.ledger.hf_config import read_config
from console.core.ledger.methods import FULL_RECOMPUTE, NO_RECOMPUTE, SELECTIVE, Batch, Method
from console.core.ledger.paper import paper_column
from console.core.ledger.setup import Setup
from console.core.plan.matrix import Configuration, effective_settings
from console.core.plan.profile import ModelSpec, Profile, TinyModel
from console.core.plan.topology import ParallelSizes, derive, micro_batches

_RECOMPUTE = {"full": FULL_RECOMPUTE, "selective": SELECTIVE, "none": NO_RECOMPUTE}


def architecture_of(model: ModelSpec) -> Architecture | None:
    """The model's shapes: those it is built with, or those of the catalogue; None where neither is known."""
    try:
        if model.build is not None:
            return read_config(_tiny_config(model.build), "the lab's tiny model").architecture
        return known_model(model.name).architecture() if model.name else None
    except InputError:
        return None


def device_of(profile: Profile) -> Device | None:
    """The lab's device as the catalogue knows it. Raises `InputError` for a name it doesn't know."""
    return known_device(profile.device) if profile.device else None


def device_with_own_memory(profile: Profile) -> Device | None:
    """The lab's device unless it shares the machine's memory; None too when the profile names none."""
    device = device_of(profile)
    return None if device is None or device.unified else device


def setup_of(profile: Profile, config: Configuration) -> Setup | None:
    """What the memory and time predictions need; None when the model's shapes are not known.

    Raises `InputError` when sizes and batches don't fit together.
    """
    architecture = architecture_of(profile.model)
    if architecture is None:
        return None
    settings = effective_settings(profile.settings, config)
    sizes = ParallelSizes.checked(
        tp=config.tensor_parallel, pp=config.pipeline_parallel, sequence_parallel=config.sequence_parallel
    )
    topology = derive(config.nodes, sizes)
    return Setup(
        architecture=architecture,
        topology=topology,
        batch=Batch(
            sequence=settings.max_length,
            micro_batch=settings.micro_batch,
            micro_batches=micro_batches(settings.global_batch, settings.micro_batch, topology.dp),
        ),
        method=Method(
            kind=settings.tuner, lora_rank=settings.lora_rank, targets=tuple(settings.target_modules)
        ),
        recompute=_RECOMPUTE[settings.recompute],
    )


def prediction_of(profile: Profile, config: Configuration) -> Column:
    """The paper column of a configuration of the lab.

    Where nothing can be predicted every value says why: a model or device that the catalogue does not know,
    sizes that don't fit together, training on the CPU or in 32 bits, for which the sums are not made.
    """
    try:
        settings = effective_settings(profile.settings, config)
        setup, device = setup_of(profile, config), device_of(profile)
    except InputError as error:
        return _nothing(f"{error.what}: {error.why}" if error.why else error.what)
    if setup is None:
        return _nothing("the shapes of this model are not known to the ledger")
    if device is None:
        return _nothing("the profile names no device")
    if settings.use_cpu or settings.dtype == "float32":
        return _nothing("the sums are made for 16 bits on a GPU")
    return paper_column(setup, device)


def _nothing(why: str) -> Column:
    return Column(**dict.fromkeys(QUANTITIES, Value(missing=why)))


def _tiny_config(build: TinyModel) -> dict[str, Any]:
    return {
        "model_type": "qwen2",
        "num_hidden_layers": build.layers,
        "hidden_size": build.hidden,
        "num_attention_heads": build.heads,
        "num_key_value_heads": build.kv_heads,
        "intermediate_size": build.ffn,
        "vocab_size": build.vocab,
        "tie_word_embeddings": True,
    }
