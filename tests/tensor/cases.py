"""Calls with the same result in flowedu and PyTorch, as text: `m` is the module, the other names are inputs.

Suffixes: `# view` the result shares memory with its first input and has PyTorch's strides; `# values`
gradients are not compared; `# infinite` results are infinite; `# ties` elements are equal, so they have no
slopes; `# eager` the call needs the data, so it does not work in a graph.
"""
from .option_cases import OPTIONS

UNARY = [f"m.{n}(a)" for n in """exp expm1 exp2 sin cos tan sinh tanh asinh atan erf erfc sigmoid abs neg
    square relu floor ceil trunc round sign frac positive deg2rad rad2deg sinc nan_to_num isnan isfinite isinf
    isposinf isneginf signbit logical_not clone sgn absolute negative fix""".split()]
UNARY += [f"m.{n}(p)" for n in "log log1p log2 log10 sqrt rsqrt reciprocal lgamma digamma".split()]
UNARY += [f"m.{n}(u)" for n in "asin acos atanh erfinv logit arcsin arctanh".split()]
UNARY += [f"m.{n}(i)"
          for n in """abs neg sign square floor ceil round trunc exp sin cos sigmoid tanh isnan isfinite
    logical_not bitwise_not positive clone""".split()]
UNARY += ["a.acosh().isnan()", "(p + 1).acosh()", "m.logit(a, eps=0.2)", "m.round(a, decimals=2)",
          "m.isnan(n1)",
    "m.isinf(n1)", "m.nan_to_num(n1)", "m.nan_to_num(n1, nan=1.0, posinf=2.0, neginf=3.0)", "n1.isfinite()",
          "(~q)",
    "-a", "+a", "abs(i)", "m.signbit(n1)", "m.exp(q)", "m.sqrt(i.abs())", "m.log_softmax(a, 1)",
          "m.softmax(a, 0)", "a.softmax(-1)"]
