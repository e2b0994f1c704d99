"""From a planned fault to what is done where: master, worker and addresses are known only at the strike.

`resolve` asks the nodes and the target, the choices themselves are pure functions. What cannot be aimed raises
CannotAim and becomes a skipped fault with that reason.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias
from urllib.parse import urlsplit

from rig.config.inventory import Node
from rig.errors import NodeError, TargetError
from rig.faults.plan.cutting import CutPlan
from rig.faults.plan.kind import AnyKind, CannotAim, EveryNode, Pair, RoleNode, RoleProcess, SingleNode, Split
from rig.injection.acts import Act, act_on_node
from rig.injection.schedule import Planned
from rig.nodes.inspect import Inspection
from rig.nodes.master import Ruling, Word, rule
from rig.nodes.node import Nodes
from rig.nodes.scripts import process_values
from rig.targets.views import Instance

__all__ = ["Act", "Aim", "AimContext", "CannotAim", "find_master", "resolve"]

RDMA_ALIVE = "partial: the control plane is cut, RDMA over Thunderbolt is not, which no packet filter sees"
MASTER_LIMIT_S: Final = 20.0  # an election, or a node that has just started and claims for a while
_MASTER_LOOK_S: Final = 0.5
NOT_REHEARSED = "no restart was ever rehearsed there: run `rig doctor --rehearse-restart`"


InstancesNow: TypeAlias = Callable[[], Awaitable[Sequence[Instance]]]
"""The instances as the target lists them at this moment, their nodes named as in the inventory."""


@dataclass(frozen=True, kw_only=True)
class Aim:
    """A resolved fault. `processes_hit` and `clients_cut` are for the own-node rule, `findings` for the reader."""

    acts: tuple[Act, ...]
    nodes: tuple[str, ...]
    processes_hit: tuple[str, ...] = ()
    clients_cut: tuple[str, ...] = ()
    model: str | None = None
    instance: str | None = None
    findings: tuple[str, ...] = ()
    partial: str = ""  # what a cut does not cut, as far as is known


@dataclass(frozen=True, kw_only=True)
class AimContext:
    """What aiming needs: the nodes, the target's instances, and on which nodes a restart is known to work."""

    nodes: Nodes
    instances: InstancesNow
    rehearsed: frozenset[str] = field(default_factory=frozenset[str])
    rdma_models: frozenset[str] = field(default_factory=frozenset[str])  # whose instances speak RDMA
    emulated: bool  # the nodes share one machine: they are given token amounts of memory, disk and load


async def resolve(planned: Planned, context: AimContext, stop: asyncio.Event) -> Aim:
    """Raises CannotAim; NodeError when a node that is needed does not answer. `stop` ends a wait for a master."""
    match planned.kind.aim:
        case RoleNode():
            master, findings = await find_master(context.nodes, stop)
            return _on_node(planned, master, context, findings)
        case RoleProcess():
            return await _worker(planned, context)
        case Split():
            return await _partition(planned, context)
        case Pair():
            return _pair(planned, context)
        case SingleNode() | EveryNode():
            assert planned.node is not None
            return _on_node(planned, planned.node, context, ())


async def find_master(nodes: Nodes, stop: asyncio.Event) -> tuple[str, tuple[str, ...]]:
    """The node that is master now, and what was odd about it. Waits, bounded, while that is unknown.

    Raises CannotAim with the reason when it stays unknown: striking the wrong node would be worse.
    """
    loop = asyncio.get_running_loop()
    began = loop.time()
    while True:
        seen, silent = await _masters_seen(nodes)
        ruling = choose_master(seen, list(silent))
        if ruling.master is not None:
            return ruling.master, (*silent.values(), *filter(None, (ruling.reason,)))
        if stop.is_set() or loop.time() - began >= MASTER_LIMIT_S:
            reasons = "; ".join((ruling.reason, *silent.values()))
            raise CannotAim(f"who is master is unknown after {loop.time() - began:.0f} s: {reasons}")
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), _MASTER_LOOK_S)


