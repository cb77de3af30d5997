"""flow.save and flow.load of global tensors. One rank accesses the file, and all ranks call the function.

The file contains logical values, so a checkpoint can be loaded under any other placement and sbp:
model.load_state_dict converts the loaded values to the layout of each parameter.
"""
from __future__ import annotations

import json
import os
from typing import Any

from flowedu.core.eager.dispatch import labelled
from flowedu.core.layers.parameter import Parameter
from flowedu.core.sbp.names import BROADCAST, placement
from flowedu.core.sbp.ranks import current
from flowedu.core.sbp.tensor.convert import logical
from flowedu.core.sbp.tensor.global_layout import check_placement, layout_of
from flowedu.core.sbp.tensor.interpreter import assemble
from flowedu.core.values import dtype as dt
from flowedu.core.values.spec import Spec
from flowedu.errors import FlowError
from flowedu.saving import state
from flowedu.saving.folder import CheckpointFileError
from flowedu.tensor import Tensor, empty
from flowedu.utils.global_view import mapped

_TYPES = {d.name: d for d in dt.dtypes()}


def save_global(obj: Any, path: str | os.PathLike, rank: int | None) -> None:
    """Collect the logical values of global tensors on `rank` (default: 0), which writes the file.

    The function returns on all ranks when the file is written. An error on `rank` is raised on all ranks.
    """
    rank = _check_rank("flow.save: global_dst_rank", 0 if rank is None else rank)

    def collected(t: Tensor) -> Tensor:
        if t.global_layout is None:
            return t
        value = logical(t)
        if isinstance(t, Parameter):
            return Parameter(value, t.requires_grad)
        return value.detach().requires_grad_(t.requires_grad) if t.is_leaf else value.detach()

    value = mapped(obj, collected)
    _run_on(rank, lambda: state.save(value, path))


def load_global(path: str | os.PathLike, rank: int, map_location: Any = None) -> Any:
    """Read the object at `path` on one rank, and return it on all ranks.

    The tensors have placement("cpu", [rank]) and sbp broadcast. If map_location is "cuda", they are on the
    GPU of that rank.
    """
    kind = "cuda" if str(map_location).startswith("cuda") else "cpu"
    rank = _check_rank("flow.load: global_src_rank", rank, kind)
    tensors: dict[str, Any] = {}

    def read() -> list:
        content = state.load(path, map_location=None if kind == "cuda" else map_location)
        tree = state._Encoder(tensors).encode(content, "state")
        return [tree, {n: [list(t.shape), _type(t).name] for n, t in tensors.items()}]

    tree, specs = _run_on(rank, read)
    global_layout = layout_of(placement(kind, [rank]), (BROADCAST,))

    class Decoder(state._Decoder):
        def variable(self, name):
            return tensors.get(name)

        def tensor(self, x):
            shape, kind = specs[x["tensor"]]
            tensor = tensors.get(x["tensor"])
            parts = {} if tensor is None else {rank: labelled(tensor, None)}
            t = assemble(Spec(tuple(shape), _TYPES[kind]), global_layout, parts)
            if x.get("parameter"):
                return Parameter(t, bool(x.get("requires_grad")))
            return t.requires_grad_() if x.get("requires_grad") else t

    return Decoder(None, None).decode(tree)


def tree_of(obj: Any, rank: int, kept: bool) -> Any:
    """Send the object of `rank` to all ranks and return it, with empty tensors in place of its tensors.

    If `kept` is true, the calling rank returns its own `obj` unchanged. All ranks must call this function.
    """
    tensors: dict[str, Any] = {}
    tree = _run_on(rank, lambda: state._Encoder(tensors).encode(obj, "state"))

    class Decoder(state._Decoder):
        def variable(self, name):
            return tensors.get(name)

        def tensor(self, x):
            return empty(0)

    return obj if kept else Decoder(None, None).decode(tree)


def _type(t: Any) -> dt.dtype:
    return t.dtype if isinstance(t, Tensor) else dt.as_dtype(t.dtype)


def _run_on(rank: int, f) -> Any:
    """Call f() on `rank` and return its result, encoded as JSON, on all ranks.

    An error on `rank` is raised on all ranks.
    """
    engine = current()
    if len(engine.owned) == engine.size:
        return f()
    result, error = None, None
    if engine.rank == rank:
        try:
            result = f()
        except (FlowError, OSError) as e:
            error = e
    content = [json.dumps(result), None if error is None else str(error)]
    comm: Any = engine.comm(engine.rank)
    answers = comm.all_gather_object(content)
    if error is not None:
        raise error
    answer = answers[rank]
    if answer[1] is not None:
        raise CheckpointFileError(f"rank {rank} could not read or write: {answer[1]}",
                                  fix="see the message of that rank")
    return result if engine.rank == rank else json.loads(answer[0])


def _check_rank(what: str, rank: int, kind: str = "cpu") -> int:
    p = placement(kind, [rank])
    check_placement(p, what)
    return rank
