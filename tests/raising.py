"""What tests of `raise-sampling` share: arguments, raising a function, and running it before and after."""

import inspect
from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
from jascend.raising import raise_sampling
from jax import lax

INF = jnp.inf
B, V = 4, 64
FILTER, SAMPLE, NOISE, KEYS = "apply_top_k_top_p", "top_k_top_p_sample", "random_exponential", "random_key"
LARGEST = "the largest of rows"

OPERATORS = (
    "apply_top_k_top_p", "top_k_top_p_sample", "random_exponential", "random_key", "moe_gating_top_k", "moe_init_routing",
)  # fmt: skip


def logits_of(seed, shape=(B, V), dtype=np.float32):
    rng = np.random.default_rng(seed)
    return jnp.asarray(np.round(rng.normal(0, 2, shape) * 2) / 2 + 0.0, dtype)  # no -0.0, which top_k takes for less


LOGITS = logits_of(0)
K = jnp.array([3, 5, 1, 40], jnp.int32)
P = jnp.array([0.5, 0.9, 0.31, 0.999], jnp.float32)
KEY = jax.random.key(7)
ROWS = np.arange(B)[:, None]


def kth_of(logits, k):
    return lax.top_k(logits, k)[0][..., -1:]


def at_least_kth(logits, k=10):
    return jnp.where(logits < kth_of(logits, k), -INF, logits)


def arguments(fn, seed=0):
    known = {"logits": logits_of(seed), "k": K, "p": P, "key": jax.random.fold_in(KEY, seed)}
    known["q"] = jnp.asarray(np.random.default_rng(seed).exponential(size=(B, V)), jnp.float32)
    return tuple(known[name] for name in inspect.signature(fn).parameters if name in known)


def draws(fn):
    return [arguments(fn, seed) for seed in range(1, 7)]


def raised(fn, *args):
    """(the function with operators in it or None, how many of each, the remarks)."""
    result = raise_sampling(jax.make_jaxpr(fn)(*args))
    if result.function is None:
        return None, Counter(), result.remarks
    after = lambda *args: result.function(jax.tree.leaves(args))
    jaxpr = jax.make_jaxpr(after)(*args)
    counts = Counter(_name(eqn) for eqn in jaxpr.jaxpr.eqns if eqn.primitive.name in OPERATORS)
    return after, counts, result.remarks


def _name(eqn):
    """Of an operator; what takes the largest of rows, and nothing more, is no sampler."""
    lists = eqn.params.get("is_need_sample_result") and not eqn.params["input_is_logits"]
    return LARGEST if lists else eqn.primitive.name


def check(fn, args, operators, draws=(), rtol=0.0):
    """That `fn` is raised to `operators`, and computes the same; also for each of `draws`, other arguments."""
    after, counts, remarks = raised(fn, *args)
    assert counts == Counter(operators), remarks
    assert {remark.kind for remark in remarks} == {"passed"}
    for each in (args, *draws):
        for expected, found in zip(jax.tree.leaves(fn(*each)), after(*each)):
            assert expected.dtype == found.dtype
            np.testing.assert_allclose(np.asarray(found, np.float64), np.asarray(expected, np.float64), rtol=rtol)


def refused(fn, *args):
    """Why nothing of a function is raised, but for what takes the largest of rows: the texts of its remarks."""
    after, counts, remarks = raised(fn, *args)
    remarks = [remark for remark in remarks if not remark.text.endswith("largest of a row, as top_k_top_p_sample")]
    assert set(counts) <= {LARGEST} and {remark.kind for remark in remarks} <= {"missed"}, remarks
    assert all(remark.file.startswith(__file__.rpartition("/")[0]) and remark.line for remark in remarks)
    return "\n".join(remark.text for remark in remarks)


def stays(fn, args, reason):
    """That nothing of a function is raised, and that a reason is given where there is one to give."""
    text = refused(fn, *args)
    assert reason in text and bool(reason) == bool(text)
