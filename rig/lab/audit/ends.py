"""A request that its node ended: what it says it sent against what the client says it got.

The verdict is None when both agree, words that name the evidence when they agree for a reason, or the points on which
they differ, as (rig, cluster).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from rig.journal.records import RequestEnded, RequestStarted
from rig.lab.audit.cluster import ClusterAccount, ClusterRequest
from rig.lab.audit.lives import BUSY_S
from rig.lab.audit.reach import died_within, stopped_within
from rig.lab.audit.rigs import EPSILON_S, RigAccount
from rig.lab.ledger import RequestClosed

LATE_S = 0.5  # how late either side may learn what the other did, beyond the rig's own lag

Points: TypeAlias = list[tuple[str, str]]  # (rig, cluster)


@dataclass(frozen=True)
class Closed:
    """One request with both its ends."""

    rig: RigAccount
    cluster: ClusterAccount
    started: RequestStarted
    ended: RequestEnded
    seen: ClusterRequest
    closed: RequestClosed

    def verdict(self) -> Points | str | None:
        ended, closed = self.ended, self.closed
        if ended.status != closed.status and not (ended.status is None and closed.end == "left"):
            return [(f"status {ended.status}", told(self.seen))]
        if closed.t > ended.ended_t + EPSILON_S and closed.end != "left" and ended.unclean_end is None:
            crossed = self._crossed()
            if crossed is not None:
                return crossed
        match closed.end:
            case "finished":
                return self._finished()
            case "error" | "aborted":
                return self._failed()
            case "cut":
                return self._cut()
            case "left":
                return self._left()

    def _finished(self) -> Points | str | None:
        ended, closed = self.ended, self.closed
        if ended.outcome != "completed":
            return self._died_writing()
        points = self._tokens()
        if ended.finish_reason != closed.finish_reason:
            points.append((f"finish reason {ended.finish_reason}", f"finish reason {closed.finish_reason}"))
        if ended.usage_tokens != closed.tokens:
            points.append((f"usage {ended.usage_tokens}", f"{closed.tokens} tokens"))
        if ended.damaged is not None and not points:
            points.append((f"damaged: {ended.damaged}", told(self.seen)))
        if points:
            return points
        if ended.unclean_end is not None:
            main = died_within(self.cluster, self.seen.pid, closed.t, ended.ended_t)
            main = main or stopped_within(self.cluster, self.seen.node, closed.t, ended.ended_t)
            explained = "unclean end: the main died or stood still"
            return [(ended.unclean_end, told(self.seen))] if main is None else explained
        return None

    def _failed(self) -> Points | str | None:
        """An HTTP status, an error event in the stream, or a connection broken on purpose."""
        ended, closed = self.ended, self.closed
        if ended.outcome != "error":
            return [(ended.outcome, told(self.seen))]
        if closed.status >= 400:
            return None if ended.tokens == 0 else [(f"{ended.tokens} tokens", told(self.seen))]
        if closed.end == "error" and self.started.streamed:
            if ended.cause == "message" and _folded(closed.message)[:80] in _folded(ended.evidence):
                return self._tokens() or None
            died = self._died_writing()
            return died if isinstance(died, str) else [("no such error event", f"{told(self.seen)}: {closed.message}")]
        return None if ended.cause == "broken" else [("not broken", f"{told(self.seen)}: connection broken")]

    def _cut(self) -> Points | str | None:
        ended, closed = self.ended, self.closed
        if ended.outcome != "lost" or ended.how not in ("truncated", "empty"):
            return self._died_writing()
        if self.started.streamed:
            wanted = "truncated" if closed.tokens else "empty"
            return self._tokens() or (None if ended.how == wanted else [(ended.how, told(self.seen))])
        if ended.how == "empty" and closed.tokens:
            return [("an empty body", told(self.seen))]
        return None

    def _left(self) -> Points | str | None:
        """The client closed first: at its own deadline, and not before it."""
        ended, closed = self.ended, self.closed
        if ended.outcome != "lost" or ended.how not in ("hung", "overdue"):
            return [("the client did not leave", told(self.seen))]
        points = self._tokens(after_t=ended.ended_t)
        missed = self.rig.left_early(self.started, ended, closed.last_token_t)
        points += [] if missed is None else [(missed, told(self.seen))]
        if closed.t < ended.ended_t - EPSILON_S:
            points.append((f"left at {ended.ended_t:.3f}", told(self.seen)))
        if points or closed.t <= ended.ended_t + LATE_S + self.rig.lag_s(ended.ended_t):
            return points or None
        if stopped_within(self.cluster, self.seen.node, ended.ended_t, closed.t) is not None:
            return "left while the main was in state T"
        return [(f"left at {ended.ended_t:.3f}", told(self.seen))]

    def _crossed(self) -> Points | str | None:
        """The node's end came after the client's: right only for a client that left at its deadline."""
        ended = self.ended
        if ended.outcome == "lost" and ended.how in ("hung", "overdue"):
            missed = self.rig.left_early(self.started, ended)
            return "the end was sent after the client had left" if missed is None else [(missed, told(self.seen))]
        return [(f"ended at {ended.ended_t:.3f}", f"its end came after that: {told(self.seen)}")]

    def _died_writing(self) -> Points | str:
        """The node noted an end that its client never got: only if it was stopped or killed in that instant."""
        ended, closed = self.ended, self.closed
        died = died_within(self.cluster, self.seen.pid, closed.t, ended.ended_t)
        stopped = stopped_within(self.cluster, self.seen.node, closed.t, closed.t + BUSY_S)
        if ended.outcome == "error" and ended.cause == "broken" and died is not None and stopped is not None:
            return "the main was stopped and killed while it sent the end"
        return [("otherwise", told(self.seen))]

    def _tokens(self, after_t: float | None = None) -> Points:
        """Every token that was sent has arrived, and no other. What was sent after the client had left is not."""
        ended, closed = self.ended, self.closed
        if not self.started.streamed or ended.tokens == closed.tokens:
            return []
        sent_late = after_t is not None and closed.last_token_t is not None and closed.last_token_t > after_t
        if sent_late and ended.tokens < closed.tokens:
            return []
        return [(f"{ended.tokens} tokens", f"{closed.tokens} tokens")]


def told(request: ClusterRequest) -> str:
    """The ledger's account of a request, in words."""
    closed, opened = request.closed, request.opened
    where = f"{request.node} (main {request.pid})"
    if closed is None:
        return f"{where}: opened at {opened.t:.3f}, no end" if opened is not None else where
    at = "refused" if opened is None else f"opened at {opened.t:.3f}"
    last = "" if closed.last_token_t is None else f", last token at {closed.last_token_t:.3f}"
    return f"{where}: {at}, {closed.end} {closed.status} at {closed.t:.3f}, {closed.tokens} tokens{last}"


def _folded(text: str) -> str:
    """On one line: what is shown of a message has no line breaks."""
    return " ".join(text.split())
