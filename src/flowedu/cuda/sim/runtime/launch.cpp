// cuLaunchKernel: limits and arguments of functions, and errors of the processor.
#include <signal.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>

#include <atomic>
#include <thread>

#include "api.h"
#include "block.h"
#include "capture.h"
#include "checks.h"
#include "count.h"
#include "fault.h"
#include "launch.h"
#include "setting.h"

namespace sim {

namespace {

std::atomic<int64_t> started{0};                        // start of the running launch, in ms; 0: none
std::atomic<bool> overdue{false};
pthread_t launcher;
struct sigaction before[NSIG];
const int WAKE = SIGRTMIN + 7;
bool plain_ran = false;

int64_t milliseconds() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

const void* place_of(void* context) {
#ifdef __x86_64__
    return (const void*)((ucontext_t*)context)->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    return (const void*)((ucontext_t*)context)->uc_mcontext.pc;
#else
    return nullptr;
#endif
}

// Handles signals of a kernel without hooks: an invalid address, a division by zero, a stack overflow, or
// the trap that the compiler inserts for undefined code (a division by a constant 0). The launch ends, and
// the process continues. This applies only to the kernel's own code, as the simulator's must not be
// interrupted.
void handle_signal(int signal, siginfo_t* info, void* context) {
    bool ours = running && pthread_equal(pthread_self(), launcher);
    const void* at = place_of(context);
    bool in_kernel = false;
    if (ours) {
        const Image& i = *launch->image;
        uintptr_t a = (uintptr_t)at;
        in_kernel = a >= i.begin && a < i.end && !(a >= i.stubs && a < i.stubs_end);
    }
    if (signal == WAKE) {
        overdue = ours;
        if (!in_kernel) return;                         // runtime code checks `overdue` itself
    } else if (!ours) {
        sigaction(signal, &before[signal], nullptr);  // the previous handler gets the repeated signal
        return;
    }
    Fault f;
    f.kind = signal == WAKE ? OVERDUE : signal == SIGFPE ? DIVIDED : CRASHED;
    if (signal == SIGILL || signal == SIGTRAP) f.kind = UNDEFINED;
    f.at = (const char*)at + 1;                         // other faults have return addresses
    f.address = signal == SIGSEGV || signal == SIGBUS ? (uintptr_t)info->si_addr : 0;
    if (f.kind == CRASHED && stacks.guards(f.address)) f.kind = OVERFLOWED;
    stop(f);
}

void watch() {
    for (;;) {
        std::this_thread::sleep_for(std::chrono::milliseconds(overdue ? 10 : 200));
        int64_t s = started;
        if (s && milliseconds() - s > setting.timeout * 1000) pthread_kill(launcher, WAKE);
    }
}

void prepare_thread() {
    static thread_local bool done = false;
    if (done) return;
    done = true;
    stack_t old;
    if (!sigaltstack(nullptr, &old) && old.ss_flags & SS_DISABLE) {
        static thread_local char room[64 << 10];
        stack_t signal_stack = {room, 0, sizeof room};
        sigaltstack(&signal_stack, nullptr);
    }
}

void prepare_process() {
    static bool done = false;
    if (done) return;
    done = true;
    struct sigaction a = {};
    a.sa_sigaction = handle_signal;
    a.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    for (int s : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, WAKE}) sigaction(s, &a, &before[s]);
    if (setting.timeout > 0) std::thread(watch).detach();
}

CUresult bad(const Kernel& k, const std::string& words) {
    return error(CUDA_ERROR_INVALID_VALUE, std::string("kernel ") + k.entry().name + ": " + words);
}

std::string format(dim3 d) {
    return "(" + std::to_string(d.x) + ", " + std::to_string(d.y) + ", " + std::to_string(d.z) + ")";
}

CUresult check_sizes(const Kernel& k, dim3 grid, dim3 block, size_t dynamic) {
    if (!grid.x || !grid.y || !grid.z || !block.x || !block.y || !block.z)
        return bad(k, "grid " + format(grid) + " and block " + format(block) + " must be positive");
    if ((uint64_t)block.x * block.y * block.z > MOST || block.x > MOST || block.y > MOST || block.z > 64)
        return bad(k, "a block of " + format(block) + " threads; at most 1024 in all, and (1024, 1024, 64) along x, y, z");
    if (grid.x > 2147483647u || grid.y > 65535 || grid.z > 65535)
        return bad(k, "a grid of " + format(grid) + " blocks; at most (2147483647, 65535, 65535)");
    if (size_t static_bytes = k.static_shared(); static_bytes > 48 << 10)
        return bad(k, std::to_string(static_bytes) + " bytes of __shared__ arrays; nvcc takes at most 49152, "
                   "more is dynamic");
    if (dynamic > (size_t)k.most_dynamic)
        return bad(k, std::to_string(dynamic) + " bytes of dynamic shared memory; this kernel may have " +
                   std::to_string(k.most_dynamic) + " (more by CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)");
    return CUDA_SUCCESS;
}

// Copies the arguments to a buffer, so that the kernel does not see later changes by the caller.
size_t place_arguments(const cudasim_kernel& e, void** params, void** extra, char* room, void** arguments) {
    const char* packed = nullptr;
    size_t length = 0, offset = 0;
    for (; extra && *extra != CU_LAUNCH_PARAM_END; extra += 2) {
        if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER) packed = (const char*)extra[1];
        if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE) length = *(const size_t*)extra[1];
    }
    for (unsigned i = 0; i < e.count; ++i) {
        size_t size = e.sizes[2 * i], align = e.sizes[2 * i + 1];
        offset = (offset + align - 1) / align * align;
        if (params)
            memcpy(room + offset, params[i], size);
        else if (packed && offset + size <= length)
            memcpy(room + offset, packed + offset, size);
        else
            return i;
        arguments[i] = room + offset;
        offset += size;
    }
    return e.count;
}

}  // namespace

