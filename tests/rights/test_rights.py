"""The threat model of docs/harm.md under real sudo: what the SSH user and another local user cannot do."""

from __future__ import annotations

import subprocess

import pytest

from tests.faults.network import API_PORT, PEER4, Network
from tests.faults.node import until
from tests.rights.conftest import RIG_DIR
from tests.rights.machine import HELPER, LIBEXEC, OTHER, USER, Machine

CUT = ("rules", "cut", "rig_t1", "direction=both", f"peers={PEER4}")


def rules(machine: Machine) -> str:
    return machine.must("nft", "list", "ruleset")


@pytest.fixture(autouse=True)
def nothing_left(machine: Machine) -> None:
    """Rules of one test are not those of the next."""
    machine.shell("nft flush ruleset; rm -f /run/rig.*; ip link set vnode up")


# ---- the SSH user


def test_the_ssh_user_strikes_and_heals_by_sudo_alone(machine: Machine, network: Network) -> None:
    script = f"{machine.folder}/faults/partition.sh"
    values = {
        "id": "f1",
        "run": "r1",
        "owner": "me",
        "rig_dir": RIG_DIR,
        "hold": "60",
        "sudo": "1",
        "peers": PEER4,
        "ports": str(API_PORT),
    }
    words = [*machine.enter(USER), "sh", script, *(f"{key}={value}" for key, value in values.items())]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        said = [process.stdout.readline() for _ in range(3)]
        assert "\tholding\t" in said[-1], said
        assert not network.reaches(PEER4, API_PORT)
    finally:
        process.kill()
        process.wait()
    healed = machine.run(["sh", str(LIBEXEC / "heal.sh"), f"rig_dir={RIG_DIR}", "what=all"], user=USER)
    assert (healed.status, "\thealed\t" in healed.said) == (0, True), healed.said
    until(lambda: network.reaches(PEER4, API_PORT), "the peer answers again")
    assert rules(machine) == ""
    assert machine.must("find", "/run", "-name", "rig.*") == ""


@pytest.mark.parametrize(
    "text",
    [
        'include "/root/secret"',
        "flush ruleset",
        'table inet rig_x { chain c { include "/root/secret"; }; }',
    ],
)
def test_the_ssh_user_feeds_no_file_to_the_packet_filter(machine: Machine, text: str) -> None:
    """Neither by a file of his own nor by a link to another's; nor does root see a rule that he wrote."""
    machine.must("nft", "add", "table", "inet", "theirs")
    before = rules(machine)
    machine.must("sh", "-c", f"mkdir -p {RIG_DIR} && chown {USER} {RIG_DIR}")
    for plant in (f"printf '%s\\n' '{text}' >{RIG_DIR}/filter-x.nft", f"ln -sf /root/secret {RIG_DIR}/filter-x.nft"):
        assert machine.shell(f"rm -f {RIG_DIR}/filter-x.nft; {plant}", user=USER).status == 0
        for words in ("/usr/sbin/nft -f", f"{HELPER} rules cut rig_x -f", f"{HELPER} rules cut rig_x file="):
            done = machine.shell(f"sudo -n {words} {RIG_DIR}/filter-x.nft", user=USER)
            assert done.status != 0
            assert "the-secret" not in done.said
    assert rules(machine) == before


@pytest.mark.parametrize(
    "words",
    [
        "rules cut rig_x direction=both peers=10.0.0.2;include",
        "rules cut rig_x direction=both peers=@/root/secret",
        "rules cut rig_x direction=both peers=0.0.0.0/0",
        "rules cut rig_x direction=both peers=127.0.0.1",
        "rules cut rig_x direction=both peers=localhost",
        "rules cut rig_x direction=both peers=10.0.0.2 ports=53;include",
        "rules cut rig_x direction=both peers=10.0.0.2 ports=0",
        "rules cut rig_x direction=both peers=10.0.0.2 ports=",
        "rules loss rig_x amount=10 peers=10.0.0.2 ports=53",
        "rules cut filter direction=both peers=10.0.0.2",
        "rules cut rig_../x direction=both peers=10.0.0.2",
        "rules loss rig_x amount=100 peers=10.0.0.2",
        "rules delay rig_x amount=$(id) peers=10.0.0.2",
        "link down lo",
        "link down ../vnode",
        "link up vnode encap bpf out obj /root/secret",
        "exo start",
        "reboot",
        "reboot now",
    ],
)
def test_what_the_helper_is_not_for_is_refused(machine: Machine, words: str) -> None:
    """By sudo for the SSH user; the helper itself refuses all but what a machine may be bootstrapped for."""
    before = rules(machine)
    assert machine.helper(*words.split()).status != 0
    if words.split(maxsplit=1)[0] not in ("exo", "reboot") or words == "reboot now":
        done = machine.run([str(HELPER), *words.split()])
        assert (done.status, "refused" in done.said) == (2, True), done.said
    assert rules(machine) == before


