"""Law: what PyTorch and flowedu both have, both answer alike: dtype, shape, values, gradients, views and refusals."""
import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

import flowedu as flow  # noqa: E402

from .against import same  # noqa: E402
from .cases import ADVANCED, CASTS, CREATION, EVERY, INDEX  # noqa: E402
from .inputs import INPUTS, split  # noqa: E402
from .lines import flat, gradients, run, variables  # noqa: E402


def has_nan_gradient(g):
    return g is not None and bool(torch.isnan(g).any())


@pytest.mark.parametrize("case", EVERY)
def test_values_and_gradients(case):
    text, flags = split(case)
    ours, theirs = variables(text, flow, True), variables(text, torch, True)
    got, want = run(text, flow, ours), run(text, torch, theirs)
    if "mode" in flags:                                    # which of several equal elements is named is left open
        got, want = got.values, want.values
    a, b = flat(got), flat(want)
    assert len(a) == len(b)
    for x, y in zip(a, b):
        same(x, y)
        if isinstance(y, torch.Tensor) and "values" not in flags:
            assert x.requires_grad == y.requires_grad
    if "view" in flags:
        for x, y in zip(a, b):
            assert all(m == n for m, n, size in zip(x.stride(), y.stride(), y.shape) if size > 1 and y.numel())
            assert x._base is not None or x is next(iter(ours.values()))
    if "values" in flags or not any(isinstance(y, torch.Tensor) and y.requires_grad for y in b):
        return
    da, db = gradients(got, ours, flow), gradients(want, theirs, torch)
    for name, g in db.items():
        assert (g is None) == (da[name] is None), name
        if g is not None and not has_nan_gradient(g):
            same(da[name], g, 1e-8 if "h" not in text.split() else 1e-2)


@pytest.mark.parametrize("case", CREATION + CASTS)
def test_creation_and_conversion(case):
    got, want = run(case, flow, variables(case, flow, False)), run(case, torch, variables(case, torch, False))
    same(got, want)


@pytest.mark.parametrize("case", INDEX + ADVANCED)
@pytest.mark.parametrize("value", ["2.5", "v1"])
def test_assignment(case, value):
    """x[index] = value changes the same elements; so does a value with a gradient, which gets its share of it."""
    text, _ = split(case)
    name, index = text.split("[", 1)[0], text[text.index("[") + 1:-1]
    out = []
    for m in (flow, torch):
        env = variables(text, m, False)
        x = env[name].clone()
        if value == "v1":
            shape = tuple(run(text, m, env).shape)
            v = m.tensor(np.random.default_rng(1).standard_normal(shape[-1:])).to(x.dtype)
        else:
            v = 2.5
        if x.dtype.is_floating_point:
            leaf = env[name].requires_grad_()
            x = leaf * 1.0
            if value == "v1":
                v = v.requires_grad_()
            exec(f"x[{index}] = v", {"m": m, **env, "x": x, "v": v})
            w = m.tensor(np.random.default_rng(2).standard_normal(tuple(x.shape)))
            (x * w).sum().backward()
            out.append((x, leaf.grad, None if value != "v1" else v.grad))
        else:
            exec(f"x[{index}] = v", {"m": m, **env, "x": x, "v": v})
            out.append((x, None, None))
    x, y = out[0][0], out[1][0]
    same(x, y)
    places = run(text, torch, {**variables(text, torch, False), name: torch.arange(y.numel()).reshape(y.shape)})
    if places.unique().numel() == places.numel():         # else PyTorch gives every value a gradient
        for a, b in zip(out[0][1:], out[1][1:]):
            if a is None:
                assert b is None or not b.any(), "no gradient: PyTorch has none, or zeros"
            else:
                same(a, b)


