"""What the exercises of chapter 2 must do."""
import itertools

import numpy as np

import flowedu as flow
from flowedu.core.ops.define import Op
from flowedu.core.ops.record import Meaning, Split, read
from flowedu.core.sbp.signature import signatures
from flowedu.core.values.spec import Spec
from flowedu.learn.exercises import Wrong, expect


def softmax(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


# name: (its meaning, shapes of the inputs, groups it is linear in)
OPS = {"transpose": (lambda x: x.T, [(4, 6)], [("x",)]), "sum": (lambda x: x.sum(1), [(4, 6)], [("x",)]),
       "max": (lambda x: x.max(1), [(4, 6)], []), "softmax": (softmax, [(4, 6)], []),
       "matmul_t": (lambda x, y: x @ y.T, [(4, 6), (8, 6)], [("x",), ("y",)])}


# ---- two devices, simulated
def parts(x, how, rng):
    """What each of two devices holds: "B", all of it; "P", terms of a sum; "S0", "S1", a half."""
    if how == "P":
        r = rng.standard_normal(x.shape)
        return [r, x - r]
    return [x, x] if how == "B" else np.array_split(x, 2, int(how[1]))


def whole(parts, how):
    """The value that the devices hold together; None if they cannot."""
    if how == "P":
        return parts[0] + parts[1]
    if how == "B":
        return parts[0] if np.allclose(*parts) else None
    return np.concatenate(parts, int(how[1])) if parts[0].ndim > int(how[1]) else None


def works(f, arrays, signature):
    """Whether two devices that each run f on their parts get what one device gets on everything."""
    rng = np.random.default_rng(1)
    try:
        outs = [f(*piece) for piece in zip(*[parts(x, s, rng) for x, s in zip(arrays, signature)])]
        got = whole(outs, signature[-1])
    except ValueError:
        return False
    want = f(*arrays)
    return got is not None and got.shape == want.shape and bool(np.allclose(got, want))


def derived(equation, linear, shapes):
    """The signatures flowedu would read off this record."""
    op = Op(read(f"answer({', '.join(('x', 'y')[:len(shapes)])}) -> out"), Meaning(equation), Split(linear=linear))
    return signatures(op, [Spec(s, flow.float32) for s in shapes], ())


def text(signature):
    return ", ".join(signature[:-1]) + " -> " + signature[-1]


# ---- the exercises
def check_equations(f):
    answers = f()
    if not isinstance(answers, dict) or set(answers) != set(OPS):
        raise Wrong(f"return a dict with the keys {', '.join(OPS)}, such as {{'transpose': 'ab->...'}}")
    rng = np.random.default_rng(0)
    for name, (meaning, shapes, linear) in OPS.items():
        equation = answers[name]
        arrays = [rng.standard_normal(s) for s in shapes]
        out = meaning(*arrays)
        left, arrow, right = str(equation).partition("->")
        terms = [*left.split(","), right]
        if not arrow or [len(t) for t in terms] != [a.ndim for a in (*arrays, out)]:
            raise Wrong(f"{name}: {equation!r} does not fit\n  inputs have shape {shapes}, the output {out.shape}\n"
                        "  hint: one letter for each axis, as in 'mk,kn->mn'")
        sizes = {}
        for letter, n in zip("".join(terms), [n for a in (*arrays, out) for n in a.shape]):
            if sizes.setdefault(letter, n) != n:
                raise Wrong(f"{name}: in {equation!r} axis {letter} has two sizes, {sizes[letter]} and {n}, when the "
                            f"inputs have shape {shapes} and the output {out.shape}")
        claimed = derived(equation, linear, shapes)
        for s in sorted(claimed):
            if not works(meaning, arrays, s):
                raise Wrong(f"{name}: {equation!r} says that two devices may do {text(s)}, but then the result is "
                            "wrong\n  hint: an axis the op needs whole is a capital letter")
        options = [["B", *[f"S{i}" for i in range(len(s))]] for s in shapes] + [["B", "P", "S0", "S1"][:out.ndim + 2]]
        for s in itertools.product(*options):
            if s not in claimed and works(meaning, arrays, s):
                raise Wrong(f"{name}: {equation!r} forbids {text(s)}, which works\n  hint: small letters may be cut; "
                            "axes that must be cut together share a letter")


def check_linear_groups(f):
    answers = f()
    meanings = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
                "relu": lambda x: np.maximum(x, 0)}
    if not isinstance(answers, dict) or set(answers) != set(meanings):
        raise Wrong(f"return a dict with the keys {', '.join(meanings)}")
    rng = np.random.default_rng(0)
    for name, meaning in meanings.items():
        arrays = [rng.standard_normal((4, 6)) for _ in range(1 if name == "relu" else 2)]
        letters = ["ab"] * len(arrays)
        groups = answers[name]
        if not isinstance(groups, list) or not all(isinstance(g, tuple) and set(g) <= {"x", "y"} and g for g in groups):
            raise Wrong(f"{name}: {groups!r} is not a list of groups\n  hint: [('x',), ('y',)], or [('x', 'y')], or []")
        claimed = {s for s in derived(",".join(letters) + "->ab", groups, [(4, 6)] * len(arrays)) if "P" in s}
        for s in itertools.product("BP", repeat=len(arrays)):
            s = (*s, "P")
            if "P" in s[:-1] and (s in claimed) != works(meaning, arrays, s):
                verdict = "which is wrong" if s in claimed else "but it is"
                raise Wrong(f"{name}: you say {groups}, so {text(s)} is {'' if s in claimed else 'not '}legal, "
                            f"{verdict}\n  hint: write x = x1 + x2 (and y = y1 + y2, or y whole) and see what the "
                            "parts add up to")


