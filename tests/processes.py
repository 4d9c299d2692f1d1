"""Python processes of their own."""

import os
import subprocess
import sys

#: An environment in which the CPU is four devices. What runs there is small: XLA need not optimize it.
FOUR_DEVICES = {"XLA_FLAGS": "--xla_force_host_platform_device_count=4 --xla_backend_optimization_level=0"}


def run(code, **env):
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **env})
    assert result.returncode == 0, result.stderr
    return result
