"""A running embedded cluster for soaks one after another, a soak as a real process on it, and what is left of both."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from rig.errors import JournalError
from rig.journal.read import read_run
from rig.journal.records import AnyRecord, FaultChanged, FaultState, Phase, PhaseStarted
from rig.lab.embedded.prepare import ClusterLayout, read_layout
from rig.lab.embedded.reap import marked

RIG = (sys.executable, "-m", "rig")
PACE = 40.0
PATIENCE_S = 90.0  # for whatever a machine that is busy with other things may take its time over

_WORKLOAD = """\
name: brisk
models:
  - model: lab/tiny-a
  - model: lab/tiny-b
    min_nodes: 2
clients: 4
prompt_tokens: {low: 16, high: 32}
output_tokens: {low: 4, high: 12}
deadlines: {progress: 10m, total: 12m} # a busy machine does not go faster at a higher pace
"""
_PLAN = """\
name: one-kind
gap: 4s
baseline: %(baseline)s
settle: 20m
sustained: 15s
kinds:
  %(kind)s: {hold: %(hold)gs}
"""
_SPEC = """\
name: spec
embedded: {nodes: %(nodes)d, pace: %(pace)g, load_time: %(load_time)gs}
"""


def until(condition: Callable[[], bool], what: str, *, within_s: float = PATIENCE_S, every_s: float = 0.02) -> float:
    """The moment (`time.monotonic()`) at which a condition was seen to hold; fails the test when it never does."""
    deadline = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail(f"not within {within_s:g} s: {what}")
        time.sleep(every_s)
    return time.monotonic()


def rig(
    *arguments: str, cwd: Path, within_s: float = PATIENCE_S, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """One command to its end, without a terminal. `environment` is added to that of the tests."""
    return subprocess.run(
        [*RIG, *arguments],
        cwd=cwd,
        env=clean_environment() | dict(environment or {}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=within_s,
        check=False,
    )


def clean_environment() -> dict[str, str]:
    """Without what the person who runs the tests may have set for the rig."""
    return {name: value for name, value in os.environ.items() if name not in ("RIG_INVENTORY", "COLUMNS", "NO_COLOR")}


def write_workload(folder: Path, text: str = _WORKLOAD) -> Path:
    path = folder / "brisk.yaml"
    path.write_text(text)
    return path


def write_plan(folder: Path, kind: str, *, hold_s: float, baseline_s: float = 0.1, pace: float = PACE) -> Path:
    """One kind alone, struck soon. Seconds as they pass."""
    path = folder / "one-kind.yaml"
    hold = 0.0 if kind == "runner-kill" else hold_s * pace
    path.write_text(_PLAN % {"kind": kind, "hold": hold, "baseline": f"{baseline_s * pace:g}s"})
    return path


def write_spec(folder: Path, *, nodes: int = 2, pace: float = PACE, load_time_s: float = 4.0) -> Path:
    path = folder / "spec.yaml"
    path.write_text(_SPEC % {"nodes": nodes, "pace": pace, "load_time": load_time_s})
    return path


@dataclass(frozen=True)
class Lane:
    """A cluster that `rig cluster up` started. One soak at a time."""

    folder: Path

    @property
    def layout(self) -> ClusterLayout:
        return read_layout(self.folder)

    @property
    def inventory(self) -> str:
        return str(self.folder / "inventory.yaml")

    def on_nodes(self) -> list[psutil.Process]:
        """Processes on the nodes that are not the target's: commands, scripts, whatever was started over SSH."""
        return [process for process in marked(f"{self.layout.cluster}/") if not _of_target(process)]

    def leases(self) -> list[str]:
        """As files on the nodes."""
        return [str(path) for folder in self._rig_dirs() for path in (folder / "leases").glob("[!.]*")]

    def locks(self) -> list[str]:
        return [str(folder / "lock") for folder in self._rig_dirs() if (folder / "lock").exists()]

    def _rig_dirs(self) -> list[Path]:
        return [self.layout.node_folder(node) / "rig" for node in self.layout.nodes]


