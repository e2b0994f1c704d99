"""What types cannot say: values of a file that do not fit each other, and files that do not fit each other. Pure.

Each function returns problems (none: sound); `rig.config.read` adds file and line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches

from rig.config.fields import duration_text
from rig.config.inventory import Inventory
from rig.config.problems import FieldPath, Problem
from rig.config.workload import Arrivals, Deadlines, Lengths, Workload

# One file by itself


def inventory_problems(inventory: Inventory) -> list[Problem]:
    return [*_inventory_sort(inventory), *_reached(inventory), *_groups(inventory), *_shared_values(inventory)]


def workload_problems(workload: Workload) -> list[Problem]:
    return [
        *repeated((("models", index, "model"), model.model) for index, model in enumerate(workload.models)),
        *_arrivals(workload.arrivals),
        *_unused(workload),
        *_lengths("prompt_tokens", workload.prompt_tokens),
        *_lengths("output_tokens", workload.output_tokens),
        *_deadlines(workload.deadlines),
        *repeated((("entry", index), name) for index, name in enumerate(_entries(workload))),
    ]


# Files together


def workload_on_inventory(workload: Workload, inventory: Inventory) -> list[Problem]:
    """Problems of the workload, given the nodes."""
    names = inventory.names()
    found = [
        Problem(("entry", index), f"expected a node of the inventory, not {name!r}: {known_names(name, names)}")
        for index, name in enumerate(_entries(workload))
        if name not in names
    ]
    found += [
        Problem(
            ("models", index, "min_nodes"),
            f"expected at most {len(names)} (the nodes of inventory {inventory.name!r}), not {model.nodes_needed}",
        )
        for index, model in enumerate(workload.models)
        if model.nodes_needed > len(names)
    ]
    return found


# Inventory


def _inventory_sort(inventory: Inventory) -> Iterator[Problem]:
    if inventory.nodes and inventory.embedded is not None:
        yield Problem(("embedded",), "expected either `nodes` (real machines) or `embedded`, not both")
    if not inventory.nodes and inventory.embedded is None:
        yield Problem(("nodes",), "expected at least one node (or `embedded:` for an emulated cluster)")
    emulation = inventory.embedded
    if emulation is not None and emulation.system == "darwin" and emulation.hosts != "namespaces":
        yield Problem(("embedded", "system"), "darwin (virtual Macs) needs `hosts: namespaces` beside it")
    if inventory.emulated is not None and not inventory.nodes:
        yield Problem(("emulated",), "expected only beside `nodes`, as the embedded cluster writes it")


def _reached(inventory: Inventory) -> Iterator[Problem]:
    for name, node in inventory.nodes.items():
        if node.ssh is None and not node.local:
            how = "expected how the node is reached, at least `host:`, or `local: true` for this machine"
            yield Problem(("nodes", name, "ssh"), f"missing: {how}")
        if node.ssh is not None and node.local:
            yield Problem(("nodes", name, "local"), "expected either `ssh` or `local: true`, not both")


def _groups(inventory: Inventory) -> Iterator[Problem]:
    names = inventory.names()
    for group, members in inventory.groups.items():
        if group in names:
            yield Problem(("groups", group), f"expected a name that no node has: {group!r} is a node")
        if not members:
            yield Problem(("groups", group), "expected at least one node")
        for index, member in enumerate(members):
            if member not in names:
                yield Problem(("groups", group, index), f"there is no node {member!r}: {known_names(member, names)}")
        yield from repeated((("groups", group, index), member) for index, member in enumerate(members))


def _shared_values(inventory: Inventory) -> Iterator[Problem]:
    """What two nodes cannot have in common."""
    nodes = inventory.nodes.items()
    yield from repeated((("nodes", name, "api"), node.api) for name, node in nodes)
    yield from repeated(
        (("nodes", name, "ssh", "host"), f"{node.ssh.host.lower()} port {node.ssh.port}")
        for name, node in nodes
        if node.ssh is not None
    )
    yield from repeated((("nodes", name, "rig_dir"), node.rig_dir) for name, node in nodes if node.local)
    yield from repeated(
        (("nodes", name, "addresses", index), address.lower())
        for name, node in nodes
        for index, address in enumerate(node.addresses)
    )


# Workload


def _entries(workload: Workload) -> list[str]:
    return workload.entry if isinstance(workload.entry, list) else []


def _arrivals(arrivals: Arrivals) -> Iterator[Problem]:
    kind, where = arrivals.kind, "arrivals"
    if kind == "closed" and arrivals.rate is not None:
        yield Problem((where, "rate"), "expected only with open-loop kinds such as poisson: a closed loop has no rate")
    if kind not in ("closed", "replay") and arrivals.rate is None and arrivals.stages is None:
        yield Problem((where, "rate"), f"missing: expected requests a second, or stages, since the kind is {kind}")
    if arrivals.rate is not None and arrivals.stages is not None:
        yield Problem((where, "rate"), "expected either `rate` or `stages`, not both")
    if arrivals.stages is not None and all(not stage.rate and not stage.to for stage in arrivals.stages):
        yield Problem((where, "stages"), "expected at least one stage with a rate above 0")
    if kind != "replay" and arrivals.speed != 1.0:
        yield Problem((where, "speed"), f"expected only with kind replay, not {kind}: give `rate` or `stages`")
    if kind == "closed" and "max_concurrency" in arrivals.model_fields_set:
        yield Problem((where, "max_concurrency"), "expected only with open-loop kinds: a closed loop has its `clients`")
    if kind != "closed" and arrivals.think:
        yield Problem((where, "think"), f"expected only with kind closed, not {kind}")
    for name, value, its_kinds in (
        ("stages", arrivals.stages, ("constant", "poisson", "gamma", "burst")),
        ("burstiness", arrivals.burstiness, ("gamma",)),
        ("burst", arrivals.burst, ("burst",)),
        ("trace", arrivals.trace, ("replay",)),
    ):
        if value is not None and kind not in its_kinds:
            yield Problem((where, name), f"expected only with kind {' or '.join(its_kinds)}, not {kind}")
        if value is None and kind in its_kinds and name != "stages":
            yield Problem((where, name), f"missing: expected with kind {kind}")


def _unused(workload: Workload) -> Iterator[Problem]:
    """What was written and would say nothing."""
    kind, given = workload.arrivals.kind, workload.model_fields_set
    if kind != "closed" and "clients" in given:
        yield Problem(
            ("clients",),
            f"expected only with kind closed, not {kind}: an open loop sends when a request is due, "
            "within `max_concurrency` of `arrivals`",
        )
    for name in ("prompt_tokens", "output_tokens", "pairs"):
        if name in given and kind == "replay":
            yield Problem((name,), "expected only without a replay: its trace has the lengths")
        elif name in given and name != "pairs" and "pairs" in given:
            yield Problem((name,), "expected either this or `pairs`, which has the lengths, not both")


def _lengths(name: str, lengths: Lengths) -> Iterator[Problem]:
    if lengths.high < lengths.low:
        yield Problem((name, "high"), f"expected at least `low` ({lengths.low}), not {lengths.high}")
    for key, value in (("mean", lengths.mean), ("deviation", lengths.deviation)):
        if value is not None and lengths.shape == "uniform":
            yield Problem((name, key), "expected only with shape normal or lognormal")
    if lengths.mean is not None and not lengths.low <= lengths.mean <= lengths.high:
        yield Problem((name, "mean"), f"expected between `low` and `high`, not {lengths.mean:g}")


def _deadlines(deadlines: Deadlines) -> Iterator[Problem]:
    if deadlines.progress > deadlines.total:
        limit = duration_text(deadlines.total)
        yield Problem(("deadlines", "progress"), f"expected at most `total` ({limit})")
    if deadlines.connect > deadlines.progress:
        limit = duration_text(deadlines.progress)
        yield Problem(("deadlines", "connect"), f"expected at most `progress` ({limit})")


# Shared


def repeated(values: Iterable[tuple[FieldPath, str]]) -> Iterator[Problem]:
    """A problem for each value that was there before."""
    first: dict[str, FieldPath] = {}
    for path, value in values:
        if value not in first:
            first[value] = path
            continue
        before = first[value]
        holder = f"node {before[1]}" if before[0] == "nodes" and before[1] != path[1] else "the list"
        yield Problem(path, f"{value} is there twice: {holder} has it already")


def known_names(name: str, known: Sequence[str]) -> str:
    close = get_close_matches(name, known, n=1, cutoff=0.6)
    hint = f"did you mean {close[0]}? " if close else ""
    return f"{hint}there are {', '.join(known)}"
