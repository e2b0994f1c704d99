"""Scenario files: found by path or name, read with line numbers in every complaint, checked as a whole."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from rig.analysis.verdict import known_checks
from rig.config.expect import problems_of
from rig.config.fields import WRITTEN
from rig.config.problems import FieldPath, Problem, error_of, locate
from rig.config.stock import stock_folder
from rig.config.tree import parse
from rig.errors import ConfigError
from rig.verify.scenario import Condition, Scenario, Step

FOLDER: Final = "verify"
_READ_MAX: Final = (1 << 20) + 1


def stock_scenarios() -> list[str]:
    """The names of the scenarios that come with the rig, in the order in which they are played."""
    return sorted(path.stem for path in (stock_folder("faults") / FOLDER).glob("*.yaml"))


def load_scenario(name_or_path: str) -> Scenario:
    """The scenario of this path, or of this name in ./faults/verify or among the stock ones. Raises ConfigError."""
    path = _found(name_or_path)
    try:
        with path.open("rb") as stream:
            content = stream.read(_READ_MAX)
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror or error}", file=str(path)) from error
    tree = parse(content, str(path))
    try:
        scenario = Scenario.model_validate(tree.value, context=WRITTEN)
    except ValidationError as error:
        raise error_of(locate(tree.source, problems_of(error, Scenario))) from None
    problems = list(scenario_problems(scenario))
    if problems:
        raise error_of(locate(tree.source, problems))
    return scenario


def _found(name_or_path: str) -> Path:
    path = Path(os.path.expanduser(name_or_path))
    if path.is_file():
        return path
    if "/" not in name_or_path:
        for folder in (Path("faults") / FOLDER, stock_folder("faults") / FOLDER):
            candidate = folder / f"{name_or_path}.yaml"
            if candidate.is_file():
                return candidate
    raise ConfigError(
        "there is no scenario of this name",
        file=name_or_path or "(empty name)",
        remedy=f"give a path, or one of: {', '.join(stock_scenarios())}",
    )


def scenario_problems(scenario: Scenario) -> Iterator[Problem]:
    """Names that nothing introduced, faults in a scenario that does without, checks that do not exist. Pure."""
    checks = {check.name for check in known_checks()}
    for index, name in enumerate(scenario.proves):
        if name not in checks:
            yield Problem(("proves", index), f"expected the name of a check, not {name!r}")
    known: dict[str, str] = {}
    for index, step in enumerate(scenario.steps):
        path: FieldPath = ("steps", index, step.given()[0])
        yield from _step(step, path, known, faults=scenario.faults)


def _step(step: Step, path: FieldPath, known: dict[str, str], *, faults: bool) -> Iterator[Problem]:
    if not faults and (step.lose or step.crash or step.strike):
        yield Problem(path, "expected `faults: true` in a scenario that harms nodes")
    for name, kinds in _used(step):
        if name not in known:
            yield Problem(path, f"expected the name of {' or '.join(kinds)} from a step before, not {name!r}")
        elif known[name] not in kinds:
            yield Problem(path, f"{name!r} is {known[name]}; expected {' or '.join(kinds)}")
    for name, kind in _introduced(step):
        if name == "unknown" or (name in known and known[name] != kind):
            yield Problem(path, f"the name {name!r} is taken")
        known[name] = kind


_DEPLOYMENT, _INSTANCE, _DOWN = "a deployment", "an instance placed by hand", "a node that is down"


def _introduced(step: Step) -> Iterator[tuple[str, str]]:
    if step.deploy is not None:
        yield step.deploy.as_, _DEPLOYMENT
    if step.place is not None:
        yield step.place.as_, _INSTANCE
    if step.crash is not None:
        yield step.crash.as_, _DOWN


def _used(step: Step) -> Iterator[tuple[str, tuple[str, ...]]]:
    if step.delete is not None and step.delete.of != "unknown":
        yield step.delete.of, (_DEPLOYMENT,)
    if step.delete_instance is not None and step.delete_instance.of != "unknown":
        yield step.delete_instance.of, (_DEPLOYMENT, _INSTANCE)
    if step.lose is not None:
        yield step.lose.of, (_DEPLOYMENT,)
    for hit in (step.crash, step.strike):
        if hit is not None and hit.of is not None:
            yield hit.of, (_DEPLOYMENT, _INSTANCE)
    if step.restart is not None:
        yield step.restart, (_DOWN,)
    for condition in (step.wait_for, step.expect):
        if condition is not None:
            yield from _named(condition)


def _named(condition: Condition) -> Iterator[tuple[str, tuple[str, ...]]]:
    for name in (condition.placed, condition.serving, condition.alone, condition.refused):
        if name is not None:
            yield name, (_DEPLOYMENT,)
    for name in (condition.gone, condition.there):
        if name is not None:
            yield name, (_DEPLOYMENT, _INSTANCE)
