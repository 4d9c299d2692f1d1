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
    declared, offsets = {}, 0
    for line in source.splitlines():
        if found := re.search(r"\b(u?int(?:32|64)_t|float|bool) (\w+)(?= =|;)", line):
            declared[found[2]] = found[1]
        for offset in re.findall(r"\w+Gm\[([^\]]+)\]", line):
            offsets += 1
            for word in re.findall(r"[A-Za-z_]\w*", offset):
                assert declared.get(word) == "int64_t" or word == "kRowLength", f"{word} in {line}"
    assert offsets > 10
