"""Written by `make stubs`: do not edit."""
from typing import Any

class Stamps:
    """Recording of the calls of a plan."""
    address: Any
    executor: Any
    kernels: Any
    number: Any
    times: Any
    def __enter__(self) -> Any: ...
    def __exit__(self, *exc) -> Any: ...
    def __init__(self, executor) -> None: ...
free_tables: list
