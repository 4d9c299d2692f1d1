"""Kernels of tests are small and many: their build is what takes time, so they are optimized less."""

import os

os.environ.setdefault("JASCEND_TWIN_OPTIMIZE", "1")
