"""How problems are listed: all at once, each once, and on the command line."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import run

import pytest

from rig.config.read import load_inventory, load_workload
from rig.errors import EXIT_USAGE, ConfigError

Written = Callable[[str | bytes], str]


def test_every_problem_is_listed_at_once_in_the_order_of_the_file(written: Written) -> None:
    path = written("name: w\nclients: 0\nmodels:\n  - model: a\n    weight: -1\n  - modle: b\narrivals: {think: 5}\n")
    with pytest.raises(ConfigError) as caught:
        load_workload(path)
    places = [line.removeprefix(path).split(": ")[:2] for line in str(caught.value).splitlines()]
    assert places == [
        [":2", "clients"],
        [":5", "models[0].weight"],
        [":6", "models[1].model"],
        [":6", "models[1].modle"],
        [":7", "arrivals.think"],
    ]
    assert (caught.value.file, caught.value.line, caught.value.field) == (path, 2, "clients")


def test_a_wrong_default_is_said_once_not_for_each_node(written: Written) -> None:
    path = written(
        "name: lab\ndefaults:\n  exo: {home: relative}\nnodes:\n"
        "  a: {ssh: {host: a}, api: 'http://a:1'}\n  b: {ssh: {host: b}, api: 'http://b:1'}\n"
    )
    with pytest.raises(ConfigError) as caught:
        load_inventory(path)
    assert str(caught.value).startswith(f"{path}:3: defaults.exo.home: expected an absolute path")
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.processes
def test_the_command_line_prints_it_and_exits_2_without_a_traceback(written: Written) -> None:
    path = written("name: p\nkinds:\n  freeze: {hold: -5s}\n")
    ended = run(
        [sys.executable, "-m", "rig", "plan", "--faults", path],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        cwd=Path(__file__).parent,
    )
    assert ended.returncode == EXIT_USAGE
    assert f"{path}:3: kinds.freeze.hold: expected a duration" in ended.stderr
    assert "Traceback" not in ended.stderr + ended.stdout
    assert ended.stdout == ""
