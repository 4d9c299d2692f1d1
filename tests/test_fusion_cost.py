"""A fusion happens when the model says that it pays; it can be forced, and forbidden."""

import jax
import numpy as np
import pytest
from jascend.errors import Unsupported
from jascend.passes import cost

import jascend as ja

B, V = 4, 3000
SPECS = [jax.ShapeDtypeStruct(*each) for each in (
    ((B, V), np.float32), ((B,), np.float32), ((B,), np.int32), ((B, V), np.float32)
)]  # fmt: skip


def sampler(logits, p, k, q):
    kept = ja.apply_top_k_top_p(logits, p, k)
    return ja.top_k_top_p_sample(kept, 5000, 1.0, q, eps=0.0).logits_select_idx


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("JASCEND_CACHE_DIR", str(tmp_path))


def test_what_pays_is_done():
    program = ja.compile(sampler, *SPECS)
    assert len(program.kernels) == 1
    assert "fuse-sampling: analysis: modelled " in program.explain() and " us without" in program.explain()
    assert len(ja.compile(sampler, *SPECS, forbid="fuse-sampling").kernels) == 2


def test_what_does_not_pay_can_be_forced(monkeypatch):
    monkeypatch.setitem(cost._WORK, "ascend.filter_sample", cost._Work(reads=1000))
    program = ja.compile(sampler, *SPECS)
    assert len(program.kernels) == 2
    assert "fuse-sampling: missed: modelled " in program.explain() and "it does not pay, but can be forced" in program.explain()
    forced = ja.compile(sampler, *SPECS, force="fuse-sampling")
    assert len(forced.kernels) == 1 and "it is forced" in forced.explain()


def test_names_that_cannot_be_forced():
    with pytest.raises(Unsupported, match="compile: force must name passes among .*, but has 'fuse-all'"):
        ja.compile(sampler, *SPECS, force="fuse-all")
    with pytest.raises(Unsupported, match="force and forbid exclude each other, but both have 'fuse-sampling'"):
        ja.compile(sampler, *SPECS, force="fuse-sampling", forbid="fuse-sampling")
