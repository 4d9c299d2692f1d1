"""With CANN and an NPU: `make test-npu`. It has not been run; the steps are tested with stand-ins in test_toolkit.py and test_device.py."""

import os

import numpy as np
import pytest
from jascend.backends.ascend import toolkit
from test_graphs import example

import jascend as ja

pytestmark = pytest.mark.skipif("JASCEND_TEST_NPU" not in os.environ, reason="run by `make test-npu`: needs an NPU")
TARGET = os.environ.get("JASCEND_TEST_TARGET", "ascend910b")


def filtered(logits, temperature, p, k):
    return ja.apply_top_k_top_p(logits / temperature[:, None], p, k)


def filter_arguments():
    rng = np.random.default_rng(0)
    floats = [rng.normal(0, 3, (8, 1000)), rng.uniform(0.5, 2, 8), rng.uniform(0, 1, 8)]
    return (*(x.astype(np.float32) for x in floats), np.array([5, 0, 300, 7, 1, 50, 1000, 20], np.int32))


CASES = {
    "filter": lambda: (filtered, filter_arguments()),
    "decode_head": lambda: (example("decode_head").next_token, example("decode_head").arguments(4, 256, 1000)),
    "moe_layer": lambda: (example("moe_layer").moe_layer, example("moe_layer").arguments(6, 128, 64, 64)),
}


@pytest.mark.parametrize("name", CASES)
def test_built_kernels_give_what_the_twin_gives(name, tmp_path):
    """The callers compare with what the twin gave for the same arguments."""
    function, arguments = CASES[name]()
    program = ja.compile(function, *arguments, target=TARGET)
    package = program.build(tmp_path / name, arguments=arguments)
    callers = toolkit.run_callers(tmp_path / name, package)
    assert len(callers) >= len(program.kernels)


@pytest.mark.parametrize("name", CASES)
def test_calls_run_on_the_device(name, tmp_path):
    """The program gives what it gave on the twin; the libraries' products are summed in another order."""
    function, arguments = CASES[name]()
    program = ja.compile(function, *arguments, target=TARGET)
    expected = np.asarray(program(*arguments), np.float32)
    program.build(tmp_path / name)
    assert program.device == "npu:0"
    try:
        actual = np.asarray(program(*arguments), np.float32)
    finally:
        program.unload()
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(np.isfinite(actual), finite)
    np.testing.assert_allclose(actual[finite], expected[finite], atol=0.02 * np.abs(expected[finite]).max())
