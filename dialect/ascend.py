"""Dialect `ascend`: the operators, on tensors (level 1).

Operand and attribute names follow the CANN operators. The leading dimension may be dynamic. Shape and dtype rules are
those of `dialect.rules`, which JAX's abstract evaluation uses too.
"""

from __future__ import annotations

from mlir import ir

from . import rules
from .definition import Attribute, Dialect, Op, Operand, Result, VerifyError

_DTYPES = {
    "f32": "float32", "f16": "float16", "bf16": "bfloat16", "f64": "float64",
    "i1": "bool", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
    "ui8": "uint8", "ui16": "uint16", "ui32": "uint32", "ui64": "uint64",
}  # fmt: skip
_TARGETS = ("ascend910b", "ascend910_93", "ascend950")
_TARGET = Attribute("target", "string", "the product whose limits hold; absent: the union of all", True, _TARGETS)


def shaped(value: ir.Value | ir.Type | None) -> rules.Shaped | None:
    """Shape (None for a dynamic dimension) and dtype name of a tensor value or type; None stays None."""
    if value is None:
        return None
    tensor = ir.RankedTensorType(value if isinstance(value, ir.Type) else value.type)
    shape = tuple(None if tensor.is_dynamic_dim(i) else tensor.get_dim_size(i) for i in range(tensor.rank))
    element = str(tensor.element_type)
    return rules.Shaped(shape, _DTYPES.get(element, element))


def _expect(result: ir.Value, name: str, expected: rules.Shaped) -> None:
    given = shaped(result)
    fits = len(given.shape) == len(expected.shape) and all(
        a is None or b is None or a == b for a, b in zip(given.shape, expected.shape)
    )
    if given.dtype != expected.dtype or not fits:
        raise VerifyError(f"result '{name}' must be {_show(expected)}, got {_show(given)}")


def _show(value: rules.Shaped) -> str:
    return f"{value.dtype}[{', '.join('?' if dim is None else str(dim) for dim in value.shape)}]"


def _verify_sort(op) -> None:
    values, indices = rules.sort(shaped(op.x), descending=op.descending)
    _expect(op.values, "values", values)
    _expect(op.indices, "indices", indices)


def _verify_apply_top_k_top_p(op) -> None:
    out = rules.apply_top_k_top_p(shaped(op.logits), shaped(op.p), shaped(op.k), target=op.target)
    _expect(op.out, "out", out)


def _verify_apply_top_k_top_p_with_sorted(op) -> None:
    out = rules.apply_top_k_top_p_with_sorted(
        shaped(op.sorted_value), shaped(op.sorted_indices), shaped(op.p), shaped(op.k), shaped(op.logits), target=op.target
    )
    _expect(op.out, "out", out)


ASCEND = Dialect(
    "ascend",
    "The operators, on tensors. B is the batch, V the vocabulary; B may be dynamic (`?`).",
    (
        Op(
            "sort",
            "Stable sort along the last axis, with the positions the values came from.",
            operands=(Operand("x", "tensor", "[..., V]; f32, f16 or bf16"),),
            attributes=(Attribute("descending", "bool", "largest first; equal values keep their order either way"),),
            results=(
                Result("values", "tensor", "[..., V], dtype of `x`"),
                Result("indices", "tensor", "[..., V], i32"),
            ),
            verify=_verify_sort,
        ),
        Op(
            "apply_top_k_top_p_with_sorted",
            "Filters rows that come sorted; the result is in vocabulary order.",
            operands=(
                Operand("sorted_value", "tensor", "[B, V] ascending; f32, f16 or bf16"),
                Operand("sorted_indices", "tensor", "[B, V] i32; each row a permutation of 0..V-1"),
                Operand("p", "tensor", "[B], dtype of `sorted_value`", optional=True),
                Operand("k", "tensor", "[B] i32; k <= 0 or k >= V keeps all", optional=True),
                Operand("logits", "tensor", "[B, V], the rows unsorted; does not change the result", optional=True),
            ),
            attributes=(_TARGET,),
            results=(Result("out", "tensor", "[B, V]; kept values bit for bit, -inf elsewhere"),),
            verify=_verify_apply_top_k_top_p_with_sorted,
        ),
        Op(
            "apply_top_k_top_p",
            "Keeps the k largest of a row and, among them, the nucleus of mass p; -inf elsewhere.",
            operands=(
                Operand("logits", "tensor", "[B, V]; f32, f16 or bf16"),
                Operand("p", "tensor", "[B], dtype of `logits`", optional=True),
                Operand("k", "tensor", "[B] i32; k <= 0 or k >= V keeps all", optional=True),
            ),
            attributes=(_TARGET,),
            results=(Result("out", "tensor", "[B, V]; kept values bit for bit, -inf elsewhere"),),
            description=(
                "Everything equal to the k-th largest value is kept. The nucleus is decided on ascending running "
                "probabilities in float32: an element goes if its running sum is at most `1 - p`; among equal values "
                "the lower index goes first; the last one of the order never goes."
            ),
            verify=_verify_apply_top_k_top_p,
        ),
    ),
)
