"""Soaks that start an embedded cluster for themselves, and what becomes of that cluster when they are ended."""

from __future__ import annotations

import json
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import psutil

from rig.lab.embedded.prepare import ClusterLayout, read_layout
from rig.lab.embedded.reap import marked
from rig.lab.embedded.sampler import AnySample, read_samples
from tests.soak.endings import BRIEF_S, LONG_S, Ending
from tests.soak.lane import Lane, Soak, start_soak, until, write_plan, write_spec, write_workload
from tests.soak.witness import resolution_s, spells

_STUCK = """\
name: stuck
models:
  - model: lab/too-big # fits nowhere: it is waited for
clients: 1
"""


@dataclass(frozen=True)
class Owned:
    """A blow at a soak, or (`victim`) at its cluster, in one of its phases."""

    number: signal.Signals
    when: Literal["start", "setup", "hold"]
    victim: Literal["soak", "cluster"] = "soak"

    def __call__(self, lane: Lane, work: Path) -> Ending:
        """The lane is not used: this has a cluster of its own."""
        begun = time.monotonic()
        hold_s = BRIEF_S if self.number is signal.SIGKILL else LONG_S
        workload = write_workload(work, _STUCK) if self.when == "setup" else write_workload(work)
        plan = write_plan(work, "freeze", hold_s=hold_s)
        options = ("-i", str(write_spec(work)), "-w", str(workload), "-f", str(plan), "--minutes", "5")
        soak = start_soak(work, *options, "--keep-cluster")
        try:
            self._wait(soak)
            layout = read_layout(soak.folder / "cluster")
            acted = time.monotonic()
            if self.victim == "soak":
                soak.signal(self.number)
            else:
                _supervisor(layout).send_signal(self.number)
            code = soak.wait()
            until(lambda: not _left(layout), "nothing left of the cluster")
            return _ending(soak, layout, code, begun=begun, acted=acted)
        finally:
            soak.end()

    def _wait(self, soak: Soak) -> None:
        match self.when:
            case "start":
                soak.wait_for((soak.folder / "cluster" / "state.json").exists, "a cluster that is starting")
            case "setup":
                soak.wait_for(lambda: soak.entered("setup"), "phase setup")
            case "hold":
                soak.wait_for(lambda: soak.reached("holding"), "a fault in force")


def _ending(soak: Soak, layout: ClusterLayout, code: int, *, begun: float, acted: float) -> Ending:
    """`ended` is when nothing was left of the cluster; its folder is gone where nothing had run."""
    ended = time.monotonic()
    samples: list[AnySample] = list(read_samples(layout.folder)) if Path(layout.folder).exists() else []
    return Ending(
        code=code,
        out=soak.out,
        err=soak.err,
        run=soak.folder,
        acted=acted,
        ended=ended,
        spells=[spell for spell in spells(samples, "freeze") if spell.since >= begun],
        resolution_s=resolution_s(samples, acted - 2.0),
        left=[*soak.left(), *([layout.sockets] if Path(layout.sockets).exists() else [])],
        held=[],
    )


def _left(layout: ClusterLayout) -> list[psutil.Process]:
    """Processes of the cluster's nodes, and those that look after it."""
    found = list(marked(f"{layout.cluster}/"))
    for process in psutil.process_iter():
        try:
            if process.status() != psutil.STATUS_ZOMBIE and any(
                word.startswith(layout.folder) for word in process.cmdline()[1:]
            ):
                found.append(process)
        except psutil.Error:
            continue
    return found


def _supervisor(layout: ClusterLayout) -> psutil.Process:
    return psutil.Process(json.loads((Path(layout.folder) / "state.json").read_bytes())["pid"])
