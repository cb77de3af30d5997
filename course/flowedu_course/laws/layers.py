"""Laws of chapter 3: initial values, padding, variables, and layer norm."""
from __future__ import annotations

import numpy as np

from flowedu.core.layers.context import Eager
from flowedu.core.values.dtype import as_dtype
from flowedu.core.values.spec import Spec
from flowedu.errors import CheckError, JobBuildAndInferError
from flowedu_course.laws import (
    SMALLEST,
    Words,
    become,
    counted,
    each,
    fewer,
    holds,
    less,
    pair,
    simpler,
    smaller_shapes,
    where_differ,
)

LAST = {3: "NWC", 4: "NHWC", 5: "NDHWC"}           # channels last, by the number of axes


def _weights(rng, size):
    rank = rng.choice((2, 2, 3, 4, 5))
    shape = tuple(rng.randint(1, 2 + size) for _ in range(rank))
    return shape, LAST[rank] if rank > 2 and rng.random() < 0.4 else ""


def _smaller_weights(case):
    shape, order = case
    for s in smaller_shapes(shape):
        if len(s) > 1 and 0 not in s:
            yield s, LAST.get(len(s), "") if order else ""
    if order:
        yield shape, ""


def _counted(shape, order):
    """Return (inputs that one output sums, outputs that one input reaches), counted element by element."""
    out, *rest = shape
    if len(shape) == 2:
        return rest[0], out
    channels, space = (rest[-1], rest[:-1]) if order else (rest[0], rest[1:])
    windows = 1
    for n in space:
        windows *= n
    return channels * windows, out * windows


def _describe_weight(case):
    shape, order = case
    where = f"last ({order})" if order else "first"
    return f"a weight {shape}, " + ("dense" if len(shape) == 2 else f"convolution, channels {where}")


@holds("inputs per output, outputs per input", _weights, _smaller_weights, cases=120, told=_describe_weight,
       edges=[((2, 3), ""), ((1, 1), ""), ((2, 3, 4), ""), ((2, 4, 3), "NWC"), ((2, 3, 3, 5), "NHWC"),
              ((2, 5, 3, 3), ""), ((2, 1, 2, 3, 5), "NDHWC")])
def fan(case, yours):
    shape, order = case
    inputs, outputs = _counted(shape, order)
    for mode, want in (("fan_in", inputs), ("fan_out", outputs), ("fan_avg", (inputs + outputs) / 2)):
        got = yours(shape, mode, order)
        if got != want:
            return [f"{SMALLEST}{mode} of {_describe_weight(case)}", *pair("should be", got, want)]
    return None


# ---- the side of the extra padding pixel
def _axes(rng, size):
    """Draw (size, kernel, stride, dilation, upper)."""
    small = 1 + size
    return (rng.randint(1, 2 * small), rng.randint(1, small), rng.randint(1, small), rng.randint(1, 2),
            rng.random() < 0.5)


def _describe_pads(case):
    size, kernel, stride, dilation, upper = case
    return f"{size} pixel{'s' * (size > 1)}, kernel {kernel}, stride {stride}, dilation {dilation}, " \
           f"SAME_{'UPPER' if upper else 'LOWER'}"


@holds("the padding of each side is correct", _axes, simpler(*((i, less(1)) for i in range(4))), cases=300,
       told=_describe_pads, edges=[(1, 1, 1, 1, True), (1, 1, 3, 1, True), (4, 1, 3, 1, False),
                                   (5, 2, 1, 1, True),
                                   (5, 2, 1, 1, False), (2, 3, 2, 2, True), (3, 2, 3, 1, True)])
