"""What a script is told: nothing in it is executed, and what is not understood is refused before it matters."""

from __future__ import annotations

import os

import psutil
import pytest

from tests.faults.node import Node, state

HOSTILE = "$(touch {0}) `touch {0}` ; touch {0} | touch {0} & '\"\\ * ? ~ %n <x >y \u00fc"
FAULTS = ["freeze.sh", "crash.sh", "runner-kill.sh", "partition.sh"]


def test_metacharacters_in_every_value_execute_nothing(node: Node, main: psutil.Process) -> None:
    touched = node.folder / "touched"
    hostile = HOSTILE.format(touched)
    script = node.script("freeze.sh", run=hostile, owner=hostile, home=f"{node.home}", hold="0.2")
    assert script.wait_for("leased").fields["kind"] == "freeze"
    lease = (node.rig_dir / "leases" / "f1").read_text()
    assert f"owner={hostile}\n" in lease
    script.end()
    assert script.status == 0
    for name in FAULTS:
        for key in (
            "home",
            "pidfile",
            "match",
            "id",
            "hold",
            "port",
            "others",
            "peers",
            "ports",
            "clients",
            "api_port",
        ):
            node.script(name, **{key: hostile}).end()
    node.script("heal.sh", what=hostile).end()
    for key in ("what", "log", "pids", "home", "match", "pidfile"):
        node.script("inspect.sh", **{key: hostile}).end()
    assert not touched.exists()
    assert state(main.pid) in "RS"


def test_rig_dir_with_metacharacters(node: Node, main: psutil.Process) -> None:
    touched = node.folder / "touched"
    rig_dir = node.folder / "a $(touch x) `id` '; b * é"
    script = node.script("freeze.sh", rig_dir=str(rig_dir), hold="0.1")
    script.end()
    assert script.status == 0, script.stderr
    assert (rig_dir / "log" / "f1.log").exists()
    assert not touched.exists()
    assert main.is_running()


REFUSED = [
    {"hold": "-1"},
    {"hold": "1e3"},
    {"hold": "3601"},
    {"hold": "1.2.3"},
    {"hold": "$((1))"},
    {"id": "../x"},
    {"id": ".x"},
    {"id": "a b"},
    {"id": "x" * 65},
    {"rig_dir": "relative"},
    {"match": ""},
    {"match": "("},
    {"pidfile": "relative.pid"},
    {"owner": "two\nlines"},
    {"owner": "a\ttab"},
    {"sudo": "yes"},
    {"also": "2"},
    {"at": "soon"},
    {"unknown": "1"},
]
REFUSED_PARTITIONS = [
    {"peers": ""},
    {"peers": "10.0.0.1;"},
    {"peers": "example.com"},
    {"peers": "127.0.0.1"},
    {"peers": "::1"},
    {"peers": "fe80::1%en0/x"},
    {"peers": "10.0.0.1 }"},
    {"peers": "10.0.0.1", "direction": "sideways"},
    {"peers": "10.0.0.1", "ports": "0"},
    {"peers": "10.0.0.1", "ports": "65536"},
    {"peers": "10.0.0.1", "clients": "10.0.0.2"},
]


@pytest.mark.parametrize(("name", "refused"), [("freeze.sh", REFUSED), ("partition.sh", REFUSED_PARTITIONS)])
def test_refused_before_anything_is_touched(node: Node, name: str, refused: list[dict[str, str]]) -> None:
    for values in refused:
        script = node.script(name, **({"hold": "1"} | values))
        assert script.end() == [], values
        assert script.status == 2, values
        assert script.stderr.startswith(f"{name}: "), values
        assert not node.rig_dir.exists(), values


def test_line_breaks_at_the_end_of_a_command_are_dropped(node: Node, main: psutil.Process) -> None:
    script = node.script("crash.sh", hold="0.1", start=f"{node.start_command()} &\n\n")
    script.end()
    assert script.status == 0
    assert main.pid != node.main_pid()


@pytest.mark.parametrize("kind", ["file", "link", "foreign", "full"])
def test_rig_dir_that_cannot_hold_a_lease_means_no_strike(node: Node, main: psutil.Process, kind: str) -> None:
    real = node.folder / "real"
    if kind == "file":
        node.rig_dir.write_text("")
    elif kind == "link":
        real.mkdir()
        node.rig_dir.symlink_to(real)
    elif kind == "foreign":
        node.rig_dir.mkdir()
        os.chown(node.rig_dir, 12345, 12345)
    else:
        node.prefix = [
            *("unshare", "-m", "sh", "-c"),
            'mkdir -p "$RIG" && mount -t tmpfs -o size=4k,mode=700 none "$RIG" && mkdir "$RIG/leases" "$RIG/log" && '
            '{ cat /dev/zero >"$RIG/fill" 2>/dev/null; exec "$@"; }',
            "sh",
        ]
        node.env["RIG"] = str(node.rig_dir)
    script = node.script("freeze.sh", hold="0.1")
    events = script.end()
    assert script.status == 10, script.stderr
    assert [event.name for event in events] == ["skipped"]
    assert all(state(pid) in "RS" for pid in node.tree())
    assert main.is_running()
    if kind == "foreign":
        os.chown(node.rig_dir, 0, 0)
