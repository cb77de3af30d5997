# Layout of a plan in memory: calls, views of their arguments, arena (part of executor.pyx).

cdef enum:
    SPLIT = 65536            # cheaper calls (less than about 10 us) run on one thread


cdef struct Patch:           # a view that points into a job argument, or into an output
    int arg                  # index of the argument; outputs follow the arguments
    int64_t offset           # bytes
    fe_view *view


cdef class BoundPlan:
    """A Plan as one C array of kernel calls, whose arguments have addresses.

    Attributes: `plan`, and `nt`, the number of threads.
    """
    cdef readonly object plan
    cdef readonly int nt
    cdef int split               # nonzero if any call is split over the threads
    cdef int ncalls, npatch, ninputs, noutputs
    cdef readonly list pythons   # indices of the calls with a Python kernel
    cdef list draws              # indices of the calls that draw random numbers
    cdef bint open               # Python kernels or signal handlers may run during a step
    cdef char *polls             # 1 for a call after which signals are checked
    cdef fe_call *calls
    cdef fe_view *views          # of the inputs, the outputs, then the arguments of each call
    cdef fe_view *outs           # the views of the outputs
    cdef Patch *patches
    cdef Block *arena
    cdef list keep
    cdef dict homes              # in the debug build, {buffer: its array}; else None
    cdef list lasting            # the arrays of variables; `planned`: their views in the plan
    cdef fe_view *planned

    def __cinit__(self, plan, bint always_parallel=False, int threads=0):
        inputs = [plan.where[value] for value in plan.graph.inputs.values()]
        outputs = [plan.where[value] for value in plan.graph.outputs]
        places = [*inputs, *outputs, *(p for step in plan.steps for p in step.places)]
        self.plan, self.nt = plan, threads or get_num_threads()
        self.keep, self.pythons, self.draws = [], [], []
        self.ncalls, self.ninputs, self.noutputs = len(plan.steps), len(inputs), len(outputs)
        self.allocate(plan, len(places))
        self.bind_calls(always_parallel)
        self.choose_polls()
        self.bind_views(places, find_arguments(inputs, outputs))
        self.lasting = [b.array for b in plan.buffers if b.kind == "variable"]
        for i, array in enumerate(self.lasting):
            self.planned[i] = (<Array>array).v

    cdef void allocate(self, plan, int nviews) except *:
        """Allocate the C arrays, filled with zeros, and the arena."""
        self.calls = <fe_call *>calloc(self.ncalls + 1, sizeof(fe_call))
        self.polls = <char *>calloc(self.ncalls + 1, 1)
        self.views = <fe_view *>calloc(nviews + 1, sizeof(fe_view))
        self.patches = <Patch *>calloc(nviews + 1, sizeof(Patch))
        self.planned = <fe_view *>calloc(len(plan.buffers) + 1, sizeof(fe_view))
        if not (self.calls and self.polls and self.views and self.patches and self.planned):
            raise MemoryError
        self.outs = self.views + self.ninputs
        if storage.separate:
            self.homes = {b: empty((b.nbytes,), uint8) for b in plan.buffers if b.in_arena}
        if plan.arena <= LARGEST:
            self.arena = block_try(max(plan.arena, 64))
        if self.arena == NULL:
            raise arena_out_of_memory(plan)

    cdef void bind_calls(self, bint always_parallel) except *:
        """Set the kernel, the attributes, and the scratch memory of each call."""
        cdef int i
        cdef Entry e
        cdef fe_call *call
        cdef fe_view *v = self.outs + self.noutputs
        for i, step in enumerate(self.plan.steps):
            e, call = step.entry, &self.calls[i]
            if e.fn == NULL:
                raise errors.no_kernel(step.name, e.op.name)
            self.keep.append(e)
            bind(call, e, v, e.ints)
            large = e.cost >= SPLIT or always_parallel
            call.parallel = large and self.nt > 1 and not e.python
            self.split |= call.parallel
            if step.scratch is not None:
                call.work = self.buffer_address(step.scratch)
            if e.python:
                self.pythons.append(i)
            elif e.op.random:
                self.draws.append(i)
            v += len(step.places)
        self.open = bool(self.pythons)

    cdef void choose_polls(self) except *:
        """Check signals after about every SPLIT of cost, but not after a write of a variable."""
        cdef int64_t cost = -64 * SPLIT            # steps of less than 1 ms never check
        for i, step in enumerate(self.plan.steps[:-1]):
            if step.node is not None and step.node.mutates:
                break
            cost += max(step.entry.cost, SPLIT // 16)
            if cost >= SPLIT:
                self.polls[i], self.open, cost = True, True, 0

    cdef void bind_views(self, list places, dict arguments) except *:
        """Describe each region by a view. Every run sets the addresses of arguments and outputs."""
        cdef int k
        cdef Patch *patch
        for k, p in enumerate(places):
            fill_view(&self.views[k], p)
            if p.buffer not in arguments:
                self.views[k].data = self.locate(p)
                continue
            patch = &self.patches[self.npatch]
            patch.arg, patch.view = arguments[p.buffer], &self.views[k]
            patch.offset = p.offset * p.spec.dtype.bytes
            self.npatch += 1

    cdef char *buffer_address(self, buffer) except NULL:
        """Return the address of an arena buffer."""
        if self.homes is not None:
            return (<Array>self.homes[buffer]).v.data
        return self.arena.data + <int64_t>buffer.offset

    cdef char *locate(self, p) except NULL:
        cdef int64_t offset = p.offset * p.spec.dtype.bytes
        cdef Array a
        if p.buffer.in_arena:
            return self.buffer_address(p.buffer) + offset
        a = p.buffer.array
        need_cpu(self.plan.graph.name, p.buffer.name, a)
        self.keep.append(a)
        return a.v.data + offset

    @property
    def call_table(self):
        """The address and the length of the array of calls, for show/stamps.pyx."""
        return <size_t>self.calls, self.ncalls

    def __dealloc__(self):
        free(self.calls)
        free(self.polls)
        free(self.views)
        free(self.patches)
        free(self.planned)
        if self.arena != NULL:
            block_drop(self.arena)

    def set_kept(self, bint valid):
        """Set `kept` (abi.h) of each call. valid: True if an earlier run filled kept scratch."""
        for i, step in enumerate(self.plan.steps):
            self.calls[i].kept = valid and step.node in self.plan.graph.kept

    def stale(self, int share=1):
        """Return True if the number of threads, or a variable's memory or layout, has changed."""
        cdef int i
        if max(1, <int>get_num_threads() // share) != self.nt:
            return True
        for i in range(len(self.lasting)):
            if not same_view(&(<Array>(<list>self.lasting)[i]).v, &self.planned[i]):
                return True
        return False


cdef dict find_arguments(list inputs, list outputs):
    """Return {buffer: index of the argument or output whose memory it uses}."""
    indices = {p.buffer: i for i, p in enumerate(inputs)}
    for i, p in enumerate(outputs, len(inputs)):   # kernels write directly into the returned array
        if p.buffer.in_arena and p.contiguous and p.buffer.nbytes == p.spec.nbytes:
            indices.setdefault(p.buffer, i)
    return indices


cdef void fill_view(fe_view *v, place) except *:
    cdef int d
    v.ndim, v.dtype = len(place.spec.shape), place.spec.dtype.code
    for d in range(v.ndim):
        v.shape[d] = place.spec.shape[d]
        v.stride[d] = place.strides[d]
    v.data = NULL


def scratch_bytes(Entry entry, places, int threads=0) -> int:
    """Return the scratch bytes of the kernel of `entry`. threads: 0 for the current setting."""
    cdef fe_call call
    cdef fe_view *args
    cdef int i
    cdef int64_t need
    if entry.work == NULL:
        return 0
    args = <fe_view *>calloc(max(len(places), 1), sizeof(fe_view))
    if args == NULL:
        raise MemoryError
    for i, p in enumerate(places):
        fill_view(&args[i], p)
    bind(&call, entry, args, entry.ints)
    need = entry.work(&call, threads or get_num_threads())
    free(args)
    if need < 0:                                   # the size overflows int64
        raise out_of_memory(entry.op.name, "scratch", LARGEST)
    return need
