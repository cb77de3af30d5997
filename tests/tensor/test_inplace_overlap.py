"""Law: an in-place op that reads a view of the memory it writes computes the same as on copies."""
import numpy as np
import pytest

import flowedu as flow
from graph.making import run_as_graph

N = 6
VALUES = 0.5 + np.arange(N * N).reshape(N, N) / 16
# x: the memory. The written and the read view have the same or broadcastable shapes.
PAIRS = {
    "the row above": lambda x: (x[1:], x[:-1]), "the row below": lambda x: (x[:-1], x[1:]),
    "the column before": lambda x: (x[:, 1:], x[:, :-1]), "two rows above": lambda x: (x[2:], x[:-2]),
    "the transpose": lambda x: (x, x.t()), "its transpose": lambda x: (x.t(), x), "itself": lambda x: (x, x),
    "a row": lambda x: (x, x[2]), "a column": lambda x: (x, x[:, 3:4]), "an element": lambda x: (x, x[2, 3]),
    "the last element": lambda x: (x, x[-1, -1]), "every second row": lambda x: (x[::2], x[:3]),
    "a corner": lambda x: (x[1:4, 1:4], x[2:5, :3]),
    "a corner, transposed": lambda x: (x[1:4, 1:4], x[:3, 2:5].t()),
    "flat": lambda x: (x.view(-1)[1:], x.view(-1)[:-1]),
    "one row for all": lambda x: (x[1:], x[1:2].expand(N - 1, N)),
    "reshaped": lambda x: (x.view(4, 9)[1:], x.view(9, 4).t()[:3]),
}
OTHER = """add sub mul div pow remainder floor_divide fmod eq ne lt le gt ge true_divide subtract multiply
    divide atan2 hypot xlogy copysign heaviside float_power logical_and logical_or logical_xor""".split()
METHODS = {
    **{name + "_": lambda y, z, name=name: getattr(y, name + "_")(z) for name in OTHER},
    "copy_": lambda y, z: y.copy_(z), "+=": lambda y, z: y.__iadd__(z), "-=": lambda y, z: y.__isub__(z),
    "*=": lambda y, z: y.__imul__(z), "/=": lambda y, z: y.__itruediv__(z),
    "add_ alpha": lambda y, z: y.add_(z, alpha=0.5), "setitem": lambda y, z: y.__setitem__(slice(None), z),
    "addcmul_": lambda y, z: y.addcmul_(z, z), "addcmul_ of both": lambda y, z: y.addcmul_(y, z, value=0.5),
    "addcdiv_": lambda y, z: y.addcdiv_(z, z + 1), "lerp_": lambda y, z: y.lerp_(z, 0.25),
    "masked_fill_": lambda y, z: y.masked_fill_(z > 1.5, 9.0),
    "clamp_ by": lambda y, z: y.copy_(y.minimum(z)), }


def memory_after_call(method, pair, shared, **options):
    """Return the memory after the call. With shared=False, the op reads a copy."""
    x = flow.tensor(VALUES, **options)
    y, z = PAIRS[pair](x)
    METHODS[method](y, z if shared else z.clone())
    return x.double().numpy()


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("method", METHODS)
def test_a_view_is_read_before_it_is_written(method, pair):
    for dtype in (flow.float32, flow.float64, flow.float16):
        got, want = (memory_after_call(method, pair, shared, dtype=dtype) for shared in (True, False))
        np.testing.assert_array_equal(got, want, err_msg=dtype.name)


@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize("method", ["add_", "mul_", "copy_", "div_", "lerp_"])
def test_teams_read_large_views_before_they_write(method, threads):
    """Long enough for several threads; the values are equal to the last bit."""
    start = np.random.default_rng(0).uniform(1, 2, 1 << 18).astype(np.float32)
    before = flow.get_num_threads()
    flow.set_num_threads(threads)
    try:
        for shift in (1, 64, 1 << 17):
            x, y = flow.tensor(start), flow.tensor(start)
            METHODS[method](x[shift:], x[:-shift])
            METHODS[method](y[shift:], y[:-shift].clone())
            np.testing.assert_array_equal(x.numpy(), y.numpy())
    finally:
        flow.set_num_threads(before)


