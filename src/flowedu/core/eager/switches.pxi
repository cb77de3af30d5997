# Chapter 2: switches for gradients, inference mode, devices, threads (part of dispatch.pyx).

cdef inline bint lazy_mode():
    """Return True if this thread runs ops with another interpreter than the eager one."""
    return active != 0 and current_interpreter() is not None


cpdef bint set_grad_enabled(bint on) noexcept:
    """Set whether eager calls of this thread are recorded. Return the old value."""
    cdef bint old = not fe_grad_off
    global fe_grad_off
    fe_grad_off = not on
    return old


class unrecorded:
    """Context manager in which eager calls of this thread are not recorded."""

    def __enter__(self):
        self.old = set_grad_enabled(False)

    def __exit__(self, *exc):
        set_grad_enabled(self.old)


cpdef bint set_amp(bint on) noexcept:
    """Set whether thread_state.amp casts inputs (flowedu/nn/amp). Return the old value."""
    cdef bint old = fe_hooks & CAST
    global fe_hooks
    fe_hooks = fe_hooks & ~CAST | on
    return old


def set_observer(f):
    """Set the function that runs all calls of this thread, f(op, inputs, attrs), or None."""
    global fe_hooks
    thread_state.observer = f
    fe_hooks = fe_hooks & CAST | OBSERVE * (f is not None)


cpdef int constants_on(int device) noexcept:
    """Set the device of calls without inputs (1 + k: the k-th GPU). Return the old device."""
    cdef int old = fe_device
    global fe_device
    fe_device = device
    return old


def is_grad_enabled():
    """Return True if eager calls of this thread are recorded for backward."""
    return not fe_grad_off


def set_inference(bint on):
    """Set whether new tensors of this thread are inference tensors. Return the old value."""
    global fe_inference
    cdef bint old = fe_inference
    fe_inference = on
    return old


def is_inference_mode_enabled():
    return bool(fe_inference)


most_threads = max(256, os.cpu_count() or 1)   # 256 stacks of 8 MB are 2 GB of address space


def set_num_threads(n):
    """Set the number of threads of kernels. Raises FlowError for a number out of range.

    Args:
        n: int from 1 to max(256, number of processors); 1 in a process made by fork.
    """
    global threads, warned
    if not hasattr(n, "__index__") or not 1 <= n <= most_threads:
        raise FlowError("set_num_threads: not a number of threads", expected=f"1 to {most_threads}",
                        got=str(n), fix="1")
    if forked and n > 1:                           # gcc's OpenMP would wait for lost threads
        if not warned:
            warned = True
            warnings.warn("set_num_threads: a process made by fork stays at one thread: gcc's "
                          "OpenMP does not survive fork. Start processes with multiprocessing's "
                          "'spawn' to have more.", RuntimeWarning, stacklevel=2)
        n = 1
    threads = n if fe_has_threads() else 1


cdef bint forked = False, warned = False


def _after_fork():
    global threads, forked, warned
    threads, forked, warned = 1, True, False


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def get_num_threads():
    """Return the number of threads that kernels may use."""
    return threads


def default_threads() -> int:
    """Return FLOWEDU_NUM_THREADS or OMP_NUM_THREADS, else the number of usable processors."""
    for name in ("FLOWEDU_NUM_THREADS", "OMP_NUM_THREADS"):
        text = os.environ.get(name, "").split(",")[0].strip()
        if text.isascii() and text.isdigit() and len(text) < 9 and 1 <= int(text) <= most_threads:
            return int(text)
        if text:
            warnings.warn(f"{name}={text[:40]} is ignored: expected 1 to {most_threads}",
                          RuntimeWarning, stacklevel=2)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def has_threads():
    """Return True if the kernels were compiled with OpenMP."""
    return bool(fe_has_threads())
