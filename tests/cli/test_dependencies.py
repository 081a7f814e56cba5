"""Every module that the console imports is of a package that it declares, not of one there by chance."""

import ast
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROBES = ROOT / "console" / "nodes" / "probes"
"""They run in the node's own environment and say what is missing there."""


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name.partition(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.partition(".")[0]


def declared() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    texts = [*project["dependencies"], *project["optional-dependencies"]["node"]]
    return {canonicalize_name(Requirement(text).name) for text in texts}


def test_imports_are_declared() -> None:
    known, packages = declared(), packages_distributions()
    undeclared = {
        f"{path.relative_to(ROOT)}: {module}"
        for path in (ROOT / "console").rglob("*.py")
        if PROBES not in path.parents
        for module in imported(path)
        if module not in sys.stdlib_module_names | {"console"}
        and not known & {canonicalize_name(name) for name in packages.get(module, [module])}
    }
    assert not undeclared
