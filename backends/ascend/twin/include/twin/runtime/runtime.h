// The runtime, compiled once per compiler into a shared object of its own that all kernels use (see toolchain.py).
#pragma once
#include "twin/runtime/launch.h"
