"""Which rules pf evaluates, in which order: the main ruleset, with the rules of the anchors that it calls. Pure.

An anchor that no ruleset calls is not here, whatever rules it holds. `anchor "A/*"` calls the children of A in
alphabetical order, not A itself; children of children only when they are called in turn.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rig.lab.mac.pf.statements import AnchorCall, FilterRule, Network, Ruleset

MAX_DEPTH = 8


@dataclass(frozen=True)
class Evaluated:
    """A rule in force. `number` tells rules apart, from 1 in order of evaluation; `tables` are those it refers to."""

    number: int
    anchor: str  # "" for the main ruleset
    index: int  # among the filter rules of its anchor
    rule: FilterRule
    tables: Mapping[str, tuple[Network, ...]]


def evaluation(main: Ruleset, anchors: Mapping[str, Ruleset]) -> list[Evaluated]:
    found: list[Evaluated] = []
    _collect("", main, anchors, found, 0)
    return found


def _collect(path: str, ruleset: Ruleset, anchors: Mapping[str, Ruleset], found: list[Evaluated], depth: int) -> None:
    if depth > MAX_DEPTH:
        return
    index = 0
    for statement in ruleset.rules:
        if isinstance(statement, FilterRule):
            found.append(Evaluated(len(found) + 1, path, index, statement, ruleset.tables))
            index += 1
        elif statement.kind in {"anchor", "dummynet-anchor"}:
            for name in _called(path, statement, anchors):
                wanted = "dummynet" if statement.kind == "dummynet-anchor" else ""
                _collect(name, _only(anchors[name], wanted), anchors, found, depth + 1)


def _only(ruleset: Ruleset, wanted: str) -> Ruleset:
    """An anchor's dummynet rules are evaluated where `dummynet-anchor` calls it, the others where `anchor` does."""
    rules = [
        rule
        for rule in ruleset.rules
        if (isinstance(rule, FilterRule) and (rule.action == "dummynet") == bool(wanted))
        or (isinstance(rule, AnchorCall) and (rule.kind == "dummynet-anchor") == bool(wanted))
    ]
    return Ruleset(rules=rules, tables=ruleset.tables)


def _called(path: str, call: AnchorCall, anchors: Mapping[str, Ruleset]) -> list[str]:
    name = call.name.lstrip("/") if call.name.startswith("/") or not path else f"{path}/{call.name}"
    if not name.endswith("/*"):
        return [name] if name in anchors else []
    parent = name.removesuffix("/*")
    prefix = f"{parent}/" if parent else ""
    return sorted(each for each in anchors if each.startswith(prefix) and "/" not in each.removeprefix(prefix) and each)
