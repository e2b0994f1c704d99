"""Small wrong changes to a module, one at a time. Pure: source in, mutants out.

What is changed: comparisons (and their bounds), `and` and `or`, `not`, arithmetic, `min` and `max`, `any` and `all`,
numbers, truth values, conditions that always or never hold, and statements of a function left out. Left alone: texts,
docstrings, annotations, what only words an evidence line.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, cast

_COMPARE: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_ARITHMETIC: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.FloorDiv: ast.Mult,
}
_CALLS: Final = {"min": "max", "max": "min", "any": "all", "all": "any"}
_WORDS: Final = ("text", "line", "lines", "said", "evidence", "where", "detail", "summary")


@dataclass(frozen=True)
class Mutant:
    """`number` tells the mutants of one module apart. `what` says it in words; `function` is the qualified name of the
    outermost function around it."""

    number: int
    line: int
    function: str
    what: str
    tree: ast.Module


def count_of(source: str) -> int:
    """How many mutants a module has."""
    return sum(1 for _ in _sites(ast.parse(source)))


def mutant_of(source: str, number: int) -> Mutant:
    """One of them; they are numbered in the order of the module's text."""
    tree = ast.parse(source)
    path, function, change = list(_sites(tree))[number]
    node = _at(tree, path)
    line = getattr(node, "lineno", 0)
    what = _apply(tree, path, node, change)
    return Mutant(number, line, function, what, ast.fix_missing_locations(tree))


Path = tuple[tuple[str, int | None], ...]


def _sites(tree: ast.Module) -> Iterator[tuple[Path, str, str]]:
    """Where something can be changed, and how: path to the node, function, kind of change."""
    yield from _walk(tree, (), "", "")


def _walk(node: ast.AST, path: Path, classes: str, function: str) -> Iterator[tuple[Path, str, str]]:
    if isinstance(node, ast.ClassDef):
        classes = f"{classes}{node.name}."
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        function = function or classes + node.name
    if function:
        for change in _changes(node):
            yield path, function, change
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_comment") or isinstance(node, ast.JoinedStr):
            continue
        if isinstance(value, list):
            for index, item in enumerate(value):  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType] (ast fields are untyped)
                if isinstance(item, ast.AST) and not _only_words(item):
                    yield from _walk(item, (*path, (name, index)), classes, function)
        elif isinstance(value, ast.AST) and not _only_words(value):
            yield from _walk(value, (*path, (name, None)), classes, function)


def _only_words(node: ast.AST) -> bool:
    """What makes up a text for the reader, or a docstring, or a guard for the type checker."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id in _WORDS
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return True
    return isinstance(node, ast.JoinedStr | ast.Assert)


def _changes(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Compare(ops=[op]) if type(op) in _COMPARE:
            yield "compare"
        case ast.BoolOp():
            yield "bool"
        case ast.UnaryOp(op=ast.Not()):
            yield "not"
        case ast.BinOp(op=op) if type(op) in _ARITHMETIC and not _is_text(node):
            yield "arithmetic"
        case ast.Call(func=ast.Name(id=name)) if name in _CALLS:
            yield "call"
        case ast.Constant(value=bool()):
            yield "truth"
        case ast.Constant(value=int() | float()):
            yield "number"
        case ast.If() | ast.IfExp():
            yield "always"
            yield "never"
        case ast.AugAssign() | ast.Continue():
            yield "drop"
        case ast.Expr(value=ast.Call()):
            yield "drop"
        case _:
            pass


def _is_text(node: ast.BinOp) -> bool:
    sides = (node.left, node.right)
    return any(isinstance(side, ast.JoinedStr | ast.List | ast.Tuple) for side in sides) or any(
        isinstance(side, ast.Constant) and isinstance(side.value, str) for side in sides
    )


def _at(tree: ast.AST, path: Path) -> ast.AST:
    node = tree
    for name, index in path:
        value = getattr(node, name)
        node = value if index is None else value[index]
    return node


def _replace(tree: ast.AST, path: Path, new: ast.AST) -> None:
    parent = _at(tree, path[:-1])
    name, index = path[-1]
    if index is None:
        setattr(parent, name, new)
    else:
        getattr(parent, name)[index] = new


def _apply(tree: ast.AST, path: Path, node: ast.AST, change: str) -> str:
    """Change the node in the tree; what was done, in words."""
    before = ast.unparse(node).splitlines()[0][:80]
    match node:
        case ast.Compare():
            node.ops = [_COMPARE[type(node.ops[0])]()]
        case ast.BoolOp():
            node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        case ast.UnaryOp():
            _replace(tree, path, node.operand)
            return f"`{before}` without its not"
        case ast.BinOp():
            node.op = _ARITHMETIC[type(node.op)]()
        case ast.Call(func=ast.Name() as function):
            function.id = _CALLS[function.id]
        case ast.Constant():
            node.value = not node.value if isinstance(node.value, bool) else _other(node.value)
        case ast.If() | ast.IfExp():
            node.test = ast.Constant(change == "always")
            return f"`{before}` {change}"
        case _:
            left_out = ast.If(ast.Constant(value=False), [cast("ast.stmt", node)], [])  # which keeps the names it uses
            _replace(tree, path, ast.copy_location(left_out, node))
            return f"`{before}` left out"
    return f"`{before}` becomes `{ast.unparse(node).splitlines()[0][:80]}`"


def _other(value: object) -> int | float:
    """Another number: next to a whole one, half as much again of others."""
    if isinstance(value, int):
        return value + 1
    return value * 1.5 if isinstance(value, float) and value else 1.0
