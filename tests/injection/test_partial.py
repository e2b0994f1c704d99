"""What a cut leaves connected is told with it: RDMA, which no packet filter sees, and other interfaces."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from rig.config.inventory import Node, Ssh
from rig.faults.plan.plan import settings_of
from rig.faults.plan.registry import KINDS
from rig.injection.aim import Aim, AimContext, resolve
from rig.injection.schedule import Planned
from rig.nodes.ssh import SshNode
from rig.targets.exo.fields import ExoProcess
from rig.targets.views import Instance

NAMES = ("a", "b", "c")
ACROSS = Instance("i1", "rdma/model", {"a": "r1", "b": "r2"}, None)
BESIDE = Instance("i2", "rdma/model", {"b": "r1", "c": "r2"}, None)
TCP = Instance("i3", "tcp/model", {"a": "r1", "b": "r2"}, 50001)


async def cut(*instances: Instance, interface: str | None = None) -> Aim:
    """`a` from `b` and `c`, with these instances."""

    def node(number: int) -> Node:
        return Node(
            ssh=Ssh(host="127.0.0.1"),
            api="http://127.0.0.1:1",
            addresses=[f"10.0.0.{number}"],
            process=ExoProcess(home="/exo"),
        )

    async def now() -> Sequence[Instance]:
        return instances

    nodes = {name: SshNode(name, node(number)) for number, name in enumerate(NAMES, start=1)}
    context = AimContext(nodes=nodes, instances=now, emulated=False, rdma_models=frozenset({"rdma/model"}))
    planned = Planned(
        index=0,
        kind=KINDS["partition"],
        aim="a | b, c",
        hold_s=1.0,
        gap_s=0.0,
        nodes=NAMES,
        sides=(("a",), ("b", "c")),
        settings=settings_of("partition", interface=interface),
    )
    return await resolve(planned, context, asyncio.Event())


async def test_an_instance_over_rdma_across_the_cut_makes_it_partial() -> None:
    partial = (await cut(ACROSS, TCP)).partial
    assert partial.startswith("partial: the control plane is cut, RDMA over Thunderbolt is not")
    assert partial.endswith(": rdma/model")


async def test_one_on_the_same_side_or_over_tcp_does_not() -> None:
    assert (await cut(BESIDE, TCP)).partial == ""


async def test_a_cut_of_one_interface_says_so_and_tells_the_script() -> None:
    aim = await cut(TCP, interface="en5")
    assert aim.partial == "partial: only what goes by en5 is cut"
    assert [act.values["interface"] for act in aim.acts] == ["en5"]
    assert "interface" not in (await cut(TCP)).acts[0].values
