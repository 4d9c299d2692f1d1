// Headers that define a kernel's tiling for the host include this.
#pragma once
#include "twin/tiling_structs.h"
