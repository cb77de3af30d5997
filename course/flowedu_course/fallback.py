"""Kernels of students with the library's kernel as a fallback.

An op may do more than its exercise asks for (batches of products, softmax along the first axis). The
student's kernel runs the calls that it supports, and the library's kernel runs the others. This module also
counts the calls.

    address, work = either("matmul", mine, mine_work)
    times("matmul")                                 # number of calls of the student's kernel
"""
from __future__ import annotations

from flowedu.swap.build import build

SOURCE = """
from libc.stdint cimport int64_t
from flowedu._kernels.core.abi cimport *

ctypedef int (*Kernel)(fe_call *, const fe_team *, void *) noexcept nogil
ctypedef int64_t (*Work)(const fe_call *, int) noexcept nogil

cdef Kernel mine, library
cdef Work mine_work, library_work
cdef int64_t times = 0


cdef bint flat(const fe_view *v) noexcept nogil:
    cdef int64_t step = 1
    cdef int d
    for d in range(v.ndim - 1, -1, -1):
        if v.shape[d] == 0 or v.shape[d] != 1 and v.stride[d] != step:
            return False
        step *= v.shape[d]
    return True


cdef bint fits(const fe_call *call) noexcept nogil:
    cdef int d
    FITS


cdef int either(fe_call *call, const fe_team *team, void *tag) noexcept nogil:
    global times
    if not fits(call):
        return library(call, team, tag)
    if team.tid == 0:
        times += 1
    return mine(call, team, tag)


cdef int64_t work(const fe_call *call, int nt) noexcept nogil:
    cdef int64_t a = mine_work(call, nt) if mine_work and fits(call) else 0
    cdef int64_t b = library_work(call, nt) if library_work else 0
    return max(a, b)


def use(size_t my_kernel, size_t my_work, size_t its_kernel, size_t its_work):
    global mine, mine_work, library, library_work
    mine, mine_work = <Kernel><void *>my_kernel, <Work><void *>my_work
    library, library_work = <Kernel><void *>its_kernel, <Work><void *>its_work
    return <size_t><void *>either, <size_t><void *>work


def counted():
    return times
"""
ANY = "return True"
FITS = {"softmax": "return call.ints[0] == call.args[0].ndim - 1",
        "sum": """for d in range(call.args[0].ndim):
        if not call.ints[d]:
            return False
    return flat(&call.args[0])""",
        "matmul": """return call.args[0].ndim == 2 and call.args[1].ndim == 2 and not call.ints[0] and not call.ints[1] \\
        and flat(&call.args[0]) and flat(&call.args[1])"""}
_made = {}


def either(name: str, address: int, work: int = 0, code: int = 0) -> tuple[int, int]:
    """Return (address, address of its scratch size) of a kernel that dispatches to either kernel."""
    from flowedu._kernels import TABLE

    _made[name] = build(f"# {name}{SOURCE}".replace("FITS", FITS.get(name, ANY)))
    return _made[name].use(address, work, *TABLE[name, code])


def times(name: str) -> int:
    """Return the number of calls of the student's kernel, or 0 without one."""
    return _made[name].counted() if name in _made else 0
