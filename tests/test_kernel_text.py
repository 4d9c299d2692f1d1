"""What the text of generated kernels promises, whatever the operator."""

import re

import jax
import jax.numpy as jnp
import pytest

import jascend as ja

ARRAY = jax.ShapeDtypeStruct


def filtered(logits, p, k):
    return ja.apply_top_k_top_p(logits, p, k)


def routed(x, expert_idx):
    return ja.moe_init_routing(x, expert_idx, expert_num=256, quant_mode=1)


HUGE = {
    "filter": (filtered, [((1 << 20, 151936), jnp.float32), ((1 << 20,), jnp.float32), ((1 << 20,), jnp.int32)]),
    "routing": (routed, [((1 << 20, 7168), jnp.bfloat16), ((1 << 20, 8), jnp.int32)]),
}


@pytest.mark.parametrize("name", HUGE)
def test_offsets_in_global_memory_have_64_bits(name):
    """Rows times columns exceeds 32 bits: everything that an offset is made of is an int64_t, or a number."""
    function, specs = HUGE[name]
    source = ja.compile(function, *(ARRAY(*spec) for spec in specs)).kernels[0].source
    declared, offsets = {name: kind for kind, name in re.findall(r"(\w+) (\w+_);", source)}, 0  # of the class
    for line in source.splitlines():
        declared |= {name: kind for kind, name in re.findall(r"\b(u?int(?:32|64)_t|float|bool) &?(\w+)(?= =|[;,)])", line)}
        for offset in re.findall(r"\w+Gm_?\[([^\]]+)\]", line):
            offsets += 1
            for word in re.findall(r"[A-Za-z_]\w*", offset):
                assert declared.get(word) == "int64_t" or word == "kRowLength", f"{word} in {line}"
    assert offsets > 10


def sampled(logits, top_k, top_p, q):
    return ja.top_k_top_p_sample(logits, top_k, top_p, q)


def gated(x, bias):
    return ja.moe_gating_top_k(x, 8, bias=bias, group_count=8, k_group=4, group_select_mode=1, norm_type=1)


def normalized(x, weight):
    return jax.nn.softmax(x * weight, axis=-1)


F32, I32, BF16 = jnp.float32, jnp.int32, jnp.bfloat16
KINDS = {
    "filter": (filtered, [((2, 17000), F32), ((2,), F32), ((2,), I32)]),
    "sampler": (sampled, [((2, 3000), F32), ((2,), I32), ((2,), F32), ((2, 3000), F32)]),
    "gating": (gated, [((40, 256), F32), ((256,), F32)]),
    "routing": (routed, [((40, 256), BF16), ((40, 8), I32)]),
    "row-wise": (normalized, [((4, 300), F32), ((300,), F32)]),
}


def sources(name, target):
    function, specs = KINDS[name]
    program = ja.compile(function, *(ARRAY(*spec) for spec in specs), target=target)
    return "".join(kernel.source for kernel in program.kernels)


@pytest.mark.parametrize("name", KINDS)
def test_text_by_target(name):
    """910_93 has 910B's architecture, and so its text. 950 has its own, with the names that its toolkits gave to APIs."""
    a2, a3, a5 = (sources(name, target) for target in ("ascend910b", "ascend910_93", "ascend950"))
    assert a3 == a2.replace("for ascend910b;", "for ascend910_93;") and "for ascend910_93;" in a3
    assert "for ascend950;" in a5 and "PipeBarrier<PIPE_V>" in a2 and "PipeBarrier<PIPE_V>" not in a5
    assert "Compares(" not in a2 and "CompareScalar(" not in a5
    assert a2.count("CompareScalar(") > 0 or name == "row-wise"
    for text in (a2, a5):
        declared = re.findall(r"\b(?:u?int(?:32|64)_t|float|bool) (\w+)(?: = [^;]*)?;", text)
        assert declared and [word for word in set(declared) if len(re.findall(rf"\b{word}\b", text)) == 1] == []
        assert text.count("GetBlockNum()") <= text.count("GetBlockIdx()") == text.count('extern "C"')  # read once
