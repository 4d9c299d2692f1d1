// Kernels include this by habit; what the twin has of it comes with kernel_operator.h.
#pragma once
#include "kernel_operator.h"
