"""backends.cudnn: settings of a library that flowedu does not use; they may be set, and change nothing."""
enabled = benchmark = deterministic = allow_tf32 = False
benchmark_limit = 10


def is_available() -> bool:
    """False."""
    return False


def version() -> None:
    """Return None: flowedu does not use cuDNN."""


def flags(**settings):
    """A context in which nothing is other."""
    import contextlib
    return contextlib.nullcontext()
