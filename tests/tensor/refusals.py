"""Lines that raise errors, by PyTorch's class of error; flowedu's error is a subclass of it."""
REFUSED = {
    "RuntimeError": """
a + x3
a @ b
m.mm(a, c)
m.bmm(a, b)
m.dot(c, v)
a.view(5)
a.reshape(5, -1)
a.reshape(-1, -1)
a.T.view(12)
a.sum((0, 0))
a.permute(0, 0)
a.permute(0)
a.expand(2, 3, 5)
a.expand(4)
a.repeat(2)
m.cat([a, sq], 1)
m.stack([a, c])
m.meshgrid(a, c)
m.meshgrid(c, m.arange(3))
m.meshgrid(*[])
m.cat([s, s])
a.split(0)
a.split([1, 1])
a.chunk(0)
a.hsplit(3)
a.vsplit(0)
c.vsplit(2)
a.dsplit(2)
m.hsplit(s, 1)
m.hann_window(-1)
m.hann_window(3, dtype=m.int64)
B.cov()
a.cov(fweights=k1)
a.cov(fweights=p[0])
a.cov(aweights=k1[0])
a.narrow(0, 2, 2)
m.mean(i)
m.std(i)
i ** -1
q - q
-q
m.max(e)
m.topk(a, 9)
m.kthvalue(a, 9)
m.gather(a, 1, a)
m.gather(a, 1, k[0])
m.scatter(a, 1, k, i)
a.masked_fill(i, 1)
m.masked_fill(a, q, c)
m.masked_select(a, i)
m.where(q, a, x3)
m.clamp(a)
m.einsum('ij,jk->ik', a, b)
m.einsum('ij->ijk', a)
m.einsum('ij,jk', a)
m.tensordot(a, b, 1)
m.cross(b[:2], a[:2])
m.trace(c)
m.tril(c)
m.diagonal(a, 0, 1, 1)
m.linalg.inv(a)
m.arange(0, 5, -1)
m.arange(0, 5, 0)
m.zeros(2, -1)
m.tensor([None])
m.roll(a, (1, 2), 0)
m.rot90(a, 1, (0, 0))
m.as_strided(a, (9, 9), (4, 1))
a & b
a << 1
i & 1.5
m.bitwise_not(a)
m.multinomial(-p, 1)
m.bernoulli(a)
m.randint(3, 3, (2,))
m.normal(0.0, -1.0, (2,))
m.eye(-1)
m.linspace(0, 1, -1)
m.unflatten(a, 1, (3, 2))
m.renorm(i, 2, 0, 1.0)
bool(a)
a.item()
m.isclose(a, i)
m.matmul(a, i)
m.matmul(s, s)
a.unfold(0, 9, 1)
pad(a, (1,))
m.quantile(a, 0.5, interpolation='x')
m.scatter(a, 1, k, 1.0, reduce='x')
m.index_add(a, 0, k3[0], b[:2])
m.take_along_dim(a, k.T, 1)""",
    "IndexError": """
a.sum(2)
a.max(5)
a.unsqueeze(4)
a.transpose(0, 2)
a.squeeze(2)
a.select(0, 3)
a[3]
a[0, 4]
a[0, 0, 0]
a[1.0]
a[q2B]
a[[5]]
a[[0, 1], [0, 1, 2]]
a[a]
m.argmax(e, 1)
m.amax(e, 1)
m.index_select(a, 0, k)
m.index_select(a, 0, k3[0] + 9)
m.movedim(a, 0, 5)""",
    "ValueError": """
m.cat([])
m.tensor([[1], [2, 3]])
float(a)""",
    "TypeError": """
m.tensor('a')
m.full((2,), 'x')
~a
len(s)""",
}
ASSIGNMENTS = {"RuntimeError": ["a[0] = c[:3]", "a[q] = c", "a[[0, 1]] = b"], "IndexError": ["a[3] = 1"],
               "TypeError": ["a[0] = 'x'", "a[0, 0] = [1]"]}


def rows(table: dict) -> list[tuple[str, str]]:
    """Return (text, class of error) pairs."""
    return [(text, kind) for kind, lines in table.items()
            for text in (lines.strip().splitlines() if isinstance(lines, str) else lines)]
