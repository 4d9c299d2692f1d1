"""jascend: LLM-inference operators for JAX, and the compiler that turns graphs of them into Ascend C.

Names are loaded on first use: `jascend.dialect` and `jascend.passes` live in this package and must start without JAX.
"""

from importlib import import_module

__version__ = "0.1.0"

_HOME = {
    "sort": "jascend.ops.sort",
    "apply_top_k_top_p": "jascend.ops.apply_top_k_top_p",
    "apply_top_k_top_p_with_sorted": "jascend.ops.apply_top_k_top_p_with_sorted",
    "top_k_top_p_sample": "jascend.ops.top_k_top_p_sample",
    "moe_gating_top_k": "jascend.ops.moe_gating_top_k",
    "moe_init_routing": "jascend.ops.moe_init_routing",
    "compile": "jascend.compiler",
    "jit": "jascend.compiler",
    "lowering": "jascend.twin_lowering",
    "Program": "jascend.compiler",
}

__all__ = ["errors", *_HOME]


def __getattr__(name):
    if name == "errors":
        return import_module("jascend.errors")
    if name not in _HOME:
        raise AttributeError(f"module 'jascend' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *__all__})
