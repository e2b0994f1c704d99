"""One place divides durations: that it forgets none, and touches nothing else."""

from __future__ import annotations

from rig.clock import Pace
from rig.config.paced import paced_workload
from rig.config.workload import Arrivals, Deadlines, Model, Objectives, Workload
from rig.faults.plan.paced import paced_plan
from rig.faults.plan.plan import KindPlan, Plan

PLAN = Plan(
    name="p",
    seed=3,
    gap=(60.0, 150.0),
    settle=240.0,
    sustained=15.0,
    baseline=300.0,
    kinds={"freeze": KindPlan(weight=2.0, hold=(5.0, 45.0), time_to_serve=60.0), "runner-kill": KindPlan()},
)
WORK = Workload(
    name="w",
    models=[Model(model="m")],
    arrivals=Arrivals(kind="poisson", rate=2.0, think=5.0),
    deadlines=Deadlines(connect=3.0, progress=120.0, total=300.0),
    objectives=Objectives(ttft=2.0),
)


def test_every_duration_of_a_plan_is_divided_and_nothing_else() -> None:
    assert paced_plan(PLAN, Pace(10)) == Plan(
        name="p",
        seed=3,
        gap=(6.0, 15.0),
        settle=24.0,
        sustained=1.5,
        baseline=30.0,
        kinds={"freeze": KindPlan(weight=2.0, hold=(0.5, 4.5), time_to_serve=6.0), "runner-kill": KindPlan()},
    )


def test_every_duration_of_a_workload_is_divided_and_rates_are_multiplied() -> None:
    assert paced_workload(WORK, Pace(10)) == Workload(
        name="w",
        models=[Model(model="m")],
        arrivals=Arrivals(kind="poisson", rate=20.0, think=0.5),
        objectives=Objectives(ttft=0.2),
        deadlines=Deadlines(connect=1.0, progress=12.0, total=30.0),  # a connect takes what it takes: 1 s is the floor
    )


def test_a_connect_deadline_below_the_floor_stays() -> None:
    short = WORK.model_copy(update={"deadlines": Deadlines(connect=0.5, progress=120.0, total=300.0)})
    assert paced_workload(short, Pace(10)).deadlines.connect == 0.5


def test_pace_1_changes_nothing() -> None:
    assert paced_plan(PLAN, Pace(1)) == PLAN
    assert paced_workload(WORK, Pace(1)) == WORK


def test_no_duration_of_the_models_is_forgotten() -> None:
    """A field whose default is divided differs at pace 2; those that are no duration are named here."""
    plain = {"name", "seed", "blast_radius", "abort_after_unrecovered", "shuffle", "requires"}
    plain.add("calm_errors")
    divided = paced_plan(PLAN, Pace(2))
    assert {name for name in Plan.model_fields if getattr(divided, name) == getattr(PLAN, name)} == plain
    plain = {"name", "models", "clients", "prompt_tokens", "output_tokens", "pairs", "streamed_share", "entry"}
    plain |= {"temperature", "canaries", "canary_modes"}
    loaded = paced_workload(WORK, Pace(2))
    assert {name for name in Workload.model_fields if getattr(loaded, name) == getattr(WORK, name)} == plain
