"""Chapter 8: the kernels of the course. Its files, in reading order:

    abi.h, abi.pxd   the contract: what a kernel is given
    team.h           calls in order, on a team of threads
    openmp.py        how idle threads wait
    table.pxd        rows of the tables of kernels
    elements.pxd     types that kernels are compiled for
    cast.pyx         kernels: cast, fill
    layout.pyx       kernels: copy, concat, slice_grad
    moves.pxi        the three, made of one move
    formulas.h       the scalar formulas, each once
    scalarmath.h     functions that C has not
    tiles.h          a short loop for each formula and type
    program.pxd      the structs of a program of tiles
    elementwise.pyx  kernel: every elementwise op, every fused chain
    extent.pxd       an array seen along one axis
    fold.pxd         many numbers into one
    reduce.pyx       kernels: sum, max, min, prod
    reductions.pxi   the four, made of one reduce
    matrix.pxd       one operand of a matrix product
    matmul.pyx       kernel: the batched product, as three loops
    update.pyx       kernel: an SGD step

Copies, elementwise ops, products and reductions are plain here: _kernels/fast has kernels that take their places.
"""
