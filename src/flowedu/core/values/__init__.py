"""Chapter 1: values and the memory behind them. Its files, in reading order:

    dtype.py                  element types
    size.py                   what t.shape is
    spec.py                   shape and dtype of a value; broadcasting, strides
    storage.pyx, storage.pxd  Array: memory seen through a shape and strides
    blob.py                   Blob: a description with a name and no data
    typing.py                 type names of a job's arguments
    placeholder.py            what a job takes, and the check of each call
    signature.py              what a job takes and returns, as a whole
    place.py                  the devices that something is on; balanced cuts
    thread_state.py           the state of a thread, all of it
"""
from flowedu._kernels.core import openmp
