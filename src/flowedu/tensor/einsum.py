"""einsum: sums of products in Einstein's notation, by matmul."""
from __future__ import annotations

import string
from math import prod

from flowedu.errors import ArgumentError, ShapeError
from flowedu.tensor import pieces as P
from flowedu.tensor import reductions as R
from flowedu.tensor import shapes as S
from flowedu.tensor.dims import reshaped, transposed
from flowedu.tensor.linear import matmul

_LETTERS = string.ascii_letters


def einsum(equation: str, *operands):
    """Return sums of products in Einstein notation: einsum("bij,bjk->bik", a, b). `...` means broadcast
    axes.
    """
    xs = list(operands[0]) if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else list(operands)
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(xs):
        raise ArgumentError("einsum: the equation does not fit the operands", expected=f"{len(xs)} terms", got=equation,
                            fix="one term for each operand, with commas between")
    free = iter([c for c in reversed(_LETTERS) if c not in equation])
    extra = max((x.ndim - len(t.replace("...", "")) for t, x in zip(terms, xs) if "..." in t), default=0)
    dots = "".join(next(free) for _ in range(extra))
    full = []
    for t, x in zip(terms, xs):
        n = x.ndim - len(t.replace("...", ""))
        t = t.replace("...", dots[extra - n:] if n > 0 else "")
        if len(t) != x.ndim:
            raise ShapeError("einsum: the number of subscripts in the equation does not match the number of dimensions",
                             expected=f"{x.ndim} letters", got=t, fix="write ... for the axes that broadcast")
        full.append(t)
    if arrow:
        right = right.replace("...", dots)
    else:
        every = "".join(full)
        right = dots + "".join(sorted(c for c in set(every) - set(dots) if every.count(c) == 1))
    if set(right) - set("".join(full)) or len(set(right)) != len(right):
        raise ArgumentError("einsum: the output has a letter that no input has, or one twice", got=equation,
                            expected="each letter of the output once, and in an input",
                            fix="check the letters behind the ->")
    xs, full = zip(*[_without_doubles(x, t) for x, t in zip(xs, full)])
    xs, full = list(xs), list(full)
    x, t = xs.pop(0), full.pop(0)
    while xs:
        y, u = xs.pop(0), full.pop(0)
        keep = set("".join(full)) | set(right)
        x, t = _pair(x, t, y, u, keep)
    return _finish(x, t, right)


def _without_doubles(x, term):
    """A letter twice in one term: its diagonal."""
    for c in dict.fromkeys(term):
        while term.count(c) > 1:
            i = term.index(c)
            j = term.index(c, i + 1)
            x = P.diagonal(x, 0, i, j)
            term = term[:i] + term[i + 1:j] + term[j + 1:] + c
    return x, term


def _summed(x, term, keep):
    gone = tuple(i for i, c in enumerate(term) if c not in keep)
    return (R.sum(x, gone, dtype=x.dtype), "".join(c for c in term if c in keep)) if gone else (x, term)


def _pair(x, t, y, u, keep):
    """Return one product of two; letters of both that are not needed later are contracted by matmul."""
    x, t = _summed(x, t, keep | set(u))
    y, u = _summed(y, u, keep | set(t))
    size = {}
    for term, z in ((t, x), (u, y)):
        for c, n in zip(term, z.shape):
            if size.get(c, 1) not in (1, n) and n != 1:
                raise ShapeError(f"einsum: subscript {c} has size {n}, which does not broadcast with {size[c]}",
                                 expected="one size for a letter", got=f"{size[c]} and {n}",
                                 fix="use another letter for one of the axes")
            size[c] = max(size.get(c, n), n) if 0 not in (n, size.get(c, n)) else 0
    both = [c for c in t if c in u]
    batch, inner = [c for c in both if c in keep], [c for c in both if c not in keep]
    rows, cols = [c for c in t if c not in u], [c for c in u if c not in t]

    def arranged(z, term, order):
        z = transposed(z, tuple(term.index(c) for c in order))
        return S.expand(z, *[size[c] for c in order])

    n = lambda letters: prod(size[c] for c in letters)
    a = S.reshape(arranged(x, t, batch + rows + inner), n(batch), n(rows), n(inner))
    b = S.reshape(arranged(y, u, batch + inner + cols), n(batch), n(inner), n(cols))
    out = batch + rows + cols
    if not inner:
        z = a * S.transpose(b, 1, 2) if not cols else reshaped(a, (n(batch), n(rows), 1)) * b
    else:
        z = matmul(a, b)
    return reshaped(z, tuple(size[c] for c in out)), "".join(out)


def _finish(x, term, right):
    """Put the axes in order.

    Letters that remain come from one operand and are summed, with the dtype of sum.
    """
    gone = tuple(i for i, c in enumerate(term) if c not in right)
    x, term = R.sum(x, gone) if gone else x, [c for c in term if c in right]
    return transposed(x, tuple(term.index(c) for c in right))
