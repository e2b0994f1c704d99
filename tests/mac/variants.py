"""Wrong ways to cut a Mac off with pf, each as a change of the stock scripts, and what gives each away."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from tests.mac.observing import Scene

FAULTS = Path(__file__).parent.parent.parent / "faults"
IN_ANCHOR = r"(-a )\"com\.apple/\$name\" \"\$@\""
FLUSH = r"in_anchor -F all"
IPV4 = r'\n\tfor address in $peers; do\n\t\tis_v6 "$address" && continue || family=inet\n'


@dataclass(frozen=True)
class Variant:
    """`edits`: (pattern, replacement) for root.sh, each of which must apply. `by`: the sorts of evidence
    (see `Observed`), any of which gives it away.
    """

    name: str
    edits: tuple[tuple[str, str], ...]
    by: frozenset[str]
    scene: Scene = "busy"


def variant(name: str, *edits: tuple[str, str], by: str, scene: Scene = "busy") -> Variant:
    return Variant(name, edits, frozenset(by.split()), scene)


NO_RULES_CHECK = (r"\n\t! pf_there \|\| fail \"anchor com.apple/\$name still has[^\n]*", "")
NO_TOKEN_CHECK = (r"\n\t\[ -n \"\$token\" \] \|\| fail 'pfctl -E gave no token'", "")
NO_ENABLED_CHECK = (r"\n\t\[ \"\$enabled\" = 1 \] \|\| fail 'pf is not enabled'", "")

VARIANTS = [
    variant("rules in an anchor that nothing calls", (IN_ANCHOR, r'\1"$name" "$@"'), by="script"),
    variant("rules one level below what com.apple/* calls", (IN_ANCHOR, r'\1"com.apple/rig/$name" "$@"'), by="script"),
    variant("an anchor after somebody's `pass quick`", (IN_ANCHOR, r'\1"com.apple/zz.$name" "$@"'), by="script"),
    variant(
        "pf is not enabled",
        (r"enabling=\$\(tool pfctl -E\)", "enabling='Token : 1'"),
        NO_ENABLED_CHECK,
        by="script",
        scene="stock",
    ),
    variant(
        "-e instead of -E: no token, pf stays on",
        (r"tool pfctl -E\)", "tool pfctl -e)"),
        NO_TOKEN_CHECK,
        by="enabled",
        scene="stock",
    ),
    variant(
        "the token of -E is lost",
        (r"add_note token \"\$token\"", "true"),
        by="enabled",
        scene="stock",
    ),
    variant(
        "-d instead of -X: everybody's token is void",
        (r"if tool pfctl -X \"\$R\"", "if tool pfctl -d"),
        by="enabled tokens",
    ),
    variant(
        "on utun: interface groups match nothing",
        (r"block drop quick %s", "block drop quick on utun %s"),
        by="script",
    ),
    variant("on en: a group again", (r"block drop quick %s", "block drop quick on en %s"), by="script"),
    variant("on en5: Ethernet stays open", (r"block drop quick %s", "block drop quick on en5 %s"), by="script"),
    variant(
        "-f on the main ruleset",
        (r"in_anchor -f ", "tool pfctl -q -f "),
        by="foreign main script",
    ),
    variant(
        "heal by loading /etc/pf.conf again",
        (FLUSH, "tool pfctl -q -f /etc/pf.conf"),
        by="foreign",
    ),
    variant(
        "heal by -F all of the root",
        (FLUSH, "tool pfctl -q -F all"),
        NO_RULES_CHECK,
        by="main left",
    ),
    variant("heal without flushing", (FLUSH, "true"), NO_RULES_CHECK, by="left"),
    variant(
        "heal flushes an anchor of another name",
        (FLUSH, "tool pfctl -q -a com.apple/rig2 -F all"),
        NO_RULES_CHECK,
        by="left",
    ),
    variant("a pass without `flags any no state`", (r" flags any no state\\n", r"\\n"), by="ssh"),
    variant(
        "a pass that keeps state in mid-connection", (r" flags any no state\\n", r" flags any keep state\\n"), by="ssh"
    ),
    variant(
        "the controller's pass after the blocks",
        (
            r"(?s)(\tif \[ -n \"\$ssh_address\" \]; then\n\t\tprintf 'pass.*?\n\tfi\n)"
            r"(.*?)(\tfor address in \$clients)",
            r"\2\1\3",
        ),
        by="ssh",
    ),
    variant(
        "no pass for the controller",
        (r"\n\t\tprintf 'pass (in|out) quick[^\n]*", ""),
        (r"(if \[ -n \"\$ssh_address\" \]; then)(\n\tfi)", r"\1\n\t\t:\2"),
        by="ssh",
    ),
    variant("IPv4 alone", (r"\n\tfor address in \$peers; do\n(\t\tis_v6[^\n]*family=inet\n)", IPV4), by="script open"),
    variant(
        "a block that is not quick, before somebody's pass",
        (r"block drop quick %s", "block drop %s"),
        by="script",
    ),
    variant(
        "addresses are missed",
        (r"for address in \$peers; do\n(\t\tis_v6[^\n]*family=inet\n)", r'for address in "${peers%% *}"; do\n\1'),
        by="script open",
    ),
    variant(
        "set skip in the anchor, own addresses cut",
        (r"pass quick on lo0 all no state\\n", r"set skip on lo0\\n"),
        (r"for address in \$peers; do\n(\t\tis_v6[^\n]*family=inet\n)", r"for address in $peers {own}; do\n\1"),
        by="loopback script",
    ),
    variant("states are not killed", (r"\n\t\[ \"\$what\" != cut \] \|\| pf_kill_states\n", "\n"), by="established"),
    variant("bounded by GNU timeout", (r"set -- perl -e 'alarm 5[^\n]*", 'set -- timeout 5 "$@"'), by="script"),
    variant(
        "a rule that is not in pf's grammar", (r"block drop quick %s from", "block drop quick ip%s from"), by="script"
    ),
]


def write(wanted: Variant | None, folder: Path, *, own_addresses: str) -> Path:
    """A copy of the stock scripts with the change made (None: as they are). Raises ValueError for an edit that does not
    apply any more: the scripts have changed, and this list must follow.
    """
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(FAULTS, folder)
    if wanted is None:
        return folder
    path = folder / "root.sh"
    text = path.read_text()
    for pattern, replacement in wanted.edits:
        changed = re.sub(pattern, replacement, text)
        if changed == text:
            raise ValueError(f"{wanted.name}: nothing in root.sh matches {pattern}")
        text = changed.replace("{own}", own_addresses)
    path.write_text(text)
    return folder
