"""What needs a Python of its own: import behaviour, 64-bit mode, several devices."""

import pytest
from processes import FOUR_DEVICES, run


@pytest.mark.parametrize(
    "module", ["jascend", "jascend.errors", "jascend.dialect", "jascend.dialect.rules", "jascend.passes"]
)
def test_importing_without_jax(module):
    result = run(f"import sys, {module}; print([x for x in sys.modules if x.split('.')[0] in ('jax', 'jaxlib')])")
    assert result.stdout == "[]\n"


def test_names_are_found_before_they_are_loaded():
    result = run(
        "import sys, jascend\n"
        "assert {'sort', 'apply_top_k_top_p', 'compile', 'jit', 'lowering', 'Program', 'errors'} <= set(dir(jascend))\n"
        "assert 'jax' not in sys.modules\n"
        "assert jascend.errors.ParamInvalid.code == 161002 and 'jax' not in sys.modules\n"
        "assert callable(jascend.sort) and 'jax' in sys.modules\n"
        "from jascend import apply_top_k_top_p\n"
        "try: jascend.nothing\n"
        "except AttributeError as error: print(error)\n"
    )
    assert result.stdout == "module 'jascend' has no attribute 'nothing'\n"


def test_first_use_prints_nothing():
    result = run(
        "import jax, jascend as ja, jax.numpy as jnp\n"
        "ja.sort(jnp.ones(3))\n"
        "assert jax.devices()[0].platform == 'cpu'\n"
    )
    assert result.stdout == result.stderr == ""


def test_with_64_bit_types():
    run(
        """
import numpy as np, jax, jax.numpy as jnp, pytest, jascend as ja
assert jax.config.jax_enable_x64
x = np.random.default_rng(0).normal(size=(3, 2000)).astype(np.float32)
p, k = np.full(3, .8, np.float32), np.array([0, 9, 500], np.int32)
values, indices = ja.sort(x)
assert (values.dtype, indices.dtype) == (np.float32, np.int32)
order = np.argsort(x, kind="stable")
np.testing.assert_array_equal(indices, order)
out = np.asarray(ja.apply_top_k_top_p(x, p, k))
assert out.dtype == np.float32
np.testing.assert_array_equal(ja.apply_top_k_top_p_with_sorted(values, indices, p, k), out)
np.testing.assert_array_equal(ja.apply_top_k_top_p(x, 0.8, k), out)
kth = np.sort(x[1])[-9]
assert (np.isfinite(out[1]) <= (x[1] >= kth)).all() and 0 < np.isfinite(out[1]).sum() <= 9
assert np.isfinite(out[0]).sum() > 500 > np.isfinite(out[1]).sum()
with pytest.raises(ja.errors.ParamInvalid, match="k must be int32, but is int64"):
    ja.apply_top_k_top_p(x, p, k.astype(np.int64))
with pytest.raises(ja.errors.ParamInvalid, match="logits must be float32 or float16 or bfloat16, but is float64"):
    ja.apply_top_k_top_p(x.astype(np.float64), p, k)
text = jax.jit(ja.apply_top_k_top_p).trace(x, p, k).lower(lowering_platforms=("ascend",)).as_text()
assert "tensor<3xi32>) -> tensor<3x2000xf32>" in text
""",
        JAX_ENABLE_X64="1",
    )


def test_batches_over_several_devices_stay_local():
    run(
        """
import numpy as np, jax, jax.numpy as jnp, jascend as ja, re
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
mesh = Mesh(np.array(jax.devices()), ("batch",))
assert mesh.size == 4
x = np.random.default_rng(0).normal(size=(8, 6500)).astype(np.float32)
p, k = np.full(8, .8, np.float32), np.full(8, 50, np.int32)
put = lambda *spec: lambda a: jax.device_put(a, NamedSharding(mesh, P(*spec)))
by_row = put("batch", None)(x), put("batch")(p), put("batch")(k)
from_sorted = lambda x, p, k: ja.apply_top_k_top_p_with_sorted(*ja.sort(x), p, k)
expected = np.asarray(ja.apply_top_k_top_p(x, p, k))
for form in (ja.apply_top_k_top_p, from_sorted):
    compiled = jax.jit(form).lower(*by_row).compile()
    assert not re.search("all-gather|all-to-all|collective-permute", compiled.as_text())
    # Devices agree on which branch to take: a bit, never a row.
    assert not [line for line in compiled.as_text().splitlines() if "all-reduce(" in line and "6500" in line]
    np.testing.assert_array_equal(compiled(*by_row), expected)
    mapped = jax.shard_map(form, mesh=mesh, in_specs=(P("batch"),) * 3, out_specs=P("batch"))
    np.testing.assert_array_equal(mapped(x, p, k), expected)
by_column = put(None, "batch")(x), p, k
np.testing.assert_array_equal(jax.jit(ja.apply_top_k_top_p)(*by_column), expected)
""",
        **FOUR_DEVICES,
    )
