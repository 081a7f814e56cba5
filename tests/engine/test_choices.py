"""What is recommended follows from the raw error; what stopping leads to, from what the lab has borrowed."""

import pytest

from console.cli.files import read_profile
from console.engine.choices import lasting, passing, stop_lab


@pytest.mark.parametrize(
    "error",
    [
        "ModuleNotFoundError: No module named 'megatron'",
        "ImportError: libcudart.so.13: cannot open shared object file: No such file or directory",
        "RuntimeError: no kernel image is available for execution on the device",
        "bash: nvcc: command not found",
        "megatron sft, one process, TP 1: node-a exit 127",
    ],
)
def test_what_stays_missing(error: str) -> None:
    assert lasting(error)
    assert not passing(error)


@pytest.mark.parametrize(
    ("error", "soon_over"),
    [
        ("no contact with spark-b", True),
        ("RuntimeError: EADDRINUSE, message: address already in use", True),
        ("torch.OutOfMemoryError: CUDA out of memory", False),
        ("AssertionError: world size 2 is not divisible by 4", False),
        ("", False),
    ],
)
def test_what_may_be_over_by_the_next_attempt(error: str, soon_over: bool) -> None:
    assert passing(error) is soon_over


def test_stopping_speaks_of_the_service_only_where_there_is_one() -> None:
    assert "service" in stop_lab(read_profile("spark-pair")).leads_to
    assert "service" not in stop_lab(read_profile("embedded")).leads_to
