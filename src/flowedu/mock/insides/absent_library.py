"""backends.mkl, mkldnn, openmp: libraries that flowedu does not compute with. Flags may be set, and change nothing."""
import contextlib

enabled = deterministic = allow_tf32 = False
strategy = None


def is_available() -> bool:
    """False."""
    return False


def flags(**settings):
    """A context in which nothing is other."""
    return contextlib.nullcontext()


set_flags = verbose = flags
