"""Python processes of their own."""

import os
import subprocess
import sys

from vectors import QUICK

# What runs in them is small: XLA need not optimize it.
_QUICK = " ".join(f"--{name}={value}" for name, value in QUICK.items())

#: An environment in which the CPU is four devices.
FOUR_DEVICES = {"XLA_FLAGS": f"--xla_force_host_platform_device_count=4 {_QUICK}"}


def run(code, **env):
    environment = {**os.environ, "XLA_FLAGS": _QUICK, **env}
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert result.returncode == 0, result.stderr
    return result
