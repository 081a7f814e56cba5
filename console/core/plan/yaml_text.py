"""YAML text into pydantic models; errors name the file, the line, the field and what was expected."""

import re
from typing import TypeVar

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from console.core.errors import InputError

Model = TypeVar("Model", bound=BaseModel)


_BOOL = "tag:yaml.org,2002:bool"


class _Loader(yaml.SafeLoader):
    """Booleans as in YAML 1.2: a key `on` is the word, not True."""

    yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag != _BOOL]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


_Loader.add_implicit_resolver(_BOOL, re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF"))


def parse_yaml(model: type[Model], text: str, *, file: str) -> Model:
    """Read one YAML document into `model`.

    Raises `InputError` with `file:line: field: what was expected` for every fault found, all in one message.
    """
    try:
        tree = yaml.compose(text, Loader=_Loader)
        data = yaml.load(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{file}:{mark.line + 1}" if mark else file
        raise InputError(f"{where}: not readable as YAML", why=str(error.problem or error)) from None
    except yaml.YAMLError as error:
        raise InputError(f"{file}: not readable as YAML", why=str(error)) from None
    except RecursionError:
        raise InputError(f"{file}: not readable as YAML", why="nested too deeply") from None
    if tree is None or not isinstance(data, dict):
        raise InputError(f"{file}: empty or not a mapping", next_step="start from one of the shipped files")
    repeated = _repeated_key(tree)
    if repeated:
        raise InputError(
            f"{file}:{repeated[1]}: {repeated[0]}: key given twice", next_step="keep one of them"
        )
    try:
        return model.model_validate(data)
    except ValidationError as error:
        faults = [_describe(fault, tree, file) for fault in error.errors(include_url=False)]
        raise InputError("\n".join(faults), next_step="correct the file and start again") from None


def _describe(fault: ErrorDetails, tree: yaml.Node, file: str) -> str:
    tag = fault.get("ctx", {}).get("discriminator", "").strip("'")
    line, path = _locate((*fault["loc"], tag) if tag else fault["loc"], tree)
    field = ".".join(path) or "(whole file)"
    message = fault["msg"].removeprefix("Value error, ")
    if fault["type"] == "extra_forbidden":
        message = "unknown key; expected one of the documented keys"
    elif fault["type"] == "missing":
        message = "missing; this key is required"
    given = fault.get("input")
    shown = f" (given: {given!r})" if isinstance(given, str | int | float | bool) else ""
    return f"{file}:{line}: {field}: {message}{shown}"


def _locate(loc: tuple[int | str, ...], tree: yaml.Node) -> tuple[int, list[str]]:
    """The line of the deepest part of `loc` that stands in the text, and the path as the user wrote it.

    Discriminator tags of unions are part of pydantic's `loc` but not of the text; they are passed over.
    """
    node, line, path = tree, tree.start_mark.line + 1, []
    for part in loc:
        child = _child(node, part)
        if child is None:
            if part is loc[-1] and isinstance(node, yaml.MappingNode):
                path.append(str(part))
            continue
        key_line, node = child
        line = key_line
        path.append(str(part))
    return line, path


def _child(node: yaml.Node, part: int | str) -> tuple[int, yaml.Node] | None:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if str(key.value) == str(part):
                return key.start_mark.line + 1, value
    elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        return node.value[part].start_mark.line + 1, node.value[part]
    return None


def _repeated_key(node: yaml.Node) -> tuple[str, int] | None:
    """YAML takes the last of two equal keys silently; a profile must not."""
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if key.value in seen:
                return str(key.value), key.start_mark.line + 1
            seen.add(str(key.value))
            if found := _repeated_key(value):
                return found
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            if found := _repeated_key(value):
                return found
    return None
