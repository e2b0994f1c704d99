"""Wrong ways to cut a Mac off with pf, each as a change of the stock scripts, and what gives each away."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from tests.mac.observing import Scene

FAULTS = Path(__file__).parent.parent.parent / "faults"
ANCHOR = "com.apple/rig"


@dataclass(frozen=True)
class Variant:
    """`edits`: (pattern, replacement) for filter.sh or lib.sh, each of which must apply. `by`: the sorts of evidence
    (see `Observed`), any of which gives it away.
    """

    name: str
    edits: tuple[tuple[str, str], ...]
    by: frozenset[str]
    scene: Scene = "busy"


def variant(name: str, *edits: tuple[str, str], by: str, scene: Scene = "busy") -> Variant:
    return Variant(name, edits, frozenset(by.split()), scene)


NO_TABLE_CHECK = (r"\n\tpf_is_empty \"\$anchor_rules\" \|\| \{ R=\"anchor [^\n]*", "")
NO_TOKEN_CHECK = (r"\n\t\[ -n \"\$pf_token\" \] \|\| \{ R='pfctl -E gave no token'[^\n]*", "")
NO_ENABLED_CHECK = (r"\n\tcase \$\(filter pfctl -s info\) in [^\n]*", "")

VARIANTS = [
    variant("rules in an anchor that nothing calls", (re.escape(ANCHOR), "rig"), by="script"),
    variant("rules one level below what com.apple/* calls", (re.escape(ANCHOR), f"{ANCHOR}/cut"), by="script"),
    variant("an anchor after somebody's `pass quick`", (re.escape(ANCHOR), "com.apple/zz.rig"), by="script"),
    variant(
        "pf is not enabled",
        (r"enabled=\$\(filter pfctl -E\)", "enabled='Token : 1'"),
        NO_ENABLED_CHECK,
        by="script",
        scene="stock",
    ),
    variant(
        "-e instead of -E: no token, pf stays on",
        (r"filter pfctl -E\)", "filter pfctl -e)"),
        NO_TOKEN_CHECK,
        by="enabled",
        scene="stock",
    ),
    variant(
        "the token of -E is lost",
        (r"(\tpf_loading=1\n\tlease_write)", r"\tpf_token=\n\1"),
        NO_TOKEN_CHECK,
        by="enabled",
        scene="stock",
    ),
    variant(
        "-d instead of -X: everybody's token is void", (r"pfctl -X \"\$pf_token\"", "pfctl -d"), by="enabled tokens"
    ),
    variant(
        "on utun: interface groups match nothing",
        (r"block drop quick inet", "block drop quick on utun inet"),
        by="script",
    ),
    variant("on en: a group again", (r"block drop quick inet", "block drop quick on en inet"), by="script"),
    variant("on en5: Ethernet stays open", (r"block drop quick inet", "block drop quick on en5 inet"), by="script"),
    variant(
        "-f on the main ruleset",
        (r"filter pfctl -q -a com\.apple/rig -f ", "filter pfctl -q -f "),
        by="foreign main script",
    ),
    variant(
        "heal by loading /etc/pf.conf again",
        (r"filter pfctl -q -a com\.apple/rig -F all", "filter pfctl -q -f /etc/pf.conf"),
        by="foreign",
    ),
    variant(
        "heal by -F all of the root",
        (r"filter pfctl -q -a com\.apple/rig -F all", "filter pfctl -q -F all"),
        NO_TABLE_CHECK,
        by="main left",
    ),
    variant("heal without flushing", (r"filter pfctl -q -a com\.apple/rig -F all", "true"), NO_TABLE_CHECK, by="left"),
    variant(
        "heal flushes an anchor of another name",
        (r"filter pfctl -q -a com\.apple/rig -F all", "filter pfctl -q -a com.apple/rig2 -F all"),
        NO_TABLE_CHECK,
        by="left",
    ),
    variant("a pass without `flags any no state`", (r" flags any no state\\n", r"\\n"), by="ssh"),
    variant(
        "a pass that keeps state in mid-connection", (r" flags any no state\\n", r" flags any keep state\\n"), by="ssh"
    ),
    variant(
        "the controller's pass after the blocks",
        (
            r"(?s)(\tif \[ -n \"\$controller\" \]; then\n\t\tprintf 'pass.*?\n\tfi\n)(.*?)(\tfor address in \$clients)",
            r"\2\1\3",
        ),
        by="ssh",
    ),
    variant(
        "no pass for the controller",
        (r"\n\t\tprintf 'pass (in|out) quick[^\n]*", ""),
        (r"(if \[ -n \"\$controller\" \]; then)(\n\tfi)", r"\1\n\t\t:\2"),
        by="ssh",
    ),
    variant("IPv4 alone", (r"\\nblock drop quick inet6 [^']*\\n'", r"\\n'"), by="script open"),
    variant(
        "a block that is not quick, before somebody's pass",
        (r"block drop quick inet", "block drop inet"),
        by="script",
    ),
    variant(
        "the table misses addresses",
        (r"for address in \$peers; do printf ' %s' \"\$\{address%%%\*\}\"; done", "printf ' %s' \"${peers%% *}\""),
        by="script open",
    ),
    variant(
        "set skip in the anchor, own addresses in the table",
        (r"pass quick on lo0 all no state\\n", r"set skip on lo0\\n"),
        (r"printf ' %s' \"\$\{address%%%\*\}\"; done", "printf ' %s' \"${address%%%*}\"; done; printf ' %s' {own}"),
        by="loopback script",
    ),
    variant("states are not killed", (r"\n\tpf_kill_states\n", "\n"), by="established"),
    variant("bounded by GNU timeout", (r"\tbounded 5 \"\$@\"", '\ttimeout 5 "$@"'), by="script"),
    variant(
        "a rule that is not in pf's grammar", (r"block drop quick inet from", "block drop quick ip from"), by="script"
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
    path = folder / "filter.sh"
    text = path.read_text()
    for pattern, replacement in wanted.edits:
        changed = re.sub(pattern, replacement, text)
        if changed == text:
            raise ValueError(f"{wanted.name}: nothing in filter.sh matches {pattern}")
        text = changed.replace("{own}", own_addresses)
    path.write_text(text)
    return folder
