"""The host side of an operator project: definition, tiling and inference, compiled and run against stand-in headers."""

import jax
import jax.numpy as jnp
import numpy as np
import op_host
import pytest
from jascend.backends.ascend.codegen import op_host as emitter
from jascend.backends.ascend.codegen import tiling
from jascend.backends.ascend.project import build_for_twin
from jascend.backends.ascend.signature import Codes, Signature, Tensor, argument_names
from jascend.dialect import ASCEND, rules
from jascend.passes.lower_to_tile import lowering_of
from op_host import FAILED, PARAM_INVALID, SUCCESS, SYSTEM_WORKSPACE, Host

import jascend as ja
from jascend.compiler import identifier


def shape(*dims, dtype=np.float32):
    return jax.ShapeDtypeStruct(dims, dtype)


def filtered(logits, temperature, p, k):
    return ja.apply_top_k_top_p(logits / temperature[:, None], p, k)


def gated(x, bias, additional_bias, mask):
    return ja.moe_gating_top_k(
        x, 4, bias=bias, additional_bias=additional_bias, additional_token_mask=mask, norm_type=1
    )


def hashed(x, ids, table):
    return ja.moe_gating_top_k(x, 4, input_ids=ids, tid2eid=table, norm_type=1)


def norm(x, weight):
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True)) * weight


def residual(x, r, weight):
    return x > r, norm(jnp.where(x > r, x, r), weight), x + r, jnp.exp(x + r)


def drawn(x, keys):
    return x + jax.vmap(lambda key: jax.random.gumbel(key, x.shape[1:]))(keys)


def picked(logits, keys, p):
    return jax.vmap(jax.random.categorical)(keys, ja.apply_top_k_top_p(logits, p))


def mixed(logits, x):
    gate = ja.moe_gating_top_k(logits, 4, norm_type=1)
    return gate.y, ja.moe_init_routing(x, gate.expert_idx, expert_num=64)


def routed(x, expert_idx, scale):
    return ja.moe_init_routing(x, expert_idx, scale, expert_num=16, active_num=100)


def padded(x, expert_idx):
    return ja.moe_init_routing(x, expert_idx, expert_num=16, drop_pad_mode=1, expert_capacity=5)


def mixed_padded(logits, x):
    gate = ja.moe_gating_top_k(logits, 4, norm_type=1)
    return gate.y, padded(x, gate.expert_idx)


(BATCH,) = jax.export.symbolic_shape("batch")
KEYS = jax.ShapeDtypeStruct((BATCH,), jax.eval_shape(jax.random.key, 0).dtype)
NORM = (norm, (shape(BATCH, 96), shape(96)))
LONG_NORM = (norm, (shape(BATCH, 40000), shape(40000)))
PAIR = (residual, (shape(BATCH, 96), shape(BATCH, 96), shape(96)))
SORT = (ja.sort, (shape(BATCH, 100),))
DRAWN = (drawn, (shape(BATCH, 100), KEYS))
PICKED = (picked, (shape(BATCH, 300), KEYS, shape(BATCH)))
MIXED = (mixed, (shape(600, 64), shape(600, 32)))
ROUTED = (routed, (shape(BATCH, 32), shape(BATCH, 4, dtype=np.int32), shape(BATCH)))
PADDED = (padded, (shape(BATCH, 32), shape(BATCH, 7, dtype=np.int32)))
MIXED_ANY = (mixed_padded, (shape(BATCH, 16), shape(BATCH, 32)))
FILTER = (filtered, (shape(4, 300), shape(4), shape(4), shape(4, dtype=np.int32)))
SPLIT = (ja.apply_top_k_top_p, (shape(1, 128256, dtype=jnp.bfloat16), shape(1, dtype=jnp.bfloat16)))
GATE = (gated, (shape(8, 64), shape(64), shape(64), shape(8, dtype=np.bool_)))
HASH = (hashed, (shape(8, 64), shape(8, dtype=np.int32), shape(8, 4, dtype=np.int32)))


@pytest.fixture(scope="module")
def operators(tmp_path_factory):
    """Compiles a function's first kernel, and its host side; each once."""
    made = {}

    def make(case):
        fn, specs = case
        if case not in made:
            directory = tmp_path_factory.mktemp(fn.__name__)
            program = ja.compile(fn, *specs)
            kernel = program.kernels[-1]
            program.write(directory)
            made[case] = kernel, Host(directory / "op_host" / f"{kernel.name}.cpp", directory / "host.so")
        return made[case]

    return make


