"""What a user is told about a wrong inventory."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rig.config.read import load_inventory

Row = tuple[str, str | bytes, list[str]]

NODE = """\
name: lab
nodes:
  studio-1:
    ssh: {host: studio-1}
    api: http://studio-1:52415
    exo: {home: /Users/exo/.exo}
"""
LOCAL = """\
name: lab
nodes:
  a:
    local: true
    api: http://127.0.0.1:1000
    exo: {home: /exo}
"""


def row(name: str, text: str | bytes, *lines: str) -> Row:
    """A file that is wrong, and what is said about it: `:LINE: FIELD: MESSAGE` follows the name of the file."""
    return name, text, list(lines)


ROWS = [
    row("no nodes", "name: lab\n", ":1: nodes: expected at least one node"),
    row("nodes and embedded", NODE + "embedded: {}\n", ":7: embedded: expected either `nodes`"),
    row(
        "behaviour unknown",
        "name: e\nembedded:\n  behaviour: exo\n",
        ":3: embedded.behaviour: expected sound, upstream or exo-0.3.70",
    ),
    row(
        "a defect of another keeper",
        "name: e\nembedded:\n  behaviour: upstream\n  defects: [ghost-node, no-backoff]\n",
        ":2: embedded: expected no no-backoff with the behaviour upstream",
    ),
    row("pace below 1", "name: e\nembedded:\n  pace: 0.5\n", ":3: embedded.pace: expected at least 1, not 0.5"),
    row(
        "name of a node", NODE.replace("  studio-1:", "  Studio 1:"), ":3: nodes.Studio 1: expected a node name of a-z"
    ),
    row("url without port", NODE.replace(":52415", ""), ":5: nodes.studio-1.api: expected http://HOST:PORT"),
    row("url with a path", NODE.replace(":52415", ":52415/v1"), ":5: nodes.studio-1.api: expected http://HOST:PORT"),
    row("url of nonsense", NODE.replace(":52415", ":99999"), ":5: nodes.studio-1.api: expected http://HOST:PORT"),
    row("relative home", NODE.replace("/Users", "Users"), ":6: nodes.studio-1.exo.home: expected an absolute path"),
    row("home with a tilde", NODE.replace("/Users/exo", "~"), ":6: nodes.studio-1.exo.home: expected an absolute path"),
    row(
        "home with a way up",
        NODE.replace("/Users/exo", "/Users/../exo"),
        ":6: nodes.studio-1.exo.home: expected an absolute path",
    ),
    row(
        "the whole disk as home",
        NODE.replace("/Users/exo/.exo", "/"),
        ":6: nodes.studio-1.exo.home: expected an absolute path",
    ),
    row(
        "url with a user",
        NODE.replace("http://", "http://me@"),
        ":5: nodes.studio-1.api: expected http://HOST:PORT",
    ),
    row(
        "url with a query",
        NODE.replace(":52415", ":52415?a=1"),
        ":5: nodes.studio-1.api: expected http://HOST:PORT",
    ),
    row("default for defaults", "default: {}\n" + NODE, ":1: default: unknown key: did you mean `defaults`?"),
    row(
        "host with spaces",
        NODE.replace("host: studio-1", "host: studio 1"),
        ":4: nodes.studio-1.ssh.host: expected a host name",
    ),
    row(
        "host like an option", NODE.replace("host: studio-1", "host: -oProxyCommand=x"), ":4: nodes.studio-1.ssh.host: "
    ),
    row(
        "port 0",
        NODE.replace("host: studio-1", "host: studio-1, port: 0"),
        ":4: nodes.studio-1.ssh.port: expected at least 1",
    ),
    row(
        "ssh missing", NODE.replace("    ssh: {host: studio-1}\n", ""), ":3: nodes.studio-1.ssh: missing: expected how"
    ),
    row(
        "reached in two ways",
        NODE + "    local: true\n",
        ":7: nodes.studio-1.local: expected either `ssh` or `local: true`, not both",
    ),
    row(
        "neither ssh nor local",
        NODE.replace("ssh: {host: studio-1}", "local: false"),
        ":3: nodes.studio-1.ssh: missing",
    ),
    row(
        "local nodes that share a folder",
        LOCAL + LOCAL.partition("nodes:\n")[2].replace("a:", "b:").replace(":1000", ":1001"),
        ":7: nodes.b.rig_dir: /var/tmp/rig is there twice: node a has it already",
    ),
    row(
        "home missing",
        NODE.replace("home: /Users/exo/.exo", ""),
        ":6: nodes.studio-1.exo.home: missing: expected the absolute",
    ),
    row(
        "key where exo's belong",
        NODE + "    home: /x\n",
        ":7: nodes.studio-1.home: unknown key: ",
        "expected one of ssh, api",
    ),
    row(
        "addresses",
        NODE + "    addresses:\n      - 10.0.0.300\n      - fe80::1\n      - 127.0.0.1\n      - fe80::1%en0;reboot\n",
        ":8: nodes.studio-1.addresses[0]: expected an IPv4 or IPv6 address, not '10.0.0.300'",
        ":9: nodes.studio-1.addresses[1]: a link-local address needs its interface, such as fe80::1%en0",
        ":10: nodes.studio-1.addresses[2]: expected an address of the node on a network",
        ":11: nodes.studio-1.addresses[3]: expected an interface such as en0 after %",
    ),
    row(
        "expression of nonsense",
        NODE[:-2] + ", match: '(a'}\n",
        ":6: nodes.studio-1.exo.match: expected a regular expression: ",
    ),
    row(
        "expression for all",
        NODE[:-2] + ", match: .*}\n",
        ":6: nodes.studio-1.exo.match: '.*' also matches the command",
    ),
    row(
        "expression for python", NODE[:-2] + ", match: python}\n", ":6: nodes.studio-1.exo.match: 'python' also matches"
    ),
    row("expression of another kind", NODE[:-2] + ", match: '(?:exo)'}\n", ":6: nodes.studio-1.exo.match: ", "grep -E"),
    row(
        "group of strangers",
        NODE + "groups:\n  all: [studio-1, studio-2]\n",
        ":8: groups.all[1]: there is no node 'studio-2': did you mean",
    ),
    row(
        "group like a node",
        NODE + "groups:\n  studio-1: [studio-1]\n",
        ":8: groups.studio-1: expected a name that no node has",
    ),
    row(
        "twins",
        NODE + "".join(line + "\n" for line in NODE.replace("  studio-1:", "  studio-2:").splitlines()[2:]),
        ":8: nodes.studio-2.ssh.host: studio-1 port 22 is there twice: node studio-1 has it already",
        ":9: nodes.studio-2.api: http://studio-1:52415 is there twice: node studio-1 has it already",
    ),
    row(
        "default of a typo",
        "name: lab\ndefaults:\n  ssh:\n    usr: exo\n" + NODE[10:],
        ":4: defaults.ssh.usr: unknown key: did you mean `user`?",
    ),
    row("default of no keys", "defaults: 3\n" + NODE, ":1: defaults: expected keys as they stand under a node"),
]


@pytest.mark.parametrize("case", ROWS, ids=[case[0] for case in ROWS])
def test_the_problem_is_named_with_its_place(case: Row, refused: Callable[..., None]) -> None:
    _, text, lines = case
    refused(load_inventory, text, lines)
