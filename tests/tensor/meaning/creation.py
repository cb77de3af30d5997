"""Reference for functions that create tensors from Python numbers."""
import numpy as np

from .kinds import T, as_kind
from .shapes import ints


def usual(values) -> str:
    """Return the default dtype of Python numbers: bool, int64, or float32."""
    a = np.asarray(values)
    return "float32" if not a.size or a.dtype.kind == "f" else "bool" if a.dtype.kind == "b" else "int64"


def unwrap_tensors(values):
    """Replace the tensors in nested lists by plain numbers."""
    if isinstance(values, T):
        return values.a
    return [unwrap_tensors(v) for v in values] if isinstance(values, (list, tuple)) else values


def tensor(values, dtype=None):
    kinds = {v.kind for v in values if isinstance(v, T)} if isinstance(values, (list, tuple)) else set()
    a = np.asarray(unwrap_tensors(values))
    kind = dtype or (values.kind if isinstance(values, T) else kinds.pop() if kinds else
                     a.dtype.name if isinstance(values, (np.ndarray, np.generic)) else usual(a))
    return as_kind(a.copy(), kind)


def full(size, value, dtype=None):
    return as_kind(np.full(size, value), dtype or usual(value))


def fill_with(value):
    return lambda *size, dtype=None: as_kind(np.full(ints(size), value), dtype or "float32")


def like(value):
    return lambda x, dtype=None: as_kind(np.full(x.shape, value), dtype or x.kind)


def full_like(x, value, dtype=None):
    return like(value)(x, dtype)


def arange(*args, dtype=None):
    start, end, step = (0, *args, 1) if len(args) == 1 else (*args, 1)[:3]
    n = max(0, -int((start - end) // step))
    return as_kind(start + step * np.arange(n), dtype or usual(np.asarray(args)))


def linspace(start, end, steps, dtype="float32"):
    return as_kind(np.linspace(start, end, steps), dtype)


def logspace(start, end, steps, base=10.0, dtype="float32"):
    return as_kind(base ** np.linspace(start, end, steps), dtype)


def window(formula):
    """Build a window from NumPy's symmetric ones: a periodic window is the next longer one without its last
    element.
    """
    def made(n, periodic=True, *numbers, dtype="float32"):
        return as_kind(formula(n + 1, *numbers)[:-1] if periodic and n > 1 else formula(n, *numbers), dtype)

    return made


def hamming(n, alpha=0.54, beta=0.46):
    return alpha + (beta / 0.46) * (np.hamming(n) - 0.54)


def eye(n, m=None, dtype="float32"):
    return as_kind(np.eye(n, m), dtype)


def typed(kind):
    """Call a legacy constructor: Tensor(values), or Tensor(2, 3) with a shape and arbitrary elements."""
    return lambda *args: as_kind(np.asarray(args[0]) if isinstance(args[0], list) else np.zeros(args), kind)


TYPED = dict(Float="float32", Long="int64", Bool="bool", Double="float64", Int="int32", Half="float16",
             Byte="uint8", Char="int8", BFloat16="bfloat16", Short="int16")
FUNCTIONS = {"tensor": tensor, "as_tensor": tensor, "full": full, "zeros": fill_with(0), "ones": fill_with(1),
             "empty": fill_with(0),
             "empty_like": like(0), "zeros_like": like(0), "ones_like": like(1), "full_like": full_like,
             "arange": arange, "bartlett_window": window(np.bartlett), "blackman_window": window(np.blackman),
             "hann_window": window(np.hanning),
             "hamming_window": window(hamming),
             "kaiser_window": window(lambda n, beta=12.0: np.kaiser(n, beta)),
             "linspace": linspace, "logspace": logspace, "eye": eye, "Tensor": typed("float32"),
             "new_zeros": lambda x, *size: as_kind(np.zeros(ints(size)), x.kind),
             "new_ones": lambda x, *size: as_kind(np.ones(ints(size)), x.kind),
             "new_full": lambda x, size, value: as_kind(np.full(size, value), x.kind),
             "new_tensor": lambda x, values: as_kind(np.asarray(values), x.kind), "numel": lambda x: x.a.size}
FUNCTIONS |= {f"{n}Tensor": typed(k) for n, k in TYPED.items()}
