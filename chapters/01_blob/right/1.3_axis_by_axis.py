def view(strides, start, step):
    steps, offset = [], 0
    for axis in range(len(strides)):
        offset += strides[axis] * start[axis]
        steps.append(strides[axis] * step[axis])
    return tuple(steps), offset
