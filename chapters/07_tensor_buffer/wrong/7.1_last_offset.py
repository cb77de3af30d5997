# buffers.item
def __getitem__(self, i):
    n = len(self)
    if not -n <= i < n:
        raise IndexError(i)
    start = self.offsets[i]
    return self.data[start:start + int(np.prod(self.shapes[i]))].reshape(self.shapes[i])
