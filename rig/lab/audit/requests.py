"""Every request, both ways: what the rig says its client saw, against what the entry node says it did.

A request agrees when both ends mean the same, in every number that both know. The few that cannot (a killed process
writes no end) are explained by something the cluster's own witnesses saw at that very time, or they are differences.
"""

from __future__ import annotations

from rig.journal.records import RequestEnded
from rig.lab.audit.cluster import ClusterAccount, ClusterRequest
from rig.lab.audit.ends import LATE_S, Closed, Points, told
from rig.lab.audit.findings import Compared, Findings
from rig.lab.audit.lives import BUSY_S
from rig.lab.audit.reach import died_within, never_woke, not_serving, stopped_within
from rig.lab.audit.rigs import EPSILON_S, RigAccount, RigRequest
from rig.lab.ledger import RequestOpened
from rig.soak.run import HURRY_S


def compare_requests(rig: RigAccount, cluster: ClusterAccount, findings: Findings) -> None:
    for request in rig.requests.values():
        Comparison(rig, cluster, findings, request).compare()
    row = findings.row("requests of the ledger")
    for name, seen in cluster.requests.items():
        for each in seen:
            if name in rig.requests:
                row.agree()
            else:
                row.differ(f"request {name or '(no name)'}", "not in the journal", told(each))
    for line in rig.strange:
        findings.row("requests of the ledger").differ("the journal", line, "-")


