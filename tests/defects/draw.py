"""What a run is made of, drawn anew from a seed: pace, load, faults and their lengths. Pure."""

from __future__ import annotations

import random
from dataclasses import dataclass

from rig.config.inventory import Embedded
from rig.config.workload import Lengths, Model, Workload
from rig.faults.plan.plan import KindPlan, Plan
from rig.targets.exo.fields import ExoModel
from tests.defects.cases import ALL, Case

HOLDS: dict[str, tuple[float, float]] = {
    "node-crash": (5.0, 15.0),
    "master-crash": (5.0, 15.0),
    "freeze": (5.0, 45.0),
    "runner-kill": (0.0, 0.0),
    "partition": (15.0, 45.0),
}
_PER_FAULT_S = 130.0  # at pace 1: gap, hold, recovery, quiet time
_WORK_S = 3.5  # of a fault's, at any pace, with real processes
_BASELINE_S = 60.0
_TAIL_S = 130.0


@dataclass(frozen=True)
class Drawn:
    """Durations at pace 1, but `length_s` as it passes."""

    workload: Workload
    plan: Plan
    pace: float
    length_s: float
    seed: int
    faults: int

    @property
    def real_length_s(self) -> float:
        """With real processes."""
        return self.length_s + self.faults * _WORK_S

    def spec(self, behaviour: str, defects: list[str]) -> Embedded:
        return Embedded.model_validate(
            {"behaviour": behaviour, "defects": defects, "pace": self.pace, "seed": self.seed}
        )


def drawn(case: Case, seed: int, *, pace: float | None = None) -> Drawn:
    """With a `pace` of its own for real processes, which need time for their work at any pace."""
    rng = random.Random(f"{seed} {case}")
    pace = round(rng.uniform(3.0, 6.0), 2) if pace is None else pace
    gap_low = rng.uniform(60.0, 75.0)
    bound_s = rng.uniform(60.0, 90.0) if case.bounds else None
    plan = Plan(
        name="drawn",
        seed=seed,
        gap=(gap_low, gap_low + rng.uniform(10.0, 40.0)),
        baseline=_BASELINE_S,
        kinds={kind: KindPlan(hold=HOLDS[kind], time_to_serve=bound_s) for kind in case.kinds or ALL},
    )
    low = rng.randint(3, 6)
    models: list[Model] = [
        ExoModel(model="lab/tiny-a", min_nodes=1),
        ExoModel(model="lab/tiny-b", min_nodes=3 if case.shape == "scarce" else 2),
    ]
    workload = Workload(
        name="drawn",
        models=models,
        clients=rng.randint(9, 12),
        output_tokens=Lengths(low=low, high=low + rng.randint(0, 6)),
        streamed_share=rng.uniform(0.5, 0.8),
        canaries=case.canaries,
    )
    length_s = (_BASELINE_S + case.faults * _PER_FAULT_S + _TAIL_S) / pace
    return Drawn(workload, plan, pace, length_s, rng.getrandbits(31), case.faults)
