"""What a figure is: a key with its type, unit, meaning and the way in which it is written; and objects made of keys.

Everything that shows figures walks these: the JSON report and its schema, column files and DataFrames, the tables of
the console, Markdown and HTML, tooltips, the glossary and `rig explain`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar, cast

from rig.written import NOTHING, duration, moment, percent, size

Column: TypeAlias = Literal["string", "bool", "int64", "float64"]
Json: TypeAlias = dict[str, Any]
S = TypeVar("S")


def as_it_is(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class Form:
    """`plain` makes the JSON value, `write` the text of a cell. `column` is None where no column can hold it."""

    schema: Mapping[str, Any]
    write: Callable[[Any], str] = str
    plain: Callable[[Any], Any] = as_it_is
    unit: str = ""
    column: Column | None = None
    shapes: tuple[Shape[Any], ...] = ()
    cell: Callable[[Any], Any] = as_it_is
    """What stands in a column."""

    @property
    def number(self) -> bool:
        return self.column in ("int64", "float64")


@dataclass(frozen=True)
class Key(Generic[S]):
    """`get` takes the value from what the object describes: its attribute of the same name where there is no `get`."""

    name: str
    form: Form
    meaning: str
    get: Callable[[S], Any] | None = None
    label: str = ""

    def of(self, source: S) -> Any:
        return getattr(source, self.name) if self.get is None else self.get(source)

    def write(self, source: S) -> str:
        value = self.of(source)
        return NOTHING if value is None else self.form.write(value)

    @property
    def heading(self) -> str:
        return self.label or self.name.replace("_", " ")


class Shape(Generic[S]):
    """An object of the report, made from one `S`."""

    def __init__(self, name: str, title: str, *keys: Key[S]) -> None:
        self.name, self.title = name, title
        self._keys: dict[str, Key[S]] = {key.name: key for key in keys}
        assert len(self._keys) == len(keys), f"{name} has a key twice"

    def __iter__(self) -> Iterator[Key[S]]:
        return iter(self._keys.values())

    def __getitem__(self, name: str) -> Key[S]:
        return self._keys[name]

    def plain(self, source: S) -> Json:
        return {key.name: key.form.plain(key.of(source)) for key in self}

    @property
    def columns(self) -> dict[str, Column]:
        """The keys that a column can hold."""
        return {key.name: key.form.column for key in self if key.form.column is not None}

    def row(self, source: S) -> Json:
        """Values of the columns."""
        return {key.name: key.form.cell(key.of(source)) for key in self if key.form.column is not None}

    @property
    def schema(self) -> Json:
        """As JSON Schema. All keys are always there."""
        properties = {key.name: {**key.form.schema, "description": key.meaning} for key in self}
        return {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }


def _finite(value: float | None) -> float | None:
    """Microseconds are enough, and infinite is no JSON."""
    return None if value is None or not math.isfinite(value) else round(value, 6)


TEXT: Final = Form({"type": "string"}, column="string")
COUNT: Final = Form({"type": "integer"}, column="int64")
FLAG: Final = Form({"type": "boolean"}, column="bool", write=lambda value: "yes" if value else "no")
NUMBER: Final = Form({"type": "number"}, column="float64", plain=_finite, write="{:g}".format)
SECONDS: Final = replace(NUMBER, unit="s", write=duration)
MOMENT: Final = replace(NUMBER, unit="s since the start", write=moment)
SHARE: Final = replace(NUMBER, unit="share of 1", write=percent)
PERCENT: Final = replace(NUMBER, unit="%", write="{:.0f} %".format)
RATE: Final = replace(NUMBER, unit="1/s", write="{:.2f}/s".format)
BYTES: Final = replace(COUNT, unit="bytes", write=size)


def anything(value: Any) -> Any:
    """JSON of others, with the infinite and the overlong taken out of its numbers."""
    if isinstance(value, float):
        return _finite(value)
    if isinstance(value, Mapping):
        return {key: anything(item) for key, item in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [anything(item) for item in cast("Sequence[Any]", value)]
    return value


OBJECT: Final = Form({"type": "object"}, plain=anything)


def constant(value: str | int) -> Form:
    return replace(TEXT if isinstance(value, str) else COUNT, schema={"const": value})


def choice(*values: str | int) -> Form:
    return replace(TEXT if isinstance(values[0], str) else COUNT, schema={"enum": list(values)})


def one(shape: Shape[Any]) -> Form:
    return Form({"$ref": f"#/$defs/{shape.name}"}, plain=shape.plain, shapes=(shape,))


def maybe(form: Form) -> Form:
    """Null where there is nothing."""
    kind = form.schema.get("type")
    or_null: Json = {"type": [kind, "null"]} if len(form.schema) == 1 and kind else _or_null(form.schema)

    def plain(value: Any) -> Any:
        return None if value is None else form.plain(value)

    return replace(form, schema=or_null, plain=plain)


def _or_null(schema: Mapping[str, Any]) -> Json:
    if "enum" in schema:
        return {"enum": [*schema["enum"], None]}
    return {"anyOf": [dict(schema), {"type": "null"}]}


def several(form: Form) -> Form:
    """In a table and a column, texts are written one after the other, with commas."""
    texts = form.column == "string"
    return Form(
        {"type": "array", "items": dict(form.schema)},
        plain=lambda values: [form.plain(value) for value in values],
        write=lambda values: ", ".join(map(form.write, values)),
        column="string" if texts else None,
        cell=",".join,
        shapes=form.shapes,
    )


def by_name(form: Form) -> Form:
    return Form(
        {"type": "object", "additionalProperties": dict(form.schema)},
        plain=lambda values: {name: form.plain(value) for name, value in values.items()},
        shapes=form.shapes,
    )


def reached(shape: Shape[Any]) -> list[Shape[Any]]:
    """The shape itself, and every other that it is made of."""
    found: dict[str, Shape[Any]] = {}
    _reach([shape], found)
    return list(found.values())


def _reach(shapes: Iterable[Shape[Any]], found: dict[str, Shape[Any]]) -> None:
    for shape in shapes:
        if shape.name not in found:
            found[shape.name] = shape
            _reach((inner for key in shape for inner in key.form.shapes), found)