BINARY = ["a + b", "a - c", "a * b", "a / p", "a @ sq", "a + 2", "2 - a", "a * 2.5", "3 / p", "a + True",
          "i + 2",
    "i * 1.5", "i / 3", "i // 3", "i % 3", "i // -3", "i % -3", "-7 // i1", "7 % i1", "a // 0.7 # values",
          "a % 0.7",
    "a % -0.7", "a // b # values", "a % b", "2 ** a", "p ** a", "a ** 2", "a ** 3", "p ** 0.5", "a ** 0",
          "a ** 1",
    "p ** -1.5", "i ** 2", "2 ** k", "i1 ** k", "q + q", "q * q", "q + 1", "q * 2.0", "q & q2", "q | q2",
          "q ^ q2",
    "i & 3", "i | k", "i ^ k", "k << 2", "i >> 1", "1 << k", "q & True", "a > b", "a >= 0", "a < c", "i <= 2",
    "i == k", "i != 2", "a == a", "i > 1.5", "q == q2", "q > q2", "1 < i", "a.eq(b)", "i / k1", "k // i1",
          "k % i1",
    "s + a", "s * i", "i + si", "si * a", "u8 + 1", "u8 * 2", "u8 + 300", "i8 + i8", "i8 * 100", "u8 - 200",
          "i8 / 2",
    "i8 // 3", "i8 % 5", "u8 > 3", "i32 + i", "i32 * a", "i8 + i32", "u8 + i32", "u8 * a", "-i8", "abs(i8)",
          "h + h",
    "h * 2", "h @ h.T", "h / 3", "h + a32", "h > 0", "h ** 2", "h.exp()", "h.sum()", "h + i", "h + s32",
    "u8 / 256", "u8 / -1", "300 / (u8 + 1)", "i8 / -300", "i32 / 2 ** 33", "m.div(u8, 512)",
    "m.add(a, b, alpha=2)", "m.sub(a, b, alpha=0.5)", "a.add(1, alpha=3)", "m.rsub(a, b)", "m.mul(a, b)",
    "m.div(a, p)", "m.div(a, p, rounding_mode='floor')", "m.div(a, p, rounding_mode='trunc')",
    "m.div(i, 3, rounding_mode='trunc')", "m.div(i, i1, rounding_mode='floor')", "m.true_divide(i, 2)",
    "m.floor_divide(i, 3)", "m.remainder(a, 0.3)", "m.fmod(a, 0.3)", "m.fmod(i, 3)", "m.fmod(i, -3)",
          "m.pow(p, b)",
    "m.pow(2.0, a)", "m.float_power(p, 2) # values", "m.atan2(a, b)", "m.xlogy(p, p)",
          "m.copysign(a, b) # values",
    "m.maximum(a, a.detach()) # ties", "m.minimum(a.detach(), a) # ties", "m.max(a, a.detach()) # ties",
    "m.fmax(a, a.detach())",
    "a.clamp(min=a.detach())", "a.clamp(max=a.detach())",
    "m.hypot(a, b)", "m.logaddexp(a, b)", "m.logaddexp2(a, b)", "m.maximum(a, b)", "m.minimum(a, b)",
    "m.fmax(n1, c) # values", "m.fmin(n1, c) # values", "m.lerp(a, b, 0.3)", "m.lerp(a, b, p)",
    "m.addcmul(a, b, p, value=0.5)", "m.addcdiv(a, b, p, value=2)", "m.clamp(a, -0.5, 0.5)",
          "m.clamp(a, min=0)",
    "m.clamp(a, max=c)", "m.clamp(i, -2, 2)", "a.clamp_min(0.1)", "a.clamp_max(0.1)", "m.clip(a, 0, 1)",
    "m.clamp(i, max=1.5)", "m.heaviside(a, b) # values",
    "m.heaviside(a0, b) # values", "m.ldexp(a, k) # values",
    "m.ldexp(h, k)", "m.ldexp(i, k)", "m.where(q, a, b)",
    "m.where(q, a, 0.0)", "m.where(q, 1, i)", "m.where(a > 0, a, c)", "m.where(q, i, a)", "a.where(q, b)",
    "m.isclose(a, a + 1e-9)", "m.isclose(a - a, a * 1e-9)",
    "m.isclose(n1, n1, equal_nan=True)", "m.logical_and(a, q)", "m.logical_or(i, 0 * i)",
    "m.logical_xor(q, i)", "m.bitwise_and(i, k)", "m.bitwise_or(q, q2)", "m.bitwise_left_shift(k, 1)",
          "m.eq(a, 0)", "m.ne(i, k)", "m.greater(a, b)", "m.less_equal(a, b)", "a.mul(3)", "i.true_divide(2)"]
REDUCE = [f"m.{n}(a)" for n in "sum prod mean amax amin argmax argmin std var norm".split()]
REDUCE += [f"m.{n}(B, 1)" for n in
           "sum prod mean max min amax amin argmax argmin std var logsumexp median mode cumsum cumprod".split()]
REDUCE += [f"m.{n}(B, -1, keepdim=True)" for n in
           "sum prod mean max min argmax argmin std var logsumexp median any all".split()]
