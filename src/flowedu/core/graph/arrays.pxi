# Arguments and outputs of a plan: their checks, addresses, and memory (part of executor.pyx).

cdef int *NUMPY_CODE = [          # by dtype code; bfloat16 has the bits of uint16
    cnp.NPY_FLOAT32, cnp.NPY_FLOAT64, cnp.NPY_INT32, cnp.NPY_INT64, cnp.NPY_INT8,
    cnp.NPY_UINT8, cnp.NPY_BOOL, cnp.NPY_FLOAT16, cnp.NPY_UINT16, cnp.NPY_INT16]


cdef class ArrayInterface(BoundPlan):
    """A bound plan with arguments and outputs, which are tensors or ndarrays."""
    cdef public bint as_tensors  # arguments and outputs are tensors, not ndarrays
    cdef tuple in_types          # NumPy dtypes of the arguments

    def __cinit__(self, plan, bint always_parallel=False, int threads=0):
        self.in_types = tuple([v.spec.dtype.numpy for v in plan.graph.inputs.values()])

    def accepts(self, tuple arguments):
        """Return True for C-contiguous, aligned ndarrays with the right shapes and dtypes."""
        cdef int i
        cdef fe_view *v
        cdef cnp.ndarray a
        if len(arguments) != self.ninputs:
            return False
        for i in range(self.ninputs):
            o = arguments[i]
            if type(o) is not np.ndarray:
                return False
            a, v = <cnp.ndarray>o, &self.views[i]
            if cnp.PyArray_NDIM(a) != v.ndim or not cnp.PyArray_IS_C_CONTIGUOUS(a) \
                    or not cnp.PyArray_ISALIGNED(a) or a.descr is not self.in_types[i] \
                    or memcmp(cnp.PyArray_DIMS(a), v.shape, v.ndim * sizeof(int64_t)):
                return False
        return True

    def takes(self, tuple arguments):
        """Return True for contiguous, eager, local CPU tensors with the right shapes and dtypes."""
        cdef int i
        cdef fe_view *v
        cdef TensorBase x
        if len(arguments) != self.ninputs:
            return False
        for i in range(self.ninputs):
            o = arguments[i]
            if not isinstance(o, TensorBase):
                return False
            x, v = <TensorBase>o, &self.views[i]
            if x.block == NULL or x.flags & (GLOBAL | ON_DEVICE) or x.v.ndim != v.ndim \
                    or x.v.dtype != v.dtype or not view_contiguous(&x.v) \
                    or memcmp(x.v.shape, v.shape, v.ndim * sizeof(int64_t)):
                return False
        return True

    cdef int set_addresses(self, tuple arguments) except -1:
        """Point the views into `arguments`, which has the inputs, then the new outputs."""
        cdef int i
        cdef char *data
        for i in range(self.npatch):
            data = self.memory(arguments[self.patches[i].arg])
            self.patches[i].view.data = data + self.patches[i].offset
        return 0

    cdef char *memory(self, o) noexcept:
        if self.as_tensors:
            return (<TensorBase>o).v.data
        return <char *>cnp.PyArray_DATA(<cnp.ndarray>o)

    cdef tuple new_outputs(self):
        """Allocate the outputs as tensors or ndarrays."""
        return tuple([self.output_tensor(i) if self.as_tensors else self.output_array(i)
                      for i in range(self.noutputs)])

    cdef object output_tensor(self, int i):
        cdef TensorBase y = new_tensor()
        y.v = self.outs[i]
        set_row_major(&y.v)
        if not allocate(y):
            spec = self.plan.graph.outputs[i].spec
            raise out_of_memory(self.plan.graph.name, f"output {i}, {spec}", spec.nbytes)
        return y

    cdef object output_array(self, int i):
        cdef fe_view *v = &self.outs[i]
        return cnp.PyArray_SimpleNew(v.ndim, <cnp.npy_intp *>v.shape, NUMPY_CODE[v.dtype])

    cdef int fetch(self, int i, to) except -1:
        """Copy output `i` into `to` in row-major order, unless a kernel wrote it there."""
        cdef fe_view y = self.outs[i]
        y.data = self.memory(to)
        set_row_major(&y)
        return copy_values(&self.outs[i], &y) if y.data != self.outs[i].data else 0
