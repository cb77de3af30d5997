// cuMem*: allocation, copies and fills. All are complete when the call returns, on any stream.
#include <stdlib.h>
#include <string.h>

#include <map>

#include "api.h"
#include "capture.h"
#include "memory.h"
#include "setting.h"

using namespace sim;

namespace {

std::map<void*, size_t> registered;                     // the user's memory, pinned by cuMemHostRegister

std::string describe(CUdeviceptr p, size_t n) {
    auto* piece = allocation_at(p);
    std::string words = std::to_string(n) + " bytes at 0x";
    char hex[20];
    snprintf(hex, sizeof hex, "%llx", (unsigned long long)p);
    words += hex;
    if (memory.holds(p) && piece && p <= piece->first + piece->second.room)
        return words + ": the array there has " + std::to_string(piece->second.given) + " bytes, and these begin at byte " +
               std::to_string(p - piece->first) + " of it";
    return words + " are not memory of a device";
}

CUresult check(CUdeviceptr p, size_t n, const char* what) {
    if (!current()) return error(CUDA_ERROR_INVALID_CONTEXT, "no context is current in this thread");
    if (n == 0 || is_memory(p, n)) return CUDA_SUCCESS;
    return error(CUDA_ERROR_INVALID_VALUE, std::string(what) + ": " + describe(p, n));
}

CUresult to_device(CUdeviceptr to, const void* from, size_t n) {
    ONE_AT_A_TIME;
    if (CUresult r = check(to, n, "copy to the device")) return r;
    memcpy((void*)to, from, n);
    wrote(to, n);
    return CUDA_SUCCESS;
}

CUresult to_host(void* to, CUdeviceptr from, size_t n) {
    ONE_AT_A_TIME;
    if (CUresult r = check(from, n, "copy from the device")) return r;
    memcpy(to, (void*)from, n);
    return CUDA_SUCCESS;
}

CUresult on_device(CUdeviceptr to, CUdeviceptr from, size_t n) {
    ONE_AT_A_TIME;
    if (CUresult r = check(from, n, "copy on the device, from")) return r;
    if (CUresult r = check(to, n, "copy on the device, to")) return r;
    memmove((void*)to, (void*)from, n);
    copied(to, from, n);
    return CUDA_SUCCESS;
}

template <class T> CUresult fill(CUdeviceptr p, T value, size_t count) {
    ONE_AT_A_TIME;
    if (CUresult r = check(p, count * sizeof(T), "fill")) return r;
    for (size_t i = 0; i < count; ++i) ((T*)p)[i] = value;
    wrote(p, count * sizeof(T));
    return CUDA_SUCCESS;
}

template <class T> CUresult fill_rows(CUdeviceptr p, size_t pitch, T value, size_t width, size_t height) {
    for (size_t y = 0; y < height; ++y)
        if (CUresult r = fill(p + y * pitch, value, width)) return r;
    return CUDA_SUCCESS;
}

struct End { CUmemorytype kind; const void* host; CUdeviceptr device; size_t pitch, x, y, z, height; };

// One row of a two- or three-dimensional copy.
CUresult copy_row(const End& to, const End& from, size_t y, size_t z, size_t n) {
    size_t a = ((z + to.z) * to.height + y + to.y) * to.pitch + to.x;
    size_t b = ((z + from.z) * from.height + y + from.y) * from.pitch + from.x;
    bool host_to = to.kind == CU_MEMORYTYPE_HOST, host_from = from.kind == CU_MEMORYTYPE_HOST;
    if (to.kind == CU_MEMORYTYPE_ARRAY || from.kind == CU_MEMORYTYPE_ARRAY)
        return error(CUDA_ERROR_NOT_SUPPORTED, "the simulator has no texture arrays");
    if (host_to && host_from) return memmove((char*)to.host + a, (char*)from.host + b, n), CUDA_SUCCESS;
    if (host_to) return to_host((char*)to.host + a, from.device + b, n);
    if (host_from) return to_device(to.device + a, (char*)from.host + b, n);
    return on_device(to.device + a, from.device + b, n);
}

template <class C> CUresult copy_box(const C* c, size_t depth, size_t src_z, size_t src_h, size_t dst_z, size_t dst_h) {
    size_t n = c->WidthInBytes;
    End from = {c->srcMemoryType, c->srcHost, c->srcDevice, c->srcPitch ? c->srcPitch : n, c->srcXInBytes, c->srcY, src_z,
                src_h ? src_h : c->Height};
    End to = {c->dstMemoryType, c->dstHost, c->dstDevice, c->dstPitch ? c->dstPitch : n, c->dstXInBytes, c->dstY, dst_z,
              dst_h ? dst_h : c->Height};
    for (size_t z = 0; z < depth; ++z)
        for (size_t y = 0; y < c->Height; ++y)
            if (CUresult r = copy_row(to, from, y, z, n)) return r;
    return CUDA_SUCCESS;
}

CUresult copy2d(const CUDA_MEMCPY2D* c) { return copy_box(c, 1, 0, 0, 0, 0); }
template <class C> CUresult copy3d(const C* c) {
    return copy_box(c, c->Depth, c->srcZ, c->srcHeight, c->dstZ, c->dstHeight);
}

CUresult take(void** p, size_t n, int device, const char* what) {
    ONE_AT_A_TIME;
    if (CUresult r = forbidden(what, true)) return r;
    if (!current()) return error(CUDA_ERROR_INVALID_CONTEXT, "no context is current in this thread");
    if (!n) return error(CUDA_ERROR_INVALID_VALUE, std::string(what) + ": 0 bytes were asked for");
    *p = (void*)allocate(n, device);
    if (*p) return CUDA_SUCCESS;
    return error(CUDA_ERROR_OUT_OF_MEMORY, std::string(what) + ": " + std::to_string(n) + " bytes were asked for, of " +
                 std::to_string(setting.memory) + " of the simulated device (FLOWEDU_CUDA_MEMORY)");
}

}  // namespace