REDUCE += [f"m.{n}(B, (0, 2))" for n in "sum mean amax amin var std logsumexp".split()]
REDUCE += ["m.max(a)", "m.min(a)", "m.max(i)", "m.min(i, 0)", "m.sum(i)", "m.sum(q)", "m.sum(q, 0)",
           "m.sum(u8)",
    "m.prod(i1)", "m.sum(a, dtype=m.float32) # values", "m.mean(i, dtype=m.float64)", "m.any(q)",
           "m.all(q, 1)",
    "m.any(i, 1)", "m.all(a)", "m.sum(e)", "m.prod(e)", "m.mean(e, 1)", "m.sum(e, 0)", "m.amax(i, (0, 1))",
    "m.argmax(i, 1)", "m.argmin(i)", "m.argmax(a, 0, keepdim=True)", "m.argmax(a, keepdim=True)",
    "m.std(a, unbiased=False)", "m.var(a, 1, correction=0)", "m.var(a, dim=(0, 1), correction=2)",
           "m.std(a, False)",
    "m.var_mean(a, 1)", "m.std_mean(a, 0)", "m.norm(a, 2, 1)", "m.norm(a, 1)", "m.norm(a, float('inf'), 0)",
    "m.norm(a, 3.0, dim=1, keepdim=True)", "m.norm(a, 0) # values", "m.linalg.vector_norm(B, 2, (1, 2))",
    "m.linalg.norm(a)", "m.linalg.norm(sq, 1)", "m.linalg.norm(sq, float('inf'))", "m.linalg.matrix_norm(B)",
    "m.renorm(a, 2, 0, 1.0) # values", "m.renorm(a, 1, 1, 3.0) # values",
    "m.nansum(n1)", "m.nanmean(n1, 0) # infinite", "m.aminmax(a)",
    "m.logsumexp(n2, 0) # infinite",
    "m.median(a)", "m.median(i)", "m.median(n1, 1) # values", "m.mode(i, 0) # mode", "m.count_nonzero(i)",
    "m.count_nonzero(i, 1)", "m.cumsum(i, 0)", "m.cumsum(q, 1)", "m.cumprod(a0, 1)", "m.cumprod(a, 0)",
    "m.cummax(i, 1)", "m.cummin(a, 0)", "m.cummax(a, 1)", "m.logcumsumexp(a, 1)", "m.diff(a)",
           "m.diff(i, 2, 0)",
    "m.diff(q)", "m.trapezoid(a)", "m.trapezoid(a, dx=0.5, dim=0)", "m.sum(s)", "m.mean(s)", "m.max(s)",
           "m.max(s, 0)",
    "m.cumsum(s, 0)", "m.argmax(s)", "a.sum(0)", "a.max(1).values", "a.min(1).indices", "m.sum(a, ())",
           "m.amax(a)",
    "m.amax(t0)", "m.max(t0, 1) # values", "m.sum(B, (-1, 0), keepdim=True)", "m.quantile(a, 0.3)",
    "m.quantile(a, 0.75, dim=1, keepdim=True)", "m.max(h, 1)", "m.cumsum(h, 0)", "m.max(i8)", "m.sum(i8, 1)",
    "m.argmax(u8, 1)", "m.prod(h, 0)", "m.mean(h)"]
