# Chapter 2: switches of the eager interpreter: gradients, inference, devices, threads (part of dispatch.pyx).

cdef inline bint lazy_mode():
    """Whether ops of this thread are answered by an interpreter, not by the eager one."""
    return active != 0 and current_interpreter() is not None


cpdef bint set_grad_enabled(bint on) noexcept:
    """Whether eager calls of this thread are recorded; returns the old value."""
    cdef bint old = not fe_grad_off
    global fe_grad_off
    fe_grad_off = not on
    return old


class unrecorded:
    """Context manager: eager calls of this thread inside it are not recorded."""

    def __enter__(self):
        self.old = set_grad_enabled(False)

    def __exit__(self, *exc):
        set_grad_enabled(self.old)


cpdef bint set_amp(bint on) noexcept:
    """Whether thread_state.amp(op, inputs) casts the inputs of this thread's calls (flowedu/nn/amp); returns the old value."""
    cdef bint old = fe_amp
    global fe_amp
    fe_amp = on
    return old


cpdef int constants_on(int device) noexcept:
    """Where this thread's calls without inputs put what they make (0: main memory, 1 + k: the k-th GPU); returns the old."""
    cdef int old = fe_device
    global fe_device
    fe_device = device
    return old


def is_grad_enabled():
    """Whether eager calls of this thread are recorded for backward."""
    return not fe_grad_off


def set_inference(bint on):
    """Whether tensors made by this thread are marked as made for inference; returns the old value."""
    global fe_inference
    cdef bint old = fe_inference
    fe_inference = on
    return old


def is_inference_mode_enabled():
    return bool(fe_inference)


most_threads = max(256, os.cpu_count() or 1)   # 256 stacks of 8 MB are 2 GB of address space; more gain nothing


def set_num_threads(n):
    """Let kernels use `n` threads from now on: 1 to 256, or to the number of processors where that is more."""
    global threads, warned
    if not hasattr(n, "__index__") or not 1 <= n <= most_threads:
        raise FlowError("set_num_threads: not a number of threads", expected=f"1 to {most_threads}", got=str(n), fix="1")
    if forked and n > 1:                           # gcc's OpenMP would wait for threads that did not come along
        if not warned:
            warned = True
            warnings.warn("set_num_threads: a process made by fork stays at one thread: gcc's OpenMP does not survive fork. "
                          "Start processes with multiprocessing's 'spawn' to have more.", RuntimeWarning, stacklevel=2)
        n = 1
    threads = n if fe_has_threads() else 1


cdef bint forked = False, warned = False


def _after_fork():
    global threads, forked, warned
    threads, forked, warned = 1, True, False


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def get_num_threads():
    """How many threads kernels may use."""
    return threads


def default_threads() -> int:
    """FLOWEDU_NUM_THREADS or OMP_NUM_THREADS if set, else the processors this process may run on."""
    for name in ("FLOWEDU_NUM_THREADS", "OMP_NUM_THREADS"):
        text = os.environ.get(name, "").split(",")[0].strip()
        if text.isascii() and text.isdigit() and len(text) < 9 and 1 <= int(text) <= most_threads:
            return int(text)
        if text:
            warnings.warn(f"{name}={text[:40]} is ignored: expected 1 to {most_threads}", RuntimeWarning, stacklevel=2)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def has_threads():
    """False when the compiler had no OpenMP."""
    return bool(fe_has_threads())