REFUSED = """a + x3
a @ b
m.mm(a, c)
m.bmm(a, b)
m.dot(c, v)
a.view(5)
a.reshape(5, -1)
a.reshape(-1, -1)
a.T.view(12)
a.sum(2)
a.sum((0, 0))
a.max(5)
a.unsqueeze(4)
a.transpose(0, 2)
a.permute(0, 0)
a.permute(0)
a.expand(2, 3, 5)
a.expand(4)
a.squeeze(2)
a.repeat(2)
m.cat([a, sq], 1)
m.cat([])
m.stack([a, c])
m.cat([s, s])
a.split(0)
a.split([1, 1])
a.chunk(0)
a.narrow(0, 2, 2)
a.select(0, 3)
a[3]
a[0, 4]
a[0, 0, 0]
a[1.0]
a[::-1]
a[q2B]
a[[5]]
a[[0, 1], [0, 1, 2]]
a[a]
m.mean(i)
m.std(i)
i ** -1
q - q
-q
m.max(e)
m.argmax(e, 1)
m.amax(e, 1)
m.topk(a, 9)
m.kthvalue(a, 9)
m.gather(a, 1, a)
m.gather(a, 1, k[0])
m.scatter(a, 1, k, i)
m.index_select(a, 0, k)
m.index_select(a, 0, k3[0] + 9)
a.masked_fill(i, 1)
m.masked_fill(a, q, c)
m.masked_select(a, i)
m.where(q, a, x3)
m.clamp(a)
m.einsum('ij,jk->ik', a, b)
m.einsum('ij->ijk', a)
m.einsum('ij,jk', a)
m.tensordot(a, b, 1)
m.cross(b[:2], a[:2])
m.trace(c)
m.tril(c)
m.diagonal(a, 0, 1, 1)
m.linalg.inv(a)
m.arange(0, 5, -1)
m.arange(0, 5, 0)
m.zeros(2, -1)
m.tensor([[1], [2, 3]])
m.tensor('a')
m.tensor([None])
m.full((2,), 'x')
m.roll(a, (1, 2), 0)
m.rot90(a, 1, (0, 0))
m.movedim(a, 0, 5)
m.as_strided(a, (9, 9), (4, 1))
a & b
a << 1
~a
i & 1.5
m.bitwise_not(a)
m.multinomial(-p, 1)
m.bernoulli(a)
m.randint(3, 3, (2,))
m.normal(0.0, -1.0, (2,))
m.eye(-1)
m.linspace(0, 1, -1)
m.unflatten(a, 1, (3, 2))
m.renorm(i, 2, 0, 1.0)
bool(a)
float(a)
a.item()
len(s)
m.isclose(a, i)
m.matmul(a, i)
m.matmul(s, s)
a.unfold(0, 9, 1)
pad(a, (1,))
m.quantile(a, 0.5, interpolation='x')
m.scatter(a, 1, k, 1.0, reduce='x')
m.index_add(a, 0, k3[0], b[:2])
m.take_along_dim(a, k.T, 1)""".splitlines()


@pytest.mark.parametrize("text", REFUSED)
def test_both_refuse(text):
    with pytest.raises(Exception) as theirs:
        run(text, torch, variables(text, torch, False))
    kind = RuntimeError if theirs.type is NotImplementedError else theirs.type
    with pytest.raises(kind) as ours:
        run(text, flow, variables(text, flow, False))
    message = str(ours.value)
    if isinstance(ours.value, flow.errors.FlowError):
        assert "test_against_torch.py" in message or "lines.py" in message or "<string>" in message
        assert ours.value.expected or ours.value.got or ours.value.fix, "a message says what was expected and what came"


@pytest.mark.parametrize("text", ["a[0, 0] = [1]", "a[0] = c[:3]", "a[3] = 1", "a[q] = c", "a[0] = 'x'", "a[[0, 1]] = b"])
def test_both_refuse_to_assign(text):
    with pytest.raises(Exception) as theirs:
        exec(text, {n: torch.tensor(v) for n, v in INPUTS.items()})
    with pytest.raises(theirs.type):
        exec(text, {n: flow.tensor(v) for n, v in INPUTS.items()})
