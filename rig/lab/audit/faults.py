"""Every strike and heal that the journal tells, against what the ledger and the sampler saw of it.

The tolerance of a moment is the rig's own error (offset and tick of the node's clock), the sampler's resolution just
then, and 50 ms.
"""

from __future__ import annotations

from dataclasses import dataclass

from rig.faults.plan.registry import KINDS, names_where
from rig.journal.records import FaultState, Unwedged
from rig.lab.audit.cluster import ClusterAccount
from rig.lab.audit.findings import Findings
from rig.lab.audit.lives import Life, moment
from rig.lab.audit.partitions import check_partition
from rig.lab.audit.rigs import RigAccount
from rig.lab.audit.strikes import Strike, strikes

SLACK_S = 0.05
START_PROOF_S = 0.5  # a script looks for a new main every 50 ms, and a look takes what the machine lets it
HEAL_LIMIT_S = 2.0  # a node heals by itself within the hold and this
START_ROUND_S = 1.5  # the boot time that a start counts from is in whole seconds
GRACEFUL = names_where(lambda kind: kind.effect == "tree-ended")
TERMINAL: tuple[FaultState, ...] = ("healed", "skipped", "ineffective", "invalid", "unhealed")

UNSEEN = names_where(lambda kind: kind.effect in ("paths-shaped", "elsewhere", "restarted"))
"""Kinds of whose strike neither ledger nor sampler tells enough: their moments are compared with the node's own words,
and what they do to processes and rules by `compare_causes`."""
NO_WITNESS = "neither ledger nor sampler looks there: only the moments are compared"

Points = list[tuple[str, str]]


def compare_faults(rig: RigAccount, cluster: ClusterAccount, findings: Findings) -> None:
    for number, records in rig.faults.items():
        row = findings.row("faults: from plan to end")
        ended = [record.state for record in records if record.state in TERMINAL]
        if len(ended) == 1 or rig.interrupted:
            row.agree()
        else:
            row.differ(f"fault {number}", f"states {[record.state for record in records]}", "one end each")
    for strike in strikes(rig):
        if strike.struck_t is None or strike.last not in ("healed", "holding", "struck"):
            continue
        row, points = findings.row(f"faults: {strike.kind}"), Check(rig, cluster, findings, strike).points()
        if points or strike.kind not in UNSEEN:
            row.judge(strike.about, points)
        else:
            row.explain(NO_WITNESS)
    for one in rig.unwedged:
        findings.row("unwedged nodes").judge(f"unwedging of {one.node} after fault {one.fault}", _began(one, cluster))


def _began(one: Unwedged, cluster: ClusterAccount) -> Points:
    """A main that began and served within the time that the journal gives the restart; none, if it failed."""
    slack_s = SLACK_S + cluster.resolution_s(one.ended_t)
    served = [
        main
        for main in cluster.mains(one.node)
        if main.first_t >= one.started_t - SLACK_S
        and main.serving_t is not None
        and main.serving_t <= one.ended_t + slack_s
    ]
    if bool(served) == one.ok or one.cut_short:
        return []
    return [(f"{one.detail} at {one.ended_t:.3f}", f"{len(served)} mains began and served in that time")]


