"""What tests of `raise-sampling` share: raising a function, and running it before and after."""

from collections import Counter

import jax
import numpy as np

from jascend.raising import raise_sampling

OPERATORS = (
    "apply_top_k_top_p", "top_k_top_p_sample", "random_exponential", "random_key", "moe_gating_top_k", "moe_init_routing",
)  # fmt: skip


def raised(fn, *args):
    """(the function with operators in it or None, how many of each, the remarks)."""
    result = raise_sampling(jax.make_jaxpr(fn)(*args))
    if result.function is None:
        return None, Counter(), result.remarks
    after = lambda *args: result.function(jax.tree.leaves(args))
    jaxpr = jax.make_jaxpr(after)(*args)
    counts = Counter(eqn.primitive.name for eqn in jaxpr.jaxpr.eqns if eqn.primitive.name in OPERATORS)
    return after, counts, result.remarks


def check(fn, args, operators, draws=(), rtol=0.0):
    """That `fn` is raised to `operators`, and computes the same; also for each of `draws`, other arguments."""
    after, counts, remarks = raised(fn, *args)
    assert counts == Counter(operators), remarks
    assert {remark.kind for remark in remarks} == {"passed"}
    before, after = jax.jit(fn), jax.jit(after)
    for each in (args, *draws):
        for expected, found in zip(jax.tree.leaves(before(*each)), after(*each)):
            assert expected.dtype == found.dtype
            np.testing.assert_allclose(np.asarray(found, np.float64), np.asarray(expected, np.float64), rtol=rtol)


def refused(fn, *args):
    """Why nothing of a function is raised: the texts of its remarks."""
    after, counts, remarks = raised(fn, *args)
    assert not counts and {remark.kind for remark in remarks} <= {"missed"}, remarks
    assert all(remark.file.startswith(__file__.rpartition("/")[0]) and remark.line for remark in remarks)
    return "\n".join(remark.text for remark in remarks)
