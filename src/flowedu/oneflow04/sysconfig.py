"""Build options of flowedu and flags for compiling a C kernel, with OneFlow 0.4's names: flow.sysconfig."""
from __future__ import annotations

import os
from pathlib import Path

from flowedu.core.eager import dispatch as core

_PACKAGE = str(Path(__file__).resolve().parents[1])


def get_include() -> str:
    """Return the folder of abi.h, which declares the arguments of a kernel."""
    return os.path.join(_PACKAGE, "_kernels", "core")


def get_lib() -> str:
    """Return the folder of the package, which contains its extension modules."""
    return _PACKAGE


def get_compile_flags() -> list[str]:
    """Return the compiler flags for a C kernel."""
    return [f"-I{get_include()}", "-fPIC", *(["-fopenmp"] if with_openmp() else [])]


def get_link_flags() -> list[str]:
    """Return the linker flags for a C kernel. flowedu has no library to link with."""
    return ["-shared", *(["-fopenmp"] if with_openmp() else [])]


def with_cuda() -> bool:
    """Return False: the build contains no kernels for NVIDIA GPUs."""
    return False


def with_xla() -> bool:
    """Return False: XLA is not supported."""
    return False


def with_rdma() -> bool:
    """Return False: RDMA is not supported."""
    return False


def with_openmp() -> bool:
    """Return True if kernels run on several threads."""
    return bool(core.has_threads())


def has_rpc_backend_grpc() -> bool:
    """Return False: gRPC is not supported; several machines are simulated."""
    return False


def has_rpc_backend_local() -> bool:
    """Return True: one process can run alone."""
    return True


def use_cxx11_abi() -> bool:
    """Return True, for build scripts that read the C++ ABI. flowedu's kernels are written in C."""
    return True
