"""`make sweep`: every transition of every kind of fault, and there the controller, the script or SSH is ended.

    python -m tests.sweep [--lanes N] [--only TEXT]

Then the other hostile conditions. A line a case; the exit status is 1 when anything was left behind. Needs root, for
network namespaces.
"""

from __future__ import annotations

import argparse
import os
import queue
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from tests.sweep.case import Case, Outcome, all_cases, run_case
from tests.sweep.disks import DISKS
from tests.sweep.hostile import CONDITIONS
from tests.sweep.nursery import Nursery
from tests.sweep.world import World

STOP = threading.Event()  # set by a signal: cases under way are finished, their worlds taken down


@dataclass(frozen=True)
class Task:
    name: str
    run: Callable[[World, Nursery, Path], Outcome]


def tasks(only: str) -> list[Task]:
    def of(case: Case) -> Task:
        return Task(str(case), lambda world, nursery, folder: run_case(world, nursery, case, folder))

    conditions = CONDITIONS | DISKS
    every = [*(Task(name, run) for name, run in conditions.items()), *map(of, all_cases())]  # the long ones first
    return [task for task in every if only in task.name]


def lane(number: int, todo: queue.SimpleQueue[Task], done: list[Outcome], folder: Path) -> None:
    """A world of its own, tasks until none is left. A world that is no longer what it was is made anew."""
    world: World | None = None
    nursery = Nursery()
    for count in range(sys.maxsize):
        try:
            if STOP.is_set():
                break
            task = todo.get_nowait()
        except queue.Empty:
            break
        if world is None:
            world = World(folder / f"lane-{number}-{count}", f"{os.getpid() % 10000}{number}{count % 100}")
            world.up()
        try:
            outcome = task.run(world, nursery, folder / f"case-{number}-{count}")
        except Exception as error:  # a case that could not be carried out is none that passed
            outcome = Outcome(task.name, "?", 0.0, None, [f"{type(error).__name__}: {error}"])
        done.append(outcome)
        print(f"{len(done):4} {outcome.line()}", flush=True)
        if outcome.residue:
            world.down()
            world = None
    nursery.close()
    if world is not None:
        world.down()


def stop(number: int, frame: FrameType | None) -> None:
    del number, frame
    STOP.set()


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.sweep")
    parser.add_argument(
        "--lanes", type=int, default=max(4, (os.cpu_count() or 4)), help="worlds at once; they mostly wait"
    )
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        print("make sweep needs root: the nodes are network namespaces", file=sys.stderr)
        return 2
    todo: queue.SimpleQueue[Task] = queue.SimpleQueue()
    wanted = tasks(arguments.only)
    for task in wanted:
        todo.put(task)
    done: list[Outcome] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    begun = time.monotonic()
    print(f"     {'case':46} {'healed by':11} {'after':>8} {'late':9} left behind")
    with tempfile.TemporaryDirectory(prefix="rig-sweep-") as folder:
        lanes = [
            threading.Thread(target=lane, args=(number, todo, done, Path(folder))) for number in range(arguments.lanes)
        ]
        for thread in lanes:
            thread.start()
        for thread in lanes:
            thread.join()
    return summary(done, len(wanted), time.monotonic() - begun)


def summary(done: list[Outcome], wanted: int, took_s: float) -> int:
    left = [outcome for outcome in done if outcome.residue]
    by = ", ".join(f"{who} {count}" for who, count in Counter(outcome.healed_by for outcome in done).most_common())
    late = max((outcome.late_s for outcome in done if outcome.late_s is not None), default=0.0)
    print(f"{len(done)} of {wanted} cases in {took_s:.0f} s; healed by {by}; latest heal {late:+.1f} s after its hold")
    print(f"residue: {len(left)}")
    return 1 if left or len(done) < wanted else 0


if __name__ == "__main__":
    sys.exit(main())