def check_gauss_gradient(f):
    def gauss(x):
        return (x * x * -1).exp()

    x = flow.tensor(np.linspace(-2, 2, 7), requires_grad=True)
    dy = flow.tensor(np.linspace(1, 2, 7))
    got = f(dy, x, gauss(x))
    if not isinstance(got, flow.Tensor):
        raise Wrong(f"it gives a {type(got).__name__}\n  hint: stay with tensors and ops: that is what makes second "
                    "derivatives free")
    want, = flow.grad((gauss(x) * dy).sum(), x, create_graph=True)
    expect("gauss_gradient(dy, x, y)", got.numpy(), want.numpy(),
           "the derivative of -x * x is -2 * x; dy multiplies it all")
    if not got.requires_grad:
        raise Wrong("the value is right, but it has no history\n  hint: use the x and y you are given, and ops, not "
                    "numpy()")
    twice, = flow.grad(want.sum(), x)
    got2, = flow.grad(got.sum(), x)
    expect("its own gradient", got2.numpy(), twice.numpy(), "use the x and y you are given, not copies of one of them")


def check_matmul_gradient(f):
    rng = np.random.default_rng(0)
    a, b = (flow.tensor(rng.standard_normal(s), requires_grad=True) for s in ((2, 3), (3, 4)))
    dy = flow.tensor(rng.standard_normal((2, 4)))
    got = f(dy, a, b)
    if not isinstance(got, tuple) or len(got) != 2:
        raise Wrong(f"it gives {got!r}\n  hint: return da, db")
    want = flow.grad(((a @ b) * dy).sum(), (a, b))
    for name, g, w in zip(("da", "db"), got, want):
        if g.shape != w.shape:
            raise Wrong(f"{name} has shape {g.shape}, but it must have that of {name[1]}, {w.shape}\n  hint: dy is "
                        "(m, n), a (m, k), b (k, n): which product of two, transposed or not, has the right shape?")
        expect(name, g.numpy(), w.numpy(), "the shape is right; check which operand is transposed")


def check_forward_derivative(f):
    x = flow.tensor(np.linspace(-1, 1, 5), requires_grad=True)
    cases = {"x + x": lambda x: x + x, "x * x": lambda x: x * x, "3 - x": lambda x: 3.0 - x, "-x": lambda x: -x,
             "sin(x) * x": lambda x: flow.math.sin(x) * x, "exp(x * 2)": lambda x: flow.math.exp(x * 2.0),
             "exp(sin(x * x)) - x": lambda x: flow.math.exp(flow.math.sin(x * x)) - x}
    for name, g in cases.items():
        want, = flow.grad(g(x).sum(), x)
        got = f(g, x.detach())
        if not isinstance(got, flow.Tensor):
            raise Wrong(f"the rate of {name} is a {type(got).__name__}\n  hint: a Dual holds two tensors, not Duals")
        expect(f"the derivative of {name}", got.numpy(), want.numpy(), "the sum rule, the product rule, the chain rule")
    got, = flow.grad(f(cases["sin(x) * x"], x).sum(), x)
    want, = flow.grad(flow.grad((flow.math.sin(x) * x).sum(), x, create_graph=True)[0].sum(), x)
    expect("backward over forward", got.numpy(), want.numpy(), "compute rates with ops, and the tape sees them, too")
