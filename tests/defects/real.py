"""The same run with real processes, by the commands that anybody would give: `rig soak`, `rig verify`."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from rig.errors import ClusterError
from rig.faults.plan.plan import Plan
from tests.defects.cases import Case
from tests.defects.draw import drawn
from tests.defects.ending import call
from tests.defects.play import Outcome, judged, worst

PACE: Final = 10.0
_SET_UP_S: Final = 180.0
_EXITS: Final = (0, 1, 3)


def real(case: Case, seed: int, *, defects: list[str], keep: Path | None) -> Outcome:
    """Raises ClusterError when the command did not come to a verdict."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="rig-defects-") as scratch:
        home = Path(scratch) if keep is None else keep
        home.mkdir(parents=True, exist_ok=True)
        what = drawn(case, seed, pace=PACE)
        inventory: dict[str, Any] = {
            "name": "drawn",
            "embedded": what.spec("sound", defects).model_dump(exclude_defaults=True),
        }
        inventory["embedded"] |= {"pace": PACE}
        named = _write(home / "inventory.yaml", inventory)
        common = ["--inventory", named, "--out", str(home), "--name", "run", "--yes"]
        if case.scenarios:
            command = ["verify", *dict.fromkeys(case.scenarios), *common]
            limit_s = _SET_UP_S + 600.0
        else:
            workload = _write(home / "workload.yaml", what.workload.model_dump(mode="json", exclude_defaults=True))
            plan = _write(home / "faults.yaml", _written(what.plan))
            minutes = f"{what.real_length_s / 60:.2f}"
            command = ["soak", "--minutes", minutes, "--workload", workload, "--faults", plan, *common]
            command += ["--seed", str(what.seed)]
            limit_s = _SET_UP_S + 3 * what.real_length_s
        ended = _call(command, home / "output.txt", limit_s)
        folders = [home / "run" / name for name in dict.fromkeys(case.scenarios)] or [home / "run"]
        return worst([judged(folder, ended, began, seed) for folder in folders])


def _written(plan: Plan) -> dict[str, Any]:
    """As a user writes it: durations with their unit."""
    kinds = {
        kind: {"hold": _span(one.hold)}
        | ({} if one.time_to_serve is None else {"time_to_serve": f"{one.time_to_serve}s"})
        for kind, one in plan.kinds.items()
    }
    return {
        "name": plan.name,
        "seed": plan.seed,
        "gap": _span(plan.gap),
        "baseline": f"{plan.baseline}s",
        "kinds": kinds,
    }


def _span(span: tuple[float, float]) -> str:
    return f"{span[0]:.3f}s..{span[1]:.3f}s"


def _write(path: Path, content: Mapping[str, Any]) -> str:
    path.write_text(yaml.safe_dump(dict(content), sort_keys=False))  # pyright: ignore[reportUnknownMemberType] (untyped keywords)
    return str(path)


def _call(command: list[str], output: Path, limit_s: float) -> str:
    with output.open("wb") as out:
        try:
            status = call([sys.executable, "-m", "rig", *command], out, limit_s)
        except TimeoutError as error:
            raise ClusterError(f"rig {command[0]} did not end within {limit_s:.0f} s") from error
    if status not in _EXITS:
        tail = output.read_text(errors="replace")[-600:]
        raise ClusterError(f"rig {command[0]} ended with status {status}: {tail}")
    return "finished" if status in (0, 1) else "finished, unknown"
