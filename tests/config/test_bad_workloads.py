"""What a user is told about a wrong workload; types and keys are the same in every sort of file."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rig.config.read import load_workload

Row = tuple[str, str | bytes, list[str]]

WORK = "name: w\nmodels:\n  - model: lab/tiny-a\n"


def row(name: str, text: str | bytes, *lines: str) -> Row:
    """A file that is wrong, and what is said about it: `:LINE: FIELD: MESSAGE` follows the name of the file."""
    return name, text, list(lines)


ROWS = [
    row(
        "typo", WORK + "clintes: 3\n", ":4: clintes: unknown key: did you mean `clients`? expected one of name, models"
    ),
    row("typo below", WORK + "arrivals:\n  knid: closed\n", ":5: arrivals.knid: unknown key: did you mean `kind`?"),
    row(
        "missing keys", "clients: 3\n", ":1: name: missing: expected some text", ":1: models: missing: expected a list"
    ),
    row("no models", "name: w\nmodels: []\n", ":2: models: expected at least 1: a list of models"),
    row("text for a number", WORK + "clients: twelve\n", ":4: clients: expected a whole number, not 'twelve'"),
    row("quoted number", WORK + 'clients: "12"\n', ":4: clients: expected a whole number, not '12'"),
    row("true for a number", WORK + "clients: true\n", ":4: clients: expected a whole number, not true"),
    row("no value", WORK + "clients:\n", ":4: clients: expected a whole number, not nothing"),
    row("fraction of a client", WORK + "clients: 2.5\n", ":4: clients: expected a whole number, not 2.5"),
    row("no clients", WORK + "clients: 0\n", ":4: clients: expected at least 1, not 0"),
    row("number for text", "name: 7\nmodels: [{model: x}]\n", ":1: name: expected text, not 7; put quotes around it"),
    row("not a number", WORK + "temperature: .nan\n", ":4: temperature: expected a finite number, not nan"),
    row("share above one", WORK + "streamed_share: 75\n", ":4: streamed_share: expected at most 1, not 75"),
    row("list for keys", WORK + "deadlines: [3s]\n", ":4: deadlines: expected keys under it, not a list"),
    row("line break in a value", "name: |\n  a\n  b\n", ":1: name: expected one line of plain text"),
    row(
        "sharding of another case",
        "name: w\nmodels:\n  - model: x\n    sharding: pipeline\n",
        ":4: models[0].sharding: expected Pipeline or Tensor, not 'pipeline'",
    ),
    row("model twice", WORK + "  - model: lab/tiny-a\n", ":4: models[1].model: lab/tiny-a is there twice"),
    row(
        "open loop without rate", WORK + "arrivals: {kind: poisson}\n", ":4: arrivals.rate: missing: expected requests"
    ),
    row("rate of a closed loop", WORK + "arrivals: {rate: 3.0}\n", ":4: arrivals.rate: expected only with"),
    row("thinking in an open loop", WORK + "arrivals: {kind: constant, rate: 2, think: 1s}\n", ":4: arrivals.think:"),
    row(
        "lengths backwards",
        WORK + "output_tokens:\n  low: 9\n  high: 8\n",
        ":6: output_tokens.high: expected at least `low` (9)",
    ),
    row(
        "progress after total",
        WORK + "deadlines:\n  progress: 10m\n",
        ":5: deadlines.progress: expected at most `total` (5m)",
    ),
    row("entry of another word", WORK + "entry: all\n", ":4: entry: expected `spread`, or a list of names"),
]


@pytest.mark.parametrize("case", ROWS, ids=[case[0] for case in ROWS])
def test_the_problem_is_named_with_its_place(case: Row, refused: Callable[..., None]) -> None:
    _, text, lines = case
    refused(load_workload, text, lines)
