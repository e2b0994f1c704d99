"""YAML text → plain values, with the line of each.

The language is a subset of YAML 1.2: `no`, `on` and `1:30` are text, dates are text, tags are refused, keys are text
and may not repeat. Anchors work within bounds, so that no file can blow up the reader; merge keys are refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from rig.config.problems import FieldPath, Located, Place, Problem, Source, error_of, locate

_BYTES_MAX: Final = 1 << 20
_VALUES_MAX: Final = 50_000  # after aliases are expanded; an inventory of 200 nodes has some 6,000
_DEPTH_MAX: Final = 32
_TAG = "tag:yaml.org,2002:"
_INT = re.compile(r"[-+]?[0-9]{1,32}")
_FLOAT = re.compile(r"[-+]?(\.[0-9]{1,64}|[0-9]{1,64}(\.[0-9]{0,64})?)([eE][-+]?[0-9]{1,8})?|[-+]?\.inf|\.nan")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


class _CoreLoader(yaml.SafeLoader):
    """SafeLoader that takes null, true, false, decimal numbers and `<<` for what they are, everything else as text."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 (PyYAML's own attribute)


for _name, _pattern, _first in (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", _INT.pattern, list("-+0123456789")),
    ("float", _FLOAT.pattern, list("-+.0123456789")),
    ("merge", r"<<", ["<"]),
):
    _CoreLoader.add_implicit_resolver(  # pyright: ignore[reportUnknownMemberType] (loose stubs)
        _TAG + _name, re.compile(f"(?:{_pattern})$"), _first
    )


@dataclass(frozen=True)
class Tree:
    """The values of a file and where each was written."""

    value: dict[str, Any]
    source: Source


def parse(data: bytes, file: str) -> Tree:
    """The mapping that the file holds. Raises ConfigError with the line of whatever is not acceptable YAML."""
    text = _decoded(data, file)
    root = _composed(text, file)
    if root is None:
        raise error_of([Located(file, 1, None, "the file is empty: expected keys, such as `name:`")])
    if not isinstance(root, yaml.MappingNode):
        what = "a list" if isinstance(root, yaml.SequenceNode) else "a single value"
        message = f"expected keys at the top of the file, such as `name:`, not {what}"
        raise error_of([Located(file, root.start_mark.line + 1, None, message)])
    walk = _Walk()
    try:
        value = walk.mapping(root, ())
    except _Unreadable as problem:
        raise error_of([Located(file, problem.line, None, problem.message)]) from None
    source = Source(file, walk.places)
    if walk.problems:
        raise error_of(locate(source, walk.problems))
    return Tree(value, source)


def _decoded(data: bytes, file: str) -> str:
    if len(data) > _BYTES_MAX:
        raise error_of([Located(file, 1, None, f"the file is larger than 1 MiB ({len(data)} bytes or more)")])
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = data.count(b"\n", 0, problem.start) + 1
        message = f"expected UTF-8 text, found the byte 0x{data[problem.start]:02x}"
        raise error_of([Located(file, line, None, message)]) from None


def _composed(text: str, file: str) -> yaml.Node | None:
    try:
        return yaml.compose(text, Loader=_CoreLoader)  # pyright: ignore[reportUnknownMemberType] (loose stubs)
    except yaml.reader.ReaderError as problem:
        line = text.count("\n", 0, problem.position) + 1
        code = problem.character if isinstance(problem.character, int) else ord(str(problem.character)[:1] or "?")
        raise error_of([Located(file, line, None, f"expected plain text, found the character U+{code:04X}")]) from None
    except yaml.MarkedYAMLError as problem:
        raise error_of([_syntax(problem, text, file)]) from None
    except RecursionError:
        raise error_of([Located(file, 1, None, "nested too deeply")]) from None


