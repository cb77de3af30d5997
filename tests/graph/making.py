"""Helpers that build graphs in one line."""
import numpy as np

import flowedu as flow
from flowedu import nn


def make_graph(build, *optimizers, config=(), name="G", **parts):
    """Return an nn.Graph with modules `parts` and this build(self, ...). optimizers: each one, or (optimizer,
    scheduler). config: {name: argument} of calls on graph.config with one argument.
    """
    class G(nn.Graph):
        def __init__(self):
            super().__init__()
            for key, part in parts.items():
                setattr(self, key, part)
            for entry in optimizers:
                optimizer, scheduler = entry if isinstance(entry, tuple) else (entry, None)
                self.add_optimizer(optimizer, lr_sch=scheduler)
            for key, value in dict(config).items():
                getattr(self.config, key)(value)

        def build(self, *args, **kwargs):
            return build(self, *args, **kwargs)

    G.__name__ = name
    return G()


def run_as_graph(f, *args, **kwargs):
    """Run the function f as a graph on these tensors."""
    return make_graph(lambda self, *a, **k: f(*a, **k))(*args, **kwargs)


def train_step(self, x, y):
    loss = self.loss(self.model(x), y)
    loss.backward()
    return loss


def trainer(model, optimizer, loss=None, **options):
    return make_graph(train_step, optimizer, model=model, loss=loss or nn.CrossEntropyLoss(), **options)


def eager_step(model, optimizer, loss, x, y):
    value = loss(model(x), y)
    optimizer.zero_grad()
    value.backward()
    optimizer.step()
    return value.item()


def twins(make, n=2, seed=7):
    """Create n models with equal parameters and buffers."""
    made = []
    for _ in range(n):
        flow.manual_seed(seed)
        made.append(make())
    return made


def make_sgd(model, lr=0.1, **more):
    return flow.optim.SGD(model.parameters(), lr=lr, **more)


def make_mlp():
    return nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3))


def batch(n=8, seed=0):
    rng = np.random.default_rng(seed)
    return flow.tensor(rng.standard_normal((n, 4)).astype(np.float32)), flow.tensor(rng.integers(0, 3, n))


def copy_state(model):
    return {k: v.numpy().copy() for k, v in model.state_dict().items()}


def assert_same_state(a, b, rtol=1e-5, atol=1e-6):
    """Assert that two models have equal states."""
    a, b = copy_state(a), copy_state(b)
    assert a.keys() == b.keys()
    for k in a:
        np.testing.assert_allclose(a[k], b[k], rtol=rtol, atol=atol, err_msg=k)
