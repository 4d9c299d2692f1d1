"""`with ja.lowering("twin"):` generated kernels inside `jax.jit`, in place of the fallback."""

import dataclasses
import threading

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest

import jascend as ja
from jascend.backends.ascend import project, twin

CALL = "@jascend_twin_launch"


def graph(logits, p, k):
    """The filter in the middle of a graph that XLA computes."""
    scaled = logits * 2.0
    kept = ja.apply_top_k_top_p(scaled, p, k)
    return jnp.argmax(kept, axis=-1), jnp.exp(kept - jnp.max(kept, axis=-1, keepdims=True))


def arguments(rows=4, vocabulary=300):
    rng = np.random.default_rng(0)
    logits = rng.normal(0, 3, (rows, vocabulary)).astype(np.float32)
    return logits, np.linspace(0.5, 1, rows, dtype=np.float32), np.arange(rows, dtype=np.int32) * 5


def text(function, *args):
    return jax.jit(function).lower(*args).as_text()


def assert_same(actual, expected):
    jax.tree.map(np.testing.assert_array_equal, actual, expected)


def test_a_graph_gives_the_same_bits():
    expected = jax.jit(graph)(*arguments())
    with ja.lowering("twin"):
        assert text(graph, *arguments()).count(CALL) == 1
        assert_same(jax.jit(graph)(*arguments()), expected)


def test_program_and_context_agree_to_the_bit():
    args = arguments()
    program = ja.compile(ja.apply_top_k_top_p, *args)
    with ja.lowering("twin"):
        np.testing.assert_array_equal(jax.jit(ja.apply_top_k_top_p)(*args), program(*args))


def test_one_jitted_function_inside_and_outside(monkeypatch):
    """What was compiled on one side of the context is not used on the other."""
    runs = []
    monkeypatch.setattr(jax.ffi, "ffi_call", lambda *a, real=jax.ffi.ffi_call: runs.append(1) or real(*a))
    jitted = jax.jit(lambda *args: graph(*args))  # a function of its own: JAX keeps what it compiled of `graph`
    outside = jitted(*arguments())
    assert not runs
    with ja.lowering("twin"):
        assert_same(jitted(*arguments()), outside)
        assert len(runs) == 1
        jitted(*arguments())
        ja.compile(ja.apply_top_k_top_p, *arguments())  # lowers for another platform: not concerned
        assert len(runs) == 1
        assert CALL in jitted.lower(*arguments()).as_text()
    assert CALL not in jitted.lower(*arguments()).as_text()
    jitted(*arguments())


def test_the_context_ends_with_its_block_and_nests():
    with pytest.raises(ZeroDivisionError), ja.lowering("twin"):
        raise ZeroDivisionError
    assert CALL not in text(graph, *arguments())
    with ja.lowering("twin", target="ascend950"):
        with ja.lowering("twin"):
            assert "arch = 2201" in text(graph, *arguments())
        assert "arch = 3510" in text(graph, *arguments())


def test_it_is_a_decorator_too():
    @ja.lowering("twin")
    def lower():
        return text(graph, *arguments())

    assert CALL in lower()
    assert CALL not in text(graph, *arguments())


def test_other_threads_are_not_concerned():
    seen = []
    with ja.lowering("twin"):
        thread = threading.Thread(target=lambda: seen.append(text(graph, *arguments())))
        thread.start()
        thread.join()
    assert len(seen) == 1 and CALL not in seen[0]


def test_another_target():
    expected = jax.jit(graph)(*arguments())
    with ja.lowering("twin", target="ascend950"):
        assert_same(jax.jit(graph)(*arguments()), expected)


def test_vmap_folds_into_rows():
    logits, p, k = arguments(rows=6)
    args = logits.reshape(2, 3, 300), p.reshape(2, 3), k.reshape(2, 3)
    expected = jax.jit(graph)(logits, p, k)
    with ja.lowering("twin"):
        batched = jax.vmap(graph)
        assert text(batched, *args).count(CALL) == 1
        got = jax.jit(batched)(*args)
    assert_same(jax.tree.map(lambda x: x.reshape(6, *x.shape[2:]), got), expected)


def test_inside_a_loop():
    def loop(logits, p, k):
        return jax.lax.scan(lambda x, _: (graph(x, p, k)[1], None), logits, None, length=3)[0]

    expected = jax.jit(loop)(*arguments())
    with ja.lowering("twin"):
        np.testing.assert_array_equal(jax.jit(loop)(*arguments()), expected)