void after_stop() { forget_fibres(); }

bool is_overdue() { return overdue; }

CUresult start(Kernel& k, dim3 grid, dim3 block, size_t dynamic, void** params, void** extra) {
    if (!current()) return error(CUDA_ERROR_INVALID_CONTEXT, "no context is current in this thread");
    if (CUresult r = check_sizes(k, grid, block, dynamic)) return r;
    bool checking = setting.check || counting();
    std::string problem;
    if (checking && !k.checked && !make_checked(*k.module, problem)) return error(CUDA_ERROR_INVALID_IMAGE, problem);
    if (!checking && !k.plain) checking = true;         // only the variant with hooks exists
    Launch l;
    l.kernel = &k;
    l.image = checking ? &k.module->checked : &k.module->plain;
    l.entry = checking ? k.checked : k.plain;
    l.grid = grid, l.block = block, l.dynamic = dynamic;
    l.device = current()->device;
    l.checking = checking, l.counting = counting();
    alignas(16) char room[ROOM];
    void* arguments[1024];
    size_t placed = place_arguments(*l.entry, params, extra, room, arguments);
    if (placed < l.entry->count)
        return bad(k, "too few bytes of arguments: they end before number " + std::to_string(placed + 1) + " of " +
                   std::to_string(l.entry->count));
    l.arguments = arguments, l.room = room;
    if (!stacks.reserve() || (checking && !start_checking()))
        return error(CUDA_ERROR_OUT_OF_MEMORY, "no address space for the stacks and checks of a block: allow more "
                     "(ulimit -v), or lower FLOWEDU_CUDA_MEMORY");
    prepare_process();
    prepare_thread();
    bool both = k.plain && k.checked;
    if (checking) {
        if (plain_ran) forget_writes();
        plain_ran = false;
        if (both) carry_globals(k.module->plain, k.module->checked);
        launch = &l;
        checks_begin_launch();
    } else {
        plain_ran = true;
        for (auto& v : l.image->variables)
            if (v.where == Variable::SHARED) memset((void*)v.address, 0xff, v.size);
        memset((void*)dynamic_shared, 0xff, dynamic);
    }
    launcher = pthread_self();
    overdue = false;
    started = milliseconds();
    bool good = run(l);
    started = 0;
    launch = &l;
    if (checking) {
        checks_end_launch();
        if (both) carry_globals(k.module->checked, k.module->plain);
    }
    fflush(stdout);                                     // output of printf in kernels
    if (!good) compose_report();
    launch = nullptr;
    if (good) return CUDA_SUCCESS;
    return error(fault.kind == OVERDUE ? CUDA_ERROR_LAUNCH_TIMEOUT : CUDA_ERROR_LAUNCH_FAILED, report_text());
}

}  // namespace sim

using namespace sim;

API cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned dynamic, CUstream s, void** params, void** extra) {
    ONE_AT_A_TIME;
    Kernel& k = *(Kernel*)f;
    dim3 grid = {gx, gy, gz}, block = {bx, by, bz};
    if (!captures) return start(k, grid, block, dynamic, params, extra);
    if (CUresult r = check_sizes(k, grid, block, dynamic)) return r;
    std::string room(4096 + 64, 0);
    void* arguments[1024];
    if (place_arguments(k.entry(), params, extra, room.data(), arguments) < k.entry().count)
        return bad(k, "too few bytes of arguments");
    return queue(s, [=, &k]() mutable {
        size_t size = room.size();
        void* kept[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, room.data(), CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                        CU_LAUNCH_PARAM_END};
        return start(k, grid, block, dynamic, nullptr, kept);
    });
}
API cuFuncGetAttribute(int* v, CUfunction_attribute what, CUfunction f) {
    auto& k = *(Kernel*)f;
    switch (what) {
        case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *v = MOST; break;
        case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *v = k.static_shared(); break;
        case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: *v = k.most_dynamic; break;
        case CU_FUNC_ATTRIBUTE_NUM_REGS: *v = 32; break;
        default: *v = 0;
    }
    return CUDA_SUCCESS;
}
API cuFuncSetAttribute(CUfunction f, CUfunction_attribute what, int v) {
    if (what != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) return CUDA_SUCCESS;
    if (v < 0 || (size_t)v > MOST_SHARED)
        return bad(*(Kernel*)f, std::to_string(v) + " bytes of shared memory; there are " + std::to_string(MOST_SHARED));
    return ((Kernel*)f)->most_dynamic = v, CUDA_SUCCESS;
}
API cuFuncSetBlockShape(CUfunction, int, int, int) { return CUDA_SUCCESS; }
API cuFuncSetSharedSize(CUfunction, unsigned) { return CUDA_SUCCESS; }
API cuFuncSetCacheConfig(CUfunction, CUfunc_cache) { return CUDA_SUCCESS; }
API cuFuncSetSharedMemConfig(CUfunction, CUsharedconfig) { return CUDA_SUCCESS; }
API cuOccupancyMaxActiveBlocksPerMultiprocessor(int* n, CUfunction, int size, size_t) {
    return *n = size > 0 ? 2048 / size : 0, CUDA_SUCCESS;
}
