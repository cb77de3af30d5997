// Devices, contexts, and errors of the driver.
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <vector>

#include "api.h"
#include "capture.h"
#include "memory.h"
#include "setting.h"

namespace sim {

std::recursive_mutex everything;

namespace {
thread_local std::vector<Context_*> contexts;           // stack of this thread
Context_ primary[64];
thread_local std::string last_words;
thread_local CUresult last_code = CUDA_SUCCESS;
}  // namespace

Context_* current() { return contexts.empty() ? nullptr : contexts.back(); }

CUresult error(CUresult code, std::string words) {
    last_code = code;
    last_words = std::move(words);
    return code;
}

}  // namespace sim

using namespace sim;

API cuInit(unsigned) {
    ONE_AT_A_TIME;
    if (setting.devices < 1 || setting.devices > 64)
        return error(CUDA_ERROR_NO_DEVICE, "FLOWEDU_CUDA_DEVICES must lie between 1 and 64");
    if (!open_memory())
        return error(CUDA_ERROR_OUT_OF_MEMORY, "no address space for the memory of the simulated devices: allow more "
                     "(ulimit -v), or lower FLOWEDU_CUDA_DEVICES");
    for (int i = 0; i < setting.devices; ++i) primary[i].device = i;
    return CUDA_SUCCESS;
}
API cuDriverGetVersion(int* v) { return *v = CUDA_VERSION, CUDA_SUCCESS; }

API cuGetErrorName(CUresult code, const char** s) {
    static thread_local char name[32];
    snprintf(name, sizeof name, "CUDA error %d", (int)code);
    return *s = name, CUDA_SUCCESS;
}
API cuGetErrorString(CUresult code, const char** s) {
    if (code == last_code && !last_words.empty()) return *s = last_words.c_str(), CUDA_SUCCESS;
    switch (code) {
        case CUDA_SUCCESS: *s = "success"; break;
        case CUDA_ERROR_INVALID_VALUE: *s = "invalid value"; break;
        case CUDA_ERROR_INVALID_DEVICE: *s = "there is no such device"; break;
        case CUDA_ERROR_INVALID_CONTEXT: *s = "no context is current in this thread"; break;
        case CUDA_ERROR_NOT_FOUND: *s = "named symbol not found"; break;
        case CUDA_ERROR_NOT_SUPPORTED: *s = "not supported by flowedu's CUDA simulator"; break;
        default: return cuGetErrorName(code, s);
    }
    return CUDA_SUCCESS;
}

API cuDeviceGetCount(int* n) { return *n = setting.devices, CUDA_SUCCESS; }
API cuDeviceGet(CUdevice* d, int i) {
    *d = i;
    if (i >= 0 && i < setting.devices) return CUDA_SUCCESS;
    return error(CUDA_ERROR_INVALID_DEVICE, "there is no device " + std::to_string(i) + ": the simulator has " +
                 std::to_string(setting.devices) + " (FLOWEDU_CUDA_DEVICES)");
}
API cuDeviceGetName(char* s, int n, CUdevice) { return snprintf(s, n, "flowedu CUDA simulator (CPU)"), CUDA_SUCCESS; }
API cuDeviceTotalMem(size_t* n, CUdevice) { return *n = setting.memory, CUDA_SUCCESS; }
API cuDeviceComputeCapability(int* major, int* minor, CUdevice) { return *major = 9, *minor = 0, CUDA_SUCCESS; }
API cuDeviceGetPCIBusId(char* s, int n, CUdevice d) { return snprintf(s, n, "0000:%02x:00.0", d), CUDA_SUCCESS; }
API cuDeviceGetByPCIBusId(CUdevice* d, const char* s) {
    unsigned i = 64;
    if (sscanf(s, "0000:%x:", &i) != 1 && sscanf(s, "%x:", &i) != 1) return CUDA_ERROR_INVALID_VALUE;
    return cuDeviceGet(d, i);
}
API cuDeviceGetUuid(CUuuid* u, CUdevice d) { return memset(u, d, sizeof *u), CUDA_SUCCESS; }

