"""Arguments that PyTorch's operator database marks as invalid raise errors in flowedu."""
import pytest

import flowedu as flow

F = flow.nn.functional
X, M = flow.tensor([1.0, 2.0]), flow.tensor([[1.0, 2.0], [3.0, 5.0]])
INVALID = {
    "isclose rtol": lambda: flow.isclose(X, X, rtol=-0.4),
    "isclose atol": lambda: flow.isclose(X, X, atol=-0.4),
    "kthvalue of a number": lambda: flow.kthvalue(flow.tensor(1.0), 3),
    "kthvalue of no axis": lambda: flow.kthvalue(flow.tensor(1.0), 1, 2),
    "masked_scatter uint8": lambda: flow.masked_scatter(X, flow.tensor([0, 1], dtype=flow.uint8), X),
    "masked_scatter float": lambda: flow.masked_scatter(X, X, X),
    "rrelu": lambda: F.rrelu(X, 0.3, 0.1),
    "rrelu while training": lambda: F.rrelu(X, 0.3, 0.1, training=True),
    "exponential_": lambda: flow.zeros(2).exponential_(-1.0),
    "exponential_ of 0": lambda: flow.zeros(2).exponential_(0.0),
    "cov fweights": lambda: flow.cov(M, fweights=flow.tensor([1, -1])),
    "cov aweights": lambda: flow.cov(M, aweights=flow.tensor([1.0, -1.0])),
}


@pytest.mark.parametrize("name", INVALID)
def test_an_invalid_argument_is_refused(name):
    with pytest.raises(RuntimeError):
        INVALID[name]()


def _zero(n: int, channels: int = 0) -> flow.Tensor:
    """Return an image of n axes, with a batch axis."""
    return flow.zeros(2, channels, *(4,) * n)


NUMBER, VECTOR, SQUARE = flow.tensor(2.0), flow.ones(3), flow.ones(3, 3)
# An argument that must be an int refuses each of these values.
NOT_INTS = {"bool": True, "float": 1.0, "tensor of bool": flow.tensor(True),
            "tensor of float": flow.tensor(1.0), "tensor of one axis": flow.tensor([1])}
INTS = {
    "narrow start": lambda n: SQUARE.narrow(0, n, 1),
    "narrow length": lambda n: SQUARE.narrow(0, 0, n),
    "roll": lambda n: SQUARE.roll(n, 0),
    "roll flat": lambda n: SQUARE.roll(n),
    "rot90": lambda n: flow.rot90(SQUARE, n),
    "chunk": lambda n: SQUARE.chunk(n),
    "split": lambda n: SQUARE.split(n),
    "split sizes": lambda n: SQUARE.split([n, 2]),
    "tensor_split": lambda n: flow.tensor_split(SQUARE, (n,)),
    "hsplit": lambda n: flow.hsplit(SQUARE, (n,)),
    "vsplit": lambda n: flow.vsplit(SQUARE, (n,)),
}
AXES = {name: getattr(flow, name) for name in ("cumsum", "sort", "unsqueeze", "unbind", "cummax", "logsumexp",
                                               "median",
                                               "mode", "argmax", "softmax", "squeeze", "select", "roll")}
SHAPES = {
    "flipud of a number": lambda: flow.flipud(NUMBER),
    "fliplr of a vector": lambda: flow.fliplr(VECTOR),
    "roll of a number": lambda: flow.roll(NUMBER, 1, 0),
    "roll of a number by 0": lambda: flow.roll(NUMBER, 0, -1),
    "renorm of a number": lambda: flow.renorm(NUMBER, 2, 0, 1.0),
    "renorm of a vector": lambda: flow.renorm(VECTOR, 2, 0, 1.0),
    "renorm p": lambda: flow.renorm(SQUARE, 0, 0, 1.0),
    "renorm maxnorm": lambda: flow.renorm(SQUARE, 2, 0, -1.0),
    "median of a number": lambda: flow.median(NUMBER, 5),
    "mode of a number": lambda: flow.mode(NUMBER, 5),
    "rot90 of one axis": lambda: flow.rot90(SQUARE, 1, (0,)),
    "rot90 of three axes": lambda: flow.rot90(SQUARE, 1, (0, 1, 2)),
    "vander of a matrix": lambda: flow.vander(SQUARE),
    "hsplit of a word": lambda: flow.hsplit(SQUARE, "abc"),
    "tensor_split of None": lambda: flow.tensor_split(SQUARE, None),
    "prelu with a matrix": lambda: F.prelu(flow.ones(2, 8, 3), flow.ones(2, 4)),
    "prelu with a matrix of one": lambda: F.prelu(flow.ones(2, 3), flow.ones(1, 1)),
}
POOLS = [(kind, n) for kind in ("max_pool", "avg_pool", "adaptive_max_pool") for n in (1, 2, 3)]


@pytest.mark.parametrize("value", NOT_INTS)
@pytest.mark.parametrize("name", INTS)
def test_an_argument_that_must_be_an_int_refuses_others(name, value):
    with pytest.raises(TypeError):
        INTS[name](NOT_INTS[value])


@pytest.mark.parametrize("name", INTS)
def test_a_tensor_of_one_integer_is_an_int(name):
    for result, expected in zip(INTS[name](flow.tensor(1)), INTS[name](1)):
        assert flow.equal(result, expected)


@pytest.mark.parametrize("x", [NUMBER, SQUARE], ids=["number", "matrix"])
@pytest.mark.parametrize("name", AXES)
def test_a_bool_is_not_an_axis(name, x):
    arguments = {"select": (True, 0), "roll": (1, True)}.get(name, (True,))
    with pytest.raises((RuntimeError, IndexError)):
        AXES[name](x, *arguments)


@pytest.mark.parametrize("name", SHAPES)
def test_an_invalid_shape_or_bound_is_refused(name):
    with pytest.raises((RuntimeError, IndexError)):
        SHAPES[name]()


@pytest.mark.parametrize("kind, n", POOLS)
def test_pooling_no_channels_is_refused(kind, n):
    pool = getattr(F, f"{kind}{n}d")
    for x in (_zero(n), _zero(n)[0]):
        with pytest.raises(RuntimeError, match="non-zero size for non-batch dimensions"):
            pool(x, 2)
    assert pool(_zero(n, 1)[:0], 2).shape[0] == 0
