"""Law: control-flow exceptions (StopIteration, GeneratorExit, KeyboardInterrupt, SystemExit ...) raised by a
user's function never end a loop or a generator silently. They reach the caller unchanged or as the cause
of an error.
"""
import numpy as np
import pytest

import flowedu as flow
import flowedu.typing as tp
from common import constant_rate, f32, fresh_session, job  # noqa: F401
from custom_ops import own_registry  # noqa: F401
from flowedu.core.buffers.tensor_buffer import TensorBuffer
from flowedu.oneflow04.data.prefetch import Prefetcher
from flowedu.oneflow04.image.threads import each
from graph.making import make_graph

SIGNALS = StopIteration, StopAsyncIteration, GeneratorExit, KeyboardInterrupt, SystemExit


def leaf():
    return flow.ones(2, 3, requires_grad=True)


def passed(f, then):
    """Run f in an autograd.Function, in its forward or its backward pass."""
    class Own(flow.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            if then == "forward":
                f()
            return x * 2

        @staticmethod
        def backward(ctx, dy):
            f()
            return dy * 2
    return Own.apply


def hooked(f, method):
    """Run a layer with hook `method` forward and backward."""
    layer = flow.nn.Linear(3, 2)
    getattr(layer, method)(f)
    layer(leaf()).sum().backward()


def on_tensor(f):
    x = leaf()
    y = x * 2
    y.register_hook(f)
    y.sum().backward()


def on_leaf(f):
    x = leaf()
    x.register_hook(f)
    (x * 2).sum().backward()


def run_training_step(body):
    def step(x):
        loss = body(x)
        flow.optimizer.SGD(constant_rate(0.0), momentum=0).minimize(loss)
        return loss
    return job(step, f32(2, 3), type="train")(f32(2, 3))


def weighted(x):
    return x * flow.get_variable("w", (3,), initializer=flow.ones_initializer())


def initialised(f):
    job(lambda x: x * flow.get_variable("w", (3,), initializer=lambda *a: f()), f32(2, 3))(f32(2, 3))


def watched(f):
    def handler(y: tp.Numpy):
        f()
    job(lambda x: (flow.watch(x, handler), x * 2)[1], f32(2, 3))(f32(2, 3))


def watched_slope(f):
    def handler(y: tp.Numpy):
        f()

    def body(x):
        y = weighted(x)
        flow.watch_diff(y, handler)
        return flow.math.reduce_mean(y)
    run_training_step(body)


def build_graph(f):
    class Own(flow.nn.Graph):
        def build(self, x):
            f()
            return x
    Own()(flow.ones(2))


def inside_build(f):
    """Call f in the forward of a module inside an nn.Graph."""
    class Layer(flow.nn.Module):
        def forward(self, x):
            f()
            return x
    make_graph(lambda self, x: self.layer(x), layer=Layer())(flow.ones(2))


def closure(f):
    w = flow.nn.Parameter(flow.ones(2))
    flow.optim.SGD([w], 0.1).step(f)


def schedule(f):
    o = flow.optim.SGD([flow.nn.Parameter(flow.ones(2))], 0.1)
    flow.optim.lr_scheduler.LambdaLR(o, [f]).step()


def python_op(f, then, in_graph=False):
    op = flow.custom_op(f"ends_{then}", f if then == "forward" else lambda x: x * 1,
                        (lambda dy: f()) if then == "backward" else lambda dy: dy, inputs="x")
    if in_graph:
        return make_graph(lambda self, x: op(x))(flow.ones(2))
    return op(leaf()).sum().backward()


def with_grad(f):
    @flow.no_grad()
    def steps():
        yield 1
        f()
        yield 2
    assert list(steps()) == [1, 2]


def on_ranks(f):
    flow.distributed.spawn(lambda: f() if flow.env.get_rank() == 1 else flow.env.get_rank(), 2)


def collective(f):
    """Raise in f on one rank while the other rank waits for it in a collective."""
    def program():
        if flow.env.get_rank() == 1:
            f()
        flow.comm.all_reduce(flow.ones(2))
    flow.distributed.spawn(program, 2)


def load_with_hook(f, method):
    """Save and load a layer with hook `method`."""
    layer = flow.nn.Linear(2, 2)
    getattr(layer, method)(f)
    layer.load_state_dict(layer.state_dict())


def accumulated(f):
    x = leaf()
    x.register_post_accumulate_grad_hook(f)
    (x * 2).sum().backward()


def on_node(f, method):
    y = leaf() * 2
    getattr(y.grad_fn, method)(f)
    y.sum().backward()


def prefetched(f):
    """Call f for the third item, after two items were prefetched."""
    items = iter([1, 2])
    with Prefetcher(lambda: next(items, None) or f()) as row:
        assert [row.get(), row.get()] == [1, 2]
        row.get()


def pictures(f, threads):
    flow.set_num_threads(threads)
    list(each(lambda x: f() if x == 3 else x, range(6), True))


PLACES = {
    "a hook of a tensor": on_tensor, "a hook of a leaf": on_leaf,
    "a forward hook": lambda f: hooked(f, "register_forward_hook"),
    "a forward pre-hook": lambda f: hooked(f, "register_forward_pre_hook"),
    "a backward hook": lambda f: hooked(f, "register_full_backward_hook"),
    "a Function forward": lambda f: passed(f, "forward")(leaf()),
    "a Function backward": lambda f: passed(f, "backward")(leaf()).sum().backward(),
    "a Function backward, grad": lambda f: flow.autograd.grad(passed(f, "backward")(x := leaf()).sum(), x),
    "a Function in a graph": lambda f: make_graph(lambda self, x: passed(f, "forward")(x))(flow.ones(2)),
    "watch": watched, "watch_diff": watched_slope,
    "the body of a job": lambda f: job(lambda x: (f(), x)[1], f32(2, 3))(f32(2, 3)),
    "an initializer": initialised,
    "build": build_graph, "a module in build": inside_build,
    "a closure": closure, "a schedule": schedule,
    "a Python kernel": lambda f: python_op(f, "forward"), "its gradient": lambda f: python_op(f, "backward"),
    "a Python kernel in a graph": lambda f: python_op(f, "forward", True),
    "apply": lambda f: flow.nn.Linear(2, 2).apply(f),
    "gradcheck": lambda f: flow.autograd.gradcheck(lambda x: (f(), x)[1], leaf()),
    "a generator without gradients": with_grad,
    "a rank": on_ranks, "a rank others wait for": collective,
    **{f"a {m[9:]}": lambda f, m=m: load_with_hook(f, m) for m in (
        "register_state_dict_pre_hook", "register_state_dict_post_hook", "register_load_state_dict_pre_hook",
        "register_load_state_dict_post_hook")},
    "a backward pre-hook": lambda f: hooked(f, "register_full_backward_pre_hook"),
    "a hook behind a leaf": accumulated,
    "a hook of a node": lambda f: on_node(f, "register_hook"),
    "a hook before a node": lambda f: on_node(f, "register_prehook"),
    "a thread that reads ahead": prefetched,
    "a picture": lambda f: pictures(f, 1), "a picture in threads": lambda f: pictures(f, 2),
    "a buffer's map": lambda f: TensorBuffer([np.ones(2)], (1,)).map(f),
}


def raiser(kind):
    def f(*args, **kwargs):
        raise kind("planted")
    return f


def causes(error):
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


@pytest.mark.parametrize("kind", SIGNALS)
@pytest.mark.parametrize("place", PLACES)
def test_the_exception_reaches_the_caller(place, kind):
    with pytest.raises(BaseException) as e:
        PLACES[place](raiser(kind))
    assert any(type(c) is kind and "planted" in str(c) for c in causes(e.value)), repr(e.value)
    if kind in (KeyboardInterrupt, SystemExit):
        assert type(e.value) is kind, "it must be able to stop the program"
    # no lock is held and gradients are still recorded
    (flow.ones(2, requires_grad=True) * 2).sum().backward()


@pytest.mark.parametrize("place", PLACES)
def test_every_place_calls_its_function(place):
    """A place that never calls its function would make the law pass trivially."""
    calls = []

    def f(*args, **kwargs):
        calls.append(1)
        raise ZeroDivisionError
    with pytest.raises(ZeroDivisionError):
        PLACES[place](f)
    assert calls


@pytest.mark.parametrize("kind", SIGNALS)
def test_a_decorated_generator_receives_thrown_exceptions(kind):
    """The decorated generator receives the exception that its caller throws in, may end or go on, and runs
    its `finally`.
    """
    seen = []

    @flow.no_grad()
    def steps():
        try:
            yield 1
        except BaseException as e:
            seen.append(type(e))
            assert not flow.is_grad_enabled()
            raise
        finally:
            seen.append("finally")

    g = steps()
    next(g)
    with pytest.raises(RuntimeError if kind is StopIteration else kind):
        g.throw(kind("planted"))
    assert seen == [kind, "finally"] and flow.is_grad_enabled()
    g = steps()
    next(g)
    g.close()
    assert seen[2:] == [GeneratorExit, "finally"]
