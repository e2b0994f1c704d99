"""One soak that is ended the hard way: what is done to it, and everything that could be seen of that afterwards."""

from __future__ import annotations

import json
import os
import pty
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

import psutil

from rig.lab.embedded.sampler import read_samples
from tests.soak.lane import Lane, Soak, on_lane, rig, start_soak, until
from tests.soak.terminal import WITH_TERMINAL, Reader
from tests.soak.witness import Spell, resolution_s, spells

LONG_S = 80.0  # a hold that nobody waits for
BRIEF_S = 4.0  # a hold that is waited for


@dataclass(frozen=True)
class Ending:
    """`acted` is when the blow fell, `ended` when the soak was gone; `spells` are those of the fault's kind."""

    code: int
    out: str
    err: str
    run: Path
    acted: float
    ended: float
    spells: list[Spell]
    resolution_s: float  # of the spells' moments
    left: list[str]  # processes of the soak's session, and commands on the nodes, that outlived it
    held: list[str]  # leases and locks that outlived it

    def healed_within_s(self) -> float:
        """From the blow to the last heal, by the sampler."""
        return max(to for _, to in self.over()) - self.acted

    def over(self) -> list[tuple[float, float]]:
        """From when to when, of every spell."""
        assert self.spells, "nothing was ever in force"
        found = [(spell.since, spell.to) for spell in self.spells if spell.to is not None]
        assert len(found) == len(self.spells), "still in force"
        return found

    @property
    def summary(self) -> dict[str, Any]:
        return json.loads((self.run / "summary.json").read_bytes())


@dataclass(frozen=True)
class Signalled:
    """Signals to the process group, the first when `when` is reached.

    `ignored`: a signal that is ignored from the start, as nohup does it. Requests take long where it is to be draining.
    """

    kind: str
    numbers: tuple[signal.Signals, ...]
    when: Literal["hold", "baseline", "drain"] = "hold"
    ignored: str = ""

    def __call__(self, lane: Lane, work: Path) -> Ending:
        begun = time.monotonic()
        options = on_lane(lane, work, self.kind, hold_s=LONG_S, baseline_s=600.0 if self.when == "baseline" else 0.1)
        if self.when == "drain":
            workload = work / "brisk.yaml"
            workload.write_text(
                re.sub("output_tokens: .*", "output_tokens: {low: 4000, high: 4000}", workload.read_text())
            )
        soak = start_soak(
            work,
            *options,
            "--minutes",
            "0.05" if self.when == "drain" else "5",
            prefix=("sh", "-c", f'trap "" {self.ignored}; exec "$0" "$@"') if self.ignored else (),
        )
        try:
            if self.when == "hold":
                wait_for_hold(soak)
            else:
                phase = self.when
                soak.wait_for(lambda: soak.entered(phase), f"phase {phase}")
            acted = soak.signal(self.numbers[0])
            for number in self.numbers[1:]:
                time.sleep(0.2)  # a second thought
                soak.signal(number)
            code = soak.wait()
            return conclude(lane, soak, self.kind, code, begun=begun, acted=acted)
        finally:
            soak.end()


@dataclass(frozen=True)
class HungUp:
    """The terminal is closed in mid-fault, with the live view on it."""

    kind: str

    def __call__(self, lane: Lane, work: Path) -> Ending:
        begun = time.monotonic()
        ours, theirs = pty.openpty()
        options = on_lane(lane, work, self.kind, hold_s=LONG_S)
        soak = start_soak(work, *options, "--minutes", "5", stdout=theirs, stderr=theirs, prefix=WITH_TERMINAL)
        os.close(theirs)
        reader = Reader(ours)
        try:
            wait_for_hold(soak)
            acted = time.monotonic()
            reader.close()
            code = soak.wait()
            return conclude(lane, soak, self.kind, code, begun=begun, acted=acted, out=reader.text())
        finally:
            reader.close()
            soak.end()


@dataclass(frozen=True)
class Deaf:
    """Nobody reads any more: the reader of one or both output streams goes in mid-fault, then Ctrl-C."""

    kind: str
    streams: Literal["stdout", "stderr", "both"]

    def __call__(self, lane: Lane, work: Path) -> Ending:
        begun = time.monotonic()
        reading, writing = os.pipe()
        options = on_lane(lane, work, self.kind, hold_s=BRIEF_S)
        soak = start_soak(
            work,
            *options,
            "--minutes",
            "0.4",
            stdout=None if self.streams == "stderr" else writing,
            stderr=None if self.streams == "stdout" else writing,
        )
        os.close(writing)
        try:
            wait_for_hold(soak)
            acted = time.monotonic()
            os.close(reading)
            return conclude(lane, soak, self.kind, soak.wait(), begun=begun, acted=acted)
        finally:
            soak.end()


@dataclass(frozen=True)
class Redirected:
    """A whole short soak with its streams as a shell may set them up: `>&-`, `2>&-`, `>/dev/full`."""

    kind: str
    how: str

    def __call__(self, lane: Lane, work: Path) -> Ending:
        begun = time.monotonic()
        options = on_lane(lane, work, self.kind, hold_s=1.0)
        prefix = ("sh", "-c", f'exec "$0" "$@" {self.how}')
        soak = start_soak(work, *options, "--minutes", "0.1", prefix=prefix)
        try:
            return conclude(lane, soak, self.kind, soak.wait(), begun=begun, acted=begun)
        finally:
            soak.end()


