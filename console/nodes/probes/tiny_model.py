"""Builds the profile's tiny model and data set on the node, or finds the named ones.

Arguments: `model_path`, `data_sources` (the first one is the file that is built); to build: the fields
`layers, hidden, heads, kv_heads, ffn, vocab, rows, seed`. Without them nothing is built and the answer says
what is there; `cache` is then the folder in which downloaded models are looked for.

The same arguments give the same bytes. What is there already is checked by its hashes and used again; a
folder of that name that this probe did not make is left alone. Folders and files appear under their names
only when complete.
"""

import contextlib
import hashlib
import json
import os
import random
import shutil
import sys
from pathlib import Path
from typing import Any

from console.nodes.probes.kit import Failed, answer, read_text

_FIELDS = ("layers", "hidden", "heads", "kv_heads", "ffn", "vocab", "rows", "seed")
_MARK = "lab-build.json"
_SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
_VERBS = ("start", "stop", "check", "restart", "drain", "watch", "measure", "release")
_THINGS = ("the job", "the service", "a node", "the ring", "the cache", "the queue", "the disk", "a rank")
_ENDS = ("then wait", "then read the log", "then write it down", "then ask again", "and keep the number")


def tiny_model(args: dict[str, Any]) -> dict[str, Any]:
    model_path = str(args.get("model_path") or "")
    sources = [str(source) for source in args.get("data_sources") or ()]
    if not model_path or not sources:
        raise Failed("bad arguments", "model_path and data_sources are needed")
    if args.get("layers") is None:
        return _found(model_path, sources, args.get("cache"))
    build = _checked(args)
    data_path, folder = _place(sources[0]), _place(model_path)
    data, data_built = _data(data_path, build)
    mark, model_built = _model(folder, build, [str(row["text"]) for row in _texts(build)])
    return {
        "model_ok": True,
        "data_ok": True,
        "built": model_built or data_built,
        "model_path": str(folder),
        "data_path": str(data_path),
        "rows": build["rows"],
        "data_sha256": data,
        **mark,
    }


