"""A `pfctl` for a Linux network namespace: the forms that the Darwin branch uses, kept as nftables rules.

As on a Mac: a counted enable token, an anchor that filters only while pf is enabled, `-n` that only parses, a syntax
error for anything outside this grammar. State is in the file that PFCTL_STATE names; `calls` there lists each call.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

NFT = "/usr/sbin/nft"
STATE = Path(os.environ["PFCTL_STATE"])
ADDRESS = r"([0-9A-Fa-f.:]+)"
PORT = r"(\d+)"
# rule → nft expressions (chain, match, verdict)
RULES: list[tuple[str, list[tuple[str, str, str]]]] = [
    (r"pass quick on lo0 all no state", [("input", 'iifname "lo"', "accept"), ("output", 'oifname "lo"', "accept")]),
    (
        rf"pass in quick proto tcp from {ADDRESS} to any port {PORT} flags any no state",
        [("input", "ip saddr \\1 tcp dport \\2", "accept")],
    ),
    (
        rf"pass out quick proto tcp from any port {PORT} to {ADDRESS} flags any no state",
        [("output", "ip daddr \\2 tcp sport \\1", "accept")],
    ),
    (rf"block drop quick inet from {ADDRESS} to any", [("input", "ip saddr \\1", "drop")]),
    (rf"block drop quick inet6 from {ADDRESS} to any", [("input", "ip6 saddr \\1", "drop")]),
    (rf"block drop quick inet from any to {ADDRESS}", [("output", "ip daddr \\1", "drop")]),
    (rf"block drop quick inet6 from any to {ADDRESS}", [("output", "ip6 daddr \\1", "drop")]),
]


def parse(text: str) -> tuple[str, list[tuple[int, str, str, str]]]:
    """→ (rules as pfctl prints them, nft expressions with the number of their rule)."""
    shown: list[str] = []
    filters: list[tuple[int, str, str, str]] = []
    for line in text.splitlines():
        for pattern, expressions in RULES:
            if found := re.fullmatch(pattern, line):
                for chain, match, verdict in expressions:
                    match_text = found.expand(match) if found.groups() else match
                    filters.append((len(shown), chain, match_text, verdict))
                shown.append(line)
                break
        else:
            raise SystemExit(f"syntax error: {line}")
    return "\n".join(shown), filters


def enforce(state: dict[str, Any]) -> None:
    subprocess.run([NFT, "delete", "table", "inet", "pf"], check=False, capture_output=True)
    if not state["tokens"] or not state["rules"]:
        return
    _, filters = parse(state["text"])
    lines = ["table inet pf {"]
    for chain in ("input", "output"):
        lines += [f"chain {chain} {{", f"type filter hook {chain} priority 0;"]
        lines += [f'{match} counter {verdict} comment "{n}"' for n, where, match, verdict in filters if where == chain]
        lines.append("}")
    subprocess.run([NFT, "-f", "-"], input="\n".join([*lines, "}"]), text=True, check=True)


def counted() -> dict[int, int]:
    listed = subprocess.run([NFT, "list", "table", "inet", "pf"], capture_output=True, text=True, check=False).stdout
    found = re.findall(r'packets (\d+) bytes \d+ \w+ comment "(\d+)"', listed)
    sums: dict[int, int] = {}
    for packets, number in found:
        sums[int(number)] = sums.get(int(number), 0) + int(packets)
    return sums


def anchor(arguments: list[str], state: dict[str, Any]) -> None:
    match arguments:
        case ["-n", "-f", file]:
            parse(Path(file).read_text())
        case ["-f", file]:
            state["text"] = Path(file).read_text()
            state["rules"], _ = parse(state["text"])
        case ["-F", "all"]:
            state["rules"] = state["text"] = ""
        case ["-s", "rules"]:
            print(state["rules"])
        case ["-s", "rules", "-v"]:
            packets = counted()
            for number, rule in enumerate(state["rules"].splitlines()):
                print(rule)
                print(f"  [ Evaluations: 9  Packets: {packets.get(number, 0)}  Bytes: 0  States: 0 ]")
        case _:
            raise SystemExit(f"pfctl: not emulated: {arguments}")


def main() -> None:
    state: dict[str, Any] = json.loads(STATE.read_text())
    arguments = sys.argv[1:]
    state["calls"].append(" ".join(arguments))
    match arguments:
        case ["-q", "-a", "com.apple", "-s", "Anchors"]:
            print("  com.apple/200.AirDrop" + (f"\n  com.apple/{state['anchor']}" if state["rules"] else ""))
        case ["-q", "-a", anchored, *rest] if anchored == f"com.apple/{state['anchor']}" or not state["rules"]:
            state["anchor"] = anchored.removeprefix("com.apple/")
            anchor(rest, state)
        case ["-s", "rules"]:
            print('scrub-anchor "com.apple/*" all fragment reassemble\n' + state["main"])
        case ["-s", "info"]:
            print(f"Status: {'Enabled' if state['tokens'] else 'Disabled'} for 0 days 00:00:01")
        case ["-s", "References"]:
            print("TOKENS:", *state["tokens"], sep="\n")
        case ["-E"]:
            state["tokens"].append(9_000_000_000 + len(state["calls"]))
            print(f"No ALTQ support in kernel\npf enabled\nToken : {state['tokens'][-1]}", file=sys.stderr)
        case ["-X", token] if int(token) in state["tokens"]:
            state["tokens"].remove(int(token))
        case ["-k", _] | ["-k", "0.0.0.0/0" | "::/0", "-k", _]:
            print("killed 0 states", file=sys.stderr)
        case _:
            raise SystemExit(f"pfctl: not emulated: {arguments}")
    STATE.write_text(json.dumps(state))
    if arguments[-2:-1] in (["-f"], ["-F"], ["-X"]) or arguments == ["-E"]:
        enforce(state)


main()
