"""Who is master, from the last words of the nodes' logs."""

from __future__ import annotations

from rig.nodes.master import SETTLED_S, Word, rule

IDS = {"id-a": "a", "id-b": "b", "id-c": "c"}


def test_what_most_nodes_elected_counts_not_the_latest_claim() -> None:
    words = [
        Word("a", claims=True, claimed_s=900.0),
        Word("b", claims=True, claimed_s=1.0),
        Word("c", claims=False, elected="id-a"),
    ]
    ruling = rule(words, IDS)
    assert ruling.master == "a"
    assert ruling.reason == "a (for 900 s), b (for 1 s) claim to be master; most nodes have elected a"


def test_a_resumed_old_master_is_none_while_most_have_elected_another() -> None:
    words = [
        Word("a", claims=True, claimed_s=900.0),
        Word("b", claims=True, claimed_s=5.0),
        Word("c", claims=False, elected="id-b"),
    ]
    assert rule(words, IDS).master == "b"


def test_an_elected_process_that_is_gone_is_not_the_one_on_its_node_now() -> None:
    """The master was killed and runs again, the others have not noticed."""
    words = [
        Word("a", claims=True, claimed_s=1.0),
        Word("b", claims=False, elected="id-a"),
        Word("c", claims=False, elected="id-a"),
    ]
    now = {"id-new": "a", "id-b": "b", "id-c": "c"}
    assert rule(words, now).master is None
    assert "a (for 1 s) claims to be master, and most nodes have not elected" in rule(words, now).reason
    assert rule(words, IDS).master == "a"


def test_without_a_majority_a_claim_must_have_stood() -> None:
    young, old = SETTLED_S - 0.5, SETTLED_S + 0.5
    assert rule([Word("a", claims=True, claimed_s=young), Word("b", claims=True, claimed_s=old)], {}).master == "b"
    assert (
        rule([Word("a", claims=True, claimed_s=young), Word("b", claims=True, claimed_s=young - 2)], {}).master is None
    )
    assert rule([Word("a", claims=True, claimed_s=young), Word("b", claims=False)], {}).master is None
    assert rule([Word("a", claims=True), Word("b", claims=False)], {}).master == "a"


def test_of_two_that_have_stood_the_older_if_that_is_known() -> None:
    both = [Word("a", claims=True, claimed_s=30.0), Word("b", claims=True, claimed_s=50.0)]
    assert rule(both, {}).master == "b"
    assert rule([both[0], Word("b", claims=True)], {}).master is None
    assert rule([both[0], Word("b", claims=True, claimed_s=30.0)], {}).master is None


def test_alone_and_nobody() -> None:
    assert rule([Word("a", claims=True, claimed_s=0.1)], {}).master == "a"
    assert rule([Word("a", claims=False, elected="id-gone")], IDS) == rule([], {})
    assert rule([], {}).reason == "no node claims to be master"
