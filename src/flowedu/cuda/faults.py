"""Conversion of kernel failures and driver errors to the exceptions of flowedu."""
from __future__ import annotations

from flowedu.cuda.machine import machine
from flowedu.errors import KernelError, OutOfMemoryError, user_line

FOR_GRAPHS = "run the block once before it is captured, and take what waits for the device (item, cpu, print) out of it"


class CudaFault(KernelError):
    """A kernel did what it must not; the launch was stopped. (From the simulator; a GPU says less.)

    Attributes: kind ("race", "outside", "unwritten", "diverged", "stuck", "lanes missing", "misaligned", ...); kernel;
    block and thread, tuples of three; line of the source, its text as `source`; other_thread, other_line of a race or of a
    barrier; and parameter, the name of the array that was left.
    """

    kind = kernel = source = parameter = ""
    block = thread = (0, 0, 0)
    other_thread: tuple[int, ...] | None = None
    other_line: int | None = None
    line: int | None = None


def raised(error: Exception, m) -> Exception:
    """The error of PyCUDA's as one of flowedu's: what the simulator reports, or what the driver said."""
    text = str(error).partition("failed: ")[2] or str(error)
    if isinstance(error, m.driver.MemoryError):
        return OutOfMemoryError("the device has no memory for this", got=text)
    if m.library is None or not isinstance(error, m.driver.LaunchError):
        return KernelError("the CUDA driver refused", got=text, fix=FOR_GRAPHS if "captur" in text else "")
    return reported(m)


def reported(m) -> CudaFault:
    """What the simulator says of the launch that failed last."""
    rows = dict(r.split("\t", 1) for r in m.library.cudasim_report().decode(errors="replace").split("\n") if r)
    fault = CudaFault(rows["problem"], expected=rows.get("expected", ""), got=rows.get("got", ""), fix=rows.get("fix", ""),
                      at=rows.get("at") or None)
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
    """Errors of the driver as flowedu's, which say what was being done."""

    def __init__(self, what: str, at: str = ""):
        self.what, self.at = what, at

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc) -> None:
        if exc[1] is not None:
            said(self.what, exc[1], self.at)


def said(what: str, e: BaseException, at: str = "") -> None:
    """Raises an error of the driver as flowedu's. Others it leaves alone."""
    if isinstance(e, machine().driver.Error):
        error = raised(e, machine())
        raise error.told(problem=f"{what}: {error.problem}", at=error.at or at or user_line()) from None
