"""einsum: sums of products in Einstein notation, computed by matmul."""
from __future__ import annotations

import string
from collections.abc import Sequence
from math import prod

from flowedu.core.eager.tensor import Tensor
from flowedu.errors import ArgumentError, ShapeError
from flowedu.tensor.arguments.dims import reshaped, transposed
from flowedu.tensor.linalg.products import matmul
from flowedu.tensor.reductions import reduce as R
from flowedu.tensor.shapes import reshape_and_permute as S
from flowedu.tensor.shapes import split_and_flip as P

_LETTERS = string.ascii_letters


def einsum(equation: str, *operands: Tensor | Sequence[Tensor]) -> Tensor:
    """Return sums of products in Einstein notation.

    Args:
        equation: letters of the axes of each operand and of the result, such as "bij,bjk->bik". `...` denotes
            broadcast axes.
        *operands: tensors.

    Example:
        >>> flow.einsum("ij,jk->ik", flow.ones(2, 3), flow.ones(3, 4)).shape
        oneflow.Size([2, 4])
    """
    xs: list = list(operands[0]) if len(operands) == 1 and isinstance(operands[0],
                                                                      (list, tuple)) else list(operands)
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(xs):
        raise ArgumentError("einsum: the equation does not fit the operands", expected=f"{len(xs)} terms",
                            got=equation, fix="one term for each operand, with commas between")
    free = iter([c for c in reversed(_LETTERS) if c not in equation])
    extra = max((x.ndim - len(t.replace("...", "")) for t, x in zip(terms, xs) if "..." in t), default=0)
    dots = "".join(next(free) for _ in range(extra))
    full = []
    for t, x in zip(terms, xs):
        n = x.ndim - len(t.replace("...", ""))
        t = t.replace("...", dots[extra - n:] if n > 0 else "")
        if len(t) != x.ndim:
            raise ShapeError("einsum: the number of subscripts in the equation does not match the number of "
                             "dimensions",
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
    pairs = [_without_doubles(x, t) for x, t in zip(xs, full)]
    xs, full = [x for x, _ in pairs], [t for _, t in pairs]
    x, t = xs.pop(0), full.pop(0)
    while xs:
        y, u = xs.pop(0), full.pop(0)
        keep = set("".join(full)) | set(right)
        x, t = _pair(x, t, y, u, keep)
    return _finish(x, t, right)


def _without_doubles(x: Tensor, term: str) -> tuple[Tensor, str]:
    """Replace axes with the same letter by their diagonal."""
    for c in dict.fromkeys(term):
        while term.count(c) > 1:
            i = term.index(c)
            j = term.index(c, i + 1)
            x = P.diagonal(x, 0, i, j)
            term = term[:i] + term[i + 1:j] + term[j + 1:] + c
    return x, term


def _summed(x: Tensor, term: str, keep: set[str]) -> tuple[Tensor, str]:
    gone = tuple(i for i, c in enumerate(term) if c not in keep)
    return (R.sum(x, gone, dtype=x.dtype), "".join(c for c in term if c in keep)) if gone else (x, term)


def _pair(x: Tensor, t: str, y: Tensor, u: str, keep: set[str]) -> tuple[Tensor, str]:
    """Return the product of two operands; matmul contracts letters of both that are not needed later."""
    x, t = _summed(x, t, keep | set(u))
    y, u = _summed(y, u, keep | set(t))
    size: dict[str, int] = {}
    for term, z in ((t, x), (u, y)):
        for c, n in zip(term, z.shape):
            if size.get(c, 1) not in (1, n) and n != 1:
                raise ShapeError(f"einsum: subscript {c} has size {n}, which does not broadcast with "
                                 f"{size[c]}", expected="one size for a letter", got=f"{size[c]} and {n}",
                                 fix="use another letter for one of the axes")
            size[c] = max(size.get(c, n), n) if 0 not in (n, size.get(c, n)) else 0
    both = [c for c in t if c in u]
    batch, inner = [c for c in both if c in keep], [c for c in both if c not in keep]
    rows, cols = [c for c in t if c not in u], [c for c in u if c not in t]

    def arranged(z: Tensor, term: str, order: list[str]) -> Tensor:
        z = transposed(z, tuple(term.index(c) for c in order))
        return S.expand(z, *[size[c] for c in order])

    def count(letters: Sequence[str]) -> int:
        return prod(size[c] for c in letters)

    a = S.reshape(arranged(x, t, batch + rows + inner), count(batch), count(rows), count(inner))
    b = S.reshape(arranged(y, u, batch + inner + cols), count(batch), count(inner), count(cols))
    out = batch + rows + cols
    if not inner:
        z = a * S.transpose(b, 1, 2) if not cols else reshaped(a, (count(batch), count(rows), 1)) * b
    else:
        z = matmul(a, b)
    return reshaped(z, tuple(size[c] for c in out)), "".join(out)


def _finish(x: Tensor, term: str, right: str) -> Tensor:
    """Put the axes in order.

    Letters that remain come from one operand and are summed, with the dtype of sum.
    """
    gone = tuple(i for i, c in enumerate(term) if c not in right)
    if gone:
        x = R.sum(x, gone)
    rest = [c for c in term if c in right]
    return transposed(x, tuple(rest.index(c) for c in right))
