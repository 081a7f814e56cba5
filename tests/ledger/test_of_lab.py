"""The shapes of a lab's model: one answer for the record, the predictions and the lint."""

from console.cli.files import read_lab
from console.core.ledger.of_lab import architecture_of, prediction_of
from console.core.plan.profile import ModelSpec, TinyModel
from console.engine.forecast import forecast, lint_launches

TINY = TinyModel(layers=4, hidden=128, heads=4, kv_heads=2, ffn=384, vocab=1000, rows=320)


def test_a_built_model_has_the_shapes_it_is_built_with() -> None:
    shapes = architecture_of(ModelSpec(path="/tiny", build=TINY))
    assert shapes is not None
    attention = 2 * 128 * 128 + 2 * 128 * 64 + 128 + 2 * 64
    layer = attention + 3 * 128 * 384 + 2 * 128
    assert shapes.parameters.total == 4 * layer + 1000 * 128 + 128
    assert shapes.name == "the lab's tiny model"


def test_a_named_model_has_those_of_the_catalogue() -> None:
    shapes = architecture_of(read_lab("h200-pair").profile.model)
    assert shapes is not None
    assert shapes.parameters.total == 7_615_616_512


def test_what_neither_knows_is_none() -> None:
    assert architecture_of(ModelSpec(path="somewhere/else")) is None
    assert architecture_of(ModelSpec(path="somewhere/else", name="None-7B")) is None


def test_a_prediction_says_whether_it_fits_the_device() -> None:
    lab = read_lab("h200-faults").profile
    sound, too_large = (prediction_of(lab, lab.configuration(name)) for name in ("F0", "F1"))
    assert sound.fit == "fits"
    assert too_large.fit == "does not fit"
    assert "too much even at the bottom of the band" in too_large.fit_reason
    assert prediction_of(read_lab("embedded").profile, lab.configuration("F0")).fit is None


def test_the_plan_warns_of_memory_that_is_not_there() -> None:
    lab = read_lab("h200-faults").profile
    warned = {}
    for config in lab.matrix.configurations:
        found = lint_launches(lab, config, forecast(lab, config))
        warned[config.id] = [one.severity for one in found if one.rule == "memory-fit"]
    assert warned == {"F0": [], "F1": ["warning"], "F2": []}