// Values of an H100, for the attributes that kernels depend on.
API cuDeviceGetAttribute(int* v, CUdevice_attribute what, CUdevice) {
    switch (what) {
        case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
        case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y: *v = 1024; break;
        case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z: *v = 64; break;
        case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X: *v = 2147483647; break;
        case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
        case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z: *v = 65535; break;
        case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK: *v = 48 << 10; break;
        case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: *v = MOST_SHARED; break;
        case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR: *v = 228 << 10; break;
        case CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY: *v = 64 << 10; break;
        case CU_DEVICE_ATTRIBUTE_WARP_SIZE: *v = 32; break;
        case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK:
        case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR: *v = 65536; break;
        case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
        case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE: *v = 1000000; break;
        case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *v = 16; break;
        case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR: *v = 2048; break;
        case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR: *v = 32; break;
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *v = 9; break;
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *v = 0; break;
        case CU_DEVICE_ATTRIBUTE_MAX_PITCH: *v = 2147483647; break;
        case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
        case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
        case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
        case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
        case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT: *v = 1; break;
        default: *v = 0;
    }
    return CUDA_SUCCESS;
}
API cuDeviceCanAccessPeer(int* can, CUdevice a, CUdevice b) { return *can = a != b, CUDA_SUCCESS; }

API cuDevicePrimaryCtxRetain(CUcontext* c, CUdevice d) {
    if (d < 0 || d >= setting.devices) return CUDA_ERROR_INVALID_DEVICE;
    return *c = (CUcontext)&primary[d], CUDA_SUCCESS;
}
API cuDevicePrimaryCtxRelease(CUdevice) { return CUDA_SUCCESS; }
API cuCtxCreate_v4(CUcontext* c, CUctxCreateParams*, unsigned, CUdevice d) {
    if (d < 0 || d >= setting.devices) return CUDA_ERROR_INVALID_DEVICE;
    contexts.push_back(new Context_{d});
    return *c = (CUcontext)contexts.back(), CUDA_SUCCESS;
}
API cuCtxDestroy(CUcontext c) {                         // not deleted, as other threads may use it
    while (!contexts.empty() && contexts.back() == (Context_*)c) contexts.pop_back();
    return CUDA_SUCCESS;
}
API cuCtxAttach(CUcontext* c, unsigned) {
    if (!current()) return error(CUDA_ERROR_INVALID_CONTEXT, "no context is current in this thread");
    return *c = (CUcontext)current(), CUDA_SUCCESS;
}
API cuCtxDetach(CUcontext c) { return cuCtxDestroy(c); }
API cuCtxPushCurrent(CUcontext c) { return contexts.push_back((Context_*)c), CUDA_SUCCESS; }
API cuCtxPopCurrent(CUcontext* c) {
    if (!current()) return error(CUDA_ERROR_INVALID_CONTEXT, "no context is current in this thread");
    if (c) *c = (CUcontext)current();
    return contexts.pop_back(), CUDA_SUCCESS;
}
API cuCtxSetCurrent(CUcontext c) {
    if (!contexts.empty()) contexts.pop_back();
    if (c) contexts.push_back((Context_*)c);
    return CUDA_SUCCESS;
}
API cuCtxGetCurrent(CUcontext* c) { return *c = (CUcontext)current(), CUDA_SUCCESS; }
API cuCtxGetDevice(CUdevice* d) {
    if (!current()) return error(CUDA_ERROR_INVALID_CONTEXT, "no context is current in this thread");
    return *d = current()->device, CUDA_SUCCESS;
}
API cuCtxGetApiVersion(CUcontext, unsigned* v) { return *v = CUDA_VERSION, CUDA_SUCCESS; }
API cuCtxSynchronize() { return forbidden("waiting for the device"); }
API cuCtxGetCacheConfig(CUfunc_cache* c) { return *c = CU_FUNC_CACHE_PREFER_NONE, CUDA_SUCCESS; }
API cuCtxSetCacheConfig(CUfunc_cache) { return CUDA_SUCCESS; }
API cuCtxGetSharedMemConfig(CUsharedconfig* c) { return *c = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE, CUDA_SUCCESS; }
API cuCtxSetSharedMemConfig(CUsharedconfig) { return CUDA_SUCCESS; }
API cuCtxGetLimit(size_t* v, CUlimit) { return *v = 1024, CUDA_SUCCESS; }
API cuCtxSetLimit(CUlimit, size_t) { return CUDA_SUCCESS; }
API cuCtxEnablePeerAccess(CUcontext, unsigned) { return CUDA_SUCCESS; }
API cuCtxDisablePeerAccess(CUcontext) { return CUDA_SUCCESS; }

API cuProfilerStart() { return CUDA_SUCCESS; }
API cuProfilerStop() { return CUDA_SUCCESS; }