INDEXED = {
    "index_add_": lambda x, of: x.index_add_(0, flow.tensor([2, 0, 0]), of(x[1:4])),
    "index_copy_": lambda x, of: x.index_copy_(0, flow.tensor([2, 0, 1]), of(x[1:4])),
    "index_reduce_": lambda x, of: x.index_reduce_(0, flow.tensor([2, 0, 0]), of(x[1:4]), "amax"),
    "put_": lambda x, of: x.put_(flow.tensor([1, N + 2, 5]), of(x[0, :3])),
    "scatter_": lambda x, of: x.scatter_(0, flow.tensor([[1] * N, [0] * N]), of(x[:2])),
    "scatter_add_": lambda x, of: x.scatter_add_(0, flow.tensor([[1] * N, [0] * N, [1] * N]), of(x[:3])),
    "scatter_reduce_": lambda x, of: x.scatter_reduce_(0, flow.tensor([[1] * N, [0] * N]), of(x[:2]), "amax"),
    "masked_scatter_": lambda x, of: x.masked_scatter_(of(x) > 1.2, of(x.t())),
    "index_put_": lambda x, of: x.index_put_((flow.tensor([1, 2]), flow.tensor([3, 4])), of(x[0, :2])),
    "index_put_ accumulate": lambda x, of: x.index_put_((flow.tensor([0, 0]), flow.tensor([1, 1])),
                                                        of(x[0, :2]), True),
    "an advanced index": lambda x, of: x.__setitem__(flow.tensor([1, 2, 3]), of(x[:3])),
    "rows exchanged": lambda x, of: x.__setitem__([0, 1], of(x[:2]).flip(0)),
    "a mask": lambda x, of: x.__setitem__(of(x) > 1.2, of(x).t()[of(x) > 1.2]),
    "addmm_": lambda x, of: x.addmm_(of(x), of(x).t()), "addmv_": lambda x, of: x[0].addmv_(of(x), of(x[0])),
    "addr_": lambda x, of: x.addr_(of(x[0]), of(x[:, 0])), "cumsum_": lambda x, of: x[1:].cumsum_(0),
    "transposed cumsum_": lambda x, of: x.t().cumsum_(0), "tril_": lambda x, of: x.t().tril_().add_(of(x)),
    "flip": lambda x, of: x.copy_(of(x).flip(0)), "roll": lambda x, of: x.copy_(of(x).roll(1, 1)),
    "two at once": lambda x, of: x[1:].addcmul_(of(x[:-1]), of(x.t()[1:])),
    "renorm_": lambda x, of: x.t().renorm_(2, 0, 1.0), "t": lambda x, of: x.add_(of(x.t())).mul_(of(x.t()))}


@pytest.mark.parametrize("dtype", [flow.float32, flow.float64], ids=lambda d: d.name)
@pytest.mark.parametrize("name", INDEXED)
def test_sources_of_indexed_writes_are_read_first(name, dtype):
    x, y = flow.tensor(VALUES, dtype=dtype), flow.tensor(VALUES, dtype=dtype)
    INDEXED[name](x, lambda view: view)
    INDEXED[name](y, lambda view: view.clone())
    np.testing.assert_array_equal(x.numpy(), y.numpy())
    assert not np.array_equal(x.numpy(), VALUES.astype(dtype.numpy))


GRAPH_PAIRS = ["the row above", "the row below", "the transpose", "its transpose", "itself", "a row",
               "an element", "every second row", "a corner", "flat"]


@pytest.mark.parametrize("pair", GRAPH_PAIRS)
@pytest.mark.parametrize("method", ["add_", "copy_", "mul_", "addcmul_", "setitem"])
def test_a_graph_writes_as_with_copies(method, pair):
    def f(x):
        x = x * 1
        y, z = PAIRS[pair](x)
        METHODS[method](y, z)
        return x * 1

    np.testing.assert_allclose(run_as_graph(f, flow.tensor(VALUES)).numpy(),
                               memory_after_call(method, pair, False), rtol=1e-12)


@pytest.mark.parametrize("pair", GRAPH_PAIRS)
@pytest.mark.parametrize("method", ["add_", "copy_", "mul_", "addcmul_", "setitem"])
def test_gradients_equal_those_with_copies(method, pair):
    grads = []
    for shared in (True, False):
        x = flow.tensor(VALUES, requires_grad=True)
        w = x * 1
        y, z = PAIRS[pair](w)
        METHODS[method](y, z if shared else z.clone())
        (w * flow.tensor(VALUES[::-1].copy())).sum().backward()
        grads.append(x.grad.numpy())
    np.testing.assert_allclose(grads[0], grads[1], rtol=1e-12)
