"""Keys of `jax.random` as arguments and results of programs.

A typed key is not an array that a kernel could read: its words are. So a program is traced as a function of words,
which wraps them for the user's function.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax


def implementation(value: Any) -> str | None:
    """Of a typed key, an array or a `ShapeDtypeStruct`: the name of its generator. None for anything else."""
    dtype = getattr(value, "dtype", None)
    if dtype is None or not jax.dtypes.issubdtype(dtype, jax.dtypes.prng_key):
        return None
    found = []
    jax.eval_shape(lambda key: (found.append(jax.random.key_impl(key)), jax.random.key_data(key))[1], _struct(value))
    return str(found[0])


def _struct(value: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(value.shape, value.dtype)


def words(value: Any) -> Any:
    """What holds the words of a typed key: an array for an array, a struct for a struct.
    Anything else stays as it is."""
    if implementation(value) is None:
        return value
    if isinstance(value, jax.ShapeDtypeStruct):
        return jax.eval_shape(jax.random.key_data, value)
    return jax.random.key_data(value)


def wrapped(value: Any, name: str | None) -> Any:
    """Words as the typed key of a generator; None: they are none."""
    return value if name is None else jax.random.wrap_key_data(value, impl=name)


class OfWords:
    """`fn` as a function of words, of arguments in the same tree as those given.

    Attributes:
      arguments, results: the generator of each flat argument and result, None for what is no key; of results, once the
        function has been traced.
    """

    def __init__(self, fn: Callable, args: tuple, kwargs: dict):
        leaves, self._tree = jax.tree.flatten((args, kwargs))
        self.arguments = tuple(map(implementation, leaves))
        self.results: tuple[str | None, ...] = ()
        self._fn = fn
        functools.update_wrapper(self, fn)

    def __call__(self, *args, **kwargs):
        leaves = map(wrapped, jax.tree.leaves((args, kwargs)), self.arguments)
        args, kwargs = jax.tree.unflatten(self._tree, leaves)
        result = self._fn(*args, **kwargs)
        self.results = tuple(map(implementation, jax.tree.leaves(result)))
        return jax.tree.map(words, result)