SHAPE = ["m.reshape(a, (4, 3)) # view", "m.reshape(a, (-1,)) # view", "a.reshape(2, -1) # view",
         "a.T.reshape(12)",
    "a.view(6, 2) # view", "a.view(-1) # view", "a.T.view(4, 3, 1) # view", "m.flatten(B) # view",
    "m.flatten(B, 1) # view", "m.flatten(B, 0, 1) # view", "m.flatten(s)",
         "m.unflatten(a, 1, (2, -1)) # view",
    "m.squeeze(one) # view", "m.squeeze(one, 0) # view", "m.squeeze(one, 1) # view",
         "m.squeeze(one, (0, 2)) # view",
    "m.unsqueeze(a, 0) # view", "m.unsqueeze(a, -1) # view", "a.unsqueeze(1) # view",
         "m.transpose(a, 0, 1) # view",
    "B.transpose(-1, 0) # view", "m.permute(B, (2, 0, 1)) # view", "B.permute(1, 2, 0) # view",
    "m.movedim(B, 0, 2) # view", "m.movedim(B, (0, 1), (2, 0)) # view", "m.swapaxes(B, 0, 1) # view",
         "a.t() # view",
    "c.t() # view", "a.T # view", "B.mT # view", "c.expand(3, 4) # view", "row.expand(-1, 4) # view",
    "m.broadcast_to(c, (3, 4)) # view", "c.expand_as(a) # view", "m.tile(a, (2, 1, 2))", "a.tile(2)",
         "a.repeat(2, 3)", "a.repeat(2, 1, 1)", "m.repeat_interleave(a, 2)", "m.repeat_interleave(a, 2, 0)",
    "m.repeat_interleave(a, k[0, :3], 0) # eager", "m.cat([a, b])", "m.cat([a, b], 1)", "m.cat((a, i), -1)",
    "m.concat([a, b], 1)", "m.cat([a, e4], 0)", "m.cat([i, i32])", "m.stack([a, b])", "m.stack([a, b], -1)",
    "m.hstack([a, b])", "m.hstack([c, c])", "m.vstack([c, c])", "m.vstack([a, b])", "m.dstack([a, b])",
    "m.column_stack([c, sq])", "m.split(B, 2, 1) # view", "m.split(a, [1, 2]) # view", "m.chunk(a, 2) # view",
    "m.chunk(a, 3, 1)", "m.chunk(a, 5, 1)", "m.tensor_split(a, 3, 1)", "m.tensor_split(a, (1, 2))",
    "m.unbind(a) # view", "m.unbind(B, 1) # view", "m.narrow(a, 1, 1, 2) # view", "a.narrow(0, -2, 2) # view",
    "m.select(B, 1, -1) # view", "m.flip(a, (0,))", "m.flip(a, (0, 1))", "a.flip(1)", "m.fliplr(a)",
         "m.flipud(a)",
    "m.roll(a, 1)", "m.roll(a, 1, 0)", "m.roll(B, (1, -2), (0, 2))", "m.rot90(a)", "m.rot90(a, 2)",
         "m.rot90(a, -1)",
    "m.rot90(B, 1, (1, 2))", "m.diag(c)", "m.diag(c, 1)", "m.diag(a)", "m.diag(a, -1)",
         "m.diagonal(a) # view",
    "m.diagonal(B, 1, 1, 2) # view", "m.diagonal(B, -1, 0, 2) # view", "m.diag_embed(a)",
         "m.diag_embed(a, 1, 0, 2)",
    "m.diagflat(a[0])", "m.tril(a)", "m.tril(a, 1)", "m.triu(B, -1)", "m.triu(sq, 2)", "m.tril(i)",
    "a.unfold(1, 2, 1) # view", "B.unfold(2, 3, 1) # view", "a.unfold(0, 2, 2) # view",
    "m.as_strided(a, (2, 3), (1, 2)) # view", "m.as_strided(a, (3, 2), (2, 1), 2) # view",
    "m.meshgrid(c, v, indexing='ij')", "m.meshgrid(c, v, indexing='xy')", "m.broadcast_tensors(a, c)",
    "m.take_along_dim(a, k, 1)", "m.take_along_dim(a, k[:1], 1)", "m.cartesian_prod(c, v)",
         "m.block_diag(a, sq)",
    "m.combinations(c)", "m.vander(c) # values", "m.vander(c, 3, increasing=True) # values",
         "m.vander(i8[0])", "m.atleast_2d(c)",
    "m.atleast_3d(c)", "m.atleast_1d(s)", "m.ravel(a)", "a.reshape_as(b)", "a.view_as(b)", "a.contiguous()",
    "a.T.contiguous()", "m.tril_indices(3, 4)", "m.triu_indices(3, 4, 1)", "pad(a, (1, 2)) # nn",
    "pad(a, (1, 0, 2, 1), value=3.0) # nn", "pad(B, (1, 1), mode='reflect') # nn",
    "pad(B, (2, 1), mode='replicate') # nn", "pad(B, (2, 1), mode='circular') # nn", "pad(a, (-1, 1)) # nn",
    "m.moveaxis(B, -1, 0) # view", "m.select_scatter(a, c, 0, 1)", "m.slice_scatter(a, b[:, :2], 1, 0, 4, 2)",
    "m.adjoint(B) # view", "i.type_as(a)", "a.ravel() # view"]
