"""Dialect `ascend`: the operators, on tensors (level 1).

Operand and attribute names follow the CANN operators. The leading dimension may be dynamic. Shape and dtype rules are
those of `dialect.rules`, which JAX's abstract evaluation uses too.
"""

from __future__ import annotations

import dataclasses
import inspect
import sys
from typing import Any

from mlir import ir

from . import libraries, rules
from .definition import Attribute, Dialect, Op, Operand, Result, VerifyError

_DTYPES = {
    "f32": "float32", "f16": "float16", "bf16": "bfloat16", "f64": "float64",
    "i1": "bool", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
    "ui8": "uint8", "ui16": "uint16", "ui32": "uint32", "ui64": "uint64", "i4": "int4", "f4E2M1FN": "float4_e2m1fn",
    "f8E4M3FN": "float8_e4m3fn", "f8E5M2": "float8_e5m2", "f8E8M0FNU": "float8_e8m0fnu",
}  # fmt: skip
_TARGETS = ("ascend910b", "ascend910_93", "ascend950")
_TARGET = Attribute("target", "string", "the product whose limits hold; absent: the union of all", True, _TARGETS)
_DRAW = Attribute(
    "draw", "string", "exponential: -log(1 - u), as `jax.random.exponential`; gumbel: -log(u), of which "
    "`jax.random.gumbel` is the negated logarithm", values=rules.DRAWS,
)  # fmt: skip
_LOW = Attribute(
    "low", "float", "the least u, at least 0 and below 1; 0 for exponential, 2^-126 for `jax.random.gumbel`"
)
_COUNTS = Attribute(
    "counts", "string", "array: the counter of element (b, i) is b * V + i, as where one key draws all; row: i, as "
    "where each row has a key of its own", values=rules.COUNTS,
)  # fmt: skip
_GATING = (
    Attribute("k", "integer", "experts a token"),
    Attribute("k_group", "integer", "groups to keep"),
    Attribute("group_count", "integer", "divides E"),
    Attribute("group_select_mode", "integer", "a group counts as 0: its largest score; 1: its two largest"),
    Attribute("renorm", "integer", "0"),
    Attribute("norm_type", "integer", "scores are 0: softmax; 1: sigmoid; 2: square root of softplus"),
    Attribute("out_flag", "bool", "whether there is `out`"),
)
_WEIGHTS = (
    Attribute("routed_scaling_factor", "float", "factor of the weights"),
    Attribute("eps", "float", "added to the sum of weights that divides them"),
)
_ROUTING = (
    Attribute("expert_num", "integer", "E, at most 10240"),
    Attribute("active_num", "integer", "most rows; -1 and 0: all. Has no effect on ascend950"),
    Attribute("expert_capacity", "integer", "C, the rows of an expert with `drop_pad_mode` 1"),
    Attribute("drop_pad_mode", "integer", "0: rows close together; 1: C rows for every expert"),
    Attribute("expert_tokens_num_type", "integer", "0: running sum of the counts; 1: counts; 2: (expert, count)"),
    Attribute("expert_tokens_num_flag", "bool", "whether there is `expert_tokens`"),
    Attribute("quant_mode", "integer", "-1: none; 0 to 9, 11 to 17: see `jascend.moe_init_routing`"),
    Attribute("active_expert_range", "int32 list", "[first, end); empty for all"),
    Attribute("row_idx_type", "integer", "0: the row of each pair; 1: the pair of each row"),
)


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


def _verify_library_call(op) -> None:
    operands = [shaped(value) for value in op.operation.operands]
    _expect(op.out, "out", libraries.library_call(op.callee, operands, op.dims or (), op.transposed or (), op.dtype))


def rule_arguments(op) -> tuple[dict[str, rules.Shaped | None], dict[str, Any]]:
    """What the rule of an operator is asked about an op: the types of its operands, and attributes, by name."""
    definition = op.definition
    parameters = inspect.signature(definition.rule).parameters
    takes_all = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    operands = {operand.name: shaped(getattr(op, operand.name)) for operand in definition.operands}
    names = [attribute.name for attribute in definition.attributes if takes_all or attribute.name in parameters]
    return operands, {name: getattr(op, name) for name in names}