def _syntax(problem: yaml.MarkedYAMLError, text: str, file: str) -> Located:
    mark = problem.problem_mark or problem.context_mark
    line = 1 if mark is None else mark.line + 1
    lines = text.split("\n")
    written = lines[line - 1] if line <= len(lines) else ""
    said = problem.problem or "cannot be read"
    if "'\\t'" in said or written[: len(written) - len(written.lstrip())].count("\t"):
        return Located(file, line, None, "found a tab where YAML wants spaces")
    if "expected a single document" in said or "but found another document" in said:
        return Located(file, line, None, "expected one document, found a second after `---`")
    began = problem.context_mark
    since = f" (in what began on line {began.line + 1})" if began is not None and began.line + 1 != line else ""
    return Located(file, line, None, f"not valid YAML: {said}{since}")


class _Unreadable(Exception):
    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line
        self.message = message


@dataclass
class _Walk:
    """Turns composed nodes into values, noting places and problems. Aliases are walked each time, within bounds."""

    places: dict[FieldPath, Place] = field(default_factory=dict[FieldPath, Place])
    problems: list[Problem] = field(default_factory=list[Problem])
    values: int = 0

    def any(self, node: yaml.Node, path: FieldPath) -> Any:
        line = node.start_mark.line + 1
        self.values += 1
        if self.values > _VALUES_MAX:
            raise _Unreadable(
                line, f"more than {_VALUES_MAX} values, aliases (`*name`) counted each time they are used"
            )
        if len(path) > _DEPTH_MAX:
            raise _Unreadable(line, f"nested more than {_DEPTH_MAX} deep (does an alias contain itself?)")
        if isinstance(node, yaml.MappingNode):
            return self.mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return self._sequence(node, path)
        return self._scalar(node, path)

    def mapping(self, node: yaml.MappingNode, path: FieldPath) -> dict[str, Any]:
        self._note(node, path)
        self._tagged(node, path, "map")
        found: dict[str, Any] = {}
        lines: dict[str, int] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                raise _Unreadable(line, "expected text as a key, not a list or further keys")
            key = str(key_node.value)
            here = (*path, key)
            if key_node.tag == f"{_TAG}merge":
                self._refuse(here, "merge keys are not used here; what nodes share can stand under `defaults:`", line)
            elif key in lines:
                self._refuse(here, f"this key was given before, on line {lines[key]}", line)
            elif _CONTROL.search(key):
                self._refuse(path, f"expected plain text as a key, not {key!r}", line)
            else:
                lines[key] = line
                self.places[here] = Place(line, here)
                found[key] = self.any(value_node, here)
        return found

    def _sequence(self, node: yaml.SequenceNode, path: FieldPath) -> list[Any]:
        self._note(node, path)
        self._tagged(node, path, "seq")
        return [self.any(item, (*path, index)) for index, item in enumerate(node.value)]

    def _scalar(self, node: yaml.Node, path: FieldPath) -> Any:
        self._note(node, path)
        text, kind = str(node.value), str(node.tag).removeprefix(_TAG)
        match kind:
            case "null":
                return None
            case "bool" if text.lower() in ("true", "false"):
                return text.lower() == "true"
            case "int" if _INT.fullmatch(text):
                return int(text)
            case "float" if _FLOAT.fullmatch(text):
                return float(text.replace(".inf", "inf").replace(".nan", "nan"))
            case "str":
                if (match := _CONTROL.search(text)) is not None:
                    self._refuse(path, f"expected one line of plain text, found the control character {match[0]!r}")
                return text
            case _:
                self._refuse(path, f"expected a plain value, not {node.tag} {text[:40]!r}")
                return None

    def _note(self, node: yaml.Node, path: FieldPath) -> None:
        """The place of a value is the line of its key, if it has one, which was noted before."""
        self.places.setdefault(path, Place(node.start_mark.line + 1, path))

    def _tagged(self, node: yaml.Node, path: FieldPath, usual: str) -> None:
        if node.tag != _TAG + usual:
            self._refuse(path, f"expected a plain value, not one with the tag {node.tag}")

    def _refuse(self, path: FieldPath, message: str, line: int | None = None) -> None:
        self.problems.append(Problem(path, message))
        if line is not None:
            self.places[path] = Place(line, path)
