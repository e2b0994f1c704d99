"""Bodies of requests, read as exo reads them: what is wrong is answered with 422 and a list of `detail`."""

from __future__ import annotations

from typing import Any, cast

from aiohttp import web


class Invalid(Exception):
    """`detail` is what exo would answer."""

    def __init__(self, detail: list[dict[str, Any]]) -> None:
        super().__init__(str(detail))
        self.detail = detail


async def read_body(request: web.Request) -> dict[str, Any]:
    """The JSON object in a request's body. Raises Invalid."""
    try:
        body: object = await request.json()
    except ValueError as error:
        raise Invalid(
            [
                {
                    "type": "json_invalid",
                    "loc": ["body", 0],
                    "msg": "JSON decode error",
                    "input": {},
                    "ctx": {"error": str(error)},
                }
            ]
        ) from error
    if not isinstance(body, dict):
        raise Invalid(
            [{"type": "dict_type", "loc": ["body"], "msg": "Input should be a valid dictionary", "input": body}]
        )
    return cast("dict[str, Any]", body)


def text(body: dict[str, Any], name: str, default: str | None = None, *, one_of: tuple[str, ...] = ()) -> str:
    if name not in body:
        if default is not None:
            return default
        raise Invalid([{"type": "missing", "loc": ["body", name], "msg": "Field required", "input": body}])
    value = body[name]
    if not isinstance(value, str):
        raise Invalid(
            [{"type": "string_type", "loc": ["body", name], "msg": "Input should be a valid string", "input": value}]
        )
    if one_of and value not in one_of:
        expected = " or ".join(f"'{each}'" for each in one_of)
        raise Invalid(
            [
                {
                    "type": "enum",
                    "loc": ["body", name],
                    "msg": f"Input should be {expected}",
                    "input": value,
                    "ctx": {"expected": expected},
                }
            ]
        )
    return value


def number(body: dict[str, Any], name: str, default: int) -> int:
    value = body.get(name, default)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str):
        try:
            return int(value)
        except ValueError:
            message = "Input should be a valid integer, unable to parse string as an integer"
            raise Invalid([{"type": "int_parsing", "loc": ["body", name], "msg": message, "input": value}]) from None
    raise Invalid(
        [{"type": "int_type", "loc": ["body", name], "msg": "Input should be a valid integer", "input": value}]
    )
