// printf of device code, without a namespace.
#pragma once
#include "kernel_operator.h"
using AscendC::printf;
