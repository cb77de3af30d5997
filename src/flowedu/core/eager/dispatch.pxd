from libc.stdint cimport int32_t, int64_t
from flowedu._kernels.core.abi cimport fe_call, fe_kernel, fe_team, fe_view, fe_work
from flowedu.core.ops.call cimport OpBase, Rule
from flowedu.core.values.storage cimport ON_DEVICE, Array, Block

cdef extern from "team.h" nogil:
    enum: FE_SIGNAL
    int fe_run(fe_call *, int, int, int *, const char *polls, int (*poll)() noexcept) noexcept
    int fe_has_threads() noexcept

cdef enum:                           # flags of a tensor (TensorBase.flags) or a call (Entry.flags)
    TRACKED = 1                      # requires a gradient, so calls are recorded (node.pxi)
    VIEW = 2                         # has a Link; of a call: makes a view (link.pxi)
    NO_MEMORY = 4                    # a value of a graph (chapter 4), or a global tensor with parts
    GLOBAL = 8                       # has a GlobalLayout (chapter 6, global.pxi)
    WRITES = 16                      # of a call: the kernel writes into its inputs (inplace.pxi)
    SPECIAL = 31 | ON_DEVICE         # flags that leave the fast path (ON_DEVICE: chapter 8)
    UNIFORM = 32                     # of a tensor: equal on all ranks
    INFERENCE = 64                   # made in inference mode
    ADOPTED = 128                    # is a .grad or in TapeNode.grads; other leaves must copy it
    MANY = 1024                      # of a call: several outputs, or many inputs (run_many)
    LOCAL_ONLY = 2048                # of a call: random, or an input is not UNIFORM (flags_of)

cdef enum:
    MAX_KEY = 160                    # integers in the key of a call: dtypes, shapes, strides
    MAX_DEPTH = 64                   # longest chain of views of views that is recorded
    NO_HISTORY = -1                  # epoch of a view made under no_grad

cdef class Entry:                    # an op prepared for one set of input specs and attributes
    cdef readonly object op
    cdef readonly tuple specs        # output Specs
    cdef readonly tuple attrs
    cdef readonly tuple in_shapes, in_dtypes
    cdef tuple written               # None, or the inputs the kernel writes into
    cdef fe_kernel fn
    cdef fe_work work
    cdef int nin, nout
    cdef fe_view *outs               # templates: shape, strides, dtype
    cdef int64_t *ints
    cdef double *reals
    cdef readonly int nints
    cdef const void *extra
    cdef readonly object keep        # owns what `extra` points to
    cdef int64_t contiguous          # bit i: input i must be contiguous
    cdef readonly int64_t cost       # work (axes.cost), which determines the number of threads
    cdef int flags                   # VIEW, WRITES, MANY, ON_DEVICE, LOCAL_ONLY (random)
    cdef readonly bint python        # the kernel is a Python function (ops/custom/pykernel.pyx)
    cdef bint quick                  # a small kernel without scratch memory, run on one thread
    cdef int64_t offset
    cdef int64_t key_len
    cdef int64_t key[MAX_KEY]
    cdef bint differentiable
    cdef public object launched      # data of the engine of another device (chapter 8)

cdef class TapeNode:                     # one call on the tape
    cdef readonly Entry entry        # the op and its attributes; None: `custom` has the rules
    cdef readonly object custom   # has name, shapes, outputs, backward(douts) (core/grad/custom.py)
    cdef readonly int64_t seq
    cdef readonly tuple edges        # per input: TapeNode, leaf tensor or None
    cdef int[4] slots        # per input: output number of that TapeNode (over 4 inputs: in `more`)
    cdef list more
    cdef public tuple saved          # values the gradient rules need, in the order of op.saved
    cdef int64_t[4] versions         # of the memory of `saved` (further ones: in `more_versions`)
    cdef list more_versions
    cdef public list grads           # filled during backward
    cdef bint needed, wanted         # needed: leads to a target; wanted: needed, or outputs one
    cdef public object hooks         # None, or a dict (tensor/gradients/hooks.py)
    cdef public object line          # source line, in anomaly mode and for ops without a gradient
    cdef object __weakref__
    cpdef int slot(self, int i)

