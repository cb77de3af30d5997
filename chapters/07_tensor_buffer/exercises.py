"""Exercises of chapter 7. Replace each `raise NotImplementedError("your turn")`, then run

    python -m flowedu.learn.exercises chapters/07_tensor_buffer
"""


def offsets(shapes):
    """Where each tensor of a TensorList begins, and, last, where the last one ends: a list of len(shapes) + 1 ints.

    shapes: a list of tuples. Offsets count elements, not bytes.
    """
    raise NotImplementedError("your turn")


def pack(arrays):
    """A TensorList by hand: (data, offsets, shapes). data is one array of one axis and of the arrays' dtype.

    arrays: a list of NumPy arrays, all of one dtype. offsets as above; shapes a list of tuples.
    """
    raise NotImplementedError("your turn")


def view(data, offsets, shapes, i):
    """Tensor i of what `pack` gave, as a view: writing into it writes into data."""
    raise NotImplementedError("your turn")


def replace(data, offsets, shapes, i, new):
    """Put the array `new`, of any shape, in the place of tensor i: (data, offsets, shapes, moved).

    moved: how many elements of the *other* tensors lie at another offset than before. The arguments stay as they are.
    """
    raise NotImplementedError("your turn")


def linear_taps(source, target):
    """Bilinear resizing along one axis: for each of `target` pixels ((i, a), (j, b)): new = a * old[i] + b * old[j].

    The centre of new pixel k is at (k + 0.5) * source / target - 0.5, measured in old pixels whose centres are at 0, 1, 2,
    ...; i is the pixel at or left of it, j = i + 1, and the nearer gets the greater weight. Beyond an edge there is only
    the pixel at the edge: i and j must be from 0 to source - 1.
    """
    raise NotImplementedError("your turn")


def aligned(sizes, alignment):
    """What batch_align makes of pictures of these sizes: (height, width, share of padding).

    sizes: a list of (height, width). Height and width are those of the highest and of the widest picture, rounded up to a
    multiple of alignment (0: not rounded). The share is the part of all elements of the batch that belongs to no picture.
    """
    raise NotImplementedError("your turn")


def batches(sizes, count):
    """Which pictures go together: a list of lists of indices into sizes, each of `count` indices, each index once.

    sizes: a list of (height, width); count divides its length. Every batch is padded to its highest and widest picture. The
    check draws 240 sizes and wants less than half of the padding that batches in the given order have. Is it enough to sort
    them by area?
    """
    raise NotImplementedError("your turn")
