"""Every worked number of the course, to the digit it is given in."""

import pytest

from console.core.ledger import catalogue
from console.core.ledger.choose import choose
from console.core.ledger.classic import classic_account, fits_sparks
from console.core.ledger.cost import converted_days, training_flops, training_seconds
from console.core.ledger.mfu import mfu_6n, sustained_tflops_6n

GB = 10**9
DAY = 86_400


@pytest.mark.parametrize(("billions", "static_gb"), [(7, 112), (32, 512)])
def test_sixteen_bytes_per_parameter(billions: int, static_gb: int) -> None:
    assert classic_account(billions * 1e9).static_bytes == static_gb * GB


def test_bf16_weights_of_125_billion_exceed_two_sparks() -> None:
    entry = catalogue.model("Qwen3.8-Flash-Next")
    account = classic_account(entry.nominal_parameters)

    assert account.weights_bytes == 250 * GB
    assert account.weights_bytes > 2 * 121.6 * GB


def test_seven_billion_are_at_the_limit_of_one_spark_and_fit_on_two() -> None:
    account = classic_account(7e9)

    assert fits_sparks(account, 1).startswith("at the limit")
    assert fits_sparks(account, 2).startswith("fits")
    assert fits_sparks(classic_account(32e9), 2).startswith("does not fit")


def test_lora_leaves_the_frozen_weights_as_the_bulk() -> None:
    account = classic_account(7e9, trained=20e6)

    assert account.weights_bytes / account.static_bytes > 0.97


def test_a_billion_tokens_on_seven_billion_parameters() -> None:
    assert training_flops(7e9, 1e9) == pytest.approx(4.2e19)
    assert training_seconds(7e9, 1e9, 31) == pytest.approx(1.35e6, rel=0.004)
    assert 15 < training_seconds(7e9, 1e9, 31) / DAY < 16


def test_750_tokens_per_second_are_35_percent_of_90_tflops() -> None:
    assert sustained_tflops_6n(7e9, 750) == pytest.approx(31.5)
    assert mfu_6n(7e9, 750, 1, 90) == pytest.approx(0.35)


def test_fifteen_days_become_seven_on_two_machines() -> None:
    days = converted_days(
        15, machines=2, parallel_efficiency=0.85, utilisation_before=0.35, utilisation_after=0.45
    )

    assert round(days, 1) == 6.9


def test_exercise_two_is_24_5_percent_under_6n() -> None:
    assert round(100 * mfu_6n(14e9, 65_536 / 9.0, 8, 312), 1) == 24.5


def test_exercise_three_takes_the_offloaded_row() -> None:
    choice = choose(catalogue.course_table(), memory_gib=80, sequence=8192)

    assert choice.best is not None
    assert choice.best.row.name == "table offload"
    assert "only row that fits" in choice.best.reason
    assert "tight" in choice.best.reason
    out = {verdict.row.name: verdict.reason for verdict in choice.verdicts if verdict.rank is None}
    assert out["longer sequence"] == "needs 13.3 GiB more than there is"
    assert out["baseline"] == "is for sequence 2048, not 8192"
