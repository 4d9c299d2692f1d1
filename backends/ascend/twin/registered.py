"""Which tiling struct a kernel reads, where its source says so by macros that the CANN build interprets.

    REGISTER_TILING_FOR_TILINGKEY("TILING_KEY_VAR == 1", Struct)    the struct of GET_TILING_DATA under those keys
    REGISTER_TILING_DATA_CLASS(AddCustom, Struct)                   the struct of operator AddCustom
    REGISTER_TILING_DATA_CLASS(AddCustom_1, Struct)                 the same under tiling key 1

The CANN build compiles a kernel once for each key; here a kernel is compiled once for each struct that its keys choose.
"""

import ast
import operator
import re
from collections.abc import Iterable
from dataclasses import dataclass

_COMMENTS = re.compile(r'("(?:\\.|[^"\\\n])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_FOR_KEY = re.compile(r'REGISTER_TILING_FOR_TILINGKEY\s*\(\s*"([^"]*)"\s*,\s*([^;]+?)\s*\)\s*;')
_CLASS = re.compile(r"REGISTER_TILING_DATA_CLASS\s*\(\s*(\w+)\s*,\s*([\w:]+)\s*\)")
_SPACE = re.compile(r"\bnamespace\s+([\w:]+)\s*\{")


@dataclass(frozen=True)
class Registered:
    """What a kernel's source and its headers register."""

    by_expression: tuple[tuple[str, str], ...]  # (condition on TILING_KEY_VAR, struct)
    by_operator: tuple[tuple[str, str], ...]  # (operator, or operator_key, in snake case; struct)

    def struct(self, entry: str | None, key: int) -> str | None:
        """The struct for a kernel and a key; None where the macros in the source decide alone."""
        for expression, struct in self.by_expression:
            if holds(expression, key):
                return struct
        classes = dict(self.by_operator)
        return classes.get(f"{entry}_{key}") or classes.get(entry) or (self.by_operator[-1][1] if classes else None)


def registered(texts: Iterable[str]) -> Registered:
    """Reads the macros in a source and the headers it includes."""
    expressions, operators = [], []
    for text in texts:
        text = _COMMENTS.sub(lambda match: match[1] or " ", text)
        expressions += [(match[1], match[2]) for match in _FOR_KEY.finditer(text)]
        for match in _CLASS.finditer(text):
            spaces = _SPACE.findall(text[: match.start()])
            struct = match[2] if "::" in match[2] or not spaces else f"{spaces[-1]}::{match[2]}"
            operators.append((_snake_case(match[1]), struct))
    return Registered(tuple(expressions), tuple(operators))


def _snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


_BINARY = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.floordiv,
    ast.Mod: operator.mod, ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor,
    ast.LShift: operator.lshift, ast.RShift: operator.rshift,
}  # fmt: skip
_COMPARE = {ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
            ast.GtE: operator.ge}  # fmt: skip


def holds(expression: str, key: int) -> bool:
    """Whether a condition in C++ on TILING_KEY_VAR holds for the key; ValueError where it cannot be read."""
    text = re.sub(r"(\d)[uUlL]+\b", r"\1", expression).replace("&&", " and ").replace("||", " or ")
    text = re.sub(r"!(?!=)", " not ", text)

    def value(node):
        match node:
            case ast.Constant(int(number)):
                return number
            case ast.Name("TILING_KEY_VAR"):
                return key
            case ast.UnaryOp(ast.Not(), operand):
                return not value(operand)
            case ast.UnaryOp(ast.Invert(), operand):
                return ~value(operand)
            case ast.UnaryOp(ast.USub(), operand):
                return -value(operand)
            case ast.BinOp(left, op, right) if type(op) in _BINARY:
                return _BINARY[type(op)](value(left), value(right))
            case ast.BoolOp(ast.And(), operands):
                return all(map(value, operands))
            case ast.BoolOp(_, operands):
                return any(map(value, operands))
            case ast.Compare(left, [op], [right]) if type(op) in _COMPARE:
                return _COMPARE[type(op)](value(left), value(right))
        raise ValueError(f"the tiling condition {expression!r} is not one of integers, TILING_KEY_VAR and operators")

    try:
        return bool(value(ast.parse(text.strip(), mode="eval").body))
    except SyntaxError:
        raise ValueError(f"the tiling condition {expression!r} cannot be read") from None
