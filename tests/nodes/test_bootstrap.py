"""`bootstrap.sh` in a scratch root with the real visudo: what it makes, nothing of it twice, and its inverse."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from rig.faults.plan.registry import KINDS
from rig.nodes.bootstrap import allowed_for, bootstrap
from rig.nodes.open import open_nodes
from tests.nodes.servers import SshServer, until

FAULTS = Path(__file__).parents[2] / "faults"
USER = "nobody"
EVERYTHING = "allow=cut shape link reboot"
EXO = ("exo_command=/opt/exo/bin/exo --quiet", "exo_home=/var/lib/exo")


@pytest.fixture
def root() -> Iterator[Path]:
    """A scratch root with something of its own in the places that matter, open to users that are not root."""
    with tempfile.TemporaryDirectory(prefix="rig-root-") as folder:
        Path(folder).chmod(0o755)
        yield furnished(Path(folder) / "root")


def furnished(root: Path) -> Path:
    for folder in ("etc/sudoers.d", "etc/systemd/system", "Library/LaunchDaemons", "usr/local", "var/tmp"):
        (root / folder).mkdir(parents=True)
    (root / "etc/sudoers.d/wheel").write_text("root ALL=(ALL) ALL\n")
    return root


def run(root: Path, step: str, *arguments: str, system: str = "Linux") -> tuple[int, str]:
    """Runs the script, on Darwin with a `uname` that says so."""
    fake = root.parent / f"bin-{system}"
    fake.mkdir(exist_ok=True)
    (fake / "uname").write_text(f"#!/bin/sh\necho {system}\n")
    (fake / "uname").chmod(0o755)
    command = ["sh", str(FAULTS / "bootstrap.sh"), f"step={step}", "rig_dir=/var/tmp/rig", f"user={USER}"]
    done = subprocess.run(
        [*command, f"prefix={root}", *arguments],
        env={"PATH": f"{fake}:{os.environ['PATH']}:/usr/sbin"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def snapshot(root: Path) -> dict[str, tuple[int, int, int, str]]:
    """Every file and folder: mode, owner, group, content."""
    found: dict[str, tuple[int, int, int, str]] = {}
    for path in [root, *root.rglob("*")]:
        info = path.lstat()
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        found[str(path.relative_to(root))] = (info.st_mode, info.st_uid, info.st_gid, content)
    return found


@pytest.mark.parametrize("system", ["Linux", "Darwin"])
def test_install_twice_and_remove_leave_the_tree_identical(root: Path, system: str) -> None:
    before = snapshot(root)
    status, plan = run(root, "plan", EVERYTHING, *EXO, system=system)
    assert (status, snapshot(root)) == (0, before)
    status, said = run(root, "install", EVERYTHING, *EXO, system=system)
    assert status == 0, said
    installed = snapshot(root)
    made = {path for path in installed.keys() - before.keys() if path != "etc/rig/manifest"}
    assert all(f"/{path}" in plan for path in made)  # what it does is what it said
    assert len(made) > 10
    status, again = run(root, "install", EVERYTHING, *EXO, system=system)
    assert (status, snapshot(root)) == (0, installed)
    assert "wrote" not in again
    (root / "var/tmp/rig/log").mkdir()  # what runs leave in the rig's own folder goes with it
    (root / "var/tmp/rig/log/old.log").write_text("@rig\n")
    for path in ("log", "log/old.log"):
        shutil.chown(root / "var/tmp/rig" / path, USER)
    status, said = run(root, "remove", system=system)
    assert status == 0, said
    assert snapshot(root) == before
    assert run(root, "remove", system=system) == (0, "nothing of rig bootstrap is here\n")


@pytest.mark.parametrize("system", ["Linux", "Darwin"])
@pytest.mark.parametrize("allow", ["", "allow=cut", EVERYTHING])
def test_the_sudoers_file_passes_visudo_and_grants_no_more(root: Path, system: str, allow: str) -> None:
    words = [allow] if allow else []
    assert run(root, "install", *words, system=system)[0] == 0
    path = root / "etc/sudoers.d/rig"
    subprocess.run(["visudo", "-c", "-q", "-f", str(path)], check=True, env={"PATH": f"{os.environ['PATH']}:/usr/sbin"})
    assert path.stat().st_mode & 0o777 == 0o440
    rules = [line for line in path.read_text().splitlines() if not line.startswith(("#", "Defaults!"))]
    for rule in rules:
        assert rule.startswith(f"{USER} ALL=(root) NOPASSWD: /")
        assert rule.partition(" ^")[2].endswith("$")  # anchored at both ends
        assert "*" not in rule
    assert any("reboot" in rule for rule in rules) == (allow == EVERYTHING)
    helper = "/usr/local/libexec/rig/root.sh"
    assert {rule.split()[3] for rule in rules} == {helper}
    assert (root / helper[1:]).stat().st_mode & 0o777 == 0o755


def granted(rules: Path, command: Sequence[str]) -> bool:
    """What sudo itself says of a command, with this file in place of /etc/sudoers and what was installed in its place,
    in a mount namespace of its own.
    """
    script = (
        'mount --bind "$0" /etc/sudoers && mount -t tmpfs rig-bootstrap /usr/local && mkdir -p /usr/local/libexec && '
        'cp -rp "$1" /usr/local/libexec/rig && shift && exec sudo -n -l -U "$@"'
    )
    installed = rules.parents[2] / "usr/local/libexec/rig"
    words = ["unshare", "-m", "sh", "-c", script, str(rules), str(installed), USER, *command]
    return subprocess.run(words, capture_output=True, timeout=30, check=False).returncode == 0


def test_sudo_grants_the_words_of_the_helper_and_not_their_neighbours(root: Path) -> None:
    assert run(root, "install", EVERYTHING)[0] == 0
    rules = root / "etc/sudoers.d/rig"
    helper = "/usr/local/libexec/rig/root.sh"
    for words in (
        "rules look",
        "rules cut rig_run_1 direction=both peers=10.0.0.2,fe80::2 clients=10.0.0.9 api_port=52415 ssh=fe80::9,22",
        "rules cut rig_run_1 direction=both peers=10.0.0.2,224.0.0.251 ports=53,5353",
        "rules loss rig_run_1 amount=20 peers=10.0.0.2",
        "rules remove rig-run_1",
        "link down eth1",
        "reboot",
    ):
        assert granted(rules, [helper, *words.split()]), words
    for words in (
        "",
        "rules",
        "rules remove filter",
        "rules remove rig_x;reboot",
        "rules cut rig_x peers=10.0.0.2 include=/root/secret",
        "rules cut rig_x peers=$(id)",
        "link delete eth1",
        "exo start",
        "reboot now",
    ):
        assert not granted(rules, [helper, *words.split()]), words
    for command in ("/usr/sbin/nft list tables", "/usr/sbin/nft -f /var/tmp/rig/filter-x.nft", "/usr/bin/sh"):
        assert not granted(rules, command.split()), command


@pytest.mark.parametrize("name", ["etc/sudoers.d/rig", "usr/local/libexec/rig/guard.sh", "etc/rig"])
def test_what_somebody_else_made_is_refused_before_anything(root: Path, name: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text("mine\n")
    before = snapshot(root)
    status, said = run(root, "install")
    assert status == 12
    assert "refused:" in said
    assert snapshot(root) == before


def test_what_was_changed_since_is_neither_renewed_nor_removed(root: Path) -> None:
    assert run(root, "install")[0] == 0
    timer = root / "etc/systemd/system/rig-guard.timer"
    timer.write_text(timer.read_text() + "# mine\n")
    before = snapshot(root)
    for step in ("install", "remove"):
        status, said = run(root, step)
        assert (status, "was changed since" in said) == (12, True)
        assert snapshot(root) == before


def test_leases_keep_it_from_being_removed(root: Path) -> None:
    assert run(root, "install")[0] == 0
    (root / "var/tmp/rig/leases").mkdir()
    (root / "var/tmp/rig/leases/f1").write_text("version=1\n")
    status, said = run(root, "remove")
    assert (status, "rig heal first" in said) == (12, True)


def test_an_install_cut_short_can_be_removed(root: Path) -> None:
    before = snapshot(root)
    assert run(root, "install")[0] == 0
    for name in ("etc/systemd/system/rig-guard.timer", "usr/local/libexec/rig/guard.sh"):
        (root / name).unlink()  # as if it had not come so far: the manifest is written ahead
    assert run(root, "remove")[0] == 0
    assert snapshot(root) == before


@pytest.mark.parametrize(
    "argument",
    ["user=a b", "user=x\ty", "rig_dir=/var/$(id)", "exo_command=/bin/sh -c 'x'", "allow=all", "prefix=/tmp/a b"],
)
def test_nothing_that_could_be_read_as_more_gets_into_a_file(tmp_path: Path, argument: str) -> None:
    given = {"step": "plan", "rig_dir": "/var/tmp/rig", "user": "rig"}
    key, _, value = argument.partition("=")
    words = [f"{name}={text}" for name, text in (given | {key: value}).items()]
    done = subprocess.run(["sh", str(FAULTS / "bootstrap.sh"), *words], capture_output=True, timeout=30, check=False)
    assert done.returncode == 2, done.stdout
    assert not list(tmp_path.iterdir())


def test_which_commands_which_faults_need() -> None:
    assert allowed_for(["freeze", "node-crash"]) == []
    assert allowed_for(["partition"]) == ["cut"]
    assert allowed_for(KINDS) == ["cut", "shape", "link", "reboot"]


async def test_a_plan_over_ssh_leaves_nothing_behind(server: SshServer) -> None:
    before = traces()
    node = server.node(rig_dir=str(server.folder / "rig"))
    async with open_nodes(server.inventory(n1=node)) as nodes:
        told = await bootstrap(nodes["n1"], "plan", ["cut"])
    assert not told.refused
    assert any("guard.sh" in line for line in told.lines)
    assert not (server.folder / "rig").exists()
    await until(lambda: traces() <= before)  # other tests make theirs at the same time


def traces() -> set[Path]:
    return set(Path("/tmp").glob("rig-bootstrap.*"))
