"""Kernels of the course (chapter 8), in reading order.

    abi.h, abi.pxd   the contract: the arguments of a kernel
    team.h           runs calls in order, on a team of threads
    openmp.py        how idle threads wait
    table.pxd        rows of the tables of kernels
    elements.pxd     types that kernels are compiled for
    cast.pyx         kernels: cast, fill
    layout.pyx       kernels: copy, concat, slice_grad
    moves.pxi        the three kernels, built on one move
    formulas.h       the scalar formulas, each written once
    scalarmath.h     math functions missing in C
    tiles.h          a short loop for each formula and type
    program.pxd      the structs of an elementwise program
    elementwise.pyx  kernel: every elementwise op, every fused chain
    extent.pxd       an array as (outer, n, inner) around one axis
    fold.pxd         reduces many values to one
    reduce.pyx       kernels: sum, max, min, prod
    reductions.pxi   the four kernels, built on one reduce
    matrix.pxd       one operand of a matrix product
    matmul.pyx       kernel: the batched product, as three loops
    update.pyx       kernel: an SGD step

Copies, elementwise ops, products, and reductions are plain here; _kernels/fast has faster ones.
"""
