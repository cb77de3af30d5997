"""mps, xpu: devices that are not here."""


def is_available() -> bool:
    """False."""
    return False


is_built = is_available


def device_count() -> int:
    """0."""
    return 0


def manual_seed(seed: int) -> None:
    """Nothing: there is no such device."""


manual_seed_all = empty_cache = synchronize = lambda *args: None