async def _masters_seen(nodes: Nodes) -> tuple[list[Inspection], dict[str, str]]:
    """What the nodes say of it, and for those that could not be asked why."""
    answers = await asyncio.gather(*(conn.inspect("master") for conn in nodes.values()), return_exceptions=True)
    seen: list[Inspection] = []
    silent: dict[str, str] = {}
    for name, answer in zip(nodes, answers, strict=True):
        if isinstance(answer, Inspection):
            seen.append(answer)
        elif isinstance(answer, NodeError):
            silent[name] = f"{name} could not be asked who is master: {answer.message}"
        else:
            raise answer
    return seen, silent


def choose_master(seen: Sequence[Inspection], silent: Sequence[str] = ()) -> Ruling:
    """By the logs of the processes that run; `silent` nodes may have elected anybody. Pure.

    One whose log says nothing claims by the master's open files. Every node has those open when it starts, so that
    between claims they only rule out who has them not.
    """
    alive = [one for one in seen if one.main is not None]
    claims = {one.node for one in alive if one.master_claim or (one.master_claim is None and one.master_files)}
    holding = {one.node for one in alive if one.master_files}
    claiming = claims & holding or claims
    words = [Word(one.node, one.node in claiming, one.elected_id, one.master_claimed_s) for one in alive]
    words += [Word(name, claims=False) for name in silent]
    ruling = rule(words, {one.node_id: one.node for one in alive if one.node_id})
    odd = sorted((claims | holding) - {ruling.master}) if ruling.master and not ruling.reason else []
    return Ruling(ruling.master, f"{', '.join(odd)} claim it too, by log or by open files") if odd else ruling


def choose_worker(planned: Planned, instances: Sequence[Instance]) -> tuple[Instance, str, tuple[Instance, ...]]:
    """Which instance of the model, on which node, and the other instances that have a worker there. Pure.

    Nodes take turns with the number of the fault, so that a schedule means the same each time.
    """
    mine = [one for one in instances if one.model == planned.model]
    if not mine:
        raise CannotAim(f"no instance of {planned.model} is there")
    places = sorted((node, one.id) for one in mine for node in one.workers if node in planned.nodes)
    if not places:
        raise CannotAim(f"{planned.model} has no {_role(planned)} on a node that may be hit")
    node, identity = places[planned.index % len(places)]
    chosen = next(one for one in mine if one.id == identity)
    others = tuple(one for one in instances if one is not chosen and node in one.workers)
    return chosen, node, others


def _role(planned: Planned) -> str:
    aim = planned.kind.aim
    return aim.role if isinstance(aim, RoleProcess) else "worker"


def _on_node(planned: Planned, name: str, context: AimContext, findings: tuple[str, ...]) -> Aim:
    kind = planned.kind
    return Aim(
        acts=(_node_act(planned, kind, name, context),),
        nodes=(name,),
        processes_hit=(name,) if kind.hits_process else (),
        clients_cut=(name,) if kind.effect == "restarted" else (),
        findings=findings,
        partial=RDMA_ALIVE if "link" in kind.needs and context.rdma_models else "",
    )


def _pair(planned: Planned, context: AimContext) -> Aim:
    acts = tuple(_node_act(planned, half.kind, half.node, context) for half in planned.halves)
    hit = tuple(half.node for half in planned.halves if half.kind.hits_process)
    return Aim(acts=acts, nodes=tuple(half.node for half in planned.halves), processes_hit=hit)


def _node_act(planned: Planned, kind: AnyKind, name: str, context: AimContext) -> Act:
    """Raises CannotAim when that node must not be hit so, or when what the script needs is not in the inventory."""
    node = context.nodes[name].node
    _allowed(planned, name, node)
    peers = [address for other, conn in context.nodes.items() if other != name for address in conn.node.addresses]
    act = act_on_node(kind, name, node, planned.settings, peers=peers, emulated=context.emulated)
    if kind.ends_process and not node.restart_rehearsed and name not in context.rehearsed:
        raise CannotAim(f"{name}: {NOT_REHEARSED}")
    return act


