"""Components one by one: one that crashes or hangs hides none of the others."""

from pathlib import Path

import pytest

from .conftest import Ask


@pytest.fixture
def modules(tmp_path: Path) -> Path:
    """A folder for fake modules."""
    return tmp_path


def fake(folder: Path, name: str, text: str) -> None:
    place = folder / name
    place.mkdir(parents=True)
    (place / "__init__.py").write_text(text)


def test_each_component_has_its_own_result(ask: Ask, modules: Path) -> None:
    fake(modules, "mcore_bridge", "__version__ = '1.6.0'\nprint('hello from the import')\n")
    fake(modules, "flash_attn", "raise ImportError('flash_attn_2_cuda.so: undefined symbol: _ZN3c10')\n")
    fake(modules, "apex", "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n")
    fake(modules, "megatron/core", "import time\ntime.sleep(300)\n")
    fake(modules, "transformer_engine", "__version__ = '2.16.0'\n")
    fake(modules, "transformer_engine/pytorch", "")
    answer = ask("components", {"seconds": 3}, env={"PYTHONPATH": str(modules)})
    assert answer["ok"] is True
    assert answer["mcore_bridge"]["ok"] is True
    assert answer["mcore_bridge"]["version"] == "1.6.0"
    assert answer["mcore_bridge"]["error"] is None
    assert answer["transformer_engine"]["version"] == "2.16.0"
    assert "undefined symbol: _ZN3c10" in answer["flash_attn"]["error"]
    assert "SIGSEGV" in answer["apex"]["error"]
    assert "no answer within" in answer["megatron_core"]["error"]
    assert answer["megatron_core"]["seconds"] >= 3


def test_a_component_that_exits_is_a_failure(ask: Ask, modules: Path) -> None:
    fake(modules, "apex", "import os\nos._exit(0)\n")
    fake(modules, "flash_attn", "import sys\nsys.exit('no GPU')\n")
    answer = ask("components", {"components": ["apex", "flash_attn"]}, env={"PYTHONPATH": str(modules)})
    assert answer["apex"]["ok"] is False
    assert answer["apex"]["error"]
    assert "SystemExit: no GPU" in answer["flash_attn"]["error"]


def test_only_what_is_asked_for_is_tried(ask: Ask, modules: Path) -> None:
    fake(modules, "apex", "")
    answer = ask("components", {"components": ["apex"]}, env={"PYTHONPATH": str(modules)})
    assert answer["apex"]["ok"] is True
    assert answer["apex"]["version"] == "unknown"
    assert answer.keys() == {"ok", "apex"}


def test_a_component_that_is_not_there_gives_the_raw_traceback(ask: Ask) -> None:
    answer = ask("components", {"components": ["mcore_bridge"]}, env={"PYTHONPATH": ""})
    if answer["mcore_bridge"]["ok"]:
        pytest.skip("mcore_bridge is installed here")
    assert "No module named 'mcore_bridge'" in answer["mcore_bridge"]["error"]


def test_an_unknown_component_is_refused(ask: Ask) -> None:
    assert ask("components", {"components": ["os"]})["kind"] == "bad arguments"


def test_imports_keep_both_tracebacks(ask: Ask, modules: Path) -> None:
    fake(modules, "torch", "raise OSError('libcudart.so.12: cannot open shared object file')\n")
    fake(modules, "swift", "raise ImportError('no torch, no swift')\n")
    answer = ask("imports", env={"PYTHONPATH": str(modules)})
    assert (answer["ok"], answer["kind"], answer["device_works"]) == (False, "import", False)
    assert "libcudart.so.12" in answer["torch"]["error"]
    assert "no torch, no swift" in answer["swift"]["error"]
    assert answer["torch"]["version"] is None


def test_a_device_that_is_listed_but_does_not_work(ask: Ask, modules: Path) -> None:
    fake(
        modules,
        "torch",
        "__version__ = '2.13.0'\n"
        "class version: cuda = '13.0'\n"
        "class cuda:\n"
        "    is_available = staticmethod(lambda: True)\n"
        "    device_count = staticmethod(lambda: 1)\n"
        "    get_device_name = staticmethod(lambda index: 'NVIDIA GB10')\n"
        "    get_device_capability = staticmethod(lambda index: (12, 1))\n"
        "    get_arch_list = staticmethod(lambda: ['sm_90'])\n"
        "def ones(*size, device):\n"
        "    raise RuntimeError('CUDA error: no kernel image is available for execution on the device')\n",
    )
    answer = ask("imports", env={"PYTHONPATH": str(modules)})
    assert answer["torch"]["device_count"] == 1
    assert answer["torch"]["capability"] == "12.1"
    assert answer["device_works"] is False
    assert "no kernel image" in answer["error"]