def _of_target(process: psutil.Process) -> bool:
    try:
        text = " ".join(process.cmdline())
    except psutil.Error:
        return True  # gone meanwhile
    return not text or "rig.lab.embedded.process" in text or "multiprocessing" in text


def start_lane(folder: Path, *, inert: str | None = None, nodes: int = 2) -> Lane:
    """It ends by itself after a while, should nobody end it."""
    folder.mkdir(parents=True)
    arguments = ["cluster", "up", "--json", "-i", str(write_spec(folder, nodes=nodes)), "--for", "20m"]
    lane = Lane(folder / "cluster")
    arguments += ["--folder", str(lane.folder), *(["--inert", inert] if inert else [])]
    done = rig(*arguments, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["inventory"] == lane.inventory
    return lane


def end_lane(lane: Lane) -> None:
    cluster = lane.layout.cluster
    done = rig("cluster", "down", "--folder", str(lane.folder), cwd=lane.folder.parent)
    assert done.returncode == 0, done.stderr
    assert [process.pid for process in marked(f"{cluster}/")] == []


@dataclass
class Soak:
    """`rig soak` as a process in a session of its own, its output in files; `folder` is its run's."""

    process: subprocess.Popen[bytes]
    work: Path
    folder: Path

    @property
    def out(self) -> str:
        return (self.work / "stdout").read_text()

    @property
    def err(self) -> str:
        return (self.work / "stderr").read_text()

    def records(self) -> Iterator[AnyRecord]:
        try:
            yield from read_run(self.folder).records()
        except JournalError:
            return  # not begun yet

    def reached(self, state: FaultState) -> FaultChanged | None:
        found = (one for one in self.records() if isinstance(one, FaultChanged) and one.state == state)
        return next(found, None)

    def entered(self, phase: Phase) -> bool:
        return any(isinstance(one, PhaseStarted) and one.phase == phase for one in self.records())

    def wait_for(self, condition: Callable[[], object], what: str) -> float:
        """Fails at once, with what it said, when the soak ends before."""
        moment = until(lambda: bool(condition()) or self.process.poll() is not None, what)
        if not condition():
            pytest.fail(f"ended with {self.process.returncode} before {what}:\n{self.err[-4000:]}")
        return moment

    def signal(self, number: signal.Signals) -> float:
        """To the whole process group, as a terminal does it. Returns the moment."""
        moment = time.monotonic()
        os.killpg(self.process.pid, number)
        return moment

    def wait(self) -> int:
        try:
            return self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            pytest.fail(f"did not end within {PATIENCE_S:g} s:\n{self.err[-4000:]}")

    def left(self) -> list[str]:
        """Processes of its session that outlived it."""
        found: list[str] = []
        for process in psutil.process_iter():
            try:
                if process.status() != psutil.STATUS_ZOMBIE and os.getsid(process.pid) == self.process.pid:
                    found.append(" ".join(process.cmdline()))
            except (psutil.Error, OSError):
                continue
        return found

    def end(self) -> None:
        """Whatever the test did not end."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def start_soak(
    work: Path,
    *options: str,
    stdout: int | None = None,
    stderr: int | None = None,
    out: Path | None = None,
    prefix: Sequence[str] = (),
) -> Soak:
    """Started in `work`. `stdout`, `stderr`: descriptors in place of the files. `prefix`: a command that becomes it."""
    results = out or work / "results"
    with (work / "stdout").open("wb") as own_out, (work / "stderr").open("wb") as own_err:
        process = subprocess.Popen(
            [*prefix, *RIG, "soak", "--yes", "--name", "run", "--out", str(results), *options],
            cwd=work,
            env=clean_environment(),
            stdin=subprocess.DEVNULL,
            stdout=own_out if stdout is None else stdout,
            stderr=own_err if stderr is None else stderr,
            start_new_session=True,
        )
    return Soak(process, work, results / "run")


def on_lane(lane: Lane, work: Path, kind: str, *, hold_s: float, baseline_s: float = 0.1) -> Sequence[str]:
    """The options of a soak with one kind of fault on a lane."""
    plan = write_plan(work, kind, hold_s=hold_s, baseline_s=baseline_s)
    return ("-i", lane.inventory, "-w", str(write_workload(work)), "-f", str(plan))
