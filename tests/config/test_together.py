"""Files that are sound by themselves and do not fit each other."""

from __future__ import annotations

from pathlib import Path

import pytest

from rig.errors import ConfigError
from rig.faults.plan.read import load_all

NODES = """\
name: lab
nodes:
  a:
    ssh: {host: a}
    api: http://a:52415
    exo:
      home: /exo
      start: /exo/start
  b:
    ssh: {host: b}
    api: http://b:52415
    exo: {home: /exo, start: /exo/start}
groups:
  first: [a]
"""
WORK = "name: w\nmodels:\n  - model: m\n    min_nodes: 2\n"
PLAN = "name: p\nkinds:\n  freeze:\n    hold: 5s\n"
CRASH = "name: p\nkinds:\n  master-crash: {hold: 5s}\n"

ROWS = [
    ("min_nodes", NODES, WORK.replace("2", "3"), PLAN, ["w.yaml:4: models[0].min_nodes: expected at most 2"]),
    ("entry", NODES, WORK + "entry: [a, c]\n", PLAN, ["w.yaml:5: entry[1]: expected a node of the inventory, not 'c'"]),
    (
        "node unknown",
        NODES,
        WORK,
        PLAN + "    nodes: [frist]\n",
        ["p.yaml:5: kinds.freeze.nodes[0]: expected a node or group", "did you mean first? there are a, b, first"],
    ),
    (
        "node forbidden",
        NODES.replace("    ssh: {host: b}", "    faults: false\n    ssh: {host: b}"),
        WORK,
        PLAN + "    nodes: [first, b]\n",
        ["p.yaml:5: kinds.freeze.nodes[1]: node 'b' forbids faults"],
    ),
    (
        "group forbidden",
        NODES.replace("    ssh: {host: a}", "    faults: false\n    ssh: {host: a}"),
        WORK,
        PLAN + "    nodes: [first]\n",
        ["p.yaml:3: kinds.freeze: no node that allows faults is left for it"],
    ),
    (
        "no partition of one",
        NODES[: NODES.index("  b:")],
        WORK.replace("2", "1"),
        PLAN + "  partition: {hold: 5s}\n",
        ["p.yaml:5: kinds.partition: a partition takes two nodes, inventory 'lab' has 1"],
    ),
    ("blast radius", NODES, WORK, PLAN + "blast_radius: 3\n", ["p.yaml:5: blast_radius: expected at most 2"]),
    (
        "no way to start again",
        NODES.replace("      start: /exo/start\n", ""),
        WORK,
        CRASH,
        ["i.yaml:6: nodes.a.exo.start: missing: expected the command that starts exo, since master-crash may kill it"],
    ),
    (
        "three files at once",
        NODES.replace("      start: /exo/start\n", ""),
        WORK.replace("2", "9"),
        CRASH + "blast_radius: 3\n",
        ["i.yaml:6: nodes.a.exo.start", "w.yaml:4: models[0].min_nodes", "p.yaml:4: blast_radius"],
    ),
]


def write(folder: Path, inventory: str, workload: str, plan: str) -> tuple[str, str, str]:
    paths = folder / "i.yaml", folder / "w.yaml", folder / "p.yaml"
    for path, text in zip(paths, (inventory, workload, plan), strict=True):
        path.write_text(text)
    return str(paths[0]), str(paths[1]), str(paths[2])


@pytest.mark.parametrize(("_name", "inventory", "workload", "plan", "lines"), ROWS, ids=[row[0] for row in ROWS])
def test_what_does_not_fit_is_named_in_the_file_to_change(
    _name: str, inventory: str, workload: str, plan: str, lines: list[str], tmp_path: Path
) -> None:
    with pytest.raises(ConfigError) as caught:
        load_all(*write(tmp_path, inventory, workload, plan))
    said = str(caught.value).replace(f"{tmp_path}/", "")
    assert said.startswith(lines[0])
    for line in lines:
        assert line in said


def test_what_fits_is_loaded(tmp_path: Path) -> None:
    inventory, workload, plan = load_all(*write(tmp_path, NODES, WORK + "entry: [b]\n", PLAN + "    nodes: [first]\n"))
    assert inventory.resolve(plan.kinds["freeze"].nodes) == ["a"]
    assert workload.entry == ["b"]


def test_a_kind_without_weight_asks_nothing_of_the_inventory(tmp_path: Path) -> None:
    nodes = NODES.replace("      start: /exo/start\n", "")
    load_all(*write(tmp_path, nodes, WORK, PLAN + "  node-crash: {weight: 0}\n"))


def test_a_node_that_is_never_killed_needs_no_way_to_start_it(tmp_path: Path) -> None:
    nodes = NODES.replace("      start: /exo/start\n", "")
    load_all(*write(tmp_path, nodes, WORK, "name: p\nkinds:\n  node-crash: {nodes: [b]}\n"))