def results_of_routing(op, tokens: int | None) -> dict[str, rules.Shaped | None]:
    """The results of a routing whose number of tokens can be any, by name, with `Rows` in their shapes. `tokens` is
    what the op has in that number's place; None: `?`."""
    operands, attributes = rule_arguments(op)

    def of_any(value: rules.Shaped | None) -> rules.Shaped | None:
        leads = value is not None and value.shape[:1] == (tokens,)
        return value._replace(shape=(rules.Rows(), *value.shape[1:])) if leads else value

    operands = {name: of_any(value) for name, value in operands.items()}
    results = op.definition.rule(**operands, **attributes, smaller=rules.Rows.smaller)
    return {result.name: value for result, value in zip(op.definition.results, results, strict=True)}


def _verify_by_rule(op) -> None:
    """An operator whose results are what its rule says."""
    operands, attributes = rule_arguments(op)
    expected = op.definition.rule(**operands, **attributes)
    _expect_results(op, [expected] if isinstance(expected, rules.Shaped) else expected, "operands and attributes")


def _verify_filter_sample(op) -> None:
    index = "int32" if shaped(op.index).dtype == "int32" else "int64"
    if not op.eps >= 0:
        raise VerifyError(f"eps must not be negative, but is {op.eps}")
    expected = rules.filter_sample(
        shaped(op.logits), shaped(op.q), shaped(op.p), shaped(op.k), shaped(op.key),
        draw=op.draw, low=op.low, counts=op.counts, index_dtype=index, target=op.target,
    )  # fmt: skip
    _expect(op.index, "index", expected)


def _verify_top_k_top_p_sample(op) -> None:
    index = shaped(op.logits_select_idx or op.logits_idx)
    expected = rules.top_k_top_p_sample(
        shaped(op.logits), shaped(op.top_k), shaped(op.top_p), shaped(op.q), shaped(op.min_ps),
        ks_max=op.ks_max, is_need_logits=op.is_need_logits, is_need_sample_result=op.is_need_sample_result,
        index_dtype=index.dtype if index is not None and index.dtype == "int32" else "int64", target=op.target,
    )  # fmt: skip
    _expect_results(op, expected, "is_need_logits and is_need_sample_result")


def _verify_moe_gating_top_k(op) -> None:
    expected = rules.moe_gating_top_k(
        shaped(op.x), shaped(op.bias), shaped(op.input_ids), shaped(op.tid2eid),
        shaped(op.additional_bias), shaped(op.additional_token_mask),
        k=op.k, k_group=op.k_group, group_count=op.group_count, group_select_mode=op.group_select_mode,
        renorm=op.renorm, norm_type=op.norm_type, out_flag=op.out_flag, target=op.target,
    )  # fmt: skip
    _expect_results(op, expected, "out_flag")


def _verify_moe_gating_routing(op) -> None:
    index = shaped(op.expert_tokens)
    index_dtype = index.dtype if index is not None and index.dtype == "int32" else "int64"
    operands, attributes = rule_arguments(op)
    expected = rules.moe_gating_routing(**operands, **attributes, index_dtype=index_dtype)
    if op.expert_idx is None:
        expected = (expected[0], None, *expected[2:])
    _expect_results(op, expected, "out_flag, expert_tokens_num_flag, quant_mode and scale")


def _verify_moe_init_routing(op) -> None:
    expert_idx = shaped(op.expert_idx)
    lead = expert_idx.shape[:-2]

    def of_one(name: str) -> rules.Shaped | None:
        value = shaped(getattr(op, name))
        if value is None:
            return None
        if not rules.same_shape(value.shape[: len(lead)], lead):
            raise VerifyError(f"'{name}' must have the batch of 'expert_idx' {_show(expert_idx)}, got {_show(value)}")
        return value._replace(shape=value.shape[len(lead) :])

    index = shaped(op.expert_tokens)
    expected = rules.moe_init_routing(
        of_one("x"), of_one("expert_idx"), of_one("scale"), of_one("offset"),
        expert_num=op.expert_num, active_num=op.active_num, expert_capacity=op.expert_capacity,
        drop_pad_mode=op.drop_pad_mode, expert_tokens_num_type=op.expert_tokens_num_type,
        expert_tokens_num_flag=op.expert_tokens_num_flag, quant_mode=op.quant_mode,
        active_expert_range=op.active_expert_range, row_idx_type=op.row_idx_type,
        index_dtype=index.dtype if index is not None and index.dtype == "int32" else "int64", target=op.target,
    )  # fmt: skip
    expected = [wanted and wanted._replace(shape=(*lead, *wanted.shape)) for wanted in expected]
    _expect_results(op, expected, "expert_tokens_num_flag, quant_mode and scale")


