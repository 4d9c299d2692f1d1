// The host twin of the Ascend C runtime: what an Ascend C source includes.
//
// A kernel written for the NPU compiles against these headers with any C++17 compiler and runs on the CPU. Names,
// argument lists and types are those of the public API reference, as strict as there: what the device compiler
// refuses should not compile here. What the twin cannot do is absent, so that it fails to compile, too.
#pragma once
#include "twin/macros.h"
#include "twin/scalar.h"
#include "twin/core.h"
#include "twin/params.h"
#include "twin/tensor.h"
#include "twin/sync.h"
#include "twin/utilities.h"
#include "twin/pipe.h"
#include "twin/copy.h"
#include "twin/copy_nd.h"
#include "twin/copy_slice.h"
#include "twin/lanes.h"
#include "twin/arith.h"
#include "twin/precision.h"
#include "twin/flexible.h"
#include "twin/multiply_add.h"
#include "twin/cast.h"
#include "twin/fill.h"
#include "twin/transpose.h"
#include "twin/select.h"
#include "twin/select_register.h"
#include "twin/operators.h"
#include "twin/reduce.h"
#include "twin/reduce_masked.h"
#include "twin/gather.h"
#include "twin/sort.h"
#include "twin/sort950.h"
#include "twin/highlevel.h"
#include "twin/functions.h"
#include "twin/power.h"
#include "twin/softmax.h"
#include "twin/topk.h"
#include "twin/quant.h"
#include "twin/quant950.h"
#include "twin/print.h"
#include "twin/tiling.h"

// Names that the device's language has without a namespace.
using AscendC::EVENT_ID0;
using AscendC::EVENT_ID1;
using AscendC::EVENT_ID2;
using AscendC::EVENT_ID3;
using AscendC::EVENT_ID4;
using AscendC::EVENT_ID5;
using AscendC::EVENT_ID6;
using AscendC::EVENT_ID7;
using AscendC::event_t;
using AscendC::GetTPipePtr;

#define __bf16 bfloat16_t  // the same type there; newer host compilers have another of that name
