"""A fusion happens at a site where the model says that it pays; it can be forced, and forbidden."""

import jax
import numpy as np
import pytest
from jascend.dialect import make_context
from jascend.errors import Unsupported
from jascend.passes import cost
from jascend.passes.diagnostics import Remarks
from jascend.passes.pipeline import run_pipeline
from mlir import ir

import jascend as ja

COSTLY = cost.Figures(once=1000.0)

# What does not pay by these figures, in graphs of two sites: a short one, and one that is split.
SAMPLERS = """
func.func @main(%x: tensor<4x500xf32>, %w: tensor<4x3000xf32>, %k: tensor<4xi32>, %q: tensor<4x500xf32>,
    %r: tensor<4x3000xf32>) -> (tensor<4xi32>, tensor<4xi32>) {
  %off = arith.constant dense<0> : tensor<4xi32>
  %one = arith.constant dense<1.0> : tensor<4xf32>
  %0 = "ascend.apply_top_k_top_p"(%x, %k) {operandSegmentSizes = array<i32: 1, 0, 1>} : (tensor<4x500xf32>, tensor<4xi32>) -> tensor<4x500xf32>
  %1 = "ascend.apply_top_k_top_p"(%w, %k) {operandSegmentSizes = array<i32: 1, 0, 1>} : (tensor<4x3000xf32>, tensor<4xi32>) -> tensor<4x3000xf32>
  %2 = "ascend.top_k_top_p_sample"(%0, %off, %one, %q) {DRAW} : (tensor<4x500xf32>, tensor<4xi32>, tensor<4xf32>, tensor<4x500xf32>) -> tensor<4xi32>
  %3 = "ascend.top_k_top_p_sample"(%1, %off, %one, %r) {DRAW} : (tensor<4x3000xf32>, tensor<4xi32>, tensor<4xf32>, tensor<4x3000xf32>) -> tensor<4xi32>
  return %2, %3 : tensor<4xi32>, tensor<4xi32>
}
""".replace(
    "DRAW",
    "eps = 0.0 : f32, input_is_logits = true, is_need_logits = false, is_need_sample_result = false, ks_max = 1024 : i64, "
    "top_k_guess = 32 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0>",
)
ROWS = """
#rows = affine_map<(i, j) -> (i, j)>
func.func @main(%x: tensor<4x500xf32>, %w: tensor<4x3000xf32>, %k: tensor<4xi32>) -> (tensor<4x500xf32>, tensor<4x3000xf32>) {
  %a = tensor.empty() : tensor<4x500xf32>
  %b = tensor.empty() : tensor<4x3000xf32>
  %0 = linalg.generic {indexing_maps = [#rows, #rows], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x500xf32>) outs(%a : tensor<4x500xf32>) {
  ^bb0(%in: f32, %out: f32):
    %y = arith.addf %in, %in : f32
    linalg.yield %y : f32
  } -> tensor<4x500xf32>
  %1 = linalg.generic {indexing_maps = [#rows, #rows], iterator_types = ["parallel", "parallel"]} ins(%w : tensor<4x3000xf32>) outs(%b : tensor<4x3000xf32>) {
  ^bb0(%in: f32, %out: f32):
    %y = arith.addf %in, %in : f32
    linalg.yield %y : f32
  } -> tensor<4x3000xf32>
  %2 = "ascend.row_wise"(%0) : (tensor<4x500xf32>) -> tensor<4x500xf32>
  %3 = "ascend.row_wise"(%1) : (tensor<4x3000xf32>) -> tensor<4x3000xf32>
  %4 = "ascend.apply_top_k_top_p"(%2, %k) {operandSegmentSizes = array<i32: 1, 0, 1>} : (tensor<4x500xf32>, tensor<4xi32>) -> tensor<4x500xf32>
  %5 = "ascend.apply_top_k_top_p"(%3, %k) {operandSegmentSizes = array<i32: 1, 0, 1>} : (tensor<4x3000xf32>, tensor<4xi32>) -> tensor<4x3000xf32>
  return %4, %5 : tensor<4x500xf32>, tensor<4x3000xf32>
}
"""
EXPERTS = """
func.func @main(%l: tensor<6x16xf32>, %x: tensor<6x64xf32>) -> (tensor<6x2xf32>, tensor<12x64xf32>, tensor<12xi32>, tensor<6x2xf32>, tensor<12x64xi8>, tensor<12xi32>, tensor<12xf32>) {
  %g:2 = "ascend.moe_gating_top_k"(%l) {GATING} : (tensor<6x16xf32>) -> (tensor<6x2xf32>, tensor<6x2xi32>)
  %h:2 = "ascend.moe_gating_top_k"(%l) {GATING} : (tensor<6x16xf32>) -> (tensor<6x2xf32>, tensor<6x2xi32>)
  %r:2 = "ascend.moe_init_routing"(%x, %g#1) {ROUTING, quant_mode = -1 : i64, resultSegmentSizes = array<i32: 1, 1, 0, 0>} : (tensor<6x64xf32>, tensor<6x2xi32>) -> (tensor<12x64xf32>, tensor<12xi32>)
  %s:3 = "ascend.moe_init_routing"(%x, %h#1) {ROUTING, quant_mode = 1 : i64, resultSegmentSizes = array<i32: 1, 1, 0, 1>} : (tensor<6x64xf32>, tensor<6x2xi32>) -> (tensor<12x64xi8>, tensor<12xi32>, tensor<12xf32>)
  return %g#0, %r#0, %r#1, %h#0, %s#0, %s#1, %s#2 : tensor<6x2xf32>, tensor<12x64xf32>, tensor<12xi32>, tensor<6x2xf32>, tensor<12x64xi8>, tensor<12xi32>, tensor<12xf32>
}
""".replace(
    "GATING",
    "eps = 0.0 : f32, group_count = 1 : i64, group_select_mode = 0 : i64, k = 2 : i64, k_group = 1 : i64, norm_type = 1 : i64, "
    "out_flag = false, renorm = 0 : i64, routed_scaling_factor = 1.0 : f32, "
    "operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 0>",
).replace(
    "ROUTING",
    "active_expert_range = array<i32>, active_num = -1 : i64, drop_pad_mode = 0 : i64, expert_capacity = -1 : i64, "
    "expert_num = 16 : i64, expert_tokens_num_flag = false, expert_tokens_num_type = 1 : i64, row_idx_type = 0 : i64, "
    "operandSegmentSizes = array<i32: 1, 1, 0, 0>",
)


