"""Installing and removing as root, on a machine whose users try to be in the way."""

from __future__ import annotations

import subprocess

import pytest

from tests.rights.machine import USER, Machine

TRIES = 3
# As soon as the folder is there, it is moved away, and a link to one of root's stands in its place.
_SWAP = """
my ($path, $victim) = @ARGV; $| = 1; print "ready\\n";
1 until -d $path;
rename $path, "$path.aside" and symlink $victim, $path;
sleep 60
"""


def victim(machine: Machine) -> str:
    """Everything of it, with owner and mode."""
    return machine.must("find", "/etc/victim", "-printf", "%p %u %m\\n")


def test_a_link_put_in_the_way_of_an_install_leads_root_nowhere(bare: Machine) -> None:
    """Whatever becomes of the install: what the link leads to stays root's, and as it was."""
    bare.must("mkdir", "-p", "/etc/victim/rig")
    before = victim(bare)
    for number in range(TRIES):
        rig_dir = f"/home/{USER}/race-{number}"
        words = [*bare.enter(USER), "perl", "-e", _SWAP, rig_dir, "/etc/victim"]
        swapping = subprocess.Popen(words, stdout=subprocess.PIPE)
        try:
            assert swapping.stdout is not None
            assert swapping.stdout.readline() == b"ready\n"
            bare.bootstrap("install", rig_dir)
        finally:
            swapping.kill()
            swapping.wait()
        assert bare.run(["test", "-L", rig_dir]).status == 0  # the swap came about
        bare.bootstrap("remove", rig_dir)
        assert victim(bare) == before


def test_a_link_put_in_the_way_of_a_remove_leads_root_nowhere(bare: Machine) -> None:
    """The folder above is the user's as well: what has the same name where his link leads is not the rig's."""
    above = f"/home/{USER}/above"
    bare.must("sh", "-c", "mkdir -p /etc/victim/rig && touch /etc/victim/rig/guard")
    before = victim(bare)
    assert bare.shell(f"mkdir {above}", user=USER).status == 0
    assert bare.bootstrap("install", f"{above}/rig").status == 0
    assert bare.shell(f"mv {above} {above}.aside && ln -s /etc/victim {above}", user=USER).status == 0
    bare.bootstrap("remove", f"{above}/rig")
    assert victim(bare) == before


@pytest.mark.parametrize("rig_dir", ["/var/tmp/rig", f"/home/{USER}/a/b/rig", "/opt/rig/own"])
def test_remove_is_the_inverse_where_bootstrap_made_the_folder(bare: Machine, rig_dir: str) -> None:
    """The folder is the user's, and goes with what he left there."""
    look = "find /etc /usr/local /opt /var/tmp /home -xdev -printf '%p %u %m\\n' | sort"
    before = bare.shell(look).said
    done = bare.bootstrap("install", rig_dir)
    assert done.status == 0, done.said
    assert bare.must("stat", "-c", "%U %a", rig_dir) == f"{USER} 700\n"
    assert bare.shell(f"mkdir {rig_dir}/log && touch {rig_dir}/log/old {rig_dir}/guard", user=USER).status == 0
    done = bare.bootstrap("remove", rig_dir)
    assert (done.status, f"removed {rig_dir}" in done.said) == (0, True), done.said
    assert bare.shell(look).said == before


def test_a_helper_that_others_could_replace_is_not_installed(bare: Machine) -> None:
    bare.must("sh", "-c", f"mkdir -p /usr/local/libexec && chown {USER} /usr/local/libexec")
    try:
        done = bare.bootstrap("install", "/var/tmp/rig")
        assert (done.status, "others than root can change /usr/local/libexec" in done.said) == (12, True), done.said
        assert bare.shell("ls /usr/local/libexec/rig /etc/sudoers.d/rig").status != 0
    finally:
        bare.must("chown", "root", "/usr/local/libexec")