def test_eager_calls():
    expected = ja.apply_top_k_top_p(*arguments())
    with ja.lowering("twin"):
        np.testing.assert_array_equal(ja.apply_top_k_top_p(*arguments()), expected)


def test_no_rows():
    args = arguments(rows=0)
    with ja.lowering("twin"):
        assert CALL not in text(ja.apply_top_k_top_p, *args)
        out = jax.jit(ja.apply_top_k_top_p)(*args)
    assert (out.shape, out.dtype) == ((0, 300), np.float32)


def test_lowerings_for_other_platforms_are_as_they_were():
    traced = jax.jit(graph).trace(*arguments())
    for platforms in (("tpu",), ("cpu", "tpu")):
        outside = traced.lower(lowering_platforms=platforms).as_text()
        with ja.lowering("twin"):
            assert jax.jit(graph).trace(*arguments()).lower(lowering_platforms=platforms).as_text() == outside


def test_findings_are_raised(monkeypatch):
    built = []

    def without_a_wait(kernel, target):
        lines = kernel.source.splitlines()
        del lines[next(i for i, line in enumerate(lines) if "WaitFlag<HardEvent::MTE2_V>" in line)]
        built.append((kernel, build(dataclasses.replace(kernel, source="\n".join(lines) + "\n"), target)))
        return built[0][1]

    build = project.build_for_twin
    monkeypatch.setattr(project, "build_for_twin", without_a_wait)
    args = arguments(rows=3, vocabulary=64)
    with ja.lowering("twin"), pytest.raises(jax.errors.JaxRuntimeError) as caught:
        jax.block_until_ready(jax.jit(lambda *args: ja.apply_top_k_top_p(*args))(*args))
    message = str(caught.value)
    assert "the twin's checker rejects kernel jascend_operator_apply_top_k_top_p:\n" in message
    assert "missing-sync: " in message

    # The text is that of the findings in Python.
    kernel, library = built[0]
    run = library.launch(kernel.name, [*args, np.empty_like(args[0])], tiling=kernel.tiling_bytes, blocks=kernel.blocks)
    assert len(run.findings) > 1 and max(finding.count for finding in run.findings) > 1
    assert message.partition("\n")[2].rstrip() == run.describe()


def test_without_a_compiler(monkeypatch):
    monkeypatch.setenv("CXX", "there-is-no-such-compiler")
    args = arguments(vocabulary=31)  # no test builds this one
    with ja.lowering("twin"), pytest.raises(twin.CompilerNotFound, match="apt-get install g"):
        jax.jit(graph).lower(*args)
    jax.jit(graph)(*args)


def test_operators_without_a_kernel_are_named():
    rows = jax.ShapeDtypeStruct((1, (1 << 20) + 1), np.float32)
    in_order = rows, jax.ShapeDtypeStruct(rows.shape, np.int32), jax.ShapeDtypeStruct((1,), np.float32)
    with ja.lowering("twin"), pytest.raises(ja.errors.Unsupported) as caught:
        jax.jit(lambda x, i, p: ja.apply_top_k_top_p_with_sorted(x, i, p) + 1).lower(*in_order)
    assert caught.value.operator == "apply_top_k_top_p_with_sorted"
    assert str(caught.value).startswith(
        "apply_top_k_top_p_with_sorted: no kernel can be generated for it on ascend910b, as ja.lowering('twin') asks"
    )
    assert "ja.apply_top_k_top_p_with_sorted(x, i, p) + 1" in str(caught.value)  # the line


def test_symbolic_shapes_are_refused():
    (batch,) = jax.export.symbolic_shape("b")
    logits = jax.ShapeDtypeStruct((batch, 300), np.float32)
    k = jax.ShapeDtypeStruct((batch,), np.int32)
    function = jax.jit(lambda logits, k: ja.apply_top_k_top_p(logits, k=k))
    with ja.lowering("twin"), pytest.raises(ja.errors.Unsupported) as caught:
        jax.export.export(function)(logits, k)
    assert str(caught.value).startswith("apply_top_k_top_p: kernels are generated for static shapes")
    assert "float32[b, 300]" in str(caught.value)


@pytest.mark.parametrize(
    ("where", "options", "message"),
    [
        ("npu", {}, "lowering: where must be 'twin', but is 'npu'"),
        ("twin", {"target": "ascend310p"}, "lowering: target must be one of ascend910b, .*, but is 'ascend310p'"),
    ],
)
def test_unknown_places_and_targets(where, options, message):
    with pytest.raises(ja.errors.Unsupported, match=message), ja.lowering(where, **options):
        pass
