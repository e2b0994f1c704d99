"""What the rig's polls cost each node: how often it was asked, and how much of its time went into answering. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from rig.journal.records import AnyRecord, Looked


@dataclass
class NodeLooked:
    """Of one node, over `seconds`."""

    seconds: float = 0.0
    asked: int = 0
    unanswered: int = 0
    misread: int = 0  # answers that were not understood
    answer_s: float = 0.0
    longest_s: float = 0.0

    @property
    def per_s(self) -> float | None:
        return self.asked / self.seconds if self.seconds else None

    @property
    def share(self) -> float | None:
        """Of the node's time, at most: waiting for its turn is in it as well."""
        return self.answer_s / self.seconds if self.seconds else None


@dataclass
class Looking:
    """A reducer over records, in their order."""

    nodes: dict[str, NodeLooked] = field(default_factory=dict[str, NodeLooked])

    def feed(self, record: AnyRecord) -> None:
        if isinstance(record, Looked):
            node = self.nodes.setdefault(record.node, NodeLooked())
            node.seconds += record.t - record.since_t
            node.asked += record.asked
            node.unanswered += record.unanswered
            node.misread += sum(record.misread.values())
            node.answer_s += record.answer_s
            node.longest_s = max(node.longest_s, record.longest_s)
