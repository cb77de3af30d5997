"""Exercises of chapter 8. Each function gives the source of a kernel, as a str. Replace each
`raise NotImplementedError("your turn")`, then run

    python -m flowedu.learn.exercises chapters/08_kernels

Those in CUDA C run on a GPU or, with FLOWEDU_CUDA=sim in front of the command, in the simulator (`make test-cuda` sets it
up). There every launch is checked and counted, under twenty orders of threads.
"""


def running_sums():
    """In Cython: y[r, j] = x[r, 0] + ... + x[r, j].

    A source with `address`, of a kernel of the contract. x: float32 (rows, n), contiguous; y: the same. Add up in double: a
    row may have a million elements. Threads share the rows. The lines in the loops must have score 0.
    """
    raise NotImplementedError("your turn")


def guard():
    """In CUDA C: out[i] = x[i] + y[i], with one thread for each element.

        __global__ void add(const float *x, const float *y, float *out, int n)

    Started with blocks of 64 threads, as many as are needed for n, which may be any number.
    """
    raise NotImplementedError("your turn")


def row_sums():
    """In CUDA C: out[r] = x[r, 0] + ... + x[r, n - 1].

        __global__ void row_sums(const float *x, float *out, int n)

    A block of 64 threads for each row. Every element is read once, and threads beside each other read elements beside each
    other. At most 8 barriers.
    """
    raise NotImplementedError("your turn")


def softmax_rows():
    """In CUDA C: the softmax of each row; numbers may be as large as 1000.

        __global__ void softmax_rows(const float *x, float *y, int n)

    A block of 64 threads for each row. x is read at most three times, y only written.
    """
    raise NotImplementedError("your turn")


def transpose():
    """In CUDA C: y[c, r] = x[r, c].

        __global__ void transpose(const float *x, float *y, int rows, int cols)

    A block of (32, 32) threads for each 32 by 32 tile of x; blockIdx.x counts along the columns. Both reading and writing
    take 4 sectors for 32 elements; no bank conflicts.
    """
    raise NotImplementedError("your turn")


def tiled_product():
    """In CUDA C: c = a @ b.

        __global__ void product(const float *a, const float *b, float *c, int m, int n, int k)

    a: (m, k), b: (k, n), c: (m, n), of any size; a block of (16, 16) threads for each tile of c, blockIdx.x along n. At
    most 2 m n k / 16 elements are read, where 16 divides m, n and k.
    """
    raise NotImplementedError("your turn")