def _checked(args: dict[str, Any]) -> dict[str, int]:
    try:
        build = {field: int(args[field]) for field in _FIELDS}
    except (KeyError, TypeError, ValueError) as error:
        raise Failed("bad arguments", f"a number is missing or is none: {error}") from error
    if build["hidden"] % build["heads"] or (build["hidden"] // build["heads"]) % 2:
        raise Failed("bad arguments", "hidden must be an even multiple of heads (rotary pairs)")
    if build["heads"] % build["kv_heads"]:
        raise Failed("bad arguments", "heads must be a multiple of kv_heads")
    return build


def _texts(build: dict[str, int]) -> list[dict[str, str]]:
    """Question and answer of every row; both come from the seed alone."""
    draw = random.Random(build["seed"])
    rows = []
    for number in range(build["rows"]):
        verb, thing = draw.choice(_VERBS), draw.choice(_THINGS)
        steps = [
            f"{draw.choice(_VERBS)} {draw.choice(_THINGS)} {draw.choice(_ENDS)} {draw.randint(1, 99)}."
            for _ in range(draw.choice((1, 2, 3, 4, 6)))
        ]
        question = f"How do I {verb} {thing}? Case {number}."
        rows.append(
            {"question": question, "answer": " ".join(steps), "text": question + " " + " ".join(steps)}
        )
    return rows


def _data(path: Path, build: dict[str, int]) -> tuple[str, bool]:
    """Write the data set, unless these bytes are there already; its sha256, and whether it was written."""
    body = "".join(
        json.dumps(
            {
                "messages": [
                    {"role": "user", "content": row["question"]},
                    {"role": "assistant", "content": row["answer"]},
                ]
            }
        )
        + "\n"
        for row in _texts(build)
    ).encode()
    digest = hashlib.sha256(body).hexdigest()
    if path.is_file() and _sha256(path) == digest:
        return digest, False
    path.parent.mkdir(parents=True, exist_ok=True)
    part = _building(path)
    with part.open("wb") as stream:
        stream.write(body)
        stream.flush()
        os.fsync(stream.fileno())
    part.replace(path)
    return digest, True


def _model(path: Path, build: dict[str, int], texts: list[str]) -> tuple[dict[str, Any], bool]:
    """The model's figures, and whether it had to be built."""
    wanted = {field: build[field] for field in _FIELDS}
    mark = _mark(path)
    if mark is not None and mark["build"] == wanted and _intact(path, mark):
        return _figures(mark), False
    if mark is None and (path.exists() or path.is_symlink()):
        raise Failed("not ours", f"{path} exists and was not built by this probe; nothing was changed")
    path.parent.mkdir(parents=True, exist_ok=True)
    part = _building(path)
    shutil.rmtree(part, ignore_errors=True)
    try:
        parameters = _write_model(part, build, texts)
        files = {file.name: _sha256(file) for file in sorted(part.iterdir())}
        made = {"build": wanted, "parameters": parameters, "files": files}
        (part / _MARK).write_text(json.dumps(made, indent=1), encoding="utf-8")
        _put_in_place(part, path, wanted)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    # Another node may have put its own there first: with the same arguments it holds the same bytes.
    mark = _mark(path)
    if mark is None or mark["build"] != wanted:
        raise Failed("raced", f"another build took {path} with other arguments")
    return _figures(mark), True


def _put_in_place(part: Path, path: Path, wanted: dict[str, int]) -> None:
    """Rename the finished folder; an older build of other arguments, or a damaged one, makes way."""
    old = path.with_name(f"{path.name}.old-{_self()}")
    mark = _mark(path)
    if mark is not None and (mark["build"] != wanted or not _intact(path, mark)):
        with contextlib.suppress(FileNotFoundError):
            path.rename(old)
    try:
        part.rename(path)
    except OSError:
        if _mark(path) is None:
            raise
    shutil.rmtree(old, ignore_errors=True)


def _write_model(folder: Path, build: dict[str, int], texts: list[str]) -> int:
    """Write config, weights and tokenizer; the number of parameters, tied ones counted once."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    try:
        import torch
        from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
        from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM
    except ImportError as error:
        raise Failed("import", f"{sys.executable}: {error}") from error
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(
        texts,
        trainers.BpeTrainer(
            vocab_size=build["vocab"],
            special_tokens=list(_SPECIAL),
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    fast: Any = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>", model_max_length=4096
    )
    fast.chat_template = (
        "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n"
        "{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    config = Qwen2Config(
        vocab_size=build["vocab"],
        hidden_size=build["hidden"],
        intermediate_size=build["ffn"],
        num_hidden_layers=build["layers"],
        num_attention_heads=build["heads"],
        num_key_value_heads=build["kv_heads"],
        max_position_embeddings=4096,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=fast.eos_token_id,
        pad_token_id=fast.pad_token_id,
    )
    torch.manual_seed(build["seed"])
    torch.set_default_dtype(torch.float32)
    model: Any = Qwen2ForCausalLM(config)  # type: ignore[no-untyped-call]
    model.save_pretrained(folder)
    fast.save_pretrained(folder)
    return sum(parameter.numel() for parameter in model.parameters())


def _mark(path: Path) -> dict[str, Any] | None:
    try:
        mark = json.loads(read_text(path / _MARK) or "null")
    except ValueError:
        return None
    return mark if isinstance(mark, dict) and {"build", "parameters", "files"} <= mark.keys() else None


def _intact(path: Path, mark: dict[str, Any]) -> bool:
    return all(
        (path / name).is_file() and _sha256(path / name) == digest for name, digest in mark["files"].items()
    )


def _figures(mark: dict[str, Any]) -> dict[str, Any]:
    return {
        "parameters": mark["parameters"],
        "weights_sha256": mark["files"].get("model.safetensors"),
        "tokenizer_sha256": mark["files"].get("tokenizer.json"),
    }


def _found(model_path: str, sources: list[str], cache: Any) -> dict[str, Any]:
    """Whether a named model and data are there. An id in no cache is downloaded by the training itself."""
    missing = [source for source in sources if _local(source) and not _place(source).exists()]
    if _local(model_path):
        there = (_place(model_path) / "config.json").is_file()
        where = _place(model_path) if there else None
    else:
        there = True
        where = next((place for place in _cache_places(model_path, cache) if place.is_dir()), None)
    error = [] if there else [f"no model at {model_path} (config.json is not there)"]
    error += [f"no data set at {_place(source)}" for source in missing]
    found: dict[str, Any] = {
        "model_ok": there,
        "data_ok": not missing,
        "built": False,
        "model_path": model_path,
        "model_found_at": str(where) if where else None,
        "model_download_needed": where is None and there,
        "data_sources": sources,
    }
    return found | ({"ok": False, "kind": "missing", "error": "; ".join(error)} if error else {})


def _cache_places(model_id: str, cache: Any) -> list[Path]:
    """Where ModelScope and Hugging Face keep a downloaded model of that id."""
    escaped = model_id.replace(".", "___")
    roots = [str(cache)] if cache else []
    roots.append(os.environ.get("MODELSCOPE_CACHE") or "~/.cache/modelscope")
    places = [Path(root, *part, escaped) for root in roots for part in (("models",), ("hub", "models"))]
    hub = os.environ.get("HF_HUB_CACHE")
    home = Path(hub) if hub else Path(os.environ.get("HF_HOME") or "~/.cache/huggingface", "hub")
    places.append(home / ("models--" + model_id.replace("/", "--")) / "snapshots")
    return [place.expanduser() for place in places]


def _local(source: str) -> bool:
    return source.startswith(("/", "~", "./", "../")) or source.split("#")[0].endswith(
        (".jsonl", ".json", ".csv")
    )


def _place(source: str) -> Path:
    return Path(source.split("#")[0]).expanduser()


def _building(path: Path) -> Path:
    """The name under which it grows; no two builders share one."""
    return path.with_name(f"{path.name}.building-{_self()}")


def _self() -> str:
    return f"{os.uname().nodename}-{os.getpid()}"


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


if __name__ == "__main__":
    answer(tiny_model)
