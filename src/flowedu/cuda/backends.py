"""flow.backends: selection of the GPU library and its precision, by the names that PyTorch's programs use.

    flow.backends.cuda.preferred_blas_library("cublas")      # matrix products by cuBLAS, if it is installed
    flow.backends.cuda.matmul.allow_tf32 = True              # it may round float32 to TF32, for tensor cores

By default the kernels of this package compute everything, in the precision of its dtype. A setting applies to
later calls; an nn.Graph or a job keeps the setting that it was compiled with.
"""
from __future__ import annotations

from flowedu.cuda import again, blas, get_device_capability, is_available
from flowedu.diagnostics.lazy_imports import imported
from flowedu.errors import ArgumentError, DTypeError, UnsupportedError

_LIBRARIES = {"default": "flowedu", "flowedu": "flowedu", "cublas": "cublas"}


class Matmul:
    """Settings of matrix products: flow.backends.cuda.matmul."""

    __slots__ = ()

    @property
    def allow_tf32(self) -> bool:
        """True if float32 operands of products may be rounded to TF32 (10 mantissa bits), for tensor cores.

        Setting it to True raises UnsupportedError if the current GPU is older than sm_80. Without a GPU it
        has no effect.
        """
        return blas.tf32

    @allow_tf32.setter
    def allow_tf32(self, on: bool) -> None:
        if not isinstance(on, bool):
            raise DTypeError("backends.cuda.matmul.allow_tf32: not a bool", expected="True or False",
                             got=repr(on))
        capability = get_device_capability() if on and is_available() else (8, 0)
        if capability < (8, 0):
            raise UnsupportedError("backends.cuda.matmul.allow_tf32: this GPU has no tensor cores for TF32",
                                   expected="sm_80 or newer", got="sm_{}{}".format(*capability),
                                   fix="leave it False")
        blas.tf32 = on
        again.forget()


class Cuda:
    """Settings of the GPU library: flow.backends.cuda."""

    __slots__ = ()
    matmul = Matmul()

    def preferred_blas_library(self, backend: str | None = None) -> str:
        """Choose the library for float32 and float64 matrix products on a GPU, and return the choice.

        Args:
            backend: "cublas"; "flowedu" or "default", the kernels of this package; None: keep the choice.

        Raises:
            UnsupportedError: cuBLAS is not installed, or kernels run in the simulator. The choice is kept.
        """
        if backend is not None:
            if backend not in _LIBRARIES:
                raise ArgumentError("backends.cuda.preferred_blas_library: there is no such library",
                                    got=repr(backend), expected=", ".join(map(repr, _LIBRARIES)))
            if backend == "cublas":
                blas.library()
            blas.chosen = _LIBRARIES[backend]
            again.forget()
        return blas.chosen

    @staticmethod
    def is_built() -> bool:
        """Return True: every build can use a GPU. flow.cuda.is_available() checks for one."""
        return True


cuda = Cuda()

imported(__name__)
