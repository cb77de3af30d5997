"""Every function, class, and method that a PyTorch program finds under flowedu's names has PyTorch's
arguments or a row in mock/differences.py, and every row describes an actual difference.
"""
import importlib
import inspect
import types

import pytest
import pytorch_signatures as pytorchs

import flowedu as flow
from flowedu import mock
from flowedu.mock import differences as table
from flowedu.mock.translate import _short

# tests/optim and tests/mock/test_mock_torch.py compare optim and optim.lr_scheduler
PLACES = ["", "accelerator", "amp", "autograd", "autograd.functional", "backends.cudnn", "cuda", "cuda.amp",
          "distributed", "distributions", "jit", "linalg", "nn", "nn.attention", "nn.functional", "nn.init",
          "nn.modules.utils", "nn.parallel", "nn.utils", "nn.utils.rnn", "onnx", "random", "serialization",
          "utils", "utils.data", "utils.model_zoo"]
# {argument: values with the same meaning} in flowedu and PyTorch, in either direction
ALIKE = {"memory_format": "None preserve_format contiguous_format", "layout": "None strided",
         "correction": "None 1",
         "unbiased": "None True", "compute_mode": "None 'use_mm_for_euclid_dist_if_necessary'",
         "indexing": "None 'ij'",
         "nan": "None 0.0", "src": "None 0", "dst": "None 0", "dx": "None 1.0",
         "broadcast_buffers": "None True",
         "reduction": "'mean' 1", "generator": "None default", "keep_vars": "None False"}
NUMBERED = {"stride", "padding", "dilation", "output_padding", "dims", "shifts"}  # 1 is the same as (1, 1)
NO_FUNCTIONS = {"Tensor", "Variable", "device", "dtype", "finfo", "iinfo", "Size", "memory_format", "layout"}


def _rows() -> dict[tuple[str, str], object]:
    """Return {(name of the callable, PyTorch's argument): row}."""
    found = {}
    for names, pairs in table.RENAMED.items():
        found |= {(_short(n), theirs): pairs for n in names.split() for theirs in pairs}
    for row in (*table.IDLE, *table.OTHERS):
        found |= {(_short(n), a.strip()): row for n in row.names.split() for a in row.argument.split(",")}
    for names, places in table.PLACES.items():
        found |= {(_short(n), "places"): places for n in names.split()}
    return found


ROWS = _rows()
IDLE = {(_short(n), row.argument) for row in table.IDLE for n in row.names.split()}
AT_LEAST = {"arange", "randint", "randint_like", "repeat_interleave"}    # test_mock_calls.py calls them
RENAMED = {_short(n): pairs for names, pairs in table.RENAMED.items() for n in names.split()}


def _format_default(x) -> str:
    if inspect.isfunction(x) or inspect.isbuiltin(x):
        return repr(x.__name__)
    return repr(x).replace("torch.", "").replace("flowedu.", "").replace("RedOpType",
                                                                         "ReduceOp").replace("<function ", "")


def _same(name: str, ours, theirs) -> bool:
    if ours is theirs or theirs is pytorchs.EMPTY or (not isinstance(ours, bool)
                                                      and type(ours) in (int, float) and
                                                      type(theirs) in (int, float) and ours == theirs):
        return True
    a, b = _format_default(ours), _format_default(theirs)
    if isinstance(ours, (list, tuple)) and isinstance(theirs, (list, tuple)):
        return [*ours] == [*theirs]
    if name == "op":  # values of a Python Enum and of a C++ enum
        return str(ours).rpartition(".")[2] == str(theirs).rpartition(".")[2]
    if name in NUMBERED and isinstance(theirs, (list, tuple)):
        return ours is None or [*theirs] == ([ours] * len(theirs) if isinstance(ours, int) else [*ours])
    return (a == b or {a, b} <= {*ALIKE.get(name, "").split()} or "object at" in b or b == "'valid'"
            or "<module" in b)


def misfits(names: list[str], ours, theirs) -> list[str]:
    """Return the arguments of one of PyTorch's signatures that flowedu does not accept unchanged, or "places"
    if positions differ. names: the names of the function in the table.
    """
    by_name = {a.name: a for a in ours if a.kind in ("place", "name")}
    star, rest = any(a.kind == "*" for a in ours), any(a.kind == "**" for a in ours)
    found = [a.name for a in theirs if a.kind in ("place", "name") and a.name != "tensors" and (
        a.name not in by_name and not rest or a.name in by_name and not _same(a.name, by_name[a.name].default,
                                                                              a.default))]
    places = [a.name for a in ours if a.kind == "place"]
    wanted = [a.name for a in theirs if a.kind == "place"]
    while wanted and wanted[-1] in found and any((n, wanted[-1]) in IDLE for n in names) \
            and not any((n, "places") in ROWS for n in names):
        wanted.pop()                                                      # an extra argument raises an error
    pairs = {a: b for n in names for a, b in RENAMED.get(n, {}).items() if b not in wanted
             and (n != "*" or b in places and a not in places)}
    wanted = [pairs.get(n, n) for n in wanted]
    if not star and wanted != places[:len(wanted)]:
        found.append("places")
    return found


