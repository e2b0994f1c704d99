"""YAML that cannot be read at all, or says more than a configuration may."""

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
    row("empty", "", ":1: the file is empty: expected keys"),
    row("only comments", "# nothing\n", ":1: the file is empty"),
    row("a list on top", "\n- name: w\n", ":2: expected keys at the top of the file, such as `name:`, not a list"),
    row("a word on top", "chat\n", ":1: expected keys at the top of the file, such as `name:`, not a single value"),
    row("tab", "name: w\nmodels:\n\t- model: x\n", ":3: found a tab where YAML wants spaces"),
    row("bracket left open", "name: w\nmodels: [{model: x}\nclients: 3\n", ":3: not valid YAML: ", "on line 2)"),
    row("quote left open", "name: w\nx: 'abc\n", ":3: not valid YAML: found unexpected end of stream"),
    row("not UTF-8", b"name: w\n# caf\xe9\n", ":2: expected UTF-8 text, found the byte 0xe9"),
    row("binary", b"name: w\nx: \x00\n", ":2: expected plain text, found the character U+0000"),
    row("two documents", WORK + "---\nname: v\n", ":4: expected one document, found a second after `---`"),
    row("duplicate key", WORK + "clients: 3\nname: v\n", ":5: name: this key was given before, on line 1"),
    row("tag", "name: !!python/name:os.system x\n", ":1: name: expected a plain value, not tag:yaml.org"),
    row("alias of nothing", "name: *w\n", ":1: not valid YAML: found undefined alias 'w'"),
    row("alias in itself", "name: w\nmodels: &m [*m]\n", ":2: nested more than 32 deep"),
    row(
        "alias bomb",
        "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
        + "".join(
            f"{new}: &{new} [{','.join([f'*{old}'] * 10)}]\n" for old, new in zip("abcdef", "bcdefg", strict=True)
        ),
        ": more than 50000 values",
    ),
    row("nested without end", "name: " + "[" * 5000, ":1: nested too deeply"),
    row("merge key", "name: w\n<<: {clients: 3}\n", ":2: <<: merge keys are not used here"),
    row("too large", b"# " + b"x" * (1 << 20), ":1: the file is larger than 1 MiB"),
    row("key of keys", "[a]: 1\n", ":1: expected text as a key"),
]


@pytest.mark.parametrize("case", ROWS, ids=[case[0] for case in ROWS])
def test_the_problem_is_named_with_its_place(case: Row, refused: Callable[..., None]) -> None:
    _, text, lines = case
    refused(load_workload, text, lines)
