"""The argument parsers of the installed ms-swift, asked in a process of their own.

Standard input: a JSON list of [mode, flags]; standard output: for each what is wrong with it, or "". Only the
declared arguments and their types are read: Megatron and what belongs to it can't be installed without a GPU,
so its modules are empty stand-ins here.
"""

import argparse
import importlib.abc
import importlib.machinery
import importlib.util
import json
import sys
import types
from collections.abc import Sequence

ABSENT = ("megatron", "mcore_bridge", "transformer_engine", "transformer_engine_torch")


class AnyName(type):
    """A class that has every attribute, each such a class again."""

    def __getattr__(cls, name: str) -> "AnyName":
        if name.startswith("__"):
            raise AttributeError(name)
        made = AnyName(name, (), {})
        setattr(cls, name, made)
        return made


class StandIn(types.ModuleType):
    """A module that has every name."""

    __path__: list[str] = []
    __version__ = "0.19.2"

    def __getattr__(self, name: str) -> AnyName:
        if name.startswith("__"):
            raise AttributeError(name)
        made = AnyName(name, (), {})
        setattr(self, name, made)
        return made


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname.split(".")[0] not in ABSENT:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return StandIn(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Nothing: a stand-in is whole as it is made."""


def main() -> None:
    asked = json.load(sys.stdin)
    sys.meta_path.insert(0, Finder())
    from swift.arguments import SftArguments
    from swift.megatron.arguments.sft_args import MegatronSftArguments
    from swift.utils.utils import _patch_get_type_hints
    from transformers import HfArgumentParser

    with _patch_get_type_hints():
        parsers = {
            "swift": HfArgumentParser([SftArguments]),
            "megatron": HfArgumentParser([MegatronSftArguments]),
        }
    json.dump([wrong(parsers[mode], flags) for mode, flags in asked], sys.stdout)


def wrong(parser: argparse.ArgumentParser, flags: list[str]) -> str:
    parser.exit_on_error = False
    try:
        _, unknown = parser.parse_known_args(flags)
    except argparse.ArgumentError as trouble:
        return str(trouble)
    return f"unknown: {unknown}" if unknown else ""


if __name__ == "__main__":
    main()
