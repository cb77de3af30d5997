"""Chapter 2: the files of the engine, which runs calls eagerly, in reading order.

    dispatch.pxd, dispatch.pyx  structs and classes; includes the .pxi files below
    hooks.pxi                   slots for functions of later chapters
    switches.pxi                gradient recording, inference mode, devices, threads
    entry.pxi                   Entry: an op prepared for one set of Specs
    eager.pxi                   the eager interpreter
    memory.pxi                  allocation of tensors
    launch.pxi                  kernel calls and their number of threads
    node.pxi                    nodes of the tape
    tensorbase.pxi              the C part of Tensor
    link.pxi                    views and their history
    inplace.pxi                 in-place writes
    tensor.py                   Tensor: attributes, conversions, operators
    arrays.py                   tensors over NumPy arrays
    later/                      extensions of chapters 4 to 8
"""
from flowedu.core.eager import arrays  # noqa: F401  registers from_numpy
