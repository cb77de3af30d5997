import numpy as np
import oneflow as flow
import oneflow.typing as tp


def watch_handler(y: tp.Numpy):
    print("out:", y)


@flow.global_function()
def ReluJob(x: tp.Numpy.Placeholder((5,))) -> tp.Numpy:
    y = flow.nn.relu(x)
    flow.watch(y, watch_handler)
    return y


x = np.random.uniform(-1, 1, 5).astype(np.float32)
print("in: ", x)
ReluJob(x)
