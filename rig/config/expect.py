"""pydantic's errors → what was expected, in the words of a user of YAML. Pure."""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Literal, Union, cast, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from rig.config.problems import FieldPath, Problem, shown

_EXPECTED: Mapping[str, str] = {
    "int_type": "expected a whole number",
    "int_from_float": "expected a whole number",
    "float_type": "expected a number",
    "finite_number": "expected a finite number",
    "bool_type": "expected true or false",
    "string_type": "expected text",
    "list_type": "expected a list",
    "dict_type": "expected keys under it",
    "model_type": "expected keys under it",
    "greater_than": "expected more than {gt:g}",
    "greater_than_equal": "expected at least {ge:g}",
    "less_than": "expected less than {lt:g}",
    "less_than_equal": "expected at most {le:g}",
}


def problems_of(error: ValidationError, model: type[BaseModel], *, also: Sequence[str] = ()) -> list[Problem]:
    """Each of pydantic's errors as a problem. `also`: keys allowed at the top that the model does not have."""
    return [_problem(cast("Mapping[str, Any]", details), model, also) for details in error.errors(include_url=False)]


def _problem(details: Mapping[str, Any], model: type[BaseModel], also: Sequence[str]) -> Problem:
    loc = cast("FieldPath", details["loc"])
    path = loc[:-1] if loc and loc[-1] == "[key]" else loc
    return Problem(path, _message(details, path, model, also))


def _message(details: Mapping[str, Any], path: FieldPath, model: type[BaseModel], also: Sequence[str]) -> str:
    kind, value = cast("str", details["type"]), details.get("input")
    context = cast("Mapping[str, Any]", details.get("ctx") or {})
    match kind:
        case "extra_forbidden":
            siblings = _siblings_with(model, path)
            known = _keys_at(model, path[:-1]) + (list(also) if len(path) == 1 else [])
            only = f"expected only under {' and '.join(siblings)}"
            return only if siblings else _unknown_key(str(path[-1]), known)
        case "missing":
            return _missing(_field_at(model, path))
        case "literal_error":
            return _not_one_of(value, _literals(context))
        case "too_short":
            field = _field_at(model, path)
            about = "" if field is None or field.description is None else f": {field.description}"
            return f"expected at least {context.get('min_length', 1)}{about}"
        case "value_error":
            return str(context.get("error", details["msg"]))
        case _:
            hint = "; put quotes around it" if kind == "string_type" and isinstance(value, int | float) else ""
            expected = _EXPECTED[kind].format(**context) if kind in _EXPECTED else str(details["msg"])
            return f"{expected}, not {shown(value)}{hint}"


def _unknown_key(key: str, valid: Sequence[str]) -> str:
    plain = {name.replace("-", "_"): name for name in valid}
    close = get_close_matches(key.lower().replace("-", "_"), plain, n=1, cutoff=0.6)
    hint = f"did you mean `{plain[close[0]]}`? " if close else ""
    return f"unknown key: {hint}expected one of {', '.join(valid)}"


def _missing(field: FieldInfo | None) -> str:
    what = None if field is None else field.description
    return "missing: expected some text" if what is None else f"missing: expected {what}"


def _not_one_of(value: object, valid: Sequence[str]) -> str:
    text = value if isinstance(value, str) else ""
    close = get_close_matches(text.lower().replace("_", "-"), valid, n=1, cutoff=0.6)
    hint = f"; did you mean `{close[0]}`?" if close else ""
    return f"expected {_alternatives(valid)}, not {shown(value)}{hint}"


def _alternatives(valid: Sequence[str]) -> str:
    return valid[0] if len(valid) == 1 else f"{', '.join(valid[:-1])} or {valid[-1]}"


def _literals(context: Mapping[str, Any]) -> list[str]:
    """pydantic says `'a', 'b' or 'c'`."""
    return [part.strip("' ") for part in str(context.get("expected", "")).replace(" or ", ", ").split(", ")]


def _keys_at(model: type[BaseModel], path: FieldPath) -> list[str]:
    found = _annotation_at(model, path)
    if found is None or not _is_model(found):
        return []
    return [field.alias or name for name, field in cast("type[BaseModel]", found).model_fields.items()]


def _siblings_with(model: type[BaseModel], path: FieldPath) -> list[str]:
    """The keys beside the one that holds `path` under which its last part would be known."""
    if len(path) < 3:
        return []
    beside = _keys_at(model, path[:-2])
    return sorted(name for name in beside if path[-1] in _keys_at(model, (*path[:-2], name)))


def _field_at(model: type[BaseModel], path: FieldPath) -> FieldInfo | None:
    holder = _annotation_at(model, path[:-1])
    if holder is None or not path or not _is_model(holder):
        return None
    return _written(cast("type[BaseModel]", holder), str(path[-1]))


def _written(model: type[BaseModel], key: str) -> FieldInfo | None:
    """The field that is written as `key`."""
    return next((field for name, field in model.model_fields.items() if (field.alias or name) == key), None)


def _annotation_at(model: Any, path: FieldPath) -> Any:
    """The type that stands at `path` below a model: through fields, lists, mappings and optional values."""
    found = model
    for part in path:
        found = _step(found, part)
        if found is None:
            return None
    return _plain(found)


def _step(annotation: Any, part: str | int) -> Any:
    annotation = _plain(annotation)
    if _is_model(annotation):
        field = _written(cast("type[BaseModel]", annotation), str(part))
        return None if field is None else field.annotation
    arguments = get_args(annotation)
    if get_origin(annotation) is dict:
        return arguments[1]
    return arguments[0] if get_origin(annotation) is list else None


def _plain(annotation: Any) -> Any:
    """`X | None` → `X`."""
    if get_origin(annotation) in (Union, types.UnionType):
        others = [part for part in get_args(annotation) if part is not type(None) and get_origin(part) is not Literal]
        return others[0] if others else None
    return annotation


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)
