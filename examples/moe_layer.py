"""A mixture-of-experts layer of the shape of DeepSeek-V3's, with 8-bit experts.

The gate's matrix product; grouped gating and routing, which quantizes each token once and dynamically, in one generated
kernel; the experts as grouped matrix products of the library, on int8, with the SwiGLU between them and its
quantization in generated kernels; and the sum of each token's experts. One program serves any number of tokens. It runs
on the twin, with JAX in the libraries' place, and is compared with `jax.jit` on the CPU.
"""

import argparse
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jascend as ja


class Weights(NamedTuple):
    """Of E experts: int8, with a float32 scale for each column."""

    gate: jax.Array  # [H, E] float32
    gate_bias: jax.Array  # [E] float32
    first: jax.Array  # [E, H, F]
    first_scale: jax.Array  # [E, F]
    linear: jax.Array  # [E, H, F]
    linear_scale: jax.Array  # [E, F]
    second: jax.Array  # [E, F, H]
    second_scale: jax.Array  # [E, H]


def moe_layer(x, weights: Weights, *, top_k: int = 8, groups: int = 8, top_groups: int = 4, factor: float = 2.5):
    """[T, H] bfloat16 of `x` [T, H] bfloat16."""
    tokens, hidden = x.shape
    experts = weights.gate.shape[1]
    logits = x.astype(jnp.float32) @ weights.gate
    gating = ja.moe_gating_top_k(
        logits, top_k, bias=weights.gate_bias, k_group=top_groups, group_count=groups, group_select_mode=1, norm_type=1,
        routed_scaling_factor=factor,
    )  # fmt: skip
    routed = ja.moe_init_routing(x, gating.expert_idx, expert_num=experts, quant_mode=1)
    # The row of each pair of token and expert: all pairs have one, so that none is out of bounds.
    row_of_pair = dict(mode="promise_in_bounds", wrap_negative_indices=False)
    expert_of_pair = gating.expert_idx.reshape(-1)
    expert_of_row = expert_of_pair.at[routed.expanded_row_idx].set(expert_of_pair, unique_indices=True, **row_of_pair)

    def experts_of(rows, scale, weight, weight_scale):
        products = jax.lax.ragged_dot(rows, weight, routed.expert_tokens, preferred_element_type=jnp.int32)
        return products.astype(jnp.float32) * scale[:, None] * weight_scale[expert_of_row]

    rows, scale = routed.expanded_x, routed.expanded_scale
    inner = jax.nn.silu(experts_of(rows, scale, weights.first, weights.first_scale))
    inner = inner * experts_of(rows, scale, weights.linear, weights.linear_scale)
    inner_scale = jnp.max(jnp.abs(inner), axis=-1) / 127
    inner_rows = jnp.round(inner / inner_scale[:, None]).astype(jnp.int8)
    outer = experts_of(inner_rows, inner_scale, weights.second, weights.second_scale)
    chosen = outer.at[routed.expanded_row_idx].get(**row_of_pair).reshape(tokens, top_k, hidden)
    return jnp.einsum("tk,tkh->th", gating.y, chosen).astype(x.dtype)


def arguments(tokens: int, hidden: int, experts: int, inner: int) -> tuple[jax.Array, Weights]:
    rng = np.random.default_rng(0)

    def quantized(*shape):
        scale = rng.uniform(0.5, 1.5, (shape[0], shape[2])) / (64 * np.sqrt(shape[1]))
        return jnp.asarray(rng.integers(-127, 128, shape), jnp.int8), jnp.asarray(scale, jnp.float32)

    gate = jnp.asarray(rng.normal(size=(hidden, experts)) / np.sqrt(hidden), jnp.float32)
    bias = jnp.asarray(0.1 * rng.normal(size=experts), jnp.float32)
    matrices = [quantized(experts, *shape) for shape in ((hidden, inner), (hidden, inner), (inner, hidden))]
    x = jnp.asarray(rng.normal(size=(tokens, hidden)), jnp.bfloat16)
    return x, Weights(gate, bias, *(part for matrix in matrices for part in matrix))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", type=int, nargs=3, default=(512, 64, 256), metavar=("H", "E", "F"))
    parser.add_argument(
        "--tokens", type=int, nargs="+", default=(16, 5), metavar="T", help="of one call after the other"
    )
    parser.add_argument("--target", default="ascend910b")
    options = parser.parse_args()
    x, weights = arguments(max(options.tokens), *options.shape)
    (tokens,) = jax.export.symbolic_shape("tokens")
    program = ja.compile(moe_layer, jax.ShapeDtypeStruct((tokens, x.shape[1]), x.dtype), weights, target=options.target)
    print(program.explain())
    for count in options.tokens:
        given = x[:count], weights
        print(program.profile(*given))
        y, expected = (np.asarray(run(*given), np.float32) for run in (program, jax.jit(moe_layer)))
        difference = np.abs(y - expected).max() / np.abs(expected).max()
        print(f"{count} tokens: largest difference from jax.jit on the CPU: {difference:.1e} of the largest")


if __name__ == "__main__":
    main()
