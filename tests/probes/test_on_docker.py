"""The container variant on a real Docker engine."""

from collections.abc import Iterator

import pytest
from support.docker_engine import IMAGE, Engine, docker_engine, why_not

from .conftest import Ask

pytestmark = pytest.mark.docker


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    reason = why_not()
    if reason:
        pytest.skip(reason)
    with docker_engine(tmp_path_factory.mktemp("probes")) as running:
        yield running


def test_an_image_of_this_engine_by_digest(ask: Ask, engine: Engine) -> None:
    digest = engine("image", "inspect", "-f", "{{.Id}}", IMAGE)
    answer = ask(
        "environment",
        {"kind": "container", "image": f"{IMAGE}@{digest}"},
        env={"DOCKER_HOST": engine.address},
    )
    assert (answer["ok"], answer["isolated"], answer["reproducible"]) == (True, True, True), answer
    assert answer["image_digest"] == digest
    assert engine("run", "--rm", "--network", "none", answer["run_as"], "/usr/bin/python3", "-V")
    # The look inside answered: this image has a Python and no packages, so the list is empty but hashed.
    assert (answer["interpreter"], answer["packages"]) == ("/usr/bin/python3", 0)
    assert answer["freeze_sha256"]
    assert engine("ps", "--all", "--quiet") == ""


def test_an_image_that_this_engine_has_not(ask: Ask, engine: Engine) -> None:
    image = "stand-in@sha256:" + "00" * 32
    answer = ask("environment", {"kind": "container", "image": image}, env={"DOCKER_HOST": engine.address})
    assert (answer["ok"], answer["kind"]) == (False, "missing")
    assert "No such image" in answer["error"]


def test_the_engines_version_is_a_fact_of_the_machine(ask: Ask, engine: Engine) -> None:
    answer = ask("prerequisites", env={"DOCKER_HOST": engine.address})
    assert answer["docker"] == engine("version", "--format", "{{.Server.Version}}")
    assert isinstance(answer["image_digests"], dict)