@dataclass(frozen=True)
class Check:
    """One proved strike."""

    rig: RigAccount
    cluster: ClusterAccount
    findings: Findings
    strike: Strike

    def points(self) -> Points:
        strike, struck_t = self.strike, self.strike.struck_t
        assert struck_t is not None
        if strike.kind not in KINDS:
            return [(f"struck at {struck_t:.3f}", "the audit does not know this kind of fault")]
        if strike.kind in UNSEEN:
            return self._journalled()
        if KINDS[strike.kind].cuts:
            return check_partition(self.rig, self.cluster, self.findings, strike)
        if not strike.pids:
            return [("struck", "it names no pid")]
        lives = {pid: self.cluster.lives.latest(pid, struck_t) for pid in strike.pids}
        unknown = [(f"hit pid {pid}", "no such process of the cluster") for pid, life in lives.items() if life is None]
        points = unknown + self._journalled()
        for life in (life for life in lives.values() if life is not None):
            points += self._identity(life)
            points += self._hit(life)
        if KINDS[strike.kind].heals_at_strike:
            return points + self._runner(lives[strike.pids[0]])
        points += [] if strike.kind in GRACEFUL else self._whole_tree(struck_t)
        return points if KINDS[strike.kind].effect == "tree-stopped" else points + self._restarted(struck_t)

    def _hit(self, life: Life) -> Points:
        if KINDS[self.strike.kind].effect == "tree-stopped":
            return self._stopped(life)
        return self._ended(life) if self.strike.kind in GRACEFUL else self._killed(life)

    def tolerance_s(self, t: float) -> float:
        return self.strike.error_s + self.cluster.resolution_s(t) + SLACK_S

    def _journalled(self) -> Points:
        """The moments that the reports use are those that the node told."""
        points: Points = []
        for record in self.rig.faults[self.strike.fault]:
            mark = self.strike.together.get(record.state)
            if mark is not None and abs(mark - record.at_t) > self.strike.error_s + record.at_error_s:
                points.append((f"{record.state} at {record.at_t:.3f}", f"the node's clock says {mark:.3f}"))
        return points

    def _identity(self, life: Life) -> Points:
        points: Points = []
        if life.node != self.strike.node:
            points.append((f"pid {life.pid}", f"it is of {life.node}"))
        told = self.strike.starts.get(life.pid)
        began = life.start - self.rig.info.wall_start
        if told is not None and abs(told - began) > START_ROUND_S:
            points.append((f"pid {life.pid} begun at {told:.2f}", f"begun at {began:.2f}"))
        return points

    # freeze

    def _stopped(self, life: Life) -> Points:
        """In state T from the strike to the heal, and at no look in between in any other."""
        marks, struck_t, healed_t = self.strike.marks, self.strike.marks["struck"], self.strike.healed_t
        until = healed_t if healed_t is not None else struck_t + self.strike.hold_s
        slack_s = self.tolerance_s(struck_t)
        stops = [(a, b) for a, b in life.stops() if a <= until + slack_s and (b is None or b >= struck_t - slack_s)]
        claim = f"stopped from {struck_t:.3f} to {until:.3f}"
        if len(stops) != 1:
            seen = ", ".join(f"{a:.3f} to {moment(b)}" for a, b in stops) or "never"
            return [(f"{life.name} {claim}", f"in state T: {seen}")]
        since_t, over_t = stops[0]
        points: Points = []
        if not struck_t - slack_s <= since_t <= marks.get("proof", struck_t) + slack_s:
            points.append((f"{life.name} {claim}", f"in state T from {since_t:.3f}"))
        if healed_t is None:
            return points
        tight_s = self.tolerance_s(healed_t)
        if over_t is None or not marks.get("healing", healed_t) - self.strike.error_s <= over_t <= healed_t + tight_s:
            points.append((f"{life.name} {claim}", f"in state T until {moment(over_t)}"))
        elif life.pid == self.strike.main:
            points += self._times(since_t, over_t)
        return points

    def _times(self, since_t: float, over_t: float) -> Points:
        """Strike, heal and hold of the main process. A change was at most a resolution before the look that told it."""
        strike, healed_t = self.strike, self.strike.healed_t
        struck_t = strike.struck_t
        assert struck_t is not None
        assert healed_t is not None
        self.findings.spread(f"{strike.kind}: strike, journal and sampler").add(since_t - struck_t)
        self.findings.spread(f"{strike.kind}: heal, journal and sampler").add(over_t - healed_t)
        self.findings.spread(f"{strike.kind}: hold, journal and sampler").add(
            (over_t - since_t) - (healed_t - struck_t)
        )
        self.findings.spread(f"{strike.kind}: hold, planned and real").add((healed_t - struck_t) - strike.hold_s)
        points: Points = []
        for name, told_t, seen_t in (("struck", struck_t, since_t), ("healed", healed_t, over_t)):
            if abs(told_t - seen_t) > self.tolerance_s(seen_t):
                points.append((f"{name} at {told_t:.3f}", f"seen at {seen_t:.3f}"))
        real_s, tolerance_s = over_t - since_t, self.tolerance_s(since_t) + self.tolerance_s(over_t)
        if not strike.early and real_s < strike.hold_s - tolerance_s:
            points.append((f"held {strike.hold_s:g} s", f"{real_s:.3f} s"))
        if real_s > strike.hold_s + HEAL_LIMIT_S + tolerance_s:
            points.append((f"healed within {strike.hold_s:g} s and {HEAL_LIMIT_S:g}", f"after {real_s:.3f} s"))
        return points

    # crashes and runner kills

    def _killed(self, life: Life) -> Points:
        """Ended by SIGKILL, at the strike."""
        strike, struck_t = self.strike, self.strike.struck_t
        assert struck_t is not None
        death = life.death(self.cluster.looks)
        claim = f"{life.name} killed at {struck_t:.3f}"
        if death is None:
            return [(claim, "it lives")]
        tolerance_s, proof_t = self.tolerance_s(struck_t), strike.marks.get("proof", struck_t)
        points: Points = []
        if death[1] < struck_t - tolerance_s or death[0] > struck_t + tolerance_s or death[0] > proof_t + tolerance_s:
            points.append((claim, f"it ended at {death[1]:.3f}"))
        if life.status != -9:
            points.append((claim, f"it ended with status {life.status}"))
        if life.pid in (strike.main, strike.pids[0]):
            self.findings.spread(f"{strike.kind}: strike, journal and ledger").add(death[1] - struck_t)
        return points

    def _ended(self, life: Life) -> Points:
        """Between the request to stop and its proof, and by itself."""
        struck_t, proof_t = self.strike.marks["struck"], self.strike.marks.get("proof", self.strike.marks["struck"])
        death = life.death(self.cluster.looks)
        claim = f"{life.name} ended by itself between {struck_t:.3f} and {proof_t:.3f}"
        if death is None:
            return [(claim, "it lives")]
        points: Points = []
        if death[1] < struck_t - self.tolerance_s(struck_t) or death[0] > proof_t + self.tolerance_s(proof_t):
            points.append((claim, f"it ended at {death[1]:.3f}"))
        if life.status == -9:
            points.append((claim, "it was killed"))
        return points

    def _whole_tree(self, struck_t: float) -> Points:
        """The main and all that it had made and that surely lived, before and after: no process of it was spared."""
        strike = self.strike
        from_t, to_t = strike.marks.get("leased", struck_t), strike.marks.get("proof", struck_t)
        if strike.kind != "freeze":
            to_t = struck_t - self.tolerance_s(struck_t)
        return [
            (f"hit pids {strike.pids}", f"{life.name} was of that tree, too")
            for life in self.cluster.lives.of_node(strike.node)
            if strike.main in (life.pid, life.parent)
            and life.pid not in strike.pids
            and life.lived_at(from_t, self.cluster.looks)
            and life.lived_at(to_t, self.cluster.looks)
        ]

    def _restarted(self, struck_t: float) -> Points:
        """No main in between; after the heal the one that was told, and it serves."""
        strike, healed_t = self.strike, self.strike.healed_t
        if healed_t is None:
            return []
        points: Points = []
        healing_t = strike.marks.get("healing", healed_t)
        for main in self.cluster.mains(strike.node):
            began_t = main.first_t
            if struck_t < began_t < healing_t - self.tolerance_s(healing_t) and "restarted_early" not in strike.said:
                points.append((f"no main until {healing_t:.3f}", f"{main.name} began at {began_t:.3f}"))
        new = self.cluster.lives.latest(strike.new_main, healed_t + self.tolerance_s(healed_t))
        if new is None or new.role != "main" or new.node != strike.node:
            return [*points, (f"new main {strike.new_main}", "no such main")]
        serving_t = new.serving_t
        if serving_t is None or serving_t > healed_t + self.tolerance_s(healed_t):
            points.append((f"healed at {healed_t:.3f}", f"{new.name} served from {moment(serving_t)}"))
        elif healed_t > serving_t + START_PROOF_S + self.tolerance_s(healed_t):
            points.append((f"healed at {healed_t:.3f}", f"{new.name} served since {serving_t:.3f}"))
        else:
            self.findings.spread(f"{strike.kind}: heal, journal and ledger").add(healed_t - serving_t)
        down_s = new.first_t - struck_t
        self.findings.spread(f"{strike.kind}: hold, planned and real").add(healing_t - struck_t - strike.hold_s)
        if not strike.early and down_s < strike.hold_s - self.tolerance_s(struck_t):
            points.append((f"down for {strike.hold_s:g} s", f"{new.name} began after {down_s:.3f} s"))
        return points

    def _runner(self, life: Life | None) -> Points:
        """One runner, of that model, and its main lived on."""
        strike = self.strike
        if life is None:
            return []
        points: Points = []
        if len(strike.pids) != 1 or life.role != "runner":
            points.append((f"killed the runner {strike.pids}", f"{life.name}"))
        if strike.model not in life.detail.split():
            points.append((f"a runner of {strike.model}", f"{life.name}: {life.detail}"))
        main = self.cluster.lives.latest(strike.main, strike.marks["struck"])
        proof_t = strike.marks.get("proof", strike.marks["struck"])
        if main is None or main.role != "main" or life.parent != main.pid:
            points.append((f"main {strike.main}", f"{life.name} was made by {life.parent}"))
        elif not main.lived_at(proof_t - strike.error_s, self.cluster.looks):
            points.append((f"main {strike.main} lived on", f"{main.name} ended with status {main.status}"))
        return points
