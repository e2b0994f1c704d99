"""The network between nodes, cut and mended by the packet filter's own command."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from tests.nodes.servers import ssh_of

pytestmark = pytest.mark.asyncio

TABLE = """table inet rig_{name} {{
	chain input {{
		type filter hook input priority -300; policy accept;
		iifname "lo" accept
		{input}
	}}
	chain output {{
		type filter hook output priority -300; policy accept;
		oifname "lo" accept
		{output}
	}}
}}
"""


def rules(name: str, peer: int, *, direction: str = "both") -> str:
    drops = {
        "input": f"ip saddr 10.77.0.{peer} counter drop\n\t\tip6 saddr fe80::77:{peer} counter drop",
        "output": f"ip daddr 10.77.0.{peer} counter drop\n\t\tip6 daddr fe80::77:{peer} counter drop",
    }
    if direction == "in":
        drops["output"] = ""
    if direction == "out":
        drops["input"] = ""
    return TABLE.format(name=name, **drops)


async def probe(cluster: Any, node: str, address: str, port: int) -> tuple[int | None, float]:
    start = time.monotonic()
    six = "-6 " if ":" in address else ""
    done = await cluster.ssh(node, f"nc {six}-z -w 1 {address} {port}")
    assert done.err == ""
    return done.status, time.monotonic() - start


@pytest.mark.parametrize(
    ("address", "port"),
    [("10.77.0.2", 52415), ("10.77.0.2", 52414), ("fe80::77:2%eth0", 52414), ("10.77.0.3", 22), ("10.77.0.1", 52415)],
)
async def test_open_ports_answer(cluster: Any, address: str, port: int) -> None:
    status, _ = await probe(cluster, "node-1", address, port)
    assert status == 0


@pytest.mark.parametrize(("address", "port"), [("10.77.0.2", 50000), ("fe80::77:2%eth0", 52415)])
async def test_closed_ports_refuse_at_once(cluster: Any, address: str, port: int) -> None:
    status, took_s = await probe(cluster, "node-1", address, port)
    assert status == 1
    assert took_s < 0.9  # no time-out: an answer


async def test_a_host_that_is_not_there_does_not_answer(cluster: Any) -> None:
    status, took_s = await probe(cluster, "node-1", "10.77.0.99", 52415)
    assert status == 1
    assert took_s >= 1.0


async def test_other_addresses_are_the_real_ncs(cluster: Any) -> None:
    ssh_port = ssh_of(cluster.inventory.nodes["node-1"]).port
    assert (await cluster.ssh("node-1", f"nc -z -w 1 127.0.0.1 {ssh_port}")).status == 0


async def test_forms_that_are_not_emulated_are_errors(cluster: Any) -> None:
    for command in ("nc -u 10.77.0.2 52414", "nc 10.77.0.2 52415", "lsof -i :52415", "nft flush ruleset"):
        done = await cluster.ssh("node-1", command)
        assert done.status == 1
        assert "not emulated" in done.err


@pytest.mark.parametrize("direction", ["both", "in", "out"])
async def test_a_blocked_path_swallows_connections_either_way(cluster: Any, direction: str) -> None:
    """Dropped, not refused; and a connection needs both directions, whichever is blocked."""
    folder = cluster.node_folder("node-3")
    path = folder / "tmp" / "rules.nft"
    path.write_text(rules(f"way_{direction}", 2, direction=direction))
    assert (await cluster.ssh("node-3", f"nft -f {path}")).status == 0
    try:
        (out, out_s), (back, back_s), (other, _) = await asyncio.gather(
            probe(cluster, "node-3", "10.77.0.2", 52415),
            probe(cluster, "node-2", "fe80::77:3%eth0", 52414),
            probe(cluster, "node-3", "10.77.0.1", 52415),
        )
        assert (out, back, other) == (1, 1, 0)
        assert out_s >= 1.0
        assert back_s >= 1.0
        listing = (await cluster.ssh("node-3", f"nft list table inet rig_way_{direction}")).out
        counted = [int(line.split("packets ")[1].split()[0]) for line in listing.splitlines() if "packets" in line]
        assert sum(counted) >= 2
    finally:
        assert (await cluster.ssh("node-3", f"nft delete table inet rig_way_{direction}")).status == 0
    assert (await probe(cluster, "node-3", "10.77.0.2", 52415))[0] == 0
    assert (await cluster.ssh("node-3", "nft list tables")).out == ""


async def test_a_partition_parts_the_cluster_and_heals(cluster: Any, until: Any) -> None:
    """Heartbeats are held back, both sides go on alone, and find each other again."""
    path = cluster.node_folder("node-3") / "tmp" / "rules.nft"
    path.write_text(rules("p1", 1) + rules("p2", 2))
    await cluster.ssh("node-3", f"nft -f {path}")

    async def parted() -> bool:
        return await cluster.whole(["node-1", "node-2"]) and await cluster.whole(["node-3"])

    try:
        await until(parted, what="two groups", within_s=15)
        listing = (await cluster.ssh("node-3", "nft list table inet rig_p1; nft list table inet rig_p2")).out
        assert "packets" in listing
        assert "packets 0 bytes 0 drop" not in "".join(line for line in listing.splitlines() if "ip6 daddr" in line)
    finally:
        await cluster.ssh("node-3", "nft delete table inet rig_p1; nft delete table inet rig_p2")
    await until(cluster.whole, what="one group again", within_s=15)


async def test_the_commands_start_fast(cluster: Any) -> None:
    done = await cluster.ssh("node-1", "for i in 1 2 3 4 5; do nft list tables || exit 1; done; cat /proc/uptime")
    start = time.monotonic()
    done = await cluster.ssh("node-1", "for i in 1 2 3 4 5 6 7 8 9 10; do nft list tables || exit 1; done")
    assert done.status == 0
    assert (time.monotonic() - start) / 10 < 0.2  # 20 ms on an idle machine
