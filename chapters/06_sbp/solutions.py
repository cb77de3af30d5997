"""Solutions of chapter 6. Try first."""
import itertools

import numpy as np


def legal(f, inputs, scatter, gather):
    def layouts(a):
        return ["B", "P", *[f"S{i}" for i in range(a.ndim)]]

    want, found = f(*inputs), set()
    for signature in itertools.product(*map(layouts, inputs)):
        devices = zip(*[scatter(a, sbp) for a, sbp in zip(inputs, signature)])
        try:
            parts = [f(*arrays) for arrays in devices]
        except ValueError:
            continue
        for sbp in layouts(want):
            got = gather(parts, sbp)
            if got is not None and got.shape == want.shape and np.allclose(got, want):
                found.add((*signature, sbp))
    return found


def softmax(parts, all_reduce):
    largest = all_reduce([p.max(1, keepdims=True) for p in parts], "max")
    powers = [np.exp(p - largest) for p in parts]
    total = all_reduce([p.sum(1, keepdims=True) for p in powers], "sum")
    return [p / total for p in powers]


def axes():
    return {"norm": "btC->btC", "attention": "bhtD,bhSD,bhSe->bhte", "gram": "nI->IJ"}
