"""The end of a decode step: norm, the matrix product with the vocabulary, and a token sampled for every sequence.

A norm is a generated kernel, the product a call of CANN's library, the sampler a kernel again. The program runs on the
twin, with JAX in the libraries' place, and is compared with `jax.jit` on the CPU.
"""

import argparse

import jax
import jax.numpy as jnp
import numpy as np

import jascend as ja


def next_token(hidden, norm_weight, vocabulary, temperature, top_k, top_p, q):
    """[B] int32. `hidden` [B, H] bfloat16, `vocabulary` [V, H] bfloat16, `q` [B, V] float32, drawn from Exp(1)."""
    wide = hidden.astype(jnp.float32)
    scale = jax.lax.rsqrt(jnp.mean(wide * wide, axis=-1, keepdims=True) + 1e-6)
    normed = (wide * scale * norm_weight).astype(hidden.dtype)
    logits = normed @ vocabulary.T
    scaled = logits.astype(jnp.float32) / temperature[:, None]
    return ja.top_k_top_p_sample(scaled, top_k, top_p, q).logits_select_idx


def arguments(batch: int, hidden: int, vocabulary: int) -> tuple:
    """A batch of requests, as users mix them."""
    rng = np.random.default_rng(0)
    return (
        jnp.asarray(rng.normal(size=(batch, hidden)), jnp.bfloat16),
        jnp.asarray(1 + 0.1 * rng.normal(size=hidden), jnp.float32),
        jnp.asarray(rng.normal(size=(vocabulary, hidden)) / np.sqrt(hidden), jnp.bfloat16),
        jnp.asarray(rng.choice([0.6, 0.8, 1.0], batch), jnp.float32),
        jnp.asarray(rng.choice([0, 20, 50], batch), jnp.int32),
        jnp.asarray(rng.choice([0.8, 0.95, 1.0], batch), jnp.float32),
        jnp.asarray(rng.exponential(size=(batch, vocabulary)), jnp.float32),
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", type=int, nargs=3, default=(8, 2048, 32000), metavar=("B", "H", "V"))
    parser.add_argument("--target", default="ascend910b")
    options = parser.parse_args()
    given = arguments(*options.shape)
    program = ja.compile(next_token, *given, target=options.target)
    print(program.explain())
    print(program.profile(*given))
    tokens, expected = np.asarray(program(*given)), np.asarray(jax.jit(next_token)(*given))
    print(f"tokens {tokens}; {(tokens == expected).sum()} of {len(tokens)} as jax.jit on the CPU")


if __name__ == "__main__":
    main()
