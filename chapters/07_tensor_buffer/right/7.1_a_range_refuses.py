def __getitem__(self, i):
    i = range(len(self))[i]
    start = self.offsets[i]
    size = 1
    for n in self.shapes[i]:
        size *= n
    return self.data[start:start + size].reshape(self.shapes[i])