API cuMemAlloc(CUdeviceptr* p, size_t n) { return take((void**)p, n, current() ? current()->device : 0, "cuMemAlloc"); }
API cuMemAllocManaged(CUdeviceptr* p, size_t n, unsigned) { return take((void**)p, n, -1, "cuMemAllocManaged"); }
API cuMemAllocPitch(CUdeviceptr* p, size_t* pitch, size_t width, size_t height, unsigned) {
    *pitch = (width + 511) / 512 * 512;
    return cuMemAlloc(p, *pitch * height);
}
API cuMemFree(CUdeviceptr p) {
    ONE_AT_A_TIME;
    if (!p || release(p, device_of(p) == -1)) return CUDA_SUCCESS;
    return error(CUDA_ERROR_INVALID_VALUE, "cuMemFree: no allocation begins there, or it has been given back already");
}
API cuMemHostAlloc(void** p, size_t n, unsigned) { return take(p, n, -1, "cuMemHostAlloc"); }
API cuMemAllocHost(void** p, size_t n) { return take(p, n, -1, "cuMemAllocHost"); }
API cuMemFreeHost(void* p) {
    ONE_AT_A_TIME;
    return release((uintptr_t)p, true) ? CUDA_SUCCESS : error(CUDA_ERROR_INVALID_VALUE, "cuMemFreeHost: not pinned memory");
}
API cuMemHostRegister(void* p, size_t n, unsigned) { return registered[p] = n, CUDA_SUCCESS; }
API cuMemHostUnregister(void* p) { return registered.erase(p) ? CUDA_SUCCESS : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED; }
API cuMemHostGetDevicePointer(CUdeviceptr* d, void* p, unsigned) { return *d = (CUdeviceptr)p, CUDA_SUCCESS; }
API cuMemHostGetFlags(unsigned* flags, void*) { return *flags = CU_MEMHOSTALLOC_DEVICEMAP, CUDA_SUCCESS; }
API cuMemGetInfo(size_t* unused, size_t* total) {
    if (!current()) return error(CUDA_ERROR_INVALID_CONTEXT, "no context is current in this thread");
    *total = setting.memory;
    *unused = setting.memory - used[current()->device];
    return CUDA_SUCCESS;
}
API cuMemGetAddressRange(CUdeviceptr* base, size_t* size, CUdeviceptr p) {
    ONE_AT_A_TIME;
    auto* piece = allocation_at(p);
    if (!piece || p >= piece->first + piece->second.size) return error(CUDA_ERROR_NOT_FOUND, describe(p, 0));
    if (base) *base = piece->first;
    if (size) *size = piece->second.size;
    return CUDA_SUCCESS;
}
API cuPointerGetAttribute(void* data, CUpointer_attribute what, CUdeviceptr p) {
    ONE_AT_A_TIME;
    auto* piece = allocation_at(p);                     // a pool's block is one allocation of the driver
    bool held = memory.holds(p) && piece && p < piece->first + piece->second.size;
    if (!held && !is_memory(p, 1)) return error(CUDA_ERROR_INVALID_VALUE, describe(p, 1));
    int device = device_of(p);
    if (what == CU_POINTER_ATTRIBUTE_MEMORY_TYPE)
        *(unsigned*)data = device == -1 ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    else if (what == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
        *(int*)data = device < 0 ? 0 : device;
    else if (what == CU_POINTER_ATTRIBUTE_DEVICE_POINTER || what == CU_POINTER_ATTRIBUTE_HOST_POINTER)
        *(CUdeviceptr*)data = p;
    else
        return error(CUDA_ERROR_NOT_SUPPORTED, "the simulator does not know this attribute of a pointer");
    return CUDA_SUCCESS;
}

API cuMemcpyHtoD(CUdeviceptr to, const void* from, size_t n) { return ON(nullptr, to_device(to, from, n)); }
API cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, size_t n, CUstream s) { return ON(s, to_device(to, from, n)); }
API cuMemcpyDtoH(void* to, CUdeviceptr from, size_t n) { return ON(nullptr, to_host(to, from, n)); }
API cuMemcpyDtoHAsync(void* to, CUdeviceptr from, size_t n, CUstream s) { return ON(s, to_host(to, from, n)); }
API cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, size_t n) { return ON(nullptr, on_device(to, from, n)); }
API cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s) { return ON(s, on_device(to, from, n)); }
API cuMemcpyPeer(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, size_t n) {
    return ON(nullptr, on_device(to, from, n));
}
API cuMemcpyPeerAsync(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, size_t n, CUstream s) {
    return ON(s, on_device(to, from, n));
}
API cuMemcpy2D(const CUDA_MEMCPY2D* c) { return ON(nullptr, copy2d(c)); }
API cuMemcpy2DUnaligned(const CUDA_MEMCPY2D* c) { return ON(nullptr, copy2d(c)); }
API cuMemcpy2DAsync(const CUDA_MEMCPY2D* c, CUstream s) { return queue(s, [c = *c] { return copy2d(&c); }); }
API cuMemcpy3D(const CUDA_MEMCPY3D* c) { return ON(nullptr, copy3d(c)); }
API cuMemcpy3DAsync(const CUDA_MEMCPY3D* c, CUstream s) { return queue(s, [c = *c] { return copy3d(&c); }); }
API cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER* c) { return ON(nullptr, copy3d(c)); }
API cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER* c, CUstream s) { return queue(s, [c = *c] { return copy3d(&c); }); }