cdef class Link:                     # how a view was made
    cdef readonly TensorBase base    # the tensor whose memory it shares, itself not a view
    cdef readonly TensorBase parent  # the input of the view op; None: chain too long, or no_grad
    cdef readonly OpBase op
    cdef readonly tuple attrs
    cdef readonly int depth
    cdef readonly bint plain         # made under no_grad, so it never has a history
    cdef public int64_t epoch        # base.epoch when its history was recorded, or NO_HISTORY

cdef class GlobalLayout:       # one object for each placement and sbp (sbp/tensor/global_layout.py)
    cdef readonly object placement, sbp, layout      # layout: the object of core/sbp
    cdef readonly GlobalLayout whole # the broadcast layout on the same placement
    cdef readonly bint single        # on one device, so the tensor has memory, as local ones do

cdef class Rare:                     # fields that few tensors have
    cdef public object parts      # of a global tensor: {rank: local tensor} of this process
    cdef public object symbol        # lazy tensors: their value in the graph
    cdef public object grad_name     # lazy tensors: the name of grad_fn
    cdef public object hooks         # {id: function} of register_hook, on a leaf
    cdef public object after         # {id: function} of register_post_accumulate_grad_hook
    cdef public bint retains         # retain_grad() was called

cdef class TensorBase(Array):
    cdef public int out_index
    cdef public object _grad
    cdef public TapeNode node
    cdef public int64_t epoch        # number of in-place changes of the history
    cdef readonly Link link          # None: not a view. Set it with set_link
    cdef GlobalLayout _layout        # None: a local tensor. Set it with set_layout
    cdef public Rare rare            # None: none of its fields is set

cdef class Slots:                    # parts of later chapters; hooks.pxi describes each of them
    cdef public object Tensor, Size                               # classes of results and shapes
    cdef public OpBase add, sub, mul, div, matmul                 # ops of the operators
    cdef public object mixed, mixed_matmul                        # operators, other operands
    cdef public object write, into, renew                         # writes in place, stale views
    cdef public object node_name, node_next, node_hook            # methods of TapeNode
    cdef public object leaf_hooks, before_node, after_node        # hooks during backward
    cdef public object pack, line, watch                          # saved values, anomaly mode
    cdef public object seed                                       # flow.manual_seed
    cdef public object run_global, bring, logical, write_parts    # global tensors (chapter 6)
    cdef public object device_memory, launch, carry, move         # other devices (chapter 8)

cdef Slots filled

cdef inline int flags_of(TensorBase x) noexcept:
    """Return the flags of a call with input x. Those of several inputs are combined by OR."""
    cdef int flags = x.flags if x.flags & UNIFORM else x.flags | LOCAL_ONLY
    return flags if x.block != NULL else flags | NO_MEMORY

cdef inline void set_flag(TensorBase x, int flag, bint on) noexcept:
    x.flags = x.flags | flag if on else x.flags & ~flag

cdef inline void bind(fe_call *call, Entry e, fe_view *args, const int64_t *ints) noexcept:
    call.fn, call.args, call.nin, call.nargs = e.fn, args, e.nin, e.nin + e.nout
    call.ints, call.reals, call.extra, call.work = ints, e.reals, e.extra, NULL
    call.parallel, call.node, call.kept, call.detail = 0, 0, 0, 0

cdef int refresh_view(TensorBase x) except -1
cdef int set_output(TensorBase y, TapeNode node, int out_index, bint tracked) except -1
cdef int64_t version_of(TensorBase x)
cdef bint same_view(const fe_view *a, const fe_view *b) noexcept
cdef int copy_history(TensorBase x, TensorBase y) except -1
cdef int take_symbol(TensorBase x, TensorBase y) except -1
cdef Entry find(OpBase op, tuple inputs, tuple attrs)
cdef int compute_any(Entry e, tuple inputs, fe_view *args, const int64_t *drawn) except -1
cdef int start(Entry e, tuple inputs, list outputs, int device, const int64_t *drawn) except -1
cdef tape(OpBase op, tuple inputs, Entry e, result)
cdef int64_t select_saved(OpBase op, tuple inputs)
cdef bint has_differentiable_input(OpBase op, tuple inputs)
cdef TensorBase new_tensor()
cdef int copy_values(fe_view *source, fe_view *target) except -1
cpdef bint set_grad_enabled(bint on) noexcept
cpdef bint set_amp(bint on) noexcept
cpdef int constants_on(int device) noexcept
cdef TensorBase alias_of(TensorBase t)
cdef TensorBase copy_contiguous(TensorBase x, int device=*)
cdef raise_readonly(what)