def test_the_environment_of_the_ssh_user_does_not_reach_root(machine: Machine) -> None:
    """Neither his commands nor his places for notes: a note would be written through a link of his."""
    home = f"/home/{USER}"
    plant = f"mkdir -p {home}/bin; ln -sf /etc/planted {home}/made.rig_t1; ln -sf /etc/planted {home}/made.rig_t1.rules"
    tools = "; ".join(
        f"printf '#!/bin/sh\\nid >{home}/ran\\n' >{home}/bin/{tool}" for tool in ("nft", "uname", "perl", "sed")
    )
    assert machine.shell(f"{plant}; {tools}; chmod 755 {home}/bin/*", user=USER).status == 0
    spoilt = f"PATH={home}/bin:$PATH RIG_MADE={home}/made ENV={home}/bin/nft IFS=/ BASH_ENV={home}/bin/nft"
    done = machine.shell(f"export {spoilt}; /usr/bin/sudo -n {HELPER} {' '.join(CUT)}", user=USER)
    assert done.status == 0, done.said
    assert "table inet rig_t1" in rules(machine)
    assert machine.shell(f"ls {home}/ran /etc/planted").status != 0
    assert machine.shell(f"/usr/bin/sudo -n RIG_MADE={home}/made {HELPER} rules remove rig_t1", user=USER).status != 0
    assert machine.helper("rules", "remove", "rig_t1").status == 0
    assert machine.helper("rules", "forget", "rig_t1").status == 0
    assert rules(machine) == ""


def test_what_the_rig_did_not_make_is_not_the_ssh_users_to_remove(machine: Machine) -> None:
    machine.must("nft", "add table inet rig_theirs { chain c { type filter hook input priority 0; }; }")
    machine.must("ip", "link", "set", "vnode", "down")
    before = rules(machine)
    for words in ("rules remove rig_theirs", "rules forget rig_theirs", "rules counts rig_theirs", "link up vnode"):
        done = machine.helper(*words.split())
        assert (done.status, "by the rig" in done.said) == (1, True), (words, done.said)
    assert (
        machine.helper("rules", "cut", "rig_theirs", *CUT[3:]).said.strip() == "table inet rig_theirs is there already"
    )
    assert rules(machine) == before
    assert "state DOWN" in machine.must("ip", "link", "show", "vnode")


def test_the_helper_and_every_folder_above_it_are_roots(machine: Machine) -> None:
    """Who could change one of them could become root."""
    for path in [HELPER, *HELPER.parents]:
        owner, mode = machine.must("stat", "-c", "%u %a", str(path)).split()
        assert (owner, int(mode, 8) & 0o022) == ("0", 0), path
    for name in (USER, OTHER):
        for path in (HELPER, LIBEXEC / "heal.sh", "/etc/sudoers.d/rig", "/etc/rig/manifest", "/run/rig.rig_t1"):
            assert machine.shell(f"echo x >>{path}", user=name).status != 0
            assert machine.shell(f"ln -s /etc/passwd {path}.new", user=name).status != 0


def test_two_faults_at_once_do_not_touch_each_other(machine: Machine) -> None:
    assert machine.helper(*CUT).status == 0
    second = machine.helper("rules", "loss", "rig_t2", "amount=20", f"peers={PEER4}")
    assert second.status == 0, second.said
    mark = machine.helper("rules", "counts", "rig_t1").said.split()[-1]
    assert machine.helper("rules", "remove", "rig_t2").status == 0
    assert machine.helper("rules", "counts", "rig_t1").said.split()[-1] == mark
    assert "table inet rig_t2" not in rules(machine)


# ---- another local user


def test_another_user_has_no_right_by_the_rig(machine: Machine) -> None:
    for words in (CUT, ("rules", "look"), ("rules", "remove", "rig_t1"), ("link", "down", "vnode")):
        assert machine.helper(*words, user=OTHER).status != 0
        assert machine.run([str(HELPER), *words], user=OTHER).status != 0  # without sudo, it is a script like any other
    assert rules(machine) == ""


def test_another_user_reads_and_writes_nothing_of_the_rigs_folder(machine: Machine) -> None:
    machine.must("sh", "-c", f"mkdir -p {RIG_DIR}; chown {USER} {RIG_DIR}; chmod 700 {RIG_DIR}")
    for command in (f"ls {RIG_DIR}", f"touch {RIG_DIR}/leases", f"mv {RIG_DIR} {RIG_DIR}.old", f"rmdir {RIG_DIR}"):
        assert machine.shell(command, user=OTHER).status != 0, command


def test_another_user_plants_no_lease(machine: Machine) -> None:
    """A folder that another made before the SSH user did: commands in its leases are not run."""
    planted = "/var/tmp/planted"
    lease = "version=1\\nid=x\\nkind=crash\\nboot_id=b\\ndeadline=1.0\\nstart=touch /var/tmp/ran\\nend=1\\n"
    plant = f"mkdir -p {planted}/leases; chmod -R 777 {planted}; printf '{lease}' >{planted}/leases/x"
    assert machine.shell(plant, user=OTHER).status == 0
    done = machine.run(["sh", str(LIBEXEC / "heal.sh"), f"rig_dir={planted}", "what=all"], user=USER)
    assert (done.status, "belongs to another user" in done.said) == (12, True)
    assert machine.shell("ls /var/tmp/ran").status != 0
