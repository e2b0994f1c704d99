from __future__ import annotations

from rig.observe.changes import Change, FacetTracker
from rig.targets.views import rounded_memory


def test_a_change_is_dated_from_the_asking_of_the_last_poll_that_showed_the_old_value() -> None:
    tracker = FacetTracker()
    assert tracker.take("nodes", ["a"], 1.0) == Change("nodes", None, ["a"])
    assert tracker.take("nodes", ["a"], 2.0) is None
    assert tracker.take("nodes", ["a", "b"], 3.0) == Change("nodes", 2.0, ["a", "b"])
    assert tracker.take("links", ["a", "b"], 4.0) == Change("links", None, ["a", "b"])
    assert tracker.value("nodes") == ["a", "b"]
    assert tracker.value("memory") is None


def test_memory_is_told_to_one_percent_of_what_the_node_has() -> None:
    total = 100_000_000_000
    assert rounded_memory(50_100_000_000, total) == rounded_memory(50_400_000_000, total) == 50_000_000_000
    assert rounded_memory(51_100_000_000, total) == 51_000_000_000
    assert rounded_memory(8_589_934_592, None) == 8_600_000_000
    assert rounded_memory(0, None) == 0
    assert rounded_memory(7, 50) == 7
