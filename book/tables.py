"""The numbers that the widgets show, computed by the library while the book is made, so that they are true.

Written as scripts (`window.NAME = ...`), because a page that is opened as a file may not fetch anything.
"""
from __future__ import annotations

import json
import re
from itertools import product
from pathlib import Path
from typing import Any

import flowedu as flow
from flowedu import nn
from flowedu.core.graph.memory import ALIGN, lower_bound, rounded
from flowedu.errors.files import write_text

SHAPE = (12, 12)                               # 2, 3 and 4 devices cut it evenly
DEVICES = (2, 3, 4)
# Widgets stand on white.
DARK = re.compile(r"@media \(prefers-color-scheme: dark\) \{.*?\n\}\n?", re.DOTALL)
LAYOUTS = {"S(0)": flow.sbp.split(0), "S(1)": flow.sbp.split(1), "B": flow.sbp.broadcast,
           "P": flow.sbp.partial_sum}


def boxing() -> dict[str, Any]:
    """Return the routes between layouts of one value on k devices: {"2 P 4 B": {bytes, hops, picture}}."""
    flow.distributed.set_virtual_devices(max(DEVICES))
    places = {k: flow.placement("cpu", [*range(k)]) for k in DEVICES}
    routes = {}
    for k, (a, src), n, (b, dst) in product(DEVICES, LAYOUTS.items(), DEVICES, LAYOUTS.items()):
        r = flow.boxing.route(SHAPE, places[n], dst, src=(places[k], src))
        routes[f"{k} {a} {n} {b}"] = {"bytes": r.bytes, "hops": [{"name": h.name, "bytes": h.bytes}
                                                                 for h in r.hops],
                                      "picture": DARK.sub("", r.draw())}
    flow.distributed.set_virtual_devices(1)
    return {"shape": SHAPE, "bytes": SHAPE[0] * SHAPE[1] * 4, "devices": DEVICES, "layouts": [*LAYOUTS],
            "routes": routes}


class Step(nn.Graph):
    """A training step of a small network."""

    def __init__(self):
        super().__init__()
        self.model = nn.Sequential(nn.Linear(12, 40), nn.GELU(), nn.Linear(40, 24), nn.Tanh(),
                                   nn.Linear(24, 4))
        self.add_optimizer(flow.optim.SGD(self.model.to(nn.Module).parameters(), lr=0.1))

    def build(self, x):
        loss = self.model(x).square().mean()
        loss.backward()
        return loss


def arena() -> dict[str, Any]:
    """The buffers of a step, what no plan can beat, and where the library places them."""
    flow.manual_seed(0)
    graph = Step()
    graph(flow.randn(8, 12))
    plan = graph._compiled.program.plan
    steps = len(plan.steps)
    found = [{"name": b.name, "bytes": rounded(b.nbytes), "first": b.first, "last": min(b.last, steps - 1),
              "offset": b.offset} for b in plan.buffers if b.in_arena]
    return {"align": ALIGN, "steps": [s.name for s in plan.steps],
            "bound": lower_bound(plan.buffers, steps), "arena": plan.arena, "buffers": found}


def write_all(folder: Path) -> None:
    """boxing-table.js and arena-table.js in `folder`."""
    for name, table in (("boxing", boxing()), ("arena", arena())):
        write_text(folder / f"{name}-table.js", f"window.{name.upper()} = {json.dumps(table)};\n")