def pads(case, yours):
    size, kernel, stride, dilation, upper = case
    before, after = yours(size, kernel, stride, dilation, upper)
    if before < 0 or after < 0:
        return [f"  yours           {(before, after)}: padding must not be negative"]
    reach, wanted = (kernel - 1) * dilation + 1, -(-size // stride)
    total = next(n for n in range(reach * wanted + stride * wanted + 1) if (size + n - reach) // stride
                 + 1 >= wanted and
                 size + n >= reach)
    got = (size + before + after - reach) // stride + 1 if size + before + after >= reach else 0
    if got < wanted:
        return [f"  yours           {(before, after)}: room for {got} windows",
                f"  should be       ceil({size} / {stride}) = {wanted} windows"]
    if before + after > total:
        return [f"  yours           {(before, after)}: {total} zeros are enough for {wanted} windows"]
    right = (total // 2, total - total // 2) if upper else (total - total // 2, total // 2)
    if (before, after) == right:
        return None
    side = "after" if upper else "before"
    return [*pair("should be", (before, after), right), f"  the odd padding pixel is {side} the axis"]


# ---- one name, one variable
def _requests(rng, size):
    """Draw (name, shape, dtype, trainable, has an initializer) of each request."""
    return tuple((rng.choice("wv"), (rng.randint(1, 2),) * rng.randint(1, 2),
                  rng.choice(("float32", "float32", "int32")),
                  rng.random() < 0.7, rng.random() < 0.9) for _ in range(rng.randint(1, 2 * size)))


_plainer = each(simpler((0, become("w")), (1, become((1,))), (2, become("float32")), (3, become(True))))


def _smaller_requests(case):
    yield from fewer(case)
    yield from _plainer(case)


def _describe_variables(case):
    return "; ".join(f"{name} {dtype}{list(shape)}{' not trainable' * (not trainable)}{' no initializer' * (not has)}"
                     for name, shape, dtype, trainable, has in case)


@holds("each name has one variable", _requests, _smaller_requests, cases=150, told=_describe_variables)
def variables(case, yours):
    store, made = Eager(), {}
    for number, (name, shape, dtype, trainable, has) in enumerate(case, 1):
        spec = Spec(shape, as_dtype(dtype))
        calls = []

        def initializer(s, d, seed, number=number, calls=calls):
            calls.append(seed)
            return np.full(s, number)

        said = [f"{SMALLEST}{_describe_variables(case[:number])}"]
        old = made.get(name)
        want: type[Exception] | None = None
        if old is None and not has:
            want = JobBuildAndInferError
        elif old is not None and old[1] != spec:
            want = CheckError
        try:
            got = yours(store, name, spec, initializer if has else None, trainable, None, True, 40 + number)
        except (CheckError, JobBuildAndInferError) as error:
            mine = Words(type(error).__name__)
            if want is None:
                return [*said, *pair("should be", mine, Words("the existing one" if old
                                                              else "a new one"))]
            if type(error) is not want:
                return [*said, *pair("should be", mine, Words(want.__name__))]
            if want is CheckError and not all(str(s) in str(error) for s in (old[1], spec)):
                return [*said, f"  your error      {str(error).splitlines()[0]}", f"  it should name "
                        f"{old[1]} and {spec}"]
            if set(store.variables) != set(made):
                return [*said, f"  yours           keeps {name} in self.variables, although the call failed"]
            continue
        if want is not None:
            return [*said, *pair("should be", Words("no error"), Words(want.__name__ + (
                f": {name} is {old[1]} already" if old else ", from missing_initializer(name)")))]
        if old is not None:
            if got is not old[0]:
                return [*said, f"  yours           a new {name} for the second call, without the trained "
                        f"values"]
            continue
        made[name] = got, spec
        if got.spec != spec or not np.array_equal(got.numpy(), np.full(shape, number)):
            right = Words(f"{spec}, all {number}, from the initializer")
            return [*said, *pair("should be", Words(f"{got.spec} {got.numpy().tolist()}"), right)]
        if got.requires_grad != (trainable and dtype == "float32"):
            return [*said, *pair("should be", *(Words(f"requires_grad={on}") for on in (
                got.requires_grad, trainable and dtype == "float32"))),
                    "  only trainable float variables need gradients"]
        if calls != [40 + number]:
            asked = Words(f"initializer called with seeds {calls}"), Words(f"one call, with {40 + number}")
            return [*said, *pair("should be", *asked)]
        if store.variables.get(name) is not got:
            return [*said, "  yours           is not in self.variables, which checkpoints read"]
    return None


# ---- layer norm and its gradient
def _rows(rng, size):
    """Draw (shape, first normalised axis, epsilon, True if all elements of a row are equal, seed)."""
    shape = tuple(rng.randint(1, 1 + size) for _ in range(rng.randint(1, min(3, 1 + size))))
    return (shape, rng.randint(0, len(shape) - 1), rng.choice((1e-5, 0.1, 1.0)), rng.random() < 0.15,
            rng.randint(0, 99))


def _smaller_rows(case):
    shape, begin, epsilon, equal, seed = case
    for s in smaller_shapes(shape):
        if s and 0 not in s:
            yield s, min(begin, len(s) - 1), epsilon, equal, seed


def _describe_row(case):
    shape, begin, epsilon, equal, _ = case
    return f"x {shape}, begin_norm_axis={begin}, epsilon={epsilon:g}{', equal numbers in a row' * equal}"


def _row_case(case):
    shape, begin, epsilon, equal, seed = case
    rng = np.random.default_rng(seed)
    x = np.broadcast_to(rng.standard_normal((*shape[:begin], *(1,) * (len(shape) - begin))),
                        shape).copy() if equal else \
        rng.standard_normal(shape)
    return x, rng.standard_normal(shape[begin:]), rng.standard_normal(shape[begin:])


ROWS = [((1,), 0, 0.1, False, 0), ((1, 1), 1, 1e-5, True, 1), ((2, 3), 0, 0.1, False, 2),
        ((3, 2), 1, 1e-5, True, 3)]


@holds("the variance is correct for large numbers", _rows, _smaller_rows, cases=40, told=_describe_row,
       edges=ROWS)
def far_from_zero(case, yours):
    """Check float32 rows whose mean is 1,000 times their spread, where E[x^2] - E[x]^2 is inaccurate."""
    shape, begin, epsilon, _, _ = case
    x, gamma, beta = _row_case((*case[:3], False, case[4]))
    x, gamma, beta = (a.astype(np.float32) for a in (x + 3000, gamma, beta))
    if np.prod(shape[begin:]) < 2:
        return None
    right = _normalised(x.astype(np.float64), gamma, beta, begin, epsilon)
    for name, mine, want in zip(("y", "mean", "inv_std"), yours["forward"](x, gamma, beta, begin, epsilon),
                                right):
        mine = np.asarray(mine)
        if name == "y" and mine.dtype != x.dtype:
            return [f"  yours           y is {mine.dtype}, x is {x.dtype}: they have the same dtype"]
        if mine.shape != want.shape or not np.allclose(mine, want, rtol=2e-2, atol=2e-2):
            return [SMALLEST + _describe_row((*case[:3], False,
                                              case[4])), "  with 3000 added to x, in float32",
                    *where_differ(name, mine, want),
                    "  subtract the mean before squaring: large squares lose the variance to rounding"]
    return None


def _normalised(x, gamma, beta, begin, epsilon):
    """Return (y, mean, inv_std), computed row by row."""
    rows = x.reshape(-1, int(np.prod(x.shape[begin:])))
    mean = np.array([sum(r) / len(r) for r in rows])
    inv_std = np.array([1 / np.sqrt(sum((v - m) ** 2 for v in r) / len(r) + epsilon)
                        for r, m in zip(rows, mean)])
    y = (rows - mean[:, None]) * inv_std[:, None] * gamma.reshape(-1) + beta.reshape(-1)
    return y.reshape(x.shape), mean.reshape(x.shape[:begin]), inv_std.reshape(x.shape[:begin])


@holds("each row is centred and scaled", _rows, _smaller_rows, cases=120, told=_describe_row, edges=ROWS)
def normalised(case, yours):
    _, begin, epsilon, _, _ = case
    x, gamma, beta = _row_case(case)
    got = yours["forward"](x, gamma, beta, begin, epsilon)
    names = "y", "mean", "inv_std"
    if lines := counted(got, names):
        return lines
    for name, mine, right in zip(names, got, _normalised(x, gamma, beta, begin, epsilon)):
        if lines := where_differ(name, np.asarray(mine), right):
            return lines
    return None


@holds("the gradient equals finite differences", _rows, _smaller_rows, cases=60, told=_describe_row,
       edges=ROWS)
def normalised_back(case, yours):
    _, begin, epsilon, _, seed = case
    x, gamma, beta = _row_case(case)
    _, mean, inv_std = _normalised(x, gamma, beta, begin, epsilon)
    dy = np.random.default_rng(seed + 1).standard_normal(x.shape)
    got = yours["backward"](dy, x, gamma, mean, inv_std, begin)
    given = {"x": x, "gamma": gamma, "beta": beta}
    if lines := counted(got, [f"d{name}" for name in given]):
        return lines
    for (name, v), mine in zip(given.items(), got):
        right = np.zeros_like(v)
        for at in np.ndindex(*v.shape):
            ends = []
            for step in (1e-5, -1e-5):
                moved = v.copy()
                moved[at] += step
                y, _, _ = _normalised(*{**given, name: moved}.values(), begin, epsilon)
                ends.append((y * dy).sum())
            right[at] = (ends[0] - ends[1]) / 2e-5
        if lines := where_differ(f"d{name}", np.asarray(mine), right):
            return [*lines, "  expected: finite differences of (y * dy).sum()"]
    return None
