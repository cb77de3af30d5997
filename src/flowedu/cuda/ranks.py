"""Global tensors on GPUs: the GPU of each rank, and boxing between them.

core/sbp calls this module (extension "GPUs of ranks").

If all ranks are in one process, rank r has cuda:r. If a rank is a process of its own, it has the GPU of its
index on its machine; if there are fewer GPUs, ranks share them. A hop cuts out each piece on its device and
copies it to the device that needs it, over the link between the two. That device combines and joins the
pieces. The values are the same as in the CPU's boxing, op by op.
"""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from flowedu.core.eager.tensor import Tensor
from flowedu.core.ops.define import REGISTRY
from flowedu.core.sbp.boxing.algebra import Hop, Route
from flowedu.core.sbp.boxing.geometry import Box, Cell, Need, transfer
from flowedu.core.sbp.boxing.inops import COMBINE, make_cut, make_recipe
from flowedu.core.sbp.boxing.primitives import ALL_REDUCE, groups
from flowedu.core.sbp.names import placement
from flowedu.core.sbp.ranks import current, set_virtual_devices
from flowedu.core.sbp.tensor.interpreter import on
from flowedu.errors import DeviceError, UnsupportedError
from flowedu.tensor.devices import device as devices
from flowedu.tensor.devices.conversion import made_on

Run = Callable[[Sequence[Tensor]], list[Tensor]]     # all parts before a hop -> all after it


# ---- devices of ranks
def place_of(p: placement, rank: int) -> int:
    """Return the memory of a rank's part: 0 for main memory, or 1 + the number of its GPU."""
    if p.type == "cpu":
        return 0
    engine = current()
    return 1 + (rank if engine.name in ("virtual", "threads") else engine.local_rank % devices.gpus())


def all_of(size: int) -> int:
    """Return the number of ranks of placement.all("cuda").

    It is `size`, the world size. For a single virtual rank it is the number of GPUs, or 1 without a GPU.
    """
    return devices.gpus() or 1 if size == 1 and current().name == "virtual" else size


def check(p: placement, what: str) -> None:
    """Raise UnsupportedError if no GPU is in use, and DeviceError if a rank has no GPU.

    A program with virtual ranks gets one rank per GPU.
    """
    count, engine = devices.gpus(), current()
    if not count:
        raise UnsupportedError(f"{what}: no GPU is in use", expected='a placement of type "cpu"', got=repr(p),
                               fix=f'flow.placement("cpu", {p.ranks.tolist()})')
    most = max(p.devices)
    if engine.name in ("virtual", "threads") and most >= count:
        raise DeviceError(f"{what}: rank {most} of the placement has no GPU",
                          expected=f"ranks of 0 to {count - 1}",
                          got=repr(p), fix="FLOWEDU_CUDA_DEVICES says how many the simulator has")
    if engine.name == "virtual" and most >= engine.size:
        set_virtual_devices(count)


def check_own(x: Tensor, p: placement, rank: int) -> None:
    """Raise DeviceError if the shard of a rank is on the GPU of another rank."""
    place = place_of(p, rank)
    if rank in p.devices and x._device != place:
        raise DeviceError(f"to_global: the shard of rank {rank} is on another rank's GPU",
                          expected=f"cuda:{place - 1}",
                          got=f"cuda:{x._device - 1}", fix=f'x.to("cuda:{place - 1}")')


# ---- boxing
def run(route: Route, parts: Sequence[Tensor], p: placement) -> Sequence[Tensor]:
    """Run a route to the devices of p, for parts that may be on GPUs.

    Intermediate results stay on the devices of their sources.
    """
    at = dict(zip(route.src.devices, [x._device for x in parts]))
    for hop in route.hops:
        last = hop is route.hops[-1]
        places = [place_of(p, d) if last or d not in at else at[d] for d in hop.dst.devices]
        parts = _program(hop, tuple(places))(parts)
    return parts


@functools.lru_cache(maxsize=4096)
def _program(hop: Hop, places: tuple[int, ...]) -> Run:
    """Return the function of a hop whose results belong to these places."""
    if hop.primitive is ALL_REDUCE:
        return _make_all_reduce(hop, places)
    src, dst, shape = hop.src, hop.dst, hop.spec.shape
    held = {d: (n, src.box(shape, n)) for n, d in enumerate(src.devices)}
    reducer = src.reducer or dst.reducer or "sum"
    makers: dict[object, Callable] = {}                    # devices that share a memory share equal parts
    keys = []
    for i, need in enumerate(transfer(src, dst, shape)):
        whole = dst.box(shape, i)
        keys.append((places[i], dst.slot(i), whole))
        if keys[-1] not in makers:
            makers[keys[-1]] = _make_part(need, whole, held, reducer, hop.spec, places[i])

    def program(parts):
        results = {key: make(parts) for key, make in makers.items()}
        return [results[key] for key in keys]
    return program


def _make_part(need: Need, whole: Box, held: dict[int, tuple[int, Box]], reducer: str,
               spec, place: int) -> Callable:
    """Return the function of one device's part, which cuts and joins pieces on their devices."""
    cuts: list[Callable] = []
    cells = []
    for cell in need.cells:
        pieces = []
        for p in cell.pieces:
            pieces.append(p._replace(sender=len(cuts)))
            cuts.append(make_cut(*held[p.sender], p.box))
        cells.append(Cell(cell.box, tuple(pieces)))
    boxes = {p.sender: (p.sender, p.box) for c in cells for p in c.pieces}
    join = make_recipe(Need(need.counts, tuple(cells)), whole, boxes, reducer, spec)

    def make(parts):
        with made_on(place):                             # elements that no rank has are constants
            return join([on(c(parts), place) for c in cuts])
    return make


def _make_all_reduce(hop: Hop, places: tuple[int, ...]) -> Run:
    """Return the function of an all-reduce: the first of every group sums, and the others copy the total."""
    number = {d: n for n, d in enumerate(hop.src.devices)}
    members = [[number[d] for d in group] for group in groups(hop.src, hop.dst, hop.spec.shape)]
    combine = REGISTRY[COMBINE[hop.src.reducer]]

    def program(parts):
        results: list = [None] * len(parts)
        for group in members:
            place = parts[group[0]]._device
            total = functools.reduce(combine, [on(parts[n], place) for n in group])
            copies = {place: total}
            for n in group:
                if places[n] not in copies:
                    copies[places[n]] = on(total, places[n])
                results[n] = copies[places[n]]
        return results
    return program
