import numpy as np
import oneflow as flow
import oneflow.typing as tp

@flow.global_function()
def layer_example(x: tp.Numpy.Placeholder((1, 64, 128, 128)) ) -> tp.Numpy:
    initializer = flow.truncated_normal(0.1)
    # 使用conv2d Layer
    conv2d = flow.layers.conv2d(
        x, filters=128, kernel_size=3, strides=2, padding='SAME', kernel_initializer=initializer,
        name="Conv2d"
    )
    # 使用batch_normalization Layer
    batch_norm = flow.layers.batch_normalization(conv2d, axis=1)
    return batch_norm

x = np.random.randn(1, 64, 128, 128).astype(np.float32)
out = layer_example(x)  # out.shape (1, 128, 64, 64)
print(out.shape)
