// Lists of tensors: see twin/list_tensor.h.
#pragma once
#include "kernel_operator.h"
#include "twin/list_tensor.h"
