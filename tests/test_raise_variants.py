"""`raise-sampling` on variants of the nucleus that nobody chose. Most are no filter at all; what is raised must compute the
same, with equal logits everywhere."""

import itertools
import random

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jascend.raising import raise_sampling

B, V = 3, 16
ROWS = jnp.arange(B)[:, None]
ORDERS = {
    "ascending": lambda x: jnp.argsort(x, axis=-1),
    "flipped": lambda x: jnp.argsort(x, axis=-1)[:, ::-1],
    "negative": lambda x: jnp.argsort(-x, axis=-1),
    "descending": lambda x: jnp.argsort(x, axis=-1, descending=True),
    "top_k": lambda x: lax.top_k(x, V)[1],
    "flipped top_k": lambda x: lax.top_k(x, V)[1][:, ::-1],
}
RELATIONS = (jnp.less, jnp.less_equal, jnp.greater, jnp.greater_equal)
LIMITS = (lambda p: p[:, None], lambda p: 1 - p[:, None], lambda p: 0.7, lambda p: 1 - 0.7)
SHIFTS = {
    "": lambda mask: mask,
    "roll": lambda mask: jnp.roll(mask, 1, axis=-1),
    "false first": lambda mask: jnp.concatenate([jnp.zeros((B, 1), bool), mask[:, :-1]], axis=-1),
    "true first": lambda mask: jnp.pad(mask[:, :-1], ((0, 0), (1, 0)), constant_values=True),
    "in place": lambda mask: mask.at[:, 1:].set(mask[:, :-1]),
}
FORCES = {
    "": lambda mask: mask,
    "first false": lambda mask: mask.at[:, 0].set(False),
    "first true": lambda mask: mask.at[:, 0].set(True),
    "last false": lambda mask: mask.at[:, -1].set(False),
    "last true": lambda mask: mask | (jnp.arange(V) == V - 1),
}
RESTORES = {
    "by rank": lambda mask, order: jnp.take_along_axis(mask, jnp.argsort(order, axis=-1), axis=-1),
    "by sort": lambda mask, order: lax.sort_key_val(order, mask)[1],
    "by scatter": lambda mask, order: jnp.zeros((B, V), bool).at[ROWS, order].set(mask),
    "the wrong way": lambda mask, order: jnp.take_along_axis(mask, order, axis=-1),
    "not at all": lambda mask, order: mask,
}
VARIANTS = [ORDERS, (False, True), RELATIONS, LIMITS, SHIFTS, FORCES, RESTORES, (False, True)]


def nucleus(order, exclusive, relation, limit, shift, force, restore, kept):
    def fn(logits, p):
        places = ORDERS[order](logits)
        probabilities = jax.nn.softmax(jnp.take_along_axis(logits, places, axis=-1), axis=-1)
        sums = jnp.cumsum(probabilities, axis=-1)
        mask = relation(sums - probabilities if exclusive else sums, limit(p))
        mask = RESTORES[restore](FORCES[force](SHIFTS[shift](mask)), places)
        return jnp.where(mask, logits, -jnp.inf) if kept else jnp.where(mask, -jnp.inf, logits)

    return fn


def data(seed):
    rng = np.random.default_rng(seed)
    logits = np.round(rng.normal(0, 1.5, (B, V)) * 2) / 2 + 0.0
    return jnp.asarray(logits, jnp.float32), jnp.asarray(rng.uniform(0.05, 0.95, B), jnp.float32)


def test_variants_of_the_nucleus():
    number = 0
    for variant in random.Random(3).sample(list(itertools.product(*VARIANTS)), 700):
        fn = nucleus(*variant)
        raised = raise_sampling(jax.make_jaxpr(fn)(*data(0)))
        assert raised.function or raised.remarks, variant  # something is said of each
        if raised.function is None:
            continue
        number += 1
        for seed in range(5):
            np.testing.assert_array_equal(raised.function(data(seed))[0], fn(*data(seed)), str(variant))
    assert number >= 10
