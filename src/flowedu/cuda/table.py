"""Table of GPU kernels, by the names that records use: TABLE[kernel name, dtype code] is a Launch.

launch.py describes the arguments of a Launch. The dtype is the one that also selects the CPU's version.
"""
from flowedu.cuda.launch import TABLE, Launch, fault
from flowedu.cuda.launches import (  # noqa: F401  (each registers its kernels)
    checks,
    conv,
    elementwise,
    index,
    layout,
    linalg,
    matmul,
    norm,
    order,
    pool,
    random,
    reduce,
    resize,
    softmax,
    update,
)
from flowedu.cuda.view import View

__all__ = ["TABLE", "Launch", "View", "fault"]
