"""What users get wrong: files, options, runs, nodes. Each with what the rig must say to it, and the exit code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Inventory = dict[str, Any]


@dataclass(frozen=True)
class Bad:
    """`says`: pieces of the message, `unsaid`: what must not be in it. `{…}` in arguments: see `conftest.Workplace`.

    `doctor` changes a good inventory of running nodes, written as `nodes.yaml`; `files` go into the working folder.
    """

    name: str
    arguments: tuple[str, ...]
    code: int
    says: tuple[str, ...]
    files: Mapping[str, str | bytes] = field(default_factory=dict[str, str | bytes])
    doctor: Callable[[Inventory], None] | None = None
    unsaid: str = "Traceback"

    def __hash__(self) -> int:
        return hash(self.name)


def _soak(*options: str) -> tuple[str, ...]:
    return ("soak", "--yes", "--minutes", "1", *options)


def _inventory(text: str) -> dict[str, str | bytes]:
    return {"inv.yaml": text}


_NODE = """\
name: two
nodes:
  studio-1:
    ssh: {host: 127.0.0.1, port: 1}
    api: http://127.0.0.1:1
    exo: {home: /opt/exo, start: start-exo}
  studio-2:
    ssh: {host: 127.0.0.1, port: 2}
    api: http://127.0.0.1:2
    exo: {home: /opt/exo, start: start-exo}
    faults: false