LINEAR = ["m.matmul(a, sq)", "m.matmul(B, C)", "m.matmul(B, sq)", "m.matmul(a, c)", "m.matmul(c, sq)",
    "m.matmul(c, c)", "m.matmul(a, C)", "m.matmul(D, C)", "m.mm(a, sq)", "m.bmm(B, C)", "m.mv(a, c)",
          "m.dot(c, c)",
    "m.outer(c, v)", "m.inner(a, b)", "m.inner(c, c)", "m.addmm(b, a, sq)",
          "m.addmm(c, a, sq, beta=0.5, alpha=2)",
    "m.baddbmm(E, B, C)", "m.addmv(v3, a, c)", "m.addr(m.outer(c, v) * 0, c, v)", "m.addbmm(E[0], B, C)",
    "m.einsum('ij,jk->ik', a, sq)", "m.einsum('ij,ij->', a, b)", "m.einsum('ij->ji', a)",
          "m.einsum('ii->i', sq)",
    "m.einsum('ii', sq)", "m.einsum('bij,bjk->bik', B, C)", "m.einsum('i,j->ij', c, v)",
    "m.einsum('...ij,...jk->...ik', B, C)", "m.einsum('bij,jk,bl->bkl', B, sq, L2)",
          "m.einsum('ij,kj->ik', a, b)",
    "m.einsum('ij,j', a, c)", "m.einsum('bij->b', B)", "m.einsum('abc,cd->abd', B, sq)",
          "m.tensordot(a, sq, 1)",
    "m.tensordot(B, C, ([0, 2], [0, 1]))", "m.tensordot(a, b, 2)", "m.kron(a, c)", "m.kron(a, sq)",
          "m.cross(x3, y3)",
    "m.cross(x3.T, y3.T, dim=0)", "m.trace(sq)", "m.linalg.inv(dd)", "m.linalg.det(dd)",
          "m.linalg.solve(dd, c)",
    "m.linalg.solve(dd, a.T)", "m.inverse(dd)", "m.det(dd)", "dd.inverse()", "m.linalg.matrix_power(sq, 3)",
    "m.linalg.matrix_power(dd, -2)", "m.matrix_power(sq, 0) # values", "m.cdist(a, b)",
          "m.cdist(a, sq, p=1.0)",
    "m.matmul(i, k.T)", "m.matmul(B4, C[:, None])", "m.chain_matmul(a, sq, sq)", "c @ sq", "a @ c",
    "m.einsum('ij->j', i8)", "m.einsum('ij->', q)", "m.einsum('ii', u8[:, :3])", "m.einsum('ij->ji', i8)",
    "m.addr((m.outer(u8[0], u8[1]) * 0).double(), u8[0] * 30, u8[1])",
    "m.addbmm(i8[:, :3], i8[None, :, :3], i8[None, :, :3])",
    "m.cholesky(dd @ dd.T)", "(dd @ dd.T).cholesky(True)", "m.cholesky_solve(a.T, m.cholesky(dd @ dd.T))",
    "m.cholesky_inverse(m.linalg.cholesky(dd @ dd.T))", "m.triangular_solve(a.T, dd)[0]",
    "m.triangular_solve(a.T, dd, upper=False, transpose=True, unitriangular=True)[0]", "m.svd(a)[1]",
          "m.svd(a.T)[0].abs()",
    "m.qr(a.T)[1].abs()", "m.slogdet(dd)", "m.logdet(dd @ dd.T)", "m.pinverse(a)", "m.matrix_exp(sq)"]
SEARCH = ["m.sort(a)", "m.sort(a, 0)", "m.sort(a, descending=True)", "m.sort(i, stable=True)", "m.argsort(a)",
    "m.argsort(a, 0, descending=True)", "a.sort(1).values", "m.msort(a)", "m.topk(a, 2)", "m.topk(a, 2, 0)",
    "m.topk(a, 3, largest=False)", "m.kthvalue(a, 2)", "m.kthvalue(a, 1, 0, keepdim=True)",
          "m.gather(a, 1, k)",
    "m.gather(a, 0, k3)", "m.gather(a, 1, k[:2, :2])", "m.scatter(a, 1, k[:, :1], b) # values",
    "m.scatter(a, 1, k[:, :1], 5.0)", "a.scatter(0, k3[:1], 2.0)", "m.scatter_add(a, 1, k, b)",
    "m.scatter_add(a, 0, k3, b)", "m.scatter(a, 1, k[:, :2], b, reduce='add') # values",
    "m.scatter_reduce(a.detach(), 1, k, b.detach(), 'amax') # values eager",
    "m.scatter_reduce(a.detach(), 1, k, b.detach(), 'prod', include_self=False) # values eager",
    "m.index_select(a, 1, k[0])", "m.index_select(a, 0, k3[0])", "m.index_add(a, 0, k3[0, :2], b[:2])",
    "m.index_add(a, 1, k[0], b, alpha=2)", "m.index_copy(a, 0, m.tensor([2, 0]), b[:2])",
    "m.index_fill(a, 1, k[0, :2], 3.0)", "m.take(a, k)", "m.take(a, -k - 1)", "m.masked_select(a, q) # eager",
    "m.masked_fill(a, q, 3.0)", "a.masked_fill(q[0], -1)", "i.masked_fill(q, 7)",
          "m.masked_scatter(a, q, b) # eager",
    "m.nonzero(i) # eager", "m.nonzero(q) # eager", "m.nonzero(i, as_tuple=True) # eager",
          "m.argwhere(q) # eager",
    "m.where(q) # eager", "m.unique(i) # eager",
          "m.unique(i, return_inverse=True, return_counts=True) # eager",
    "m.unique(i, dim=0) # eager", "m.unique_consecutive(v8, return_counts=True) # eager",
    "m.searchsorted(c.sort().values, a)", "m.searchsorted(c.sort().values, a, right=True)",
    "m.searchsorted(a.sort().values, b)", "m.bucketize(a, c.sort().values)", "m.bincount(k[0]) # eager",
    "m.bincount(k[0], minlength=6) # eager", "m.bincount(k[0], weights=c) # values eager",
    "m.bincount(k[0], weights=h[0]) # eager", "m.isin(i, k)",
    "m.isin(i, 2)", "m.histc(a, 5, -1, 1) # values eager", "m.nn.functional.one_hot(k, 5) # nn",
    "m.nn.functional.one_hot(k) # nn eager", "m.index_put(a, (k3[0, :2], k[0, :2]), v[:2])",
    "m.index_put(a, (k3[0, :2], k[0, :2]), v[:2], accumulate=True)"]
