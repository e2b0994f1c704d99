"""What sound files mean: durations, plain values, defaults of an inventory."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rig.config.fields import duration_text, parse_duration, parse_span
from rig.config.inventory import Ssh
from rig.config.read import load_inventory, read_inventory
from rig.config.target_fields import inventory_from
from rig.config.tree import parse
from rig.faults.plan.read import load_plan

Written = Callable[[str | bytes], str]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("45s", 45.0), ("2.5m", 150.0), ("250ms", 0.25), ("3h", 10800.0), ("1d", 86400.0), (" 5 s ", 5.0), ("0s", 0.0)],
)
def test_a_duration_is_read_in_seconds(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "s", "45", "-1s", "+1s", "1 5s", "1e3s", ".5s", "5S", "5s5s", "1m30s", "٣s", "nan s", 45, None]
)
def test_anything_else_is_no_duration(text: object) -> None:
    with pytest.raises(ValueError, match="expected a duration such as 45s"):
        parse_duration(text)


def test_a_range_has_two_ends_or_one() -> None:
    assert parse_span("60s..2.5m") == (60.0, 150.0)
    assert parse_span("5s") == (5.0, 5.0)


@pytest.mark.parametrize("seconds", [0.0, 0.25, 1.0, 45.0, 90.0, 7200.0, 86400.0])
def test_a_duration_is_written_as_it_is_read(seconds: float) -> None:
    assert parse_duration(duration_text(seconds)) == seconds


def test_words_that_old_yaml_takes_for_something_else_are_text() -> None:
    values = parse(b"a: [yes, no, on, 1:30, 2026-01-02, 0x1F, 1_000]\nb: [true, ~, 12, -3, 1.5, 1e3]\n", "f").value
    assert values["a"] == ["yes", "no", "on", "1:30", "2026-01-02", "0x1F", "1_000"]
    assert values["b"] == [True, None, 12, -3, 1.5, 1000.0]


def test_a_byte_order_mark_and_an_alias_are_fine() -> None:
    assert parse(b"\xef\xbb\xbfa: &x {b: 1}\nc: *x\n", "f").value == {"a": {"b": 1}, "c": {"b": 1}}


def test_the_line_of_a_value_is_that_of_its_key() -> None:
    source = parse(b"a:\n  b:\n    - x\n    - y\nc: >-\n  folded\n  text\n", "f").source
    assert source.place(("a", "b")).line == 2
    assert source.place(("a", "b", 1)).line == 4
    assert source.place(("c",)).line == 5
    assert source.place(("a", "b", 1, "below")).line == 4  # not there: where it would be


DEFAULTS = """\
name: lab
defaults:
  ssh: {user: exo, port: 2222}
  exo:
    home: /Users/exo/.exo
    start: kickstart
nodes:
  a:
    ssh: {host: a, port: 22}
    api: http://a:1
  b:
    ssh: {host: b}
    api: http://b:1
    exo: {home: /b}
    faults: false
"""


def test_defaults_stand_under_each_node_that_does_not_say_otherwise(written: Written) -> None:
    nodes = load_inventory(written(DEFAULTS)).nodes
    a, b = nodes["a"], nodes["b"]
    assert a.ssh == Ssh(host="a", user="exo", port=22)
    assert b.ssh == Ssh(host="b", user="exo", port=2222)
    assert (a.process.home, a.process.start) == ("/Users/exo/.exo", "kickstart")
    assert (b.process.home, b.process.start) == ("/b", "kickstart")
    assert (a.faults, b.faults) == (True, False)


def test_a_local_node_takes_every_default_but_ssh(written: Written) -> None:
    node = load_inventory(written(f"{DEFAULTS}  c: {{local: true, api: 'http://127.0.0.1:1'}}\n")).nodes["c"]
    assert (node.ssh, node.local, node.reached_as) == (None, True, "this machine")
    assert node.process.home == "/Users/exo/.exo"


def test_a_defaulted_value_is_placed_where_it_was_written(written: Written) -> None:
    source = read_inventory(written(DEFAULTS)).source
    assert source.place(("nodes", "a", "exo", "start")).line == 6
    assert source.place(("nodes", "b", "exo", "home")).line == 14
    assert source.place(("nodes", "b", "ssh", "user")).path == ("defaults", "ssh", "user")


def test_a_node_of_its_name_alone_takes_everything_from_the_defaults(written: Written) -> None:
    path = written("name: l\ndefaults: {ssh: {host: h}, api: 'http://h:1/', exo: {home: /x/}}\nnodes:\n  only:\n")
    node = load_inventory(path).nodes["only"]
    assert (node.reached_as, node.api, node.process.pid_path) == ("h", "http://h:1", "/x/exo.pid")


def test_seconds_may_be_given_as_numbers_in_code_not_in_files(written: Written) -> None:
    plan = load_plan(written("name: p\nkinds: {freeze: {hold: 5s..45s}}\nsettle: 2m\n"))
    assert (plan.settle, plan.kinds["freeze"].hold) == (120.0, (5.0, 45.0))
    again = type(plan).model_validate(plan.model_dump())
    assert again == plan


def test_an_inventory_survives_being_written_and_read(written: Written) -> None:
    found = load_inventory(written(DEFAULTS))
    assert inventory_from(found.model_dump(exclude_defaults=True)) == found
