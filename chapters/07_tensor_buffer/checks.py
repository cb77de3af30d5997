"""What the exercises of chapter 7 must do."""
import numpy as np

import flowedu as flow
from flowedu.learn.exercises import Wrong, expect
from flowedu.oneflow04.image.resample import taps

SHAPES = [(2, 3), (1, 4), (5, 1), (0, 2), (3, 3)]


def arrays(shapes, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.integers(0, 100, s).astype(np.float32) for s in shapes]


def by_hand(items):
    """(data, offsets, shapes) of what flow.TensorList makes of them."""
    tensors = flow.TensorList(items)
    return tensors.data, tensors.offsets.tolist(), [a.shape for a in items]


def check_offsets(f):
    expect("offsets([])", f([]), [0], "no tensors: the end is where the beginning is")
    expect("offsets([(2, 3), (4,)])", f([(2, 3), (4,)]), [0, 6, 10], "2 * 3 elements, then 4 more")
    expect(f"offsets({SHAPES})", f(SHAPES), flow.TensorList(arrays(SHAPES)).offsets.tolist(), "a tensor may be empty")


def check_pack(f):
    items = arrays(SHAPES)
    items[0] = np.asfortranarray(items[0])
    data, offsets, shapes = by_hand(items)
    got = f(items)
    if not isinstance(got, tuple) or len(got) != 3:
        raise Wrong(f"pack(...) gives {got!r}\n  should be (data, offsets, shapes)")
    expect("data of pack(arrays)", got[0], data, "row after row of each array, one array after the other")
    expect("data.dtype of pack(arrays)", str(getattr(got[0], "dtype", None)), "float32", "keep the dtype of the arrays")
    expect("offsets of pack(arrays)", got[1], offsets, "as in the first exercise")
    expect("shapes of pack(arrays)", got[2], shapes, "the shapes, as tuples")


def check_view(f):
    items = arrays(SHAPES)
    data, offsets, shapes = by_hand(items)
    for i, a in enumerate(items):
        expect(f"view(data, offsets, shapes, {i})", f(data, offsets, shapes, i), a, "slice data, then reshape")
    f(data, offsets, shapes, 1)[0, 2] = -5
    expect("data after view(data, offsets, shapes, 1)[0, 2] = -5", data[offsets[1]:offsets[2]],
           np.array([*items[1][0, :2], -5, items[1][0, 3]]), "a slice of an array is a view, and so is its reshape; "
           "a list or a fancy index copies")


def check_replace(f):
    for i, shape, moved in ((4, (7, 7), 0), (0, (1, 1), 18), (1, (2, 2), 0), (1, (2, 4), 14), (2, (0, 3), 9)):
        items = arrays(SHAPES)
        data, offsets, shapes = by_hand(items)
        before = data.copy()
        new = arrays([shape], seed=1)[0]
        items[i] = new
        want = (*by_hand(items), moved)
        got = f(data, offsets, shapes, i, new)
        call = f"replace(data, {offsets}, shapes, {i}, an array of {shape})"
        if not isinstance(got, tuple) or len(got) != 4:
            raise Wrong(f"{call} gives {got!r}\n  should be (data, offsets, shapes, moved)")
        for name, g, w, hint in zip(("data", "offsets", "shapes", "moved"), got, want, (
                "the tensors before, the new one, the tensors behind", "count again from the start", "the new shape, too",
                "those in front stay; those behind move, unless the new tensor has as many elements as the old one")):
            expect(f"{name} of {call}", g, w, hint)
        expect("data, the argument, afterwards", data, before, "make a new array")


def check_linear_taps(f):
    def table(pairs):
        return np.array([[list(p) for p in pair] for pair in pairs], float)

    for source, target in ((2, 4), (4, 2), (5, 5), (3, 8), (9, 4), (1, 3)):
        got = f(source, target)
        try:
            t = table(got)
        except (TypeError, ValueError):
            t = np.zeros(0)
        if t.shape != (target, 2, 2):
            raise Wrong(f"linear_taps({source}, {target}) gives {got!r}\n  should be {target} pairs ((i, a), (j, b))")
        index, weight = taps(source, target, "bilinear")
        expect(f"sources of linear_taps({source}, {target})", t[:, :, 0], index.T.astype(float), "from 0 to source - 1")
        expect(f"weights of linear_taps({source}, {target})", t[:, :, 1], weight.T.astype(float),
               "b is how far the centre is to the right of i, before you move i to the edge; a = 1 - b")


def check_aligned(f):
    def ask(sizes, alignment, hint):
        ones = flow.TensorBuffer([np.ones((*s, 1), np.uint8) for s in sizes])
        want = flow.image.batch_align(ones, (99, 99, 1), flow.uint8, alignment).numpy()
        got = f(sizes, alignment)
        call = f"aligned({sizes}, {alignment})"
        if not isinstance(got, tuple) or len(got) != 3:
            raise Wrong(f"{call} gives {got!r}\n  should be (height, width, share of padding)")
        expect(f"height and width of {call}", got[:2], want.shape[1:3], hint)
        expect(f"share of {call}", got[2], float(1 - want.mean()), "1 - pixels of the pictures / elements of the batch")

    ask([(5, 9), (7, 3)], 0, "the highest and the widest need not be the same picture")
    ask([(5, 9), (7, 3)], 4, "7 becomes 8, 9 becomes 12")
    ask([(16, 32), (16, 1)], 16, "what is a multiple already stays")


def padding(sizes, groups):
    """Elements that belong to no picture."""
    return sum(len(g) * max(sizes[i][0] for i in g) * max(sizes[i][1] for i in g) for g in groups) - sum(
        h * w for h, w in sizes)


def check_batches(f):
    expect("batches([(1, 9), (9, 1)], 1)", sorted(f([(1, 9), (9, 1)], 1)), [[0], [1]], "one picture each: no padding")
    rng = np.random.default_rng(3)
    for count in (8, 12):
        sizes = [(int(h), int(w)) for h, w in rng.integers(20, 100, (240, 2))]
        got = f(list(sizes), count)
        try:
            whole = sorted(i for g in got for i in g) == list(range(240)) and {len(g) for g in got} == {count}
        except TypeError:
            whole = False
        if not whole:
            raise Wrong(f"batches(240 sizes, {count})\n  should be {240 // count} lists of {count} indices, with every "
                        "index from 0 to 239 once")
        mine, plain = padding(sizes, got), padding(sizes, [range(k, k + count) for k in range(0, 240, count)])
        if mine >= plain / 2:
            area = sorted(range(240), key=lambda i: sizes[i][0] * sizes[i][1])
            by_area = padding(sizes, [area[k:k + count] for k in range(0, 240, count)])
            raise Wrong(f"batches(240 sizes, {count}) pads {mine:,} elements; in the given order it is {plain:,}, sorted "
                        f"by area {by_area:,}\n  hint: 20 x 90 and 90 x 20 have one area and need 90 x 90 together; sort "
                        "by height, cut that into bands of several batches, and sort each band by width")