INDEX = [c.strip() for c in """
    a[0] ; a[-1] ; a[1, 2] ; a[1:] ; a[:, 1] ; a[:, ::2] ; a[0:2, 1:3] ; a[...] ; a[..., 0] ; a[None] ; a[:, None] ;
    a[None, 0, None] ; B[1, ..., 2] ; B[..., 1, :] ; B[:, 1:, None, ::3] ; a[5:] ; a[2:1] ; s[()] ; s[None] ;
    s[...] ; B[0, 0, 0] ; a[-2:] ; a[:-1] ; B[:, -1]""".split(";")]
ADVANCED = [c.strip() for c in """
    a[[0, 2]] ; a[[0, -1], [1, 2]] ; a[:, [0, 0, 3]] ; a[k3[0]] ; a[k3[:2, :2]] ; a[k3[0, :2], k[0, :2]] ;
    B[:, k3[0, :2], 0] ; B[k[0, :2] // 2, :, k[0, :2]] ; B[0, k3[0, :2]] ; B[[0, 1], :, [2, 3]] ;
    B[:, [0, 1], [2, 3]] ; D[:, [0, 0], :, [1, 2]] ;
    B[..., [0, 1]] ; B[None, [1, 0]] ; B[[[0], [1]], [0, 2]] ; B[0, :, [0, 1]] ;
    B[[0, 1], None, [1, 2]] ; B[1:, [0, 1], 1:3] ; a[[]] ; a[[True, False, True]] ; a[-k3[0] - 1] ; a[si % 3] ;
    B[:, si % 3] ; a[i[:2, 0] % 3, 0] ; i[k3[0]] ; q[k3[0]]""".split(";")]
MASKS = [c.strip() + " # eager" for c in """
    a[q] ; a[q[:, 0]] ; a[a > 0] ; a[:, q[0]] ; B[q2B] ; B[0, q] ; a[True] ; a[False] ; B[q2B, 1:3] ;
    a[q[:, 0], q[0, :3].sum()] ; a[a > 100] ; a[u8 > 3] ; a[None, q]""".split(";")]
