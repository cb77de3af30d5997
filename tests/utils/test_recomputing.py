"""utils.checkpoint: results are the same as without it, and intermediate values are not stored."""
import gc
import weakref

import numpy as np
import pytest

import flowedu as flow
from flowedu import nn
from flowedu.errors import ArgumentError, GradientError
from flowedu.utils.checkpoint import checkpoint, checkpoint_sequential

BLOCKS = {
    "closure": lambda: (lambda w: lambda x: (x @ w).sin() * x)(nn.Parameter(flow.randn(4, 4))),
    "dropout": lambda: nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.GELU(), nn.Linear(8, 4)),
    "attention": lambda: nn.TransformerEncoderLayer(4, 2, 8, dropout=0.3, batch_first=True),
    "norm": lambda: nn.Sequential(nn.LayerNorm(4), nn.Linear(4, 4), nn.Tanh()),
    "nested": lambda: (lambda f, g: lambda x: g(checkpoint(f, x)))(
        nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.2)), nn.Linear(4, 4)),
    "lstm": lambda: (lambda m: lambda x: m(x)[0])(nn.LSTM(4, 4, batch_first=True)),
}


def find_parameters(block) -> list:
    if isinstance(block, nn.Module):
        return list(block.parameters())
    cells = [c.cell_contents for c in block.__closure__]
    return [p for c in cells for p in ([c] if isinstance(c, nn.Parameter) else c.parameters())]


@pytest.mark.parametrize("name", BLOCKS)
@pytest.mark.parametrize("needs", [False, True])
def test_results_are_the_same_without_checkpointing(name, needs):
    """Compare the output, the gradients of the input and of all parameters, later random numbers, and a
    second backward.
    """
    block = BLOCKS[name]()
    found = []
    for run in (block, lambda x: checkpoint(block, x, use_reentrant=False)):
        flow.manual_seed(5)
        x = flow.tensor(np.random.default_rng(0).normal(size=(2, 3, 4)).astype("f4"), requires_grad=needs)
        y = run(x)
        after = flow.randn(3)
        ps = find_parameters(block) + ([x] if needs else [])
        for p in ps:
            p.grad = None
        y.sin().sum().backward(retain_graph=True)
        y.sin().sum().backward()
        found.append([y, after, flow.randn(2), *(p.grad for p in ps)])
    for a, b in zip(*found):
        np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())


def test_intermediate_values_are_freed():
    kept = []

    def block(x):
        y = (x * 2).exp()
        kept.append(weakref.ref(y))
        return y.sin()

    x = flow.ones(3, requires_grad=True)
    for run, alive in ((block, True), (lambda x: checkpoint(block, x), False)):
        kept.clear()
        y = run(x)
        gc.collect()
        assert (kept[0]() is not None) is alive
        y.sum().backward()


def test_a_function_is_called_twice_and_its_effects_happen_twice():
    norm = nn.BatchNorm1d(3)
    x = flow.randn(4, 3)
    checkpoint(norm, x).sum().backward()
    assert norm.num_batches_tracked.item() == 2
    with flow.no_grad():
        checkpoint(norm, x)
    assert norm.num_batches_tracked.item() == 3


@pytest.mark.parametrize("segments", [1, 2, 3, 5])
def test_checkpoint_sequential_equals_plain_calls(segments):
    steps = [nn.Linear(4, 4), nn.Dropout(0.4), nn.Tanh(), nn.Linear(4, 4), nn.ReLU()]
    for functions in (nn.Sequential(*steps), steps):
        found = []
        for run in (nn.Sequential(*steps),
                    lambda x, fs=functions: checkpoint_sequential(fs, segments, x, use_reentrant=False)):
            flow.manual_seed(1)
            for f in steps:
                f.zero_grad()
            y = run(flow.ones(2, 4))
            y.sum().backward()
            found.append([y.detach().numpy(), *(p.grad.numpy().copy() for f in steps
                                                for p in f.parameters())])
        for a, b in zip(*found):
            np.testing.assert_array_equal(a, b)


def test_without_preserved_rng_state_random_numbers_differ():
    x = flow.ones(1000, requires_grad=True)
    y = checkpoint(lambda x: flow.nn.functional.dropout(x, 0.5) * x, x, preserve_rng_state=False)
    y.sum().backward()
    assert not np.array_equal(x.grad.numpy() == 0, y.detach().numpy() == 0)


def test_unsupported_uses_are_refused():
    calls = []

    def other(x):
        calls.append(1)
        return x.sin() if len(calls) == 1 else x.sin().exp()

    with pytest.raises(GradientError, match="(?s)other tensors were saved.*fix"):
        checkpoint(other, flow.ones(2, requires_grad=True)).sum().backward()
    with pytest.raises(ArgumentError, match="no function"):
        checkpoint(3, flow.ones(2))
    for n in (0, 3, None):
        with pytest.raises(ArgumentError, match="segments"):
            checkpoint_sequential([nn.ReLU(), nn.ReLU()], n, flow.ones(2))


def test_contexts_are_entered_once_each():
    seen = []

    class Around:
        def __init__(self, name):
            self.name = name

        def __enter__(self):
            seen.append(self.name)

        def __exit__(self, *error):
            pass

    y = checkpoint(lambda x: x.sin(), flow.ones(2, requires_grad=True),
                   context_fn=lambda: (Around("first"), Around("again")))
    assert seen == ["first"]
    y.sum().backward()
    assert seen == ["first", "again"]


@pytest.mark.torch
@pytest.mark.parametrize("how", [True, False])
def test_checkpoint_matches_pytorch(how):
    torch = pytest.importorskip("torch")
    from torch.utils.checkpoint import checkpoint as theirs
    a, b = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)), torch.nn.Sequential(torch.nn.Linear(4, 4),
                                                                                  torch.nn.BatchNorm1d(4))
    b.load_state_dict({k: torch.tensor(v.numpy()) for k, v in a.state_dict().items()})
    x = np.random.default_rng(0).normal(size=(5, 4)).astype("f4")
    mine, other = flow.tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
    checkpoint(a, mine, use_reentrant=how).sin().sum().backward()
    theirs(b, other, use_reentrant=how).sin().sum().backward()
    np.testing.assert_allclose(mine.grad.numpy(), other.grad.numpy(), rtol=1e-4, atol=1e-6)
    for p, q in zip((*a.parameters(), *a.buffers()), (*b.parameters(), *b.buffers())):
        np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=1e-5, atol=1e-6)
