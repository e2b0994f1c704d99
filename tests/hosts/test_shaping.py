"""A network made worse by the node's script, in namespaces: what connections meet, and what is left afterwards."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.hosts.hosts import Hosts
from tests.mac.mac import FAULTS


@pytest.fixture
def echoing(hosts: Hosts) -> Iterator[Hosts]:
    for node in ("node-2", "node-3"):
        hosts.serve_echo(node)
    yield hosts
    hosts.close_but_servers()


def state(hosts: Hosts) -> str:
    """Queues, devices and rules of the node, as it sees them itself."""
    return hosts.inside("node-1", "tc qdisc show; ip -o link; nft list ruleset; ls -A /sys/class/net").out


def test_delay_of_what_goes_to_one_peer(echoing: Hosts) -> None:
    before = state(echoing)
    peer4, peer6 = echoing.address("node-2"), echoing.address("node-2", "ethernet6")
    held, held6 = echoing.connect_echo("node-1", peer4), echoing.connect_echo("node-1", peer6)
    free = echoing.connect_echo("node-1", echoing.address("node-3"))
    script = echoing.script(
        "node-1", "shape.sh", folder=FAULTS, hold="60", effect="delay", amount="3000", peers=f"{peer4} {peer6}"
    )
    assert script.wait_for("struck"), script.said
    assert not held.answers(within_s=1)
    assert not held6.answers(within_s=1)
    assert free.answers(within_s=2)
    assert held.answers(within_s=20)
    assert held6.answers(within_s=20)
    assert echoing.ssh("node-1", f"sh {FAULTS}/heal.sh rig_dir={rig_dir(echoing)} what=f1").status == 0
    assert script.end() == 0
    assert int(script.fields("healed")["packets"]) > 0
    assert held.answers(within_s=2)
    assert state(echoing) == before


@pytest.mark.parametrize(("effect", "amount"), [("loss", "50"), ("bandwidth", "256")])
def test_loss_and_bandwidth(echoing: Hosts, effect: str, amount: str) -> None:
    before = state(echoing)
    peers = echoing.addresses("node-2")
    script = echoing.script("node-1", "shape.sh", folder=FAULTS, hold="1", effect=effect, amount=amount, peers=peers)
    assert script.end() == 0, script.said
    assert script.ended_as() == "healed"
    assert int(script.fields("struck")["dropped"]) > 0
    assert state(echoing) == before


def test_a_queue_of_somebody_else_is_left_alone(echoing: Hosts) -> None:
    assert echoing.inside("node-1", "tc qdisc add dev eth0 root handle 9: tbf rate 1gbit burst 1m limit 1m").status == 0
    try:
        script = echoing.script(
            "node-1",
            "shape.sh",
            folder=FAULTS,
            hold="1",
            effect="delay",
            amount="200",
            peers=echoing.address("node-2"),
        )
        script.end()
        assert script.ended_as() == "skipped"
        assert "not ours" in script.fields("skipped")["reason"]
        assert "qdisc tbf 9:" in echoing.inside("node-1", "tc qdisc show dev eth0").out
    finally:
        echoing.inside("node-1", "tc qdisc del dev eth0 root")


def rig_dir(hosts: Hosts) -> str:
    return hosts.inventory.nodes["node-1"].rig_dir