def shapes(tensors, rows):
    return [tensor.shape(rows) for tensor in tensors]


def test_definition(operators):
    kernel, host = operators(FILTER)
    assert host.definition() == [
        "JascendFilteredApplyTopKTopP",
        "logits 2 0 2 2 1", "temperature 2 0 2 2 1", "p 2 0 2 2 1", "k 2 3 2 2 1",  # name, REQUIRED, dtype, formats
        "out 2 0 2 2 0",
        "ascend910b",
    ]  # fmt: skip


TILED = {
    "filter": FILTER, "split rows": SPLIT, "gating": GATE, "short rows": NORM, "long rows": LONG_NORM, "sort": SORT,
    "pair": PAIR, "draws": DRAWN, "filter and sample": PICKED, "gating and routing": MIXED,
}  # fmt: skip


@pytest.mark.parametrize("case", TILED.values(), ids=TILED)
def test_tiling_is_that_of_python(operators, case):
    kernel, host = operators(case)
    tensors, parts = kernel.signature, kernel.shape.parts
    every = [*range(1, 140), 255, 256, 257, 1023, 4096, 65535, 10**6, 2**31 - 1]
    for cores in [c for c in (1, 2, 7, 16, 20, 40, 47, 48, 64) if c >= parts]:
        for rows in every if tensors.any_rows else [tensors.rows]:
            found = host.tiling(shapes(tensors.inputs, rows), shapes(tensors.outputs, rows), cores)
            assert found == (
                SUCCESS,
                kernel.shape.blocks(rows, cores),
                list(kernel.shape.data(rows, cores).values()),
                kernel.shape.workspace_bytes(rows, cores) + SYSTEM_WORKSPACE,
                int(kernel.cores_wait),
            )


@pytest.mark.parametrize("parts", [1, 3, 16])
@pytest.mark.parametrize("all_cores", [False, True])
def test_tiling_of_any_kernel_is_that_of_python(tmp_path, parts, all_cores):
    """Thousands of launches: groups of cores that do and do not divide, with each kind of scratch memory."""
    layout = tiling.Shape(parts=parts, all_cores=all_cores, uses_rows=all_cores, scratch=(64, 1 << 21, 96))
    made = Signature((Tensor("x", "float32", (rules.Rows(), 8)),), (Tensor("y", "int64", (rules.Rows(),)),), 4)
    (tmp_path / "op_host").mkdir()
    (tmp_path / "op_kernel").mkdir()
    source = tmp_path / "op_host" / "jascend_x.cpp"
    source.write_text(emitter.emit("jascend_x", made, layout, soc="ascend950", cores_wait=parts > 1))
    (tmp_path / "op_kernel" / tiling.file_name("jascend_x")).write_text(layout.header("jascend_x"))
    host = Host(source, tmp_path / "host.so")
    rng = np.random.default_rng(parts)
    for rows in [*range(1, 200), *map(int, rng.integers(1, 2**31, 200))]:
        cores = int(rng.integers(parts, 100))
        found = host.tiling([(rows, 8)], [(rows,)], cores)
        expected = (
            layout.blocks(rows, cores),
            list(layout.data(rows, cores).values()),
            layout.workspace_bytes(rows, cores),
        )
        assert found == (SUCCESS, *expected[:2], expected[2] + SYSTEM_WORKSPACE, int(parts > 1))


def test_tiling_refuses(operators, capfd):
    kernel, host = operators(SPLIT)
    inputs, outputs = kernel.signature.inputs, kernel.signature.outputs
    assert host.tiling(shapes(inputs, 4), shapes(outputs, 4), kernel.shape.parts - 1)[0] == FAILED
    assert host.tiling(shapes(inputs, 2**31), shapes(outputs, 2**31), cores=48)[0] == FAILED
    assert host.tiling(shapes(inputs, -1), shapes(outputs, -1), cores=48)[0] == FAILED
    assert host.tiling(shapes(inputs, 4), shapes(outputs, 4), cores=48, capacity=4)[0] == FAILED
    assert host.tiling(shapes(inputs, 4)[:1], shapes(outputs, 4), cores=48)[0] == FAILED
    assert host.tiling(shapes(inputs, 4), [], cores=48)[0] == FAILED
    assert host.tiling(shapes(inputs, 4), shapes(outputs, 5), cores=48)[0] == PARAM_INVALID
    assert host.tiling(shapes(inputs, 4), [(4, 128255)], cores=48)[0] == FAILED
    assert host.tiling(shapes(inputs, 4), [(4,)], cores=48)[0] == FAILED
    errors = capfd.readouterr().err
    assert "JascendApplyTopKTopPApplyTopKTopP: logits needs more vector cores a row than there are (561002)" in errors
    assert "out has not the rows that follow from the first input with rows (161002)" in errors


