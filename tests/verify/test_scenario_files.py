"""The scenarios that come with the rig, and what is said of files that are wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from rig.errors import ConfigError
from rig.targets.exo.checks import calls, promises
from rig.verify.read import load_scenario, stock_scenarios

WHOLE = """name: mine
about: something
proves: [one-placement]
steps:
  - deploy: { model: 1, as: a }
"""


@pytest.mark.parametrize("name", stock_scenarios())
def test_stock_scenarios_are_sound_and_end_with_an_expectation(name: str) -> None:
    scenario = load_scenario(name)
    assert scenario.name == name
    assert any(step.expect is not None for step in scenario.steps)
    assert all(step.text() for step in scenario.steps)


def test_every_promise_that_a_scenario_can_cause_is_proved_by_one() -> None:
    proved = {check for name in stock_scenarios() for check in load_scenario(name).proves}
    promised = {check.name for check in (*promises.CHECKS, *calls.CHECKS)}
    assert promised - proved == {"made-again"}  # no scenario can lose a placement on its way


def write(folder: Path, text: str) -> str:
    path = folder / "mine.yaml"
    path.write_text(text)
    return str(path)


def test_a_sound_file_is_read(tmp_path: Path) -> None:
    assert load_scenario(write(tmp_path, WHOLE)).steps[0].text() == "deploy as a"


@pytest.mark.parametrize(
    ("line", "text", "said"),
    [
        (3, WHOLE.replace("one-placement", "two-placements"), "expected the name of a check"),
        (5, WHOLE.replace("deploy", "deploi"), "deploi"),
        (5, WHOLE.replace("model: 1", "model: 0"), "expected at least 1"),
        (6, WHOLE + "  - expect: { placed: b }\n", "from a step before, not 'b'"),
        (6, WHOLE + "  - expect: { placed: a, gone: a }\n", "expected exactly one of placed"),
        (6, WHOLE + "  - expect: { within: 5s }\n", "expected exactly one of placed"),
        (6, WHOLE + "  - { delete: { of: a }, pause: 5s }\n", "expected exactly one of deploy"),
        (6, WHOLE + "  - pause: 5\n", "expected a duration"),
        (6, WHOLE + "  - crash: { node: free, as: down }\n", "faults: true"),
        (6, WHOLE + "  - restart: a\n", "'a' is a deployment; expected a node that is down"),
        (6, WHOLE + "  - place: { model: 1, as: a }\n", "the name 'a' is taken"),
        (6, WHOLE + "  - deploy: { model: 1, as: unknown }\n", "the name 'unknown' is taken"),
        (1, WHOLE.split("steps:", maxsplit=1)[0], "steps"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(tmp_path: Path, line: int, text: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_scenario(write(tmp_path, text))
    assert said in str(caught.value)
    assert caught.value.line == line


def test_a_name_that_is_none_is_told_the_others() -> None:
    with pytest.raises(ConfigError, match="deploy-places"):
        load_scenario("deploy-places-not")