"""
_MODEL = "name: w\nmodels:\n  - model: lab/tiny-a\n"
_KINDS = "name: p\nkinds:\n  freeze: {hold: 5s..10s}\n"

FILES = [
    Bad(
        "yaml-bracket-left-open",
        _soak("-i", "inv.yaml"),
        2,
        ("inv.yaml:4", "not valid YAML"),
        _inventory("name: a\nnodes:\n  studio-1: {ssh: [\n"),
    ),
    Bad("yaml-tab", _soak("-i", "inv.yaml"), 2, ("inv.yaml:3", "tab"), _inventory("name: a\nnodes:\n\tstudio-1: {}\n")),
    Bad("yaml-key-twice", _soak("-i", "inv.yaml"), 2, ("inv.yaml:2", "name"), _inventory("name: a\nname: b\n")),
    Bad("empty-file", _soak("-i", "inv.yaml"), 2, ("inv.yaml",), _inventory("")),
    Bad("binary-file", _soak("-i", "inv.yaml"), 2, ("inv.yaml",), {"inv.yaml": b"\x00\xff\xfe\x80"}),
    Bad("a-list-not-a-mapping", _soak("-i", "inv.yaml"), 2, ("inv.yaml",), _inventory("- a\n- b\n")),
    Bad("no-nodes", _soak("-i", "inv.yaml"), 2, ("inv.yaml", "nodes", "at least one node"), _inventory("name: a\n")),
    Bad(
        "nodes-and-embedded",
        _soak("-i", "inv.yaml"),
        2,
        ("inv.yaml:12", "embedded", "not both"),
        _inventory(_NODE + "embedded: {nodes: 3}\n"),
    ),
    Bad(
        "port-out-of-range",
        _soak("-i", "inv.yaml"),
        2,
        ("inv.yaml:4", "port", "70000"),
        _inventory(_NODE.replace("port: 1}", "port: 70000}", 1)),
    ),
    Bad(
        "api-is-no-url",
        _soak("-i", "inv.yaml"),
        2,
        ("inv.yaml:5", "api", "http://"),
        _inventory(_NODE.replace("http://127.0.0.1:1", "127.0.0.1:1")),
    ),
    Bad(
        "unknown-key",
        _soak("-i", "inv.yaml"),
        2,
        ("inv.yaml:6", "hom", "home"),
        _inventory(_NODE.replace("{home: /opt/exo, start: start-exo}", "{hom: /opt/exo, start: start-exo}", 1)),
    ),
    Bad(
        "group-of-unknown-node",
        _soak("-i", "inv.yaml"),
        2,
        ("inv.yaml:13", "studio-3"),
        _inventory(_NODE + "groups:\n  all: [studio-1, studio-3]\n"),
    ),
    Bad(
        "negative-duration",
        _soak("-w", "w.yaml"),
        2,
        ("w.yaml:4", "think", "'-5s'", "expected a duration"),
        {"w.yaml": _MODEL + "arrivals: {think: -5s}\n"},
    ),
    Bad("no-models", _soak("-w", "w.yaml"), 2, ("w.yaml:2", "models"), {"w.yaml": "name: w\nmodels: []\n"}),
    Bad(
        "model-twice",
        _soak("-w", "w.yaml"),
        2,
        ("w.yaml:4", "models", "lab/tiny-a"),
        {"w.yaml": _MODEL + "  - model: lab/tiny-a\n"},
    ),
    Bad(
        "entry-is-no-node",
        _soak("-w", "w.yaml"),
        2,
        ("w.yaml:4", "entry", "node-9", "node-1"),
        {"w.yaml": _MODEL + "entry: [node-9]\n"},
    ),
    Bad(
        "more-nodes-than-there-are",
        _soak("-w", "w.yaml"),
        2,
        ("w.yaml:4", "min_nodes", "at most 3"),
        {"w.yaml": _MODEL + "    min_nodes: 7\n"},
    ),
    Bad(
        "duration-without-unit",
        _soak("-f", "p.yaml"),
        2,
        ("p.yaml:4", "gap", "60s..150s"),
        {"p.yaml": _KINDS + "gap: 60\n"},
    ),
    Bad(
        "range-backwards",
        _soak("-f", "p.yaml"),
        2,
        ("p.yaml:4", "gap", "150s..60s"),
        {"p.yaml": _KINDS + "gap: 150s..60s\n"},
    ),
    Bad(
        "unknown-kind-in-plan",
        _soak("-f", "p.yaml"),
        2,
        ("p.yaml:4", "freez", "freeze"),
        {"p.yaml": _KINDS + "  freez: {hold: 5s}\n"},
    ),
    Bad(
        "unknown-node-in-plan",
        _soak("-f", "p.yaml"),
        2,
        ("p.yaml:3", "node-9", "node-1"),
        {"p.yaml": _KINDS.replace("5s..10s", "5s, nodes: [node-9]")},
    ),
    Bad(
        "fault-for-a-node-that-forbids-it",
        _soak("-i", "inv.yaml", "-f", "p.yaml", "-w", "w.yaml"),
        2,
        ("p.yaml:3", "studio-2", "faults: false"),
        {"inv.yaml": _NODE, "w.yaml": _MODEL, "p.yaml": _KINDS.replace("5s..10s", "5s, nodes: [studio-2]")},
    ),
    Bad(
        "crash-without-start",
        _soak("-i", "inv.yaml", "-w", "w.yaml"),
        2,
        ("inv.yaml:", "studio-1", "start", "missing"),
        {"inv.yaml": _NODE.replace(", start: start-exo", ""), "w.yaml": _MODEL},
    ),
    Bad("unknown-inventory", _soak("-i", "studios"), 2, ("studios", "no inventory of this name", "two-mac-studios")),
    Bad("unknown-workload", _soak("-w", "chatt"), 2, ("chatt", "no workload of this name", "chat")),
    Bad("unknown-plan", _soak("-f", "keper"), 2, ("keper", "no fault plan of this name", "keeper")),
    Bad("file-that-is-not-there", _soak("-i", "./no.yaml"), 2, ("./no.yaml", "no such file")),
    Bad("a-folder-for-a-file", _soak("-i", "./"), 2, ("is a folder",)),
]

OPTIONS = [
    Bad("hours-and-minutes", ("soak", "--hours", "1", "--minutes", "2"), 2, ("--hours", "--minutes", "not both")),
    Bad("zero-minutes", ("soak", "--minutes", "0"), 2, ("above 0", "not 0 s")),
    Bad("negative-minutes", ("soak", "--minutes=-3"), 2, ("above 0", "-180 s")),
    Bad("minutes-not-a-number", ("soak", "--minutes", "nan"), 2, ("above 0",)),
    Bad("minutes-in-words", ("soak", "--minutes", "four"), 2, ("--minutes", "number")),
    Bad("plan-for-zero-hours", ("plan", "--hours", "0"), 2, ("above 0",)),
    Bad("unknown-option", ("soak", "--minuets", "4"), 2, ("--minuets",)),
    Bad("unknown-command", ("soack",), 2, ("soack",)),
    Bad("negative-seed", _soak("--seed=-1"), 2, ("--seed", "greater than or equal to 0")),
    Bad("name-taken", _soak("--name", "taken"), 3, ("results/taken", "exists already"), {"results/taken/x": ""}),
    Bad("name-with-a-slash", _soak("--name", "a/b"), 3, ("'a/b'", "plain name")),
    Bad("results-in-a-file", _soak("--out", "file"), 3, ("in file: it is not a folder",), {"file": ""}),
    Bad("results-on-a-full-disk", _soak("--out", "{full}"), 3, ("No space left on device",)),
    Bad("unknown-kind", ("inject", "freezer", "-i", "{nodes}"), 2, ("'freezer'", "node-crash, master-crash")),
    Bad("inject-without-node", ("inject", "freeze", "-i", "{nodes}"), 2, ("freeze needs --node",)),
    Bad("inject-without-model", ("inject", "runner-kill", "-i", "{nodes}"), 2, ("runner-kill needs --model",)),
    Bad("inject-unknown-node", ("inject", "freeze", "-n", "x", "-i", "{nodes}"), 2, ("'x'", "node-1, node-2")),
    Bad("inject-odd-hold", ("inject", "freeze", "-n", "node-1", "--hold", "5", "-i", "{nodes}"), 2, ("--hold", "'5'")),
    Bad(
        "inject-endless-hold",
        ("inject", "freeze", "-n", "node-1", "--hold", "2h", "-i", "{nodes}"),
        2,
        ("--hold", "at most 3600 s"),
    ),
    Bad(
        "inject-unknown-model",
        ("inject", "runner-kill", "--model", "lab/nobody", "-i", "{nodes}"),
        3,
        ("skipped", "lab/nobody"),
    ),
    Bad("inject-without-cluster", ("inject", "freeze", "-n", "node-1"), 2, ("no embedded cluster runs", "--inventory")),
    Bad("heal-without-cluster", ("heal",), 2, ("no embedded cluster runs", "--inventory")),
    Bad("cluster-of-real-nodes", ("cluster", "up", "-i", "{nodes}"), 2, ("is of real nodes",)),
    Bad("cluster-inert-what", ("cluster", "up", "--inert", "rm"), 2, ("--inert", "kill, nft, pfctl", "rm")),
    Bad("cluster-for-how-long", ("cluster", "up", "--for", "ever"), 2, ("--for", "'ever'")),
    Bad("cluster-in-a-full-folder", ("cluster", "up", "--folder", "c"), 2, ("c is not empty",), {"c/x": ""}),
    Bad("init-over-a-file", ("init", "a", "-o", "mine.yaml"), 2, ("mine.yaml exists", "--force"), {"mine.yaml": ""}),
    Bad("init-odd-host", ("init", "a b"), 2, ("[user@]host[:port]", "'a b'")),
    Bad("init-unreachable", ("init", "127.0.0.1:1"), 3, ("127.0.0.1", "port 1", "nothing was written")),
]

_LOAD = ("load", "--model", "m", "--url")

LOADS = [
    Bad("load-odd-deadline", (*_LOAD, "http://127.0.0.1:1", "--progress-deadline", "5"), 2, ("--progress-deadline",)),
    Bad("load-no-deadline", (*_LOAD, "http://127.0.0.1:1", "--total-deadline", "0s"), 2, ("--total-deadline",)),
    Bad("load-no-clients", (*_LOAD, "http://127.0.0.1:1", "--clients", "0"), 2, ("--clients", "0")),
    Bad("load-no-requests", (*_LOAD, "http://127.0.0.1:1", "--requests", "0"), 2, ("--requests",)),
    Bad("load-no-url", (*_LOAD, "server"), 2, ("'server'", "http URL", "http://studio-1")),
    Bad("load-no-rate", (*_LOAD, "http://127.0.0.1:1", "--rate", "0"), 2, ("--rate",)),
    Bad("load-refused-port", (*_LOAD, "http://127.0.0.1:1", "-n", "3", "-c", "3"), 1, ("error", "3")),
]

RUNS = [
    Bad("report-of-nothing", ("report", "nothing"), 2, ("no run called 'nothing'",)),
    Bad("last-of-none", ("report",), 2, ("there is no run", "rig soak")),
    Bad("run-json-broken", ("report", "r"), 3, ("r/run.json", "not a run's description"), {"r/run.json": "{"}),
    Bad("run-json-of-another", ("report", "r"), 3, ("r/run.json",), {"r/run.json": '{"a": 1}'}),
    Bad("journal-of-garbage", ("report", "{garbage}"), 3, ("lines of the journal are broken", "unknown")),
    Bad("no-such-fault", ("show", "{garbage}", "--fault", "99"), 2, ("99",)),
    Bad("no-such-request", ("show", "{garbage}", "--request", "r9999"), 2, ("r9999",)),
    Bad("fault-and-request", ("show", "{garbage}", "--fault", "0", "--request", "r1"), 2, ("not both",)),
]


def _first(inventory: Inventory) -> dict[str, Any]:
    node: dict[str, Any] = inventory["nodes"]["node-1"]
    return node


def _unreachable(inventory: Inventory) -> None:
    _first(inventory)["ssh"]["port"] = 1


def _other_host_key(inventory: Inventory) -> None:
    _first(inventory)["ssh"]["host_key"] = inventory["nodes"]["node-2"]["ssh"]["host_key"]


def _unknown_host_key(inventory: Inventory) -> None:
    del _first(inventory)["ssh"]["host_key"]
    _first(inventory)["ssh"]["known_hosts"] = "known_hosts"


def _key(path: str) -> Callable[[Inventory], None]:
    def change(inventory: Inventory) -> None:
        _first(inventory)["ssh"]["key"] = path

    return change


def _exo(**values: str) -> Callable[[Inventory], None]:
    def change(inventory: Inventory) -> None:
        _first(inventory)["exo"].update(values)

    return change


def _node(**values: Any) -> Callable[[Inventory], None]:
    def change(inventory: Inventory) -> None:
        _first(inventory).update(values)

    return change


_ON = ("-i", "nodes.yaml", "-w", "w.yaml")
_W: dict[str, str | bytes] = {"w.yaml": _MODEL}
_FREEZE = ("inject", "freeze", "-n", "node-1", "-i", "nodes.yaml", "--yes")
_SSH_KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\nbm90IGEga2V5\n-----END OPENSSH PRIVATE KEY-----\n"

NODES = [
    Bad("unreachable-node", _soak(*_ON), 3, ("node-1", "127.0.0.1", "refused"), _W, _unreachable),
    Bad("wrong-host-key", _soak(*_ON), 3, ("node-1", "host key", "fix:"), _W, _other_host_key),
    Bad("unknown-host-key", _soak(*_ON), 3, ("node-1", "known_hosts"), {**_W, "known_hosts": ""}, _unknown_host_key),
    Bad("missing-key-file", _soak(*_ON), 3, ("node-1", "./no-key"), _W, _key("./no-key")),
    Bad("key-of-garbage", _soak(*_ON), 3, ("node-1", "./key"), {**_W, "key": _SSH_KEY}, _key("./key")),
    Bad("key-that-is-refused", _soak(*_ON), 3, ("node-1", "rig"), _W, _key("{other_key}")),
    Bad("node-without-exo", _soak(*_ON), 3, ("node-1: exo", "/nowhere/exo.pid", "fix:"), _W, _exo(home="/nowhere")),
    Bad("exo-that-does-not-match", _soak(*_ON), 3, ("node-1: exo", "match"), _W, _exo(match="-m another.exo")),
    Bad("api-that-is-silent", _soak(*_ON), 3, ("node-1: api", "127.0.0.1:1"), _W, _node(api="http://127.0.0.1:1")),
    Bad("folder-that-is-read-only", _soak(*_ON), 3, ("node-1", "/proc/rig"), _W, _node(rig_dir="/proc/rig")),
    Bad(
        "restart-not-rehearsed",
        _soak(*_ON),
        3,
        ("node-1: restart", "rig doctor", "--rehearse-restart"),
        _W,
        _node(restart_rehearsed=False),
    ),
    Bad(
        "crash-not-rehearsed",
        ("inject", "node-crash", "-n", "node-1", "-i", "nodes.yaml", "--yes"),
        2,
        ("node-1", "rehearse"),
        {},
        _node(restart_rehearsed=False),
    ),
    Bad(
        "inject-where-forbidden",
        _FREEZE,
        3,
        ("skipped", "node-1: the inventory allows no faults there"),
        {},
        _node(faults=False),
    ),
    Bad("doctor-on-unreachable", ("doctor", "-i", "nodes.yaml"), 3, ("node-1", "refused", "1 to be"), {}, _unreachable),
    Bad(
        "heal-on-unreachable",
        ("heal", "-i", "nodes.yaml"),
        3,
        ("node-1: LEFT", "refused", "node-2: nothing to heal"),
        {},
        _unreachable,
        unsaid="node-1: nothing to heal",
    ),
    Bad(
        "locked-by-another",
        _soak(*_ON, "--name", "x"),
        3,
        ("node-1", "locked by eve@elsewhere:7", "fix:"),
        _W,
        _node(rig_dir="{locked}"),
    ),
]

ALL = [*FILES, *OPTIONS, *LOADS, *RUNS, *NODES]
