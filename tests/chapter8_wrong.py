"""Wrong answers to the exercises of chapter 8: the right one, of which lines are changed, and what the reader is told."""

# {exercise: {what is wrong: (words of what is said, {old words: new words})}}; "line: words" is the whole line with them.
WRONG = {
    "running_sums": {
        "sums in float": ("24 bits", {"cdef double total": "cdef float total"}),
        "begun once": ("begun with 0", {
            "line: total = 0": "",
            "line: fe_split": "    total = 0\n    fe_split(call.args[0].shape[0], 1, team, &lo, &hi)"}),
        "threads without rows": ("running_sums of x", {
            "line: fe_split": "    lo, hi = 0, call.args[0].shape[0] // team.nt"}),
        "one column too many": ("beside its output", {"in range(n)": "in range(n + 1)"}),
        "into the input": ("into its input", {"= <float>total": "= <float>total\n            (<float *>x)[r * n + j] = 0"}),
        "Python inside": ("does not compile", {"cdef double total": "cdef object total"}),
        "Python inside, permitted": ("talks to Python", {"cdef double total": "cdef object total", "nogil:": "with gil:"}),
        "another status": ("status 7", {"FE_OK": "7"}),
        "never ends": ("had not ended", {"for j in range(n):": "while True:"}),
        "somewhere else": ("SIGSEGV", {"        y[r * n + j]": "        (<float *>8)[j]"}),
        "no address": ("no `address`", {"address =": "place ="}),
    },
    "guard": {
        "no guard": ("beyond the end", {"if (i < n) ": ""}),
        "one too many": ("beyond the end", {"i < n": "i <= n"}),
        "threads of a block alone": ("writes what thread", {"blockIdx.x * blockDim.x + ": ""}),
        "another name": ("no kernel 'add'", {"void add": "void plus"}),
        "no semicolon": ("does not compile", {"y[i];": "y[i]"}),
    },
    "row_sums": {
        "one thread sums": ("loads of warps", {"j = threadIdx.x; j < n; j += 64": "j = threadIdx.x ? n : 0; j < n; j++"}),
        "each thread a piece": ("sectors", {
            "j = threadIdx.x; j < n; j += 64":
                "j = threadIdx.x * ((n + 63) / 64), end = min(n, j + (n + 63) / 64); j < end; j++"}),
        "missing barrier": ("thread (", {"line: __syncthreads": ""}),
        "divergent barrier": ("__syncthreads", {"    __syncthreads": "    if (threadIdx.x < 32) __syncthreads"}),
        "the first warp alone": ("joins 64 sums", {" + part[1]": ""}),
        "read twice": ("bytes of memory", {
            "sum += x[blockIdx.x * n + j]":
                "sum += x[blockIdx.x * n + j], sum += 0 * ((volatile const float *)x)[blockIdx.x * n + j]"}),
    },
    "softmax_rows": {
        "no maximum": ("numbers to 1000", {"top = joined(top, true, part)": "top = 0"}),
        "the maximum of a warp": ("largest of the whole row", {"? fmaxf(part[0], part[1])": "? v"}),
        "missing barrier": ("thread (", {"line: nobody reads": ""}),
        "kept in memory": ("bytes of memory", {
            "- top) / sum;": "- top);\n    for (int j = threadIdx.x; j < n; j += 64) y[j] /= sum;"}),
    },
    "transpose": {
        "no tile": ("sectors", {
            "tile[threadIdx.y][threadIdx.x] = x": "y[c * rows + r] = x",
            "line: y[c * rows + r] = tile": ""}),
        "no column more": ("banks", {"[33]": "[32]"}),
        "missing barrier": ("thread (", {"line: __syncthreads": ""}),
        "rows for columns": ("transpose of", {"y[c * rows + r]": "y[r * cols + c]"}),
        "no guard": ("beyond the end", {"if (r < rows && c < cols) tile": "tile"}),
    },
    "tiled_product": {
        "no tiles": ("bytes of memory", {
            "line: for (int t": "    for (int t = 0; t < k; t++) {",
            "line: as[ty][tx] =": "",
            "line: bs[ty][tx] =": "",
            "line: for (int i": "        if (row < m && col < n) sum += a[row * k + t] * b[t * n + col];"}),
        "no second barrier": ("thread (", {"line: nobody needs": ""}),
        "no first barrier": ("thread (", {"line: are full": ""}),
        "no zeros at the edge": ("must hold zeros", {
            "t + ty < k && col < n ? b[(t + ty) * n + col] : 0": "b[min(t + ty, k - 1) * n + min(col, n - 1)]",
            "row < m && t + tx < k ? a[row * k + t + tx] : 0": "a[min(row, m - 1) * k + min(t + tx, k - 1)]"}),
        "a forgets its edge": ("beyond the end", {
            "row < m && t + tx < k ? a[row * k + t + tx] : 0": "a[row * k + t + tx]"}),
        "the last tile left out": ("product of", {"t < k; t": "t + 16 <= k; t"}),
    },
}


def spoilt(right: str, changes: dict[str, str]) -> str:
    """The right source with the changes made."""
    for old, new in changes.items():
        words = old.removeprefix("line: ")
        found = [old] if words == old else [line for line in right.splitlines() if words in line]
        assert len(found) == 1 and right.count(found[0]) == 1, (old, found)
        right = right.replace(found[0], new)
    return right