def _pairs(torch):
    """Yield (name, flowedu's, PyTorch's) for every callable that both have. Old names in nn.init take the
    arguments of the new ones (normal and normal_).
    """
    real = {place: importlib.import_module(f"torch.{place}" if place else "torch") for place in PLACES}
    with mock.enable("torch"):
        for place, theirs in real.items():
            module = importlib.import_module(f"torch.{place}" if place else "torch")
            for n in dir(module):
                if n.startswith("_") or n in NO_FUNCTIONS or not hasattr(theirs, n):
                    continue
                a = getattr(module, n)
                n += "_" * (place == "nn.init" and hasattr(theirs, n + "_"))
                b = getattr(theirs, n)
                if (callable(a) and callable(b) and not isinstance(a, types.ModuleType)
                    and not n.endswith("Tensor")):
                    yield f"{place}.{n}".lstrip("."), a, b
                    if (isinstance(a, type) and isinstance(b, type)
                        and not issubclass(a, (flow.Tensor, BaseException))):
                        yield from ((f"{place}.{n}.{m}".lstrip("."), getattr(a, m), getattr(b, m))
                                    for m in dir(a)
                                    if m[0] != "_" and callable(getattr(a, m))
                                    and callable(getattr(b, m, None)))
        for n in dir(flow.Tensor):
            if n[0] != "_" and callable(getattr(flow.Tensor, n)) and callable(getattr(torch.Tensor, n, None)):
                yield f"Tensor.{n}", getattr(flow.Tensor, n), getattr(torch.Tensor, n)


def _compare_signatures(torch) -> tuple[set, list, int]:
    """Return the rows that were needed, the differences without a row, and the number of compared names."""
    used = set()
    wrong = []
    compared = 0
    seen = set()
    for name, own, theirs in _pairs(torch):
        method = name.rpartition(".")[0].rpartition(".")[2][:1].isupper()
        last, ours = name.rpartition(".")[2], pytorchs.of_python(own)
        ways = pytorchs.of_torch(torch, theirs, last, name.startswith("Tensor."),
                                 f"linalg_{last}" if name.startswith("linalg.") else "")
        if method and not isinstance(own, type):
            ours = ours and [a for a in ours if (a.name, a.kind) not in (("self", "place"), ("cls", "place"))]
            ours = ours and ours[name.startswith("Tensor.") and ours[0].name in ("input", "x"):]
            ways = [[a for a in way if a.name not in ("self", "cls")] for way in ways]
        key = id(getattr(own, "__func__", own)), last, str(ways)
        if ours is None or not ways or key in seen:
            continue
        seen.add(key)
        compared += 1
        defined = getattr(own, "__qualname__", "")  # Module.modules belongs to a class of the mock
        names = [*([f"{k.__name__}.{last}" for k in _owner(name)] if method else []), _short(name),
                 *[defined] * ("." in defined), "*"]
        lacking = [misfits(names, ours, way) for way in ways]
        for argument in dict.fromkeys(n for way in lacking for n in way):
            rows = [(n, a) for n in names for a in (argument, "all") if (n, a) in ROWS]
            used.update(rows[:1])
            if not rows and argument not in ("out",):
                wrong.append(f"{name}: {argument}: {inspect.signature(own)}, PyTorch's {ways}")
    return used, wrong, compared


def _owner(name: str) -> tuple[type, ...]:
    path = name.split(".")[:-1]
    try:
        found = flow
        for part in path:
            found = getattr(found, part)
    except AttributeError:
        return ()
    return found.__mro__ if isinstance(found, type) else ()


@pytest.mark.torch
def test_arguments_are_pytorchs_or_in_the_table():
    torch = pytest.importorskip("torch")
    used, wrong, compared = _compare_signatures(torch)
    assert not wrong, f"{len(wrong)}: " + "\n".join(wrong)
    assert compared > 1200
    idle = {k for k, row in ROWS.items() if k not in used and k[0] not in {"*", *AT_LEAST}}
    assert not idle, f"rows without a difference: {sorted(idle)}"