def fused(text, name, **options):
    """The graph's operators after a fusion and what it said, by kind."""
    words = " ".join(f"{option}={value}" for option, value in options.items())
    remarks = Remarks()
    with make_context():
        after = run_pipeline(ir.Module.parse(text), f"{name}{{{words}}},remove-dead-ops", remarks=remarks)
        function = after.body.operations[0]
        names = [view.operation.name for view in function.body.blocks[0] if view.operation.name.startswith("ascend.")]
    said = [(remark.kind, remark.text) for remark in remarks.records if remark.pass_name == name]
    return sorted(each.partition(".")[2] for each in names), said


@pytest.mark.parametrize(
    ("name", "text", "costly", "apart", "one"),
    [
        ("fuse-sampling", SAMPLERS, "filter_sample split",
         ["apply_top_k_top_p", "filter_sample", "top_k_top_p_sample"], ["filter_sample"] * 2),
        ("fuse-elementwise", ROWS, "apply_top_k_top_p split", ["apply_top_k_top_p"] * 2 + ["row_wise"], ["apply_top_k_top_p"] * 2),
        ("fuse-moe", EXPERTS, "moe_gating_routing quantized",
         ["moe_gating_routing", "moe_gating_top_k", "moe_init_routing"], ["moe_gating_routing"] * 2),
    ],
)  # fmt: skip
def test_each_site_is_decided_by_itself(monkeypatch, name, text, costly, apart, one):
    figures = {costly: cost.Figures(once=1000.0, computed=1e6)}
    if name == "fuse-elementwise":  # which does not change what the filter is: only what it computes
        figures = {costly: cost.Figures(computed=1e6)}
    figures |= {f"{kind} split": cost.Figures() for kind in ("apply_top_k_top_p", "top_k_top_p_sample") if f"{kind} split" != costly}
    monkeypatch.setattr(cost, "figures_of", lambda arch: figures)
    found, said = fused(text, name, target="ascend910b")
    assert found == sorted(apart)
    assert [kind for kind, _ in said] == ["passed", "analysis", "missed"]
    assert said[-1][1].startswith("modelled ") and said[-1][1].endswith(" us without: it does not pay, but can be forced")
    found, said = fused(text, name, target="ascend910b", force="true")
    assert found == one and sum("it is forced" in text for _, text in said) == 1
    assert fused(text, name)[0] == one  # without a product there is nothing to decide by


def sampler(logits, k, q):
    kept = ja.apply_top_k_top_p(logits * 2, None, k)
    return ja.top_k_top_p_sample(kept, 5000, 1.0, q, eps=0.0).logits_select_idx


def test_a_program_is_fused_where_it_pays_unless_that_is_forbidden(monkeypatch, tmp_path):
    monkeypatch.setenv("JASCEND_CACHE_DIR", str(tmp_path))
    specs = [jax.ShapeDtypeStruct(*each) for each in (((4, 300), np.float32), ((4,), np.int32), ((4, 300), np.float32))]
    program = ja.compile(sampler, *specs)
    assert len(program.kernels) == 1
    for name in ("fuse-sampling", "fuse-elementwise"):
        assert f"{name}: analysis: modelled " in program.explain()
    apart = ja.compile(sampler, *specs, forbid=("fuse-sampling", "fuse-elementwise"))
    names = [kernel.name.removeprefix("jascend_sampler_") for kernel in apart.kernels]
    assert names == ["row_wise", "apply_top_k_top_p", "top_k_top_p_sample"] and "modelled" not in apart.explain()
    monkeypatch.setattr(cost, "figures_of", lambda arch: {"filter_sample short": COSTLY})
    monkeypatch.setenv("JASCEND_CACHE_DIR", str(tmp_path / "other"))
    assert len(ja.compile(sampler, *specs).kernels) == 2
    assert len(ja.compile(sampler, *specs, force="fuse-sampling").kernels) == 1


def test_names_that_cannot_be_forced():
    specs = [jax.ShapeDtypeStruct((4, 300), np.float32)]
    with pytest.raises(Unsupported, match="compile: force must name passes among .*, but has 'fuse-all'"):
        ja.compile(ja.apply_top_k_top_p, *specs, force="fuse-all")
    with pytest.raises(Unsupported, match="force and forbid exclude each other, but both have 'fuse-sampling'"):
        ja.compile(ja.apply_top_k_top_p, *specs, force="fuse-sampling", forbid="fuse-sampling")
