"""Chapter 2: the engine: how a call runs now. Its files, in reading order:

    dispatch.pxd, dispatch.pyx  its structs; it includes the .pxi files below
    hooks.pxi                   hooks that other modules fill
    switches.pxi                gradients on or off, inference, devices, threads
    entry.pxi                   Entry: an op on one set of Specs, ready to run
    eager.pxi                   the eager interpreter
    memory.pxi                  tensors with new memory
    launch.pxi                  how a kernel is called, on how many threads
    node.pxi                    nodes of the tape
    tensorbase.pxi              the C part of Tensor
    link.pxi                    views and their history
    inplace.pxi                 writes into a tensor's memory
    tensor.py                   Tensor: attributes, conversions, operators
    arrays.py                   tensors over NumPy arrays
    later/                      what chapters 4 to 8 hook into it
"""
from flowedu.core.eager import arrays  # noqa: F401  the engine is whole with tensors over arrays
