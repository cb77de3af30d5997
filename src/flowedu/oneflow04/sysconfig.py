"""flow.sysconfig: build options of flowedu, and flags for compiling a C kernel, with OneFlow 0.4's names."""
from __future__ import annotations

import os
from pathlib import Path

from flowedu.core.eager import dispatch as core

_PACKAGE = str(Path(__file__).resolve().parents[1])


def get_include() -> str:
    """The folder of abi.h, which describes a kernel's arguments."""
    return os.path.join(_PACKAGE, "_kernels", "core")


def get_lib() -> str:
    """The folder of the package, with its extension modules."""
    return _PACKAGE


def get_compile_flags() -> list[str]:
    """Flags with which a C kernel is compiled."""
    return [f"-I{get_include()}", "-fPIC", *(["-fopenmp"] if with_openmp() else [])]


def get_link_flags() -> list[str]:
    """Flags with which it is linked: there is no library of flowedu's to link with."""
    return ["-shared", *(["-fopenmp"] if with_openmp() else [])]


def with_cuda() -> bool:
    """Whether kernels for NVIDIA GPUs are built in."""
    return False


def with_xla() -> bool:
    """Whether XLA is: never."""
    return False


def with_rdma() -> bool:
    """Whether RDMA is: never."""
    return False


def with_openmp() -> bool:
    """Whether kernels run on several threads."""
    return bool(core.has_threads())


def has_rpc_backend_grpc() -> bool:
    """Whether machines can talk by gRPC: never; several machines are simulated."""
    return False


def has_rpc_backend_local() -> bool:
    """Whether one process can work alone."""
    return True


def use_cxx11_abi() -> bool:
    """Which C++ ABI the library has: it is in C, so this only keeps build scripts going."""
    return True
