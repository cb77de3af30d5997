"""Conversion of kernel failures and driver errors to the exceptions of flowedu."""
from __future__ import annotations

from flowedu.cuda.machine import machine
from flowedu.errors import FlowError, KernelError, OutOfMemoryError, user_line

FOR_GRAPHS = ("run the block once before it is captured, and take what waits for the device (item, cpu, "
              "print) out of it")


class CudaFault(KernelError):
    """Fault of a kernel that the simulator detected; it stopped the launch. A GPU reports fewer details.

    Attributes: kind ("race", "outside", "unwritten", "diverged", "overdue", "lanes missing", "misaligned",
    ...); kernel; block and thread, tuples of three; line, the source line, and source, its text;
    other_thread and other_line of a race or a barrier; parameter, the name of the array.
    """

    kind = kernel = source = parameter = ""
    block = thread = (0, 0, 0)
    other_thread: tuple[int, ...] | None = None
    other_line: int | None = None
    line: int | None = None


def raised(error: BaseException, m) -> FlowError:
    """Convert an error of PyCUDA to one of flowedu, with the simulator's report or the driver's message."""
    text = str(error).partition("failed: ")[2] or str(error)
    if isinstance(error, m.driver.MemoryError):
        return OutOfMemoryError("the device has no memory for this", got=text)
    if m.library is None or not isinstance(error, m.driver.LaunchError):
        return KernelError("the CUDA driver refused", got=text, fix=FOR_GRAPHS if "captur" in text else "")
    return reported(m)


def reported(m) -> CudaFault:
    """Return the simulator's report on the last failed launch."""
    rows = dict(r.split("\t", 1) for r in m.library.cudasim_report().decode(errors="replace").split("\n")
                if r)
    fault = CudaFault(rows["problem"], expected=rows.get("expected", ""), got=rows.get("got", ""),
                      fix=rows.get("fix", ""), at=rows.get("at") or None)
    for name in ("kind", "kernel", "source", "parameter"):
        setattr(fault, name, rows.get(name, ""))
    for name in ("block", "thread", "other_thread"):
        if name in rows:
            setattr(fault, name, tuple(int(i) for i in rows[name].split(",")))
    for name in ("line", "other_line"):
        if rows.get(name):
            setattr(fault, name, int(rows[name]))
    return fault


class check:
    """Context manager that converts driver errors to flowedu's, with the name of the operation."""

    def __init__(self, what: str, at: str = ""):
        self.what, self.at = what, at

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc) -> None:
        if exc[1] is not None:
            raise_driver_error(self.what, exc[1], self.at)


def raise_driver_error(what: str, e: BaseException, at: str = "") -> None:
    """Raise a driver error as flowedu's. Other exceptions are ignored."""
    if isinstance(e, machine().driver.Error):
        error = raised(e, machine())
        raise error.with_texts(problem=f"{what}: {error.problem}", at=error.at or at or user_line()) from None
