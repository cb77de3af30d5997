"""flow.save and flow.load of global tensors: one rank has the file, all ranks call.

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
    """Collect every global tensor's logical value on `rank` (default 0), which writes the file.

    Returns on all ranks when the file is written; an error of that rank is raised on all.
    """
    rank = _checked("flow.save: global_dst_rank", 0 if rank is None else rank)

    def collected(t: Tensor) -> Tensor:
        if t.global_layout is None:
            return t
        whole = logical(t)
        if isinstance(t, Parameter):
            return Parameter(whole, t.requires_grad)
        return whole.detach().requires_grad_(t.requires_grad) if t.is_leaf else whole.detach()

    whole = mapped(obj, collected)
    _on(rank, lambda: state.save(whole, path))


def load_global(path: str | os.PathLike, rank: int, map_location: Any = None) -> Any:
    """What `rank` reads at `path`, on all ranks: tensors with placement("cpu", [rank]) and sbp broadcast; with
    map_location "cuda" on that rank's GPU."""
    kind = "cuda" if str(map_location).startswith("cuda") else "cpu"
    rank = _checked("flow.load: global_src_rank", rank, kind)
    tensors: dict[str, Any] = {}

    def read() -> list:
        found = state.load(path, map_location=None if kind == "cuda" else map_location)
        tree = state._Encoder(tensors).encode(found, "state")
        return [tree, {n: [list(t.shape), _type(t).name] for n, t in tensors.items()}]

    tree, specs = _on(rank, read)
    global_layout = layout_of(placement(kind, [rank]), (BROADCAST,))

    class Decoder(state._Decoder):
        def variable(self, name):
            return tensors.get(name)

        def tensor(self, x):
            shape, kind = specs[x["tensor"]]
            own = tensors.get(x["tensor"])
            parts = {} if own is None else {rank: labelled(own, None)}
            t = assemble(Spec(tuple(shape), _TYPES[kind]), global_layout, parts)
            if x.get("parameter"):
                return Parameter(t, bool(x.get("requires_grad")))
            return t.requires_grad_() if x.get("requires_grad") else t

    return Decoder(None, None).decode(tree)


def tree_of(obj: Any, rank: int, kept: bool) -> Any:
    """Return the object of `rank`; on the other ranks its tensors are replaced by empty ones.

    kept: this rank keeps its own obj. All ranks call this function.
    """
    tensors: dict[str, Any] = {}
    tree = _on(rank, lambda: state._Encoder(tensors).encode(obj, "state"))

    class Decoder(state._Decoder):
        def variable(self, name):
            return tensors.get(name)

        def tensor(self, x):
            return empty(0)

    return obj if kept else Decoder(None, None).decode(tree)


def _type(t: Any) -> dt.dtype:
    return t.dtype if isinstance(t, Tensor) else dt.as_dtype(t.dtype)


def _on(rank: int, f) -> Any:
    """Return f()'s result on `rank`, as JSON encodes it, on all ranks.

    An error there is raised everywhere.
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
    found = engine.comm(engine.rank).all_gather_object([json.dumps(result), None if error is None else str(error)])
    if error is not None:
        raise error
    said = found[rank]
    if said[1] is not None:
        raise CheckpointFileError(f"rank {rank} could not read or write: {said[1]}", fix="see the message of that rank")
    return result if engine.rank == rank else json.loads(said[0])


def _checked(what: str, rank: int, kind: str = "cpu") -> int:
    p = placement(kind, [rank])
    check_placement(p, what)
    return rank