@dataclass(frozen=True)
class Unwritable:
    """The journal cannot grow any more in mid-fault: the size of files is limited, as a quota would do it (Linux)."""

    kind: str

    def __call__(self, lane: Lane, work: Path) -> Ending:
        begun = time.monotonic()
        soak = start_soak(work, *on_lane(lane, work, self.kind, hold_s=LONG_S), "--minutes", "5")
        try:
            wait_for_hold(soak)
            acted = time.monotonic()
            limit = (soak.folder / "journal.jsonl").stat().st_size
            psutil.Process(soak.process.pid).rlimit(psutil.RLIMIT_FSIZE, (limit, limit))
            return conclude(lane, soak, self.kind, soak.wait(), begun=begun, acted=acted)
        finally:
            soak.end()


@dataclass(frozen=True)
class DiskFull:
    """Results on a small file system of its own, filled in mid-fault (Linux, root)."""

    kind: str

    def __call__(self, lane: Lane, work: Path) -> Ending:
        begun = time.monotonic()
        disk = work / "disk"
        disk.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", disk], check=True)
        try:
            soak = start_soak(work, *on_lane(lane, work, self.kind, hold_s=LONG_S), "--minutes", "5", out=disk)
            try:
                wait_for_hold(soak)
                acted = time.monotonic()
                _fill(disk / "filler")
                ending = conclude(lane, soak, self.kind, soak.wait(), begun=begun, acted=acted)
            finally:
                soak.end()
        finally:
            subprocess.run(["umount", disk], check=True)
        return ending


def _fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            return


@dataclass(frozen=True)
class Killed:
    """`kill -9` of the controller in mid-fault. What follows is done with the cluster as it is left; see `After`."""

    kind: str
    then: Literal["wait", "heal"]

    def __call__(self, lane: Lane, work: Path) -> Ending:
        begun = time.monotonic()
        hold_s = BRIEF_S if self.then == "wait" else LONG_S
        soak = start_soak(work, *on_lane(lane, work, self.kind, hold_s=hold_s), "--minutes", "5")
        try:
            wait_for_hold(soak)
            acted = soak.signal(signal.SIGKILL)
            code = soak.wait()
        finally:
            soak.end()
        reported = rig("report", str(soak.folder), cwd=work)
        (work / "reported.txt").write_text(f"{reported.returncode}\n{reported.stdout}{reported.stderr}")
        if self.then == "heal":
            refused = rig("soak", "--yes", "--minutes", "1", "-i", lane.inventory, "--out", "refused", cwd=work)
            (work / "refused.txt").write_text(f"{refused.returncode}\n{refused.stderr}")
            command = re.search(r"rig (heal --inventory \S+)", refused.stderr)
            assert command is not None, refused.stderr
            healed = rig(*shlex.split(command[1]), cwd=work)
            acted = time.monotonic()  # by now it must be healed
            (work / "healed.txt").write_text(f"{healed.returncode}\n{healed.stdout}{healed.stderr}")
        until(lambda: not _in_force(lane, self.kind, begun), "healed")
        until(lambda: not lane.leases() and not lane.on_nodes(), "nothing left on the nodes")
        ending = conclude(lane, soak, self.kind, code, begun=begun, acted=acted)
        self._again(lane, work)
        return ending

    def _again(self, lane: Lane, work: Path) -> None:
        """A new soak begins, and is then ended."""
        again = work / "again"
        again.mkdir()
        soak = start_soak(again, *on_lane(lane, again, self.kind, hold_s=1.0, baseline_s=600.0), "--minutes", "5")
        try:
            soak.wait_for(lambda: soak.entered("baseline"), "phase baseline")
            soak.signal(signal.SIGINT)
            assert soak.wait() == 130
        finally:
            soak.end()


def wait_for_hold(soak: Soak) -> None:
    soak.wait_for(lambda: soak.reached("holding"), "a fault in force")


def conclude(
    lane: Lane, soak: Soak, kind: str, code: int, *, begun: float, acted: float, out: str | None = None
) -> Ending:
    ended = time.monotonic()
    until(lambda: _looked_since(lane, ended), "another look of the sampler")
    return Ending(
        code=code,
        out=soak.out if out is None else out,
        err=soak.err,
        run=soak.folder,
        acted=acted,
        ended=ended,
        spells=_spells(lane, kind, begun),
        resolution_s=resolution_s(read_samples(lane.folder), acted - 2.0),
        left=[*soak.left(), *(" ".join(process.cmdline()) for process in lane.on_nodes())],
        held=[*lane.leases(), *lane.locks()],
    )


def _spells(lane: Lane, kind: str, begun: float) -> list[Spell]:
    return [spell for spell in spells(read_samples(lane.folder), kind) if spell.since >= begun]


def _in_force(lane: Lane, kind: str, begun: float) -> bool:
    return any(spell.to is None for spell in _spells(lane, kind, begun))


def _looked_since(lane: Lane, moment: float) -> bool:
    return max(sample.t for sample in read_samples(lane.folder)) > moment


Act = Callable[[Lane, Path], Ending]


def label(act: object) -> str:
    """A short name for a case, from its class and the values of its fields."""
    fields = getattr(act, "__dict__", None)
    if fields is None:
        return str(act)
    words = [type(act).__name__]
    for value in fields.values():
        words += [one.name if isinstance(one, signal.Signals) else str(one) for one in _listed(value)]
    return "-".join(re.sub(r"[^A-Za-z0-9]+", "-", word).strip("-").lower() for word in words)


def _listed(value: object) -> Sequence[object]:
    return cast("tuple[object, ...]", value) if isinstance(value, tuple) else (value,)
