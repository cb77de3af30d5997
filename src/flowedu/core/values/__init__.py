"""Chapter 1: values and the memory behind them, file by file in reading order.

    dtype.py                  element types
    size.py                   Size: the class of t.shape
    spec.py                   shape and dtype of a value; broadcasting, strides
    storage.pyx, storage.pxd  Array: a block of memory with a shape and strides
    blob.py                   Blob: a description with a name and no data
    typing.py                 type names of a job's arguments
    placeholder.py            definitions of a job's arguments, and the check of each call
    signature.py              the parameters and the return annotation of a job
    place.py                  Place: a grid of devices; balanced cuts of a size
    thread_state.py           the active contexts of a thread
"""
from flowedu._kernels.core import openmp
