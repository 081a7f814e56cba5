"""The packed program: the same everywhere, old syntax, standard library only, its account never torn."""

import ast
import asyncio
import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from support.local_node import LocalNode

from console.core.errors import AnswerUnreadable, InputError, ScriptFailed
from console.nodes.agent.bundle import bundle
from console.nodes.agent.calling import call
from console.nodes.agent.program.folder import Folder

REQUEST = {"root": "~/.lab", "experiment": "window"}


def sources() -> dict[str, str]:
    with zipfile.ZipFile(io.BytesIO(bundle().data)) as archive:
        return {name: archive.read(name).decode() for name in archive.namelist()}


def test_it_is_written_for_python_3_8_and_its_standard_library() -> None:
    for name, text in sources().items():
        tree = ast.parse(text, filename=name, feature_version=(3, 8))
        for node in ast.walk(tree):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module or ""]
            for module in names:
                assert module.split(".")[0] in sys.stdlib_module_names, f"{name} imports {module}"


def test_the_same_sources_give_the_same_bytes() -> None:
    first = bundle()
    bundle.cache_clear()
    assert bundle() == first


async def test_it_is_brought_to_the_node_once(node: LocalNode) -> None:
    answer = await call(node, "status", REQUEST, timeout=30)
    assert answer["detail"] == "no guard was started for this experiment"
    (program,) = (node.home / ".lab" / "agent").iterdir()
    assert program.name == bundle().name
    unpacked = {str(path.relative_to(program)): path.read_text() for path in program.rglob("*.py")}
    assert unpacked == sources()
    written_at = (program / "__main__.py").stat().st_mtime_ns
    await call(node, "status", REQUEST, timeout=30)
    assert (program / "__main__.py").stat().st_mtime_ns == written_at


async def test_two_that_bring_it_at_once_both_succeed(node: LocalNode) -> None:
    answers = await asyncio.gather(*(call(node, "status", REQUEST, timeout=30) for _ in range(3)))
    assert all(answer["phase"] == "idle" for answer in answers)
    assert [path.name for path in (node.home / ".lab" / "agent").iterdir()] == [bundle().name]


async def test_what_goes_wrong_is_told(node: LocalNode) -> None:
    with pytest.raises(InputError, match="no such subcommand"):
        await call(node, "nonsense", REQUEST, timeout=30)
    node.environment["PATH"] = "/nowhere"
    with pytest.raises(ScriptFailed, match="ended with 127"):
        await call(node, "status", REQUEST, timeout=30)


async def test_an_answer_that_was_cut_is_no_answer(node: LocalNode, tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "python3").write_text('#!/bin/sh\nprintf \'{"answer": {"a"\'\n')
    (tools / "python3").chmod(0o755)
    await call(node, "status", REQUEST, timeout=30)
    node.environment["PATH"] = f"{tools}:/usr/bin:/bin"
    with pytest.raises(AnswerUnreadable):
        await call(node, "status", REQUEST, timeout=30)


async def test_texts_from_the_node_are_made_safe(node: LocalNode, tmp_path: Path) -> None:
    folder = Folder(str(node.home / ".lab"), "window")
    folder.create()
    folder.account("what", "\x1b]52;c;evil\x07 done")
    answer = await call(node, "account", REQUEST | {"since": 0}, timeout=30)
    assert answer["lines"][0]["detail"] == " done"


def test_a_torn_line_of_the_account_is_closed_and_counted_on(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path), "window")
    folder.create()
    folder.account("first")
    with Path(folder.file("account.jsonl")).open("ab") as file:
        file.write(b'{"n": 2, "wh')
    folder.account("second")
    assert [(line["n"], line["what"]) for line in folder.account_since(0)] == [(1, "first"), (2, "second")]


def test_many_writers_number_the_account_without_gaps(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path), "window")
    folder.create()
    code = (
        "import sys; from console.nodes.agent.program.folder import Folder\n"
        "folder = Folder(sys.argv[1], 'window')\n"
        "for _ in range(20):\n"
        "    folder.account('x'); folder.change(lambda state: state.update(n=state.get('n', 0) + 1))\n"
    )
    writers = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path)]) for _ in range(3)]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    assert [line["n"] for line in folder.account_since(0)] == list(range(1, 61))
    assert json.loads(Path(folder.file("state.json")).read_text())["n"] == 60