def test_no_rows(operators):
    """Rows that there are none of are no error for the filter, as in its rule; gating refuses them."""
    kernel, host = operators(SPLIT)
    inputs, outputs = kernel.signature.inputs, kernel.signature.outputs
    status, blocks, fields, *_ = host.tiling(shapes(inputs, 0), shapes(outputs, 0), cores=48)
    assert status == SUCCESS and fields == [0] * len(fields)
    assert blocks > 0 and blocks % kernel.shape.parts == 0  # a launch of no blocks is an error
    assert host.infer_shapes(shapes(inputs, 0), 1) == (SUCCESS, [(0, 128256)])
    kernel, host = operators(GATE)
    inputs, outputs = kernel.signature.inputs, kernel.signature.outputs
    assert host.tiling(shapes(inputs, 0), shapes(outputs, 0), cores=48)[0] == PARAM_INVALID
    assert host.infer_shapes(shapes(inputs, 0), len(outputs))[0] == PARAM_INVALID


@pytest.mark.parametrize("case", [FILTER, SPLIT, GATE, HASH], ids=["filter", "split rows", "gating", "hash"])
def test_inference(operators, case):
    kernel, host = operators(case)
    inputs, outputs = kernel.signature.inputs, kernel.signature.outputs
    for rows in (1, 5, 4096, -1):
        expected = [tensor.shape(rows) for tensor in outputs]
        assert host.infer_shapes(shapes(inputs, rows), len(outputs)) == (SUCCESS, expected)
    unknown = [(-2,)] * len(inputs)
    assert host.infer_shapes(unknown, len(outputs)) == (SUCCESS, [tensor.shape(-1) for tensor in outputs])
    dtypes = [tensor.dtype for tensor in inputs]
    assert host.infer_dtypes(dtypes, len(outputs)) == (SUCCESS, [op_host.DTYPES[tensor.dtype] for tensor in outputs])


def test_what_leads(operators):
    """The table of hash routing has as many rows as there are tokens here, and still is not one of them."""
    leads = {tensor.name: tensor.leads for tensor in operators(HASH)[0].signature.inputs}
    assert leads == {"x": True, "ids": True, "table": False}
    leads = {tensor.name: tensor.leads for tensor in operators(GATE)[0].signature.inputs}
    assert leads == {"x": True, "bias": False, "additionalBias": False, "mask": True}
    leads = {tensor.name: tensor.leads for tensor in operators(FILTER)[0].signature.inputs}
    assert leads == {"logits": True, "temperature": True, "p": True, "k": True}


STATUS = {None: SUCCESS, 161002: PARAM_INVALID, 561002: FAILED}


def status_of(fn, specs):
    """What the operator's own rule says about arguments, as a ge::graphStatus."""
    try:
        jax.eval_shape(fn, *specs)
    except ja.errors.OperatorError as error:
        return STATUS[error.code]
    return SUCCESS


def with_shape(specs, position, dims):
    changed = list(specs)
    changed[position] = shape(*dims, dtype=specs[position].dtype)
    return changed


@pytest.mark.parametrize("case", [SPLIT, GATE, HASH], ids=["filter", "gating", "hash"])
def test_wrong_arguments_are_the_errors_of_the_rule(operators, case):
    kernel, host = operators(case)
    fn, specs = case
    checked = 0
    for position, spec in enumerate(specs):
        for dims in [(*spec.shape, 2), spec.shape[:-1], (spec.shape[0] + 1, *spec.shape[1:])]:
            changed = with_shape(specs, position, dims)
            expected = status_of(fn, changed)
            if expected == SUCCESS:  # to the rule; the kernel has its sizes
                continue
            found, _ = host.infer_shapes([s.shape for s in changed], len(kernel.signature.outputs))
            assert found == expected, (kernel.signature.inputs[position].name, dims)
            checked += 1
    assert checked >= 4
    dtypes = [tensor.dtype for tensor in kernel.signature.inputs]
    for position in range(len(dtypes)):
        wrong = [*dtypes[:position], "int16", *dtypes[position + 1 :]]
        assert host.infer_dtypes(wrong, len(kernel.signature.outputs))[0] == PARAM_INVALID


