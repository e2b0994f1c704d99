"""What is wrong in a configuration file: where, and what was expected. All that is wrong is said at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from rig.errors import ConfigError

FieldPath: TypeAlias = tuple[str | int, ...]
"""Keys and list positions from the top of a file to a value."""

_SHOWN_MAX = 40


@dataclass(frozen=True)
class Problem:
    """Something wrong at `path`. A path that is not in the file (a missing key) is shown at the nearest that is."""

    path: FieldPath
    message: str


@dataclass(frozen=True)
class Place:
    """Where a value was written: the line, and the path it has there (values may come from `defaults`)."""

    line: int
    path: FieldPath


@dataclass(frozen=True)
class Source:
    """One file as it was read: its name as the user knows it, and the place of each value."""

    file: str
    places: Mapping[FieldPath, Place]

    def place(self, path: FieldPath) -> Place:
        """The place of `path`, or of its nearest ancestor with the rest of the path added."""
        for length in range(len(path), -1, -1):
            place = self.places.get(path[:length])
            if place is not None:
                return Place(place.line, place.path + path[length:])
        return Place(1, path)


@dataclass(frozen=True)
class Located:
    """A problem with its file, line and field: what `error_of` makes a line of text from."""

    file: str
    line: int
    field: str | None
    message: str


def locate(source: Source, problems: Iterable[Problem]) -> list[Located]:
    """The problems with file and line, in the order of the file, each once."""
    found: dict[Located, None] = {}
    for problem in problems:
        place = source.place(problem.path)
        found[Located(source.file, place.line, dotted(place.path) or None, problem.message)] = None
    return sorted(found, key=lambda located: located.line)


def error_of(problems: list[Located], *, remedy: str | None = None) -> ConfigError:
    """One error that names every problem (there is one at least), a line each as `FILE:LINE: FIELD: MESSAGE`."""
    first, *others = problems
    lines = [first.message]
    for other in others[: _SHOWN_MAX - 1]:
        what = other.message if other.field is None else f"{other.field}: {other.message}"
        lines.append(f"{other.file}:{other.line}: {what}")
    if len(problems) > _SHOWN_MAX:
        lines.append(f"… and {len(problems) - _SHOWN_MAX} more")
    return ConfigError("\n".join(lines), file=first.file, line=first.line, field=first.field, remedy=remedy)


def dotted(path: FieldPath) -> str:
    """`("models", 0, "weight")` → `models[0].weight`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text


def shown(value: object) -> str:
    """A value as it stands in a message: quoted if text, cut where it is long."""
    text = {True: "true", False: "false"}[value] if isinstance(value, bool) else repr(value)
    if value is None:
        text = "nothing"
    elif isinstance(value, dict):
        text = "keys under it"
    elif isinstance(value, list):
        text = "a list"
    return text if len(text) <= 80 else f"{text[:77]}…"
