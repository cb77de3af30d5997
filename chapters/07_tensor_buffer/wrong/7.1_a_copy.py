# buffers.item
def __getitem__(self, i):
    n = len(self)
    if not -n <= i < n:
        raise IndexError(i)
    i %= n
    return self.data[self.offsets[i]:self.offsets[i + 1]].reshape(self.shapes[i]).copy()
