"""The same tests on a real Mac (with sudo) and on a virtual one. `make mac-suite` runs them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from rig.config.inventory import Embedded
from tests.hosts.hosts import Hosts, needs_root, run, running
from tests.mac.mac import ANCHOR, Mac, Tools, is_mac, real_mac, virtual_mac

VIRTUAL_ONLY = {"macs"}
ANCHORS = (ANCHOR, f"{ANCHOR}_m1", "rig", "com.apple/aaa.rig", "com.apple/zzz.rig", "com.apple/org.foreign")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not is_mac():
        needs_root(config, items, {"machine", "macs"}, ci=os.environ.get("CI") == "true", root=os.geteuid() == 0)
        return
    virtual = [item for item in items if VIRTUAL_ONLY & set(getattr(item, "fixturenames", ()))]
    needing = [item for item in items if "machine" in getattr(item, "fixturenames", ())]
    if virtual:
        text = f"{len(virtual)} tests are left out: they need the emulation, or would disturb others on this Mac"
        config.issue_config_time_warning(UserWarning(text), 2)
        config.hook.pytest_deselected(items=virtual)
        items[:] = [item for item in items if item not in virtual]
    if needing and os.geteuid() != 0 and run(["sudo", "-n", "true"]).status != 0:
        raise pytest.UsageError("the Mac suite needs `sudo -n`: it loads pf rules and takes them away again")


@pytest.fixture(scope="module")
def macs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    """Three virtual Macs."""
    spec = Embedded(nodes=3, hosts="namespaces", system="darwin")
    with running(spec, tmp_path_factory.mktemp("macs") / "cluster") as hosts:
        hosts.serve_echo("node-2")
        yield hosts


@pytest.fixture(scope="module")
def machine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Mac:
    if is_mac():
        return real_mac(Path(os.path.realpath(tmp_path_factory.mktemp("mac"))))
    hosts: Hosts = request.getfixturevalue("macs")
    return virtual_mac(hosts)


@pytest.fixture(scope="module")
def tools(machine: Mac) -> Tools:
    """The Mac, for tests that leave its packet filter alone."""
    return Tools(machine)


@pytest.fixture
def mac(tools: Tools) -> Iterator[Tools]:
    """The Mac with nothing of ours in its packet filter, before and after."""
    assert "block" not in tools.must(f"pfctl -q -a {ANCHOR} -s rules"), "the anchor is in use"
    before = tools.must("pfctl -q -s References 2>/dev/null || :")
    yield tools
    tools.mac.run("; ".join(f"pfctl -q -a {anchor} -F all" for anchor in ANCHORS))
    after = tools.must("pfctl -q -s References 2>/dev/null || :")
    for token in _tokens(after) - _tokens(before):
        tools.mac.run(f"pfctl -X {token}")
    assert tools.reaches()


def _tokens(references: str) -> set[str]:
    return {word for line in references.splitlines() for word in line.split() if word.isdigit() and len(word) > 12}