CREATION = ["m.zeros(2, 3)", "m.zeros((2, 3))", "m.zeros(())", "m.zeros(0)", "m.ones(2, dtype=m.int64)",
    "m.ones([2, 1])", "m.full((2, 2), 5)", "m.full((2,), 5.0)", "m.full((2,), True)",
    "m.full((1, 2), 3, dtype=m.float64)", "m.arange(5)", "m.arange(2, 8, 3)", "m.arange(5.0)",
            "m.arange(1, 2, 0.25)",
    "m.arange(5, 0, -2)", "m.arange(0, 1, 0.1, dtype=m.float64)", "m.arange(3, dtype=m.int32)",
            "m.linspace(0, 1, 5)",
    "m.linspace(-2, 3, 7, dtype=m.float64)", "m.linspace(3, 3, 1)", "m.logspace(0, 2, 3)",
    "m.logspace(0, 3, 4, base=2.0)", "m.eye(3)", "m.eye(2, 4)", "m.eye(3, dtype=m.int64)", "m.zeros_like(a)",
    "m.ones_like(i)", "m.full_like(a, 2)", "m.zeros_like(a, dtype=m.int32)", "a.new_zeros(2)",
            "i.new_ones((2, 2))",
    "a.new_full((2,), 3)", "a.new_tensor([1, 2])", "i.new_tensor([1.7])", "m.tensor([1, 2])",
            "m.tensor([1.0, 2])",
    "m.tensor([True, False])", "m.tensor([])", "m.tensor(3)", "m.tensor([[1, 2], [3, 4.5]])",
    "m.tensor([1, 2], dtype=m.float64)", "m.tensor([1.5, 2.5], dtype=m.int64)",
            "m.tensor([m.tensor(1), m.tensor(2)])",
    "m.as_tensor([1, 2])", "m.Tensor([1, 2])", "m.FloatTensor([1, 2])", "m.LongTensor([1, 2])",
            "m.BoolTensor([1, 0])",
    "m.DoubleTensor([[1]])", "m.IntTensor([3])", "m.empty(2, 0)", "m.Tensor(0, 3)", "m.tensor([True, 2])",
    "m.tensor([[], []])", "m.bartlett_window(7)", "m.blackman_window(8, periodic=False)", "m.hann_window(1)",
    "m.hamming_window(5, True, 0.6, 0.4, dtype=m.float64)", "m.hann_window(6, False)",
            "m.kaiser_window(6, True, 5.0)", "m.kaiser_window(4, False)", "m.hann_window(0)"]
CASTS = [f"{x}.{c}()" for x in ("a", "i", "q", "h", "u8", "n3") for c in
         "float double half int long short bool byte char".split()]
CASTS += ["a.to(m.int32)", "a.bfloat16().float()", "i.to(m.float16)", "a.type_as(i)",
          "m.result_type(i, 1.5) == m.float32",
          "m.can_cast(m.float32, m.int32)", "m.promote_types(m.int32, m.float16) == m.float16"]

# Calls that PyTorch names differently or does not have, and aliases.
OURS = [f"m.{n}(a)" for n in "arcsinh arctan cosh gelu mish selu silu softplus softsign".split()]
OURS += ["(p + 1).arccosh()", "u.arccos()", "(a * 4).relu6()", "m.log_sigmoid(a)", "k[:, 0].in_top_k(a, 2)",
    "m.cast(a, m.int32)", "m.HalfTensor([1.5])", "m.ByteTensor([1, 2])", "m.CharTensor([-1])",
         "m.BFloat16Tensor([1.5])", "m.ShortTensor([-1, 300])",
    "m.empty_like(i32).numel()", "a.cast(m.float32)", "m.allclose(a, a + 1e-9)", "m.allclose(a, b)",
         "m.equal(a, b)",
    "m.equal(i, 1 * i)", "a.equal(c)", "m.concatenate([a, b], 1)", "m.row_stack([a, b])", "m.divide(a, p)",
    "m.multiply(a, b)", "m.subtract(a, b)", "m.ger(c, v)", "m.vdot(c, c)", "m.swapdims(B, 0, 2) # view",
    "m.arctan2(a, b)", "k.bitwise_right_shift(1)", "m.bitwise_xor(i, k)", "m.ge(a, b)", "m.gt(i, k)",
         "m.le(a, 0.5)",
    "m.lt(a, b)", "m.less(i, k)", "m.greater_equal(i, k)", "m.not_equal(i, k)",
         "m.broadcast_shapes((3, 1), (4,))", "i8 < 1000", "u8 > -1", "i32 != 2 ** 40"]

EVERY = UNARY + BINARY + REDUCE + SHAPE + LINEAR + SEARCH + INDEX + ADVANCED + MASKS + OPTIONS