async def _worker(planned: Planned, context: AimContext) -> Aim:
    try:
        instances = await context.instances()
    except TargetError as exc:
        raise CannotAim(f"the target does not tell its instances: {exc.message}") from exc
    chosen, name, others = choose_worker(planned, instances)
    node = context.nodes[name].node
    _allowed(planned, name, node)
    values = process_values(node) | {
        "port": str(chosen.port or ""),
        "others": " ".join(str(one.port) for one in others if one.port is not None),
    }
    return Aim(
        acts=(Act(node=name, kind=planned.kind, values=values),),
        nodes=(name,),
        model=planned.model,
        instance=chosen.id,
    )


async def _partition(planned: Planned, context: AimContext) -> Aim:
    assert planned.sides is not None
    left, right = planned.sides
    interface = planned.settings.interface if isinstance(planned.settings, CutPlan) else None
    peers = [address for name in right for address in context.nodes[name].node.addresses]
    if not peers:
        raise CannotAim(f"the inventory has no `addresses` of {', '.join(right)}")
    acts: list[Act] = []
    for name in left:
        node = context.nodes[name].node
        _allowed(planned, name, node)
        values = process_values(node) | {"peers": " ".join(peers), "direction": planned.direction}
        if interface:
            values |= {"interface": interface}
        if planned.clients_cut:
            clients = await _controller_addresses(context, name)
            values |= {"clients": " ".join(clients), "api_port": str(urlsplit(node.api).port or "")}
        acts.append(Act(node=name, kind=planned.kind, values=values))
    return Aim(
        acts=tuple(acts),
        nodes=(*left, *right),
        clients_cut=left if planned.clients_cut else (),
        partial=await _partial(left, right, interface, context),
    )


async def _partial(left: Sequence[str], right: Sequence[str], interface: str | None, context: AimContext) -> str:
    """What a partition leaves connected: other interfaces, if it is of one; an instance over RDMA across the cut."""
    by_interface = f"partial: only what goes by {interface} is cut" if interface else ""
    return "; ".join(filter(None, (by_interface, await _over_rdma(left, right, context))))


async def _over_rdma(left: Sequence[str], right: Sequence[str], context: AimContext) -> str:
    if not context.rdma_models:
        return ""
    try:
        instances = await context.instances()
    except TargetError:
        return f"{RDMA_ALIVE} (models over RDMA: {', '.join(sorted(context.rdma_models))})"
    across = [
        str(one.model)
        for one in instances
        if one.model in context.rdma_models and one.workers.keys() & set(left) and one.workers.keys() & set(right)
    ]
    return f"{RDMA_ALIVE}: {', '.join(sorted(set(across)))}" if across else ""


async def _controller_addresses(context: AimContext, name: str) -> list[str]:
    """This machine's addresses as the node sees them: of the rig's connection, and of the path to its API."""
    conn = context.nodes[name]
    told = (await conn.controller_address(), await _source_address(conn.node))
    found = [address for address in told if _is_remote(address)]
    if not found:
        raise CannotAim(f"{name} does not say from which address the clients come")
    return list(dict.fromkeys(found))


async def _source_address(node: Node) -> str:
    """The address of ours that the kernel would use towards the node's API; empty when it has no route."""
    url = urlsplit(node.api)
    with contextlib.suppress(OSError):
        loop = asyncio.get_running_loop()
        family, kind, _, _, address = (await loop.getaddrinfo(url.hostname, url.port, type=socket.SOCK_DGRAM))[0]
        with socket.socket(family, kind) as probe:
            probe.connect(address)
            return str(probe.getsockname()[0])
    return ""


def _is_remote(address: str) -> bool:
    try:
        return not ipaddress.ip_address(address.partition("%")[0]).is_loopback
    except ValueError:
        return False


def _allowed(planned: Planned, name: str, node: Node) -> None:
    if not node.faults:
        raise CannotAim(f"{name}: the inventory allows no faults there")
    if planned.nodes and name not in planned.nodes:
        raise CannotAim(f"{name}: the fault plan does not let {planned.kind.name} hit it")