API cuMemsetD8(CUdeviceptr p, unsigned char v, size_t n) { return ON(nullptr, fill(p, v, n)); }
API cuMemsetD16(CUdeviceptr p, unsigned short v, size_t n) { return ON(nullptr, fill(p, v, n)); }
API cuMemsetD32(CUdeviceptr p, unsigned v, size_t n) { return ON(nullptr, fill(p, v, n)); }
API cuMemsetD8Async(CUdeviceptr p, unsigned char v, size_t n, CUstream s) { return ON(s, fill(p, v, n)); }
API cuMemsetD16Async(CUdeviceptr p, unsigned short v, size_t n, CUstream s) { return ON(s, fill(p, v, n)); }
API cuMemsetD32Async(CUdeviceptr p, unsigned v, size_t n, CUstream s) { return ON(s, fill(p, v, n)); }
API cuMemsetD2D8(CUdeviceptr p, size_t pitch, unsigned char v, size_t w, size_t h) {
    return ON(nullptr, fill_rows(p, pitch, v, w, h));
}
API cuMemsetD2D16(CUdeviceptr p, size_t pitch, unsigned short v, size_t w, size_t h) {
    return ON(nullptr, fill_rows(p, pitch, v, w, h));
}
API cuMemsetD2D32(CUdeviceptr p, size_t pitch, unsigned v, size_t w, size_t h) {
    return ON(nullptr, fill_rows(p, pitch, v, w, h));
}
API cuMemsetD2D8Async(CUdeviceptr p, size_t pitch, unsigned char v, size_t w, size_t h, CUstream s) {
    return ON(s, fill_rows(p, pitch, v, w, h));
}
API cuMemsetD2D16Async(CUdeviceptr p, size_t pitch, unsigned short v, size_t w, size_t h, CUstream s) {
    return ON(s, fill_rows(p, pitch, v, w, h));
}
API cuMemsetD2D32Async(CUdeviceptr p, size_t pitch, unsigned v, size_t w, size_t h, CUstream s) {
    return ON(s, fill_rows(p, pitch, v, w, h));
}
