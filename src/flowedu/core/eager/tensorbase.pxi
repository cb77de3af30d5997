# Chapter 2: the C part of flow.Tensor: data, tape links, operators (part of dispatch.pyx).

cdef class Rare:
    """Fields that few tensors have, such as a symbol or hooks."""

@cython.binding(False)
@cython.c_api_binop_methods(True)    # C slots; either operand may be the tensor
cdef class TensorBase(Array):
    """C part of flow.Tensor: data, tape links, operators. tensor.py adds the public methods."""

    @property
    def tracked(self):
        """True if the tensor requires a gradient."""
        return self.flags & TRACKED != 0

    @tracked.setter
    def tracked(self, bint on):
        set_flag(self, TRACKED, on)

    @property
    def uniform(self):
        """True if the tensor was computed from constants only, so it is equal on all ranks."""
        return self.flags & UNIFORM != 0

    @uniform.setter
    def uniform(self, bint on):
        set_flag(self, UNIFORM, on)

    @property
    def inference(self):
        """True if the tensor was made in inference mode."""
        return self.flags & INFERENCE != 0

    @property
    def global_layout(self):
        """The GlobalLayout; None for a local tensor."""
        return self._layout

    @global_layout.setter
    def global_layout(self, GlobalLayout global_layout or None):
        set_layout(self, global_layout)

    @property
    def grad(self):
        """The gradient accumulated by backward; None before the first backward."""
        return self._grad

    @grad.setter
    def grad(self, value):
        if value is not None and not isinstance(value, TensorBase):
            raise errors.grad_not_a_tensor(value)
        if value is not None and value._sizes() != self._sizes():
            raise errors.grad_shape(self._sizes(), value._sizes())
        if value is not None and value.dtype is not self.dtype:
            raise errors.grad_dtype(self.dtype.name, value.dtype.name)
        self._grad = value

    @property
    def spec(self):
        return Spec(self._sizes(), self.dtype)

    @property
    def shape(self):
        cdef int d
        cdef object n         # an object, since a C integer would be boxed at each use
        shape = PyType_GenericAlloc(<PyTypeObject *>filled.Size, self.v.ndim)  # items unset
        for d in range(self.v.ndim):
            n = self.v.shape[d]
            Py_INCREF(n)
            PyTuple_SET_ITEM(shape, d, n)
        return shape

    def _sizes(self):
        """Return the shape as a plain tuple."""
        return tuple([self.v.shape[i] for i in range(self.v.ndim)])

    @property
    def symbol(self):
        """The value of a lazy tensor in the graph being built; None for eager tensors."""
        if self.rare is None:
            return None
        if self.flags & VIEW and self.block == NULL and lazy_mode():
            refresh_view(self)                           # its base may have been written
        return self.rare.symbol

    @symbol.setter
    def symbol(self, value):
        if self.rare is None:
            self.rare = Rare()
        self.rare.symbol = value

    @property
    def _device(self):
        """The device of the memory (Block.device), or of the graph of a lazy tensor."""
        if self.block != NULL:
            return self.block.device
        return _thread_state.tracer.placing.place if self.is_lazy and _thread_state.tracer else 0

    def _on_host(self):
        """Return self, or for a tensor on a GPU a copy in main memory without history."""
        return copy_to_device(self, 0) if self.flags & ON_DEVICE else self

    @property
    def _owner(self):
        """The object with the memory of a tensor on a GPU (flowedu.cuda.memory), or None."""
        return <object>self.block.owner if self.flags & ON_DEVICE else None

    @property
    def is_lazy(self):
        """True for a value of a graph, which has a shape and a dtype but no memory."""
        return self.block == NULL and (self.rare is None or self.rare.parts is None)

    @property
    def is_eager(self):
        return not self.is_lazy

    @property
    def has_memory(self):
        """False for lazy tensors, and for global ones on several devices."""
        return self.block != NULL

    def refresh_view(self):
        """Record the history of a view again if its base was written in place."""
        if self.flags & VIEW:
            refresh_view(self)

    @property
    def _can_track(self):
        """True if tensors of this dtype can have gradients."""
        return has_gradient(self.v.dtype)

    def __add__(self, other):
        return binary(filled.add, self, other)

    def __sub__(self, other):
        return binary(filled.sub, self, other)

    def __mul__(self, other):
        return binary(filled.mul, self, other)

    def __truediv__(self, other):
        return binary(filled.div, self, other)

    def __iadd__(self, other):
        return update(filled.add, self, other)

    def __isub__(self, other):
        return update(filled.sub, self, other)

    def __imul__(self, other):
        return update(filled.mul, self, other)

    def __itruediv__(self, other):
        return update(filled.div, self, other)

    def __matmul__(self, other):
        if isinstance(self, TensorBase) and isinstance(other, TensorBase) \
                and computes((<TensorBase>self).v.dtype) \
                and (<TensorBase>self).v.dtype == (<TensorBase>other).v.dtype \
                and (<TensorBase>self).v.ndim == 2 and (<TensorBase>other).v.ndim == 2:
            return dispatch(filled.matmul, (self, other), filled.matmul.defaults)
        return filled.mixed_matmul(self, other)


cdef binary(OpBase op, a, b):
    if isinstance(a, TensorBase) and isinstance(b, TensorBase) \
            and (<TensorBase>a).v.dtype == (<TensorBase>b).v.dtype \
            and (computes((<TensorBase>a).v.dtype)
                 or op is not filled.div and is_integer((<TensorBase>a).v.dtype)):
        return dispatch(op, (a, b), NOTHING)
    return filled.mixed(op, a, b)