class Comparison:
    """One request of the journal with what the ledger has under its name."""

    def __init__(self, rig: RigAccount, cluster: ClusterAccount, findings: Findings, request: RigRequest) -> None:
        self.rig = rig
        self.cluster = cluster
        self.findings = findings
        self.started = request.started
        self.ended = request.ended
        self.seen = cluster.requests.get(request.started.id, [])

    def compare(self) -> None:
        row, ended = self._row(), self.ended
        if ended is None:
            if self.rig.interrupted:
                row.explain("the run was interrupted")
            elif self._left_by_the_prober():
                row.explain("a probe that was in flight when the run ended")
            else:
                row.differ(self._about(), "no end", self._told())
            return
        points = self._identity()
        if points:
            row.judge(self._about(), points)
            return
        if not self.seen:
            self._finish(row, self._never_reached(ended))
            return
        seen = self.seen[0]
        if seen.closed is not None:
            self._finish(row, Closed(self.rig, self.cluster, self.started, ended, seen, seen.closed).verdict())
            self._order(ended, seen)
        elif seen.opened is not None:
            self._finish(row, self._never_closed(ended, seen, seen.opened))

    def _order(self, ended: RequestEnded, seen: ClusterRequest) -> None:
        """The last token arrived after it was sent, and not much later."""
        closed = seen.closed
        if closed is None or ended.last_token_t is None or closed.last_token_t is None:
            return
        if ended.tokens != closed.tokens:
            return
        late_s = ended.last_token_t - closed.last_token_t
        self.findings.spread("last token, from sending to arrival").add(late_s)
        row = self.findings.row("arrivals of last tokens")
        if -EPSILON_S <= late_s <= LATE_S + self.rig.lag_s(ended.last_token_t):
            row.agree()
        else:
            row.differ(self._about(), f"arrived at {ended.last_token_t:.3f}", f"sent at {closed.last_token_t:.3f}")

    def _row(self) -> Compared:
        if self.ended is None:
            what = "unfinished"
        elif self.ended.how is not None:
            what = f"{self.ended.outcome}: {self.ended.how}"
        else:
            what = self.ended.outcome
        source = "probes" if self.started.source == "probe" else "requests"
        return self.findings.row(f"{source} {what}")

    def _left_by_the_prober(self) -> bool:
        """At its end a run waits for its probes for a moment only; those that hang have no end, and are counted so."""
        run_ended = self.rig.ended
        left = [seen.closed.t for seen in self.seen if seen.closed is not None]
        return (
            self.started.source == "probe"
            and run_ended is not None
            and len(left) == len(self.seen)
            and all(t >= run_ended.t - HURRY_S for t in left)
        )

    def _about(self) -> str:
        return f"request {self.started.id} to {self.started.entry} at {self.started.t:.3f}"

    def _said(self) -> str:
        """The journal's account, in words."""
        ended = self.ended
        if ended is None:
            return "no end"
        how = "" if ended.how is None else f" ({ended.how})"
        kind = "streamed" if self.started.streamed else "not streamed"
        parts = [f"{ended.outcome}{how} at {ended.ended_t:.3f}, {kind}, status {ended.status}, {ended.tokens} tokens"]
        parts += [f"finish reason {ended.finish_reason}"] if ended.finish_reason else []
        parts += [ended.unclean_end] if ended.unclean_end else []
        parts += [ended.damaged] if ended.damaged else []
        parts += [ended.evidence[:160]] if ended.evidence else []
        return ", ".join(parts)

    def _told(self) -> str:
        return "; ".join(told(each) for each in self.seen) or "not in the ledger"

    def _finish(self, row: Compared, verdict: Points | str | None) -> None:
        """None: they agree; words: they agree for a reason; points: they do not."""
        match verdict:
            case None:
                row.agree()
            case str():
                row.explain(verdict)
            case _:
                row.judge(self._about(), [(f"{rig} [{self._said()}]", cluster) for rig, cluster in verdict])

    def _identity(self) -> Points:
        """Once, at the node it was sent to, for that model, in that form."""
        points: Points = []
        if len(self.seen) > 1:
            points.append(("sent once", self._told()))
        for each in self.seen:
            if each.node != self.started.entry:
                points.append((f"sent to {self.started.entry}", told(each)))
            opened = each.opened
            if opened is None:
                continue
            if (opened.model, opened.streamed) != (self.started.model, self.started.streamed):
                points.append((f"{self.started.model}, streamed {self.started.streamed}", f"{opened}"))
            response = None if self.ended is None else self.ended.response_id
            if response is not None and response != each.response:
                points.append((f"response {response}", f"response {each.response}"))
            if opened.t < self.started.t - EPSILON_S:
                points.append((f"started at {self.started.t:.3f}", f"opened before, at {opened.t:.3f}"))
        return points

    # what the ledger does not know

    def _never_reached(self, ended: RequestEnded) -> Points | str:
        """No line at all: the node's main was not there to take it, or stood still and never read it."""
        if ended.status is not None or ended.tokens or ended.response_id is not None:
            return [("an answer", "the request never reached it")]
        entry, from_t, to_t = self.started.entry, ended.started_t, ended.ended_t
        if ended.outcome == "error" and ended.cause in ("unconnected", "connect-deadline", "broken"):
            down = not_serving(self.cluster, entry, from_t, to_t)
            kind = "reset before an answer" if ended.cause == "broken" else "refused"
            return [(kind, f"{entry} was serving all along")] if down is None else f"{kind}: the main was not there"
        if ended.outcome == "lost" and ended.how == "hung" and self.rig.left_early(self.started, ended) is None:
            stopped = stopped_within(self.cluster, entry, max(from_t, to_t - LATE_S), to_t)
            if stopped is not None:
                return "never read: the main was in state T"
        return [("no answer", f"{entry} never got it, and its main was running")]

    def _never_closed(self, ended: RequestEnded, seen: ClusterRequest, opened: RequestOpened) -> Points | str:
        """Opened, and no end: only a main that died can have left it so, and its client saw that at once."""
        late_s = LATE_S + self.rig.lag_s(ended.ended_t)
        if ended.how in ("hung", "overdue") and self.rig.left_early(self.started, ended) is None:
            return self._left_dying(ended, seen)
        main = died_within(self.cluster, seen.pid, opened.t, ended.ended_t)
        if main is None:
            return [("it ended", f"{told(seen)}, and its main lived on")]
        death = main.death(self.cluster.looks)
        assert death is not None
        if ended.ended_t > death[1] + late_s:
            return [
                ("ended after the connection must have broken", f"{told(seen)}; {main.name} died by {death[1]:.3f}")
            ]
        if ended.outcome == "error" and ended.cause == "broken":
            return "the connection broke: the main died"
        if ended.outcome == "completed" and ended.unclean_end is not None:
            return "the main died between finish reason and end"
        return [("ended otherwise", f"{told(seen)}; {main.name} died at {death[1]:.3f}")]

    def _left_dying(self, ended: RequestEnded, seen: ClusterRequest) -> Points | str:
        """The client left at its deadline: its main, stopped or killed just then, could not note that any more."""
        if never_woke(self.cluster, seen.pid, ended.ended_t):
            return "left a main in state T, which was then killed"
        if died_within(self.cluster, seen.pid, ended.ended_t, ended.ended_t + BUSY_S) is not None:
            return "the main died as the client left"
        return [("the client left", f"{told(seen)}, and its main lived on")]