def test_sizes_that_the_kernel_was_not_compiled_for(operators):
    kernel, host = operators(FILTER)
    assert host.infer_shapes([(4, 301), (4,), (4,), (4,)], 1)[0] == FAILED
    assert host.infer_shapes([(4, 300), (5,), (4,), (4,)], 1)[0] == PARAM_INVALID


def test_a_kernel_for_fixed_shapes(tmp_path):
    """Without a parameter that leads, only the compiled shapes are taken; scalars come with or without a dimension."""
    layout = tiling.Shape()
    inputs = (Tensor("x", "float32", (4, 8)), Tensor("s", "float16", (), Codes(rank=561002)))
    made = Signature(inputs, (Tensor("y", "int4", (32,)),), 4)
    (tmp_path / "op_host").mkdir()
    (tmp_path / "op_kernel").mkdir()
    source = tmp_path / "op_host" / "jascend_x.cpp"
    source.write_text(emitter.emit("jascend_x", made, layout, soc="ascend950", cores_wait=False))
    (tmp_path / "op_kernel" / tiling.file_name("jascend_x")).write_text(layout.header("jascend_x"))
    host = Host(source, tmp_path / "host.so")
    assert host.tiling([(4, 8), ()], [(32,)], 40)[:3] == (SUCCESS, 4, [1, 0])
    assert host.infer_shapes([(4, 8), (1,)], 1) == (SUCCESS, [(32,)])
    assert host.infer_shapes([(5, 8), ()], 1)[0] == FAILED
    assert host.infer_shapes([(4, 8), (2,)], 1)[0] == FAILED


@pytest.mark.parametrize(
    "name",
    [
        "f",
        "a_b_cd",
        "TopK2",
        "x2y",
        "HTTPServer",
        "_",
        "λ",
        "int",
        "a" * 500,
        "__a__b__",
        "9",
        "2d_3d",
        "A1B2",
        "top_2_k",
    ],
)
def test_operator_types_lead_back_to_the_kernel(name):
    """CANN derives the kernel's name from the operator's type."""
    kernel = f"jascend_{identifier(name)}_apply_top_k_top_p"
    assert emitter.entry_name(emitter.operator_type(kernel)) == kernel
    assert len(kernel) < 128
    assert emitter.entry_name(emitter.operator_type(f"{kernel}2")) == f"{kernel}2"


def test_entry_names_of_the_documented_examples():
    examples = {"AddCustom": "add_custom", "Conv2DCustom": "conv2_d_custom", "GatherV2Custom": "gather_v2_custom",
                "AbcAAc": "abc_a_ac", "GRUCell": "gru_cell", "TopKCustom": "top_k_custom"}  # fmt: skip
    assert {name: emitter.entry_name(name) for name in examples} == examples


def test_argument_names_that_cann_has_itself_or_that_capitals_make_equal():
    assert argument_names(["x", "X", "stream", "Executor", "x2"]) == [
        "x",
        "X2",
        "streamTensor",
        "ExecutorTensor",
        "x22",
    ]


def test_every_operator_with_a_kernel_has_a_rule_and_known_operands():
    definitions = [definition for name, definition in ASCEND.by_name.items() if lowering_of(name) is not None]
    assert len(definitions) >= 8
    for definition in definitions:
        name = f"ascend.{definition.name}"
        assert callable(definition.verify) and (definition.rule or hasattr(rules, definition.name)), name
        row_wise = {operand.name for operand in definition.operands if operand.by_row}
        # Where one row goes depends on the others.
        assert row_wise or name in ("ascend.moe_init_routing", "ascend.moe_gating_routing")


def test_what_serves_one_number_of_tokens(operators):
    """A kernel that was compiled for it; others are refused, with the number in place."""
    kernel, host = operators(MIXED)
    inputs, outputs = kernel.signature.inputs, kernel.signature.outputs
    assert not kernel.signature.any_rows
    assert host.infer_shapes([(601, 64), (601, 32)], len(outputs))[0] == FAILED
    assert host.tiling([(601, 64), (601, 32)], shapes(outputs, 600), cores=48)[0] == FAILED
    assert host.tiling(shapes(inputs, 600), shapes(outputs, 600), cores=48)[0] == SUCCESS


