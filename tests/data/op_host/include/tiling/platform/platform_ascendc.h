#pragma once

#include <cstdint>
#include <cstdlib>

#include "exe_graph/runtime/contexts.h"

namespace platform_ascendc {

class PlatformAscendC {
public:
    PlatformAscendC() = delete;
    explicit PlatformAscendC(fe::PlatFormInfos *platformInfo) : platformInfo_(platformInfo)
    {
        if (platformInfo == nullptr) {
            std::abort();
        }
    }
    uint32_t GetCoreNumAiv(void) const { return platformInfo_->testVectorCores; }
    uint32_t GetLibApiWorkSpaceSize(void) const { return 16U * 1024U * 1024U; }

private:
    fe::PlatFormInfos *platformInfo_;
};

class PlatformAscendCManager {
public:
    static PlatformAscendC *GetInstance()
    {
        static fe::PlatFormInfos infos;
        static PlatformAscendC platform(&infos);
        infos.testVectorCores = 48;
        return &platform;
    }
};

}  // namespace platform_ascendc
