# The C part of flow.Tensor: data, tape links, operators (part of core.pyx).

cdef class TensorBase(Array):
    """The C part of flow.Tensor: data, tape links, operators. tensor.py adds the methods users see."""

    @property
    def grad(self):
        """The gradient backward accumulated; None: none yet."""
        return self.grad_

    @grad.setter
    def grad(self, value):
        if value is not None and not isinstance(value, TensorBase):
            raise DTypeError("grad: not a tensor", expected="a tensor or None", got=type(value).__name__)
        self.grad_ = value

    @property
    def spec(self):
        from flowedu.blob.spec import Spec
        return Spec(self.shape, self.dtype)

    def __add__(self, other):
        return binary(ADD, self, other)

    def __radd__(self, other):
        return binary(ADD, other, self)

    def __sub__(self, other):
        return binary(SUB, self, other)

    def __rsub__(self, other):
        return binary(SUB, other, self)

    def __mul__(self, other):
        return binary(MUL, self, other)

    def __rmul__(self, other):
        return binary(MUL, other, self)

    def __truediv__(self, other):
        return binary(DIV, self, other)

    def __rtruediv__(self, other):
        return binary(DIV, other, self)

    def __matmul__(self, other):
        if isinstance(self, TensorBase) and isinstance(other, TensorBase) and \
                (<TensorBase>self).v.dtype == (<TensorBase>other).v.dtype:
            return MATMUL.call((self, other), MATMUL.defaults)
        return matmul_hook(self, other)

cdef OpBase ADD = None, SUB = None, MUL = None, DIV = None, MATMUL = None, SUM = None
cdef object matmul_hook = None, mixed = None


def register_operators(add, sub, mul, div, matmul, sum, mixed_matmul, mixed_operands):
    """Give the operators their ops; the `mixed` functions handle scalars, unequal dtypes and foreign operands."""
    global ADD, SUB, MUL, DIV, MATMUL, SUM, matmul_hook, mixed
    ADD, SUB, MUL, DIV, MATMUL, SUM, matmul_hook, mixed = add, sub, mul, div, matmul, sum, mixed_matmul, mixed_operands


cdef OpBase sum_op():
    return SUM


cdef binary(OpBase op, a, b):
    if isinstance(a, TensorBase) and isinstance(b, TensorBase) and (<TensorBase>a).v.dtype == (<TensorBase>b).v.dtype \
            and ((<TensorBase>a).v.dtype < 2 or op is not DIV):
        return op.call((a, b), NOTHING)
    return mixed(op, a, b)