#: Which numbers of tokens are too few, with the error: none, fewer than an expert has rows; and the most, whose pairs an int32
#: counts.
TOKENS = {
    "routing": (ROUTED, {}, (2**31 - 1) // 4),
    "padded routing": (PADDED, {5: ja.errors.TilingError}, (2**31 - 1) // 7),
    "gating and routing": (MIXED_ANY, {1: ja.errors.ParamInvalid, 5: ja.errors.TilingError}, (2**31 - 1) // 4),
}


@pytest.mark.parametrize(
    ("case", "too_few", "most"),
    [pytest.param(*case, id=name, marks=[pytest.mark.long] * (case[0] is MIXED_ANY)) for name, case in TOKENS.items()],
)
def test_any_number_of_tokens(operators, capfd, case, too_few, most):
    """Thousands of launches: tiling, the sizes of what is limited, and errors are those of Python, word for word."""
    kernel, host = operators(case)
    made, least = kernel.signature, max(too_few, default=0)
    assert made.most.rows == most and kernel.cores_wait
    every = [*range(140), 251, 255, 256, 257, 1021, 1023, 1024, 4096, 65521, 10**6, most - 1, most, most + 1, 2**31 - 1]
    every += map(int, np.random.default_rng(most).integers(1, most, 60))
    for cores in (1, 2, 7, 20, 40, 47, 48, 64):
        for rows in every:
            inputs, outputs = shapes(made.inputs, rows), shapes(made.outputs, rows)
            found = host.tiling(inputs, outputs, cores)
            if least <= rows <= most:
                assert found == (
                    SUCCESS, kernel.shape.blocks(rows, cores) or cores, list(kernel.shape.data(rows, cores).values()),
                    kernel.shape.workspace_bytes(rows, cores) + SYSTEM_WORKSPACE
                    + kernel.shape.scratch[1] * (0 if rows else cores), 1,
                )  # fmt: skip
                continue
            expected = next((error for bound, error in too_few.items() if rows < bound), ja.errors.TilingError)
            with pytest.raises(expected) as error:
                made.check_rows("x", rows)
            assert STATUS[error.value.code] == found[0] == host.infer_shapes(inputs, len(outputs))[0]
            said = capfd.readouterr().err.splitlines()
            problem = str(error.value).removeprefix("x: ").removesuffix(f", but has {rows}")
            assert len(said) == 2 and all(f"{problem} ({error.value.code})" in line for line in said)
    for rows in (least, least + 3, 25, 26, most, -1):
        expected = [tensor.shape(rows) if rows >= 0 else unknown(tensor) for tensor in made.outputs]
        assert host.infer_shapes(shapes(made.inputs, rows), len(made.outputs)) == (SUCCESS, expected)


def unknown(tensor):
    return tuple(dim if isinstance(dim, int) else -1 for dim in tensor.dims)


def test_limits_of_rows(operators):
    kernel, host = operators(ROUTED)
    expanded, index, counts, scales = (tensor.shape for tensor in kernel.signature.outputs)
    for rows, limited in ((0, 0), (1, 4), (24, 96), (25, 100), (26, 100), (10**6, 100)):
        assert expanded(rows) == (limited, 32) and scales(rows) == (limited,)
        assert index(rows) == (4 * rows,) and counts(rows) == (16,)
    given = shapes(kernel.signature.inputs, 30)
    assert host.tiling(given, [expanded(31), index(30), counts(30), scales(30)], 48)[0] == SUCCESS  # the limit is the same
    assert host.tiling(given, [expanded(30), index(31), counts(30), scales(30)], 48)[0] == PARAM_INVALID
    assert host.tiling([*given[:2], (31,)], shapes(kernel.signature.outputs, 30), 48)[0] == FAILED


def test_one_binary_serves_any_number_of_rows(operators):
    """A kernel that was compiled for 4 rows, run on the twin with other numbers of rows and of cores."""
    kernel, _ = operators(FILTER)
    library = build_for_twin(kernel, "ascend910b")
    rng = np.random.default_rng(2)
    for rows, cores in [(1, 4), (2, 3), (7, 3), (11, 4)]:
        logits = rng.normal(size=(rows, 300)).astype(np.float32)
        temperature, p = np.ones(rows, np.float32), rng.uniform(0.2, 1, rows).astype(np.float32)
        k = rng.integers(1, 300, rows).astype(np.int32)
        out = np.zeros_like(logits)
        library.launch(
            kernel.name, [logits, temperature, p, k, out], tiling=tiling.pack(kernel.shape.data(rows, cores)),
            blocks=kernel.shape.blocks(rows, cores), workspace_bytes=kernel.shape.workspace_bytes(rows, cores),
        )  # fmt: skip
        np.testing.assert_array_equal(out, ja.apply_top_k_top_p(logits, p, k))
