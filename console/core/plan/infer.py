"""One prompt through `swift infer`: the proof that a checkpoint loads and answers.

Flags are those of ms-swift 4.6 (`infer_backend` is `transformers`; `pt` was its name in 3.x). A
`val_dataset` makes the command take its prompt from there and end by itself instead of asking at the
terminal. `args.json` in the checkpoint gives what is not said here. The command must run without
NPROC_PER_NODE and NNODES, which would put torchrun before it.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from console.core.plan.profile import ModelSpec

_GENERATED = re.compile(r"'num_generated_tokens': (\d+)")

_UNSET = (
    "NPROC_PER_NODE",
    "NNODES",
    "NODE_RANK",
    "MASTER_ADDR",
    "MASTER_PORT",
    "RANK",
    "WORLD_SIZE",
    "LOCAL_RANK",
)


@dataclass(frozen=True, slots=True)
class InferAnswer:
    """What came back. `response` is None when nothing did.

    `generated_tokens` is the framework's own count. A model that was never trained may generate tokens that
    its tokenizer has no text for: the response is then empty although the checkpoint loaded and answered.
    """

    answered: bool
    response: str | None
    generated_tokens: int | None


def infer_argv(
    *,
    checkpoint: str,
    model: ModelSpec,
    prompt_source: str,
    result_path: str,
    dtype: str = "bfloat16",
    adapter: bool = True,
    max_new_tokens: int = 8,
    python: str = "{python}",
) -> tuple[str, ...]:
    """The command that loads `checkpoint` and answers the first row of `prompt_source`.

    `prompt_source` is a data set as in training, with or without #count: one row of it is asked. `adapter`
    says that the checkpoint is a LoRA adapter beside `model`, not a whole model. `result_path` receives one
    JSON line; it must not exist before, as the command appends.
    """
    source = prompt_source.split("#")[0] + "#1"
    weights = ["--model", model.path, "--adapters", checkpoint] if adapter else ["--model", checkpoint]
    named = [("--model_type", model.model_type), ("--template", model.template)]
    return (
        "env",
        *(part for name in _UNSET for part in ("-u", name)),
        python,
        "-m",
        "swift.cli.main",
        "infer",
        *weights,
        *(part for flag, value in named if value for part in (flag, value)),
        "--torch_dtype",
        dtype,
        "--infer_backend",
        "transformers",
        "--val_dataset",
        source,
        "--max_new_tokens",
        str(max_new_tokens),
        "--temperature",
        "0",
        "--stream",
        "false",
        "--max_batch_size",
        "1",
        "--result_path",
        result_path,
    )


def read_infer_result(lines: Sequence[str], printed: str = "") -> InferAnswer:
    """The response in the result file's lines (the last one counts), and the count that was `printed`."""
    response: str | None = None
    for line in lines:
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict) and isinstance(row.get("response"), str):
            response = row["response"]
    counts = _GENERATED.findall(printed)
    tokens = int(counts[-1]) if counts else None
    answered = response is not None and (bool(response) or bool(tokens))
    return InferAnswer(answered=answered, response=response, generated_tokens=tokens)