def _expect_results(op, expected, attributes: str) -> None:
    """Checks results of which some are there or not, as the attributes named say."""
    for result, wanted in zip(op.definition.results, expected, strict=True):
        given = getattr(op, result.name)
        if (given is None) != (wanted is None):
            present = "is required by" if given is None else "is not among the results of"
            raise VerifyError(f"result '{result.name}' {present} these {attributes}")
        if given is not None:
            _expect(given, result.name, wanted)


ASCEND = Dialect(
    "ascend",
    "The operators, on tensors. B is the batch, V the vocabulary; B may be dynamic (`?`).",
    (
        Op(
            "sort",
            "Stable sort along the last axis, with the positions the values came from.",
            operands=(Operand("x", "tensor", "[..., V]; f32, f16 or bf16", by_row=True),),
            attributes=(Attribute("descending", "bool", "largest first; equal values keep their order either way"),),
            results=(
                Result("values", "tensor", "[..., V], dtype of `x`"),
                Result("indices", "tensor", "[..., V], i32"),
            ),
            verify=_verify_by_rule,
            rule=rules.sort,
        ),
        Op(
            "library_call",
            "An operator of CANN's libraries: what they do well needs no kernel of ours.",
            operands=(
                Operand("first", "tensor", "as the operator takes it"),
                Operand("second", "tensor", "the same", optional=True),
                Operand("third", "tensor", "the same", optional=True),
            ),
            attributes=(
                Attribute(
                    "callee", "string", "the operator; see `jascend.dialect.libraries`", values=tuple(libraries.LIBRARY)
                ),
                Attribute("dims", "int32 list", "the dimensions that the operator is told", optional=True),
                Attribute(
                    "transposed", "int32 list", "1 for a matrix that is transposed, one for each operand", optional=True
                ),
                Attribute(
                    "dtype", "string", "of a result that is wider than the operands", optional=True, values=("float32",)
                ),
            ),
            results=(Result("out", "tensor", "as the operator gives it"),),
            verify=_verify_library_call,
        ),
        Op(
            "row_wise",
            "Its operand, in memory: what elementwise work and reductions of rows compute, as a kernel of its own.",
            operands=(Operand("x", "tensor", "[B, ...]; f32, f16, bf16, i32, i8 or i1", by_row=True),),
            results=(Result("out", "tensor", "as `x`"),),
            description=(
                "Sums are float32: lane j adds the elements j, j + 1024, ... of a row in that order, and a fixed tree "
                "adds the lanes. Rows of 24576 elements and more are added in units of 1024 columns, each by a fixed "
                "tree, and one tree adds the units: several cores may share such a row."
            ),
            verify=_verify_by_rule,
            rule=rules.row_wise,
        ),
        Op(
            "row_wise_pair",
            "Two operands, in memory: one kernel computes both, each from what is there for the other.",
            operands=(
                Operand("x", "tensor", "[B, ...]; f32, f16, bf16, i32, i8 or i1", by_row=True),
                Operand("other", "tensor", "the same shape", by_row=True),
            ),
            results=(Result("out", "tensor", "as `x`"), Result("other_out", "tensor", "as `other`")),
            verify=_verify_by_rule,
            rule=rules.row_wise_pair,
        ),
        Op(
            "apply_top_k_top_p_with_sorted",
            "Filters rows that come sorted; the result is in vocabulary order.",
            operands=(
                Operand("sorted_value", "tensor", "[B, V] ascending; f32, f16 or bf16", by_row=True),
                Operand("sorted_indices", "tensor", "[B, V] i32; each row a permutation of 0..V-1", by_row=True),
                Operand("p", "tensor", "[B], dtype of `sorted_value`", optional=True, by_row=True),
                Operand("k", "tensor", "[B] i32; k <= 0 or k >= V keeps all", optional=True, by_row=True),
                Operand(
                    "logits",
                    "tensor",
                    "[B, V], the rows unsorted; does not change the result",
                    optional=True,
                    by_row=True,
                ),
            ),
            attributes=(_TARGET,),
            results=(Result("out", "tensor", "[B, V]; kept values bit for bit, -inf elsewhere"),),
            verify=_verify_by_rule,
            rule=rules.apply_top_k_top_p_with_sorted,
        ),
        Op(
            "apply_top_k_top_p",
            "Keeps the k largest of a row and, among them, the nucleus of mass p; -inf elsewhere.",
            operands=(
                Operand("logits", "tensor", "[B, V]; f32, f16 or bf16", by_row=True),
                Operand("p", "tensor", "[B], dtype of `logits`", optional=True, by_row=True),
                Operand("k", "tensor", "[B] i32; k <= 0 or k >= V keeps all", optional=True, by_row=True),
            ),
            attributes=(_TARGET,),
            results=(Result("out", "tensor", "[B, V]; kept values bit for bit, -inf elsewhere"),),
            description=(
                "Everything equal to the k-th largest value is kept. The nucleus is decided on ascending running "
                "probabilities in float32: an element goes if its running sum is at most `1 - p`; among equal values "
                "the lower index goes first; the last one of the order never goes."
            ),
            verify=_verify_by_rule,
            rule=rules.apply_top_k_top_p,
        ),
        Op(
            "filter_sample",
            "An index sampled from every filtered row: of the greatest probability over `q`.",
            operands=(
                Operand("logits", "tensor", "[B, V]; f32, f16 or bf16", by_row=True),
                Operand(
                    "q",
                    "tensor",
                    "[B, V] f32, not negative, usually drawn from Exp(1); by index in the row",
                    optional=True,
                    by_row=True,
                ),
                Operand("p", "tensor", "[B], dtype of `logits`", optional=True, by_row=True),
                Operand("k", "tensor", "[B] i32; k <= 0 or k >= V keeps all", optional=True, by_row=True),
                Operand(
                    "key",
                    "tensor",
                    "[B, 2] i32, as of `random_exponential`, in the place of q",
                    optional=True,
                    by_row=True,
                ),
            ),
            attributes=(
                Attribute("eps", "float", "added to q, not negative"),
                *(dataclasses.replace(attribute, optional=True) for attribute in (_DRAW, _LOW, _COUNTS)),
                _TARGET,
            ),
            results=(Result("index", "tensor", "[B] i32 or i64"),),
            description=(
                "The row is filtered as by `apply_top_k_top_p`, with its ties; then, of the elements that are not -inf "
                "now, the first index at which `softmax(row) / (q + eps)` is greatest. NaN counts as greatest, above "
                "+inf. What was filtered out has probability 0 and is never drawn, whatever its `q`, which is not "
                "read: an argmax over all of the row takes the same index where `q + eps` is positive and finite, as "
                "draws from Exp(1) are, but for 0 in some ten million of them; with 0 / 0 = NaN it takes what was "
                "filtered out. A row with NaN, +inf or nothing but -inf has no probabilities: index 0. Unlike "
                "`top_k_top_p_sample`, an element takes `q` at its index in the row, not at its rank, and `q` as it "
                "is, not its absolute value. Without `p` and `k`, and then with a key, the row is drawn from as it is: "
                "by `x - log(q + eps)`, in which of scores that differ by a relative 1e-5 either may be the greatest."
            ),
            verify=_verify_filter_sample,
            rule=rules.filter_sample,
        ),
        Op(
            "random_exponential",
            "Numbers from Exp(1), drawn as `jax.random` draws them with a key of Threefry-2x32.",
            operands=(Operand("key", "tensor", "[B, 2] i32, the two words of each row's key", by_row=True),),
            attributes=(Attribute("length", "integer", "V, the numbers of a row"), _DRAW, _LOW, _COUNTS),
            results=(Result("q", "tensor", "[B, V] f32"),),
            description=(
                "The bits of a number are the exclusive or of the two words that Threefry makes of the key and the "
                "number's counter (the form that JAX calls partitionable): exactly those of `jax.random.bits`. The "
                "upper 23 of them, as the mantissa of a number from 1 to 2, less 1, times 1 - `low`, plus `low`, "
                "make a uniform number u."
            ),
            verify=_verify_by_rule,
            rule=rules.random_exponential,
        ),
        Op(
            "random_key",
            "Keys of Threefry-2x32 made of keys and numbers, as `jax.random.split` and `fold_in` make them.",
            operands=(
                Operand("key", "tensor", "[B, 2] i32, the two words of each key", by_row=True),
                Operand(
                    "count", "tensor", "[B] i32: of `split`, which of the keys; of `fold_in`, its data", by_row=True
                ),
            ),
            results=(Result("child", "tensor", "[B, 2] i32"),),
            description="The words are what Threefry makes of the key and a counter whose lower word is `count`.",
            verify=_verify_by_rule,
            rule=rules.random_key,
        ),
        Op(
            "top_k_top_p_sample",
            "Top-k, top-p and min-p of every row, and an index sampled from what is left, or the distribution.",
            operands=(
                Operand("logits", "tensor", "[B, V]; f32, f16 or bf16", by_row=True),
                Operand("top_k", "tensor", "[B] i32; off unless 1 <= k <= min(V, ks_max)", by_row=True),
                Operand("top_p", "tensor", "[B], dtype of `logits`; p <= 0 keeps one, p >= 1 is off", by_row=True),
                Operand("q", "tensor", "[B, V] f32, by position in the order of survivors", optional=True, by_row=True),
                Operand(
                    "min_ps",
                    "tensor",
                    "[B], dtype of `logits`; m <= 0 is off, m >= 1 keeps one",
                    optional=True,
                    by_row=True,
                ),
            ),
            attributes=(
                Attribute("eps", "float", "added to |q|"),
                Attribute("is_need_logits", "bool", "whether there is `logits_top_kp_select`"),
                Attribute("top_k_guess", "integer", "candidates to try for top-p without top-k; no effect on results"),
                Attribute("ks_max", "integer", "largest k; counts as rounded up to a multiple of 8, at most 1024"),
                Attribute("input_is_logits", "bool", "false: `logits` are probabilities"),
                Attribute("is_need_sample_result", "bool", "the distribution instead of an index"),
                _TARGET,
            ),
            results=(
                Result("logits_select_idx", "tensor", "[B] i32 or i64; not with is_need_sample_result", optional=True),
                Result(
                    "logits_top_kp_select", "tensor", "[B, V] f32, survivors in place; else -inf or 0", optional=True
                ),
                Result("logits_idx", "tensor", "[B, V] i32 or i64, survivors in order, then -1", optional=True),
                Result("logits_sort_masked", "tensor", "[B, V] f32, their probabilities, then 0", optional=True),
            ),
            description=(
                "Exactly k values stay, of equal ones those of lower index. The nucleus ends with the element whose "
                "descending running probability reaches p. Survivors are in descending order, or in order of index "
                "where nothing sorts (top-k off, p >= 1, m < 1); position j of that order takes q[b, j]."
            ),
            verify=_verify_top_k_top_p_sample,
            rule=rules.top_k_top_p_sample,
        ),
        Op(
            "moe_gating_top_k",
            "Chooses k experts for every token by their scores, and their weights. T tokens, E experts.",
            operands=(
                Operand("x", "tensor", "[T, E]; f32, f16 or bf16", by_row=True),
                Operand("bias", "tensor", "[E], dtype of `x`; added to scores for the choice only", optional=True),
                Operand("input_ids", "tensor", "[T] i32 or i64: rows of `tid2eid`", optional=True, by_row=True),
                Operand("tid2eid", "tensor", "[n, k] i32 or i64: the experts of each row", optional=True),
                Operand(
                    "additional_bias", "tensor", "[E], dtype of `x`: in place of `bias` where masked", optional=True
                ),
                Operand("additional_token_mask", "tensor", "[T] i1", optional=True, by_row=True),
            ),
            attributes=(
                *_GATING,
                *_WEIGHTS,
                _TARGET,
            ),
            results=(
                Result("y", "tensor", "[T, k], dtype of `x`: the weights"),
                Result("expert_idx", "tensor", "[T, k] i32, largest biased score first, equal ones by index"),
                Result("out", "tensor", "[T, E] f32: all scores, without bias", optional=True),
            ),
            description=(
                "Weights are scores without bias; for `norm_type` 1 and 2 they are divided by their sum. Equal groups "
                "are kept by increasing number. With `tid2eid`, experts come from there, and biases have no effect."
            ),
            verify=_verify_moe_gating_top_k,
            rule=rules.moe_gating_top_k,
        ),
        Op(
            "moe_init_routing",
            "Copies every token once for each of its experts, ordered by expert, quantized on the way.",
            operands=(
                Operand("x", "tensor", "[..., N, H], dtype by `quant_mode`; HiFloat8 as ui8"),
                Operand("expert_idx", "tensor", "[..., N, K] i32; ids outside the active range mean no expert"),
                Operand("scale", "tensor", "by `quant_mode`", optional=True),
                Operand("offset", "tensor", "[..., 1] f32, with `quant_mode` 0", optional=True),
            ),
            attributes=(
                *_ROUTING,
                _TARGET,
            ),
            results=(
                Result("expanded_x", "tensor", "[..., rows, H] or [..., E, C, H]"),
                Result("expanded_row_idx", "tensor", "[..., N * K] i32"),
                Result("expert_tokens", "tensor", "[..., experts] or [..., E, 2], i32 or i64", optional=True),
                Result("expanded_scale", "tensor", "[..., rows, ...], by `quant_mode`", optional=True),
            ),
            description=(
                "A pair is a token and one of its K slots. Valid pairs are ordered by expert, then by their number. "
                "Leading dimensions, the same on all operands, are a batch of independent routings."
            ),
            verify=_verify_moe_init_routing,
            rule=rules.moe_init_routing,
        ),
        Op(
            "moe_gating_routing",
            "Chooses k experts for every token, and copies it once for each of them, ordered by expert.",
            operands=(
                Operand("logits", "tensor", "[T, E]; `x` of `moe_gating_top_k`"),
                Operand("x", "tensor", "[T, H]; `x` of `moe_init_routing`"),
                Operand("bias", "tensor", "[E]", optional=True),
                Operand("input_ids", "tensor", "[T]", optional=True),
                Operand("tid2eid", "tensor", "[n, k]", optional=True),
                Operand("additional_bias", "tensor", "[E]", optional=True),
                Operand("additional_token_mask", "tensor", "[T] i1", optional=True),
                Operand("scale", "tensor", "by `quant_mode`", optional=True),
                Operand("offset", "tensor", "[1] f32, with `quant_mode` 0", optional=True),
            ),
            attributes=(*_GATING, *_WEIGHTS, *_ROUTING, _TARGET),
            results=(
                Result("y", "tensor", "[T, k], dtype of `logits`: the weights"),
                Result("expert_idx", "tensor", "[T, k] i32, where something else needs it", optional=True),
                Result("out", "tensor", "[T, E] f32", optional=True),
                Result("expanded_x", "tensor", "[rows, H] or [E, C, H]"),
                Result("expanded_row_idx", "tensor", "[T * k] i32"),
                Result("expert_tokens", "tensor", "[experts] or [E, 2], i32 or i64", optional=True),
                Result("expanded_scale", "tensor", "[rows, ...], by `quant_mode`", optional=True),
            ),
            description=(
                "`moe_gating_top_k` of `logits`, then `moe_init_routing` of `x` by the experts that it chose, with the "
                "operands, attributes and results of both; `fuse-moe` makes it of the two."
            ),
            verify=_verify_moe_gating_routing,
            rule=rules.moe_gating_routing,
        ),
    ),
)


def define(op: Op) -> type[ir.OpView]:
    """Adds an operator to the dialect, for the file that calls this. Where it has a rule and no verification of its
    own, it is verified by the rule.

    Returns: its class, whose `build` makes one.
    Raises: ValueError or TypeError, see `Dialect.define`."""
    if isinstance(op, Op) and op.rule is not None and op.verify is None:
        op = dataclasses.replace(op, verify=_verify_by_rule)
    namespace = sys._getframe(1).f_globals
    return ASCEND.define(op, namespace.get("__file__") or namespace["__name__"])
