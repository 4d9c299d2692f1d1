"""Positions of the true elements of a mask."""

import jax
import numpy as np
import pytest

from jascend.numerics import blocks, positions


@pytest.mark.parametrize("size", [1, 5, 40, 1024, 3000])
@pytest.mark.parametrize("share", [0.0, 0.02, 0.5, 1.0])
def test_nth_true(size, share):
    mask = np.random.default_rng(size).random((2, 3, size)) < share
    wanted = np.arange(min(size, 64), dtype=np.int32)
    places = np.asarray(positions.nth_true(blocks.pad(mask, False), np.broadcast_to(wanted, (2, 3, wanted.size))))
    for row in np.ndindex(2, 3):
        expected = np.flatnonzero(mask[row])[: wanted.size]
        np.testing.assert_array_equal(places[row][: expected.size], expected)
    assert places.dtype == np.int32 and (places >= 0).all()


def test_nth_true_takes_any_of_them():
    mask = np.zeros((1, 5000), bool)
    mask[0, [3, 31, 32, 1023, 1024, 4999]] = True
    found = jax.jit(positions.nth_true)(blocks.pad(mask, False), np.array([[5, 0, 4, 2]], np.int32))
    assert found.tolist() == [[4999, 3, 1024, 32]]


def test_index():
    np.testing.assert_array_equal(positions.index(np.zeros((2, 3))), [[0, 1, 2]] * 2)
