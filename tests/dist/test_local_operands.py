"""Local and global tensors do not mix, however the local tensor was created, eagerly and in nn.Graph."""
import itertools

import numpy as np
import pytest

import flowedu as flow
from flowedu import nn
from flowedu.errors import ArgumentError

HISTORIES = {
    "full": lambda: flow.full((4, 4), 2.0),
    "ones": lambda: flow.ones(4, 4),
    "zeros": lambda: flow.zeros(4, 4),
    "arange": lambda: flow.arange(16.0).reshape(4, 4),
    "linspace": lambda: flow.linspace(0, 1, 16).reshape(4, 4),
    "eye": lambda: flow.eye(4),
    "ones_like": lambda: flow.ones_like(flow.tensor(np.ones((4, 4), np.float32))),
    "new_ones": lambda: flow.tensor([1.0]).new_ones(4, 4),
    "empty": lambda: flow.empty(4, 4),
    "clone": lambda: flow.ones(4, 4).clone(),
    "computed": lambda: flow.ones(4, 4) * 2,
    "cast": lambda: flow.ones(4, 4, dtype=flow.int64).float(),
    "view": lambda: flow.ones(8, 4)[::2],
    "tril": lambda: flow.tril(flow.ones(4, 4)),
    "filled": lambda: flow.ones(4, 4).fill_(7),
    "written": lambda: _write_first_row(flow.ones(4, 4)),
    "randn": lambda: flow.randn(4, 4),
    "rand": lambda: flow.rand(4, 4),
    "from numpy": lambda: flow.from_numpy(np.ones((4, 4), np.float32)),
    "from a list": lambda: flow.tensor([[1.0] * 4] * 4),
}
OPS = {
    "add": lambda x, y: x + y,
    "radd": lambda x, y: y + x,
    "mul": lambda x, y: x * y,
    "matmul": lambda x, y: x @ y,
    "where": lambda x, y: flow.where(x > 0, x, y),
    "cat": lambda x, y: flow.cat([x, y]),
    "stack": lambda x, y: flow.stack([x, y]),
    "maximum": flow.maximum,
    "compare": lambda x, y: x > y,
    "add_": lambda x, y: x.clone().add_(y),
    "write": lambda x, y: _write_first_row(x.clone(), y[0]),
    "linear": lambda x, y: nn.functional.linear(x, y),
    "loss": lambda x, y: nn.functional.mse_loss(x, y),
}


def _write_first_row(x, value=7.0):
    x[0] = value
    return x


class Mixed(nn.Graph):
    """`op(x, y)`, where y is created in build, or before it."""

    def __init__(self, op, make, inside: bool):
        super().__init__()
        self.op, self.make, self.inside = op, make, inside
        self.held = None if inside else [make()]

    def build(self, x):
        return self.op(x, self.make() if self.inside else self.held[0])


def apply_with_local_operand(mode: str, op, make):
    """Compute op(global tensor, make()), eagerly or in a graph."""
    flow.distributed.set_virtual_devices(2)
    x = flow.ones(4, 4, placement=flow.placement("cpu", [0, 1]), sbp=flow.sbp.split(0))
    return op(x, make()) if mode == "eager" else Mixed(op, make, mode == "made in build")(x)


MODES = ["eager", "graph", "made in build"]


# every history with one op, every op with two histories: the check depends on one operand, so pairs add no
# coverage
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("history, op", [*((h, "add") for h in HISTORIES),
                                         *itertools.product(["ones", "from numpy"],
                                                            [o for o in OPS if o != "add"])])
def test_a_local_tensor_is_refused(mode, history, op):
    with pytest.raises(ArgumentError) as caught:
        apply_with_local_operand(mode, OPS[op], HISTORIES[history])
    text = str(caught.value)
    assert "inconsistent attributes" in text or "cannot be written into a global one" in text, text
    assert "to_global(" in caught.value.fix and "test_local_operands.py" in text, text


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("op", ["add", "mul", "where", "maximum", "compare", "add_"])
@pytest.mark.parametrize("value", [2, 2.5, True])
def test_python_numbers_combine_with_global_tensors(mode, op, value):
    assert apply_with_local_operand(mode, OPS[op], lambda: value).is_global


# build converts tensors of creation functions; other local tensors must be converted before
@pytest.mark.parametrize("mode, history", [*(("eager", h) for h in HISTORIES), *(
    ("made in build", h) for h in HISTORIES if "from" not in h)])
def test_the_fix_works(mode, history):
    def mixed(x, y):
        return x + y.to_global(placement=flow.placement("cpu", [0, 1]), sbp=flow.sbp.broadcast)
    assert tuple(apply_with_local_operand(mode, mixed, HISTORIES[history]).shape) == (4, 4)


def test_ranks_get_the_same_error():
    def program():
        x = flow.zeros(4, 2, placement=flow.placement.all("cpu"), sbp=flow.sbp.split(0))
        with pytest.raises(ArgumentError, match="inconsistent attributes"):
            x + flow.full((4, 2), float(flow.env.get_rank() + 1))
    flow.distributed.spawn(program, 2)
