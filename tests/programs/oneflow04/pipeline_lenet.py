"""Train LeNet as a pipeline: convolutions on one device, dense layers on another, without explicit copies."""
import oneflow as flow
import oneflow.typing as tp

BATCH_SIZE = 50


def lenet(data):
    initializer = flow.truncated_normal(0.1)
    with flow.scope.placement("gpu", "0:0"):
        conv1 = flow.layers.conv2d(data, 8, 5, padding="SAME", activation=flow.nn.relu, name="conv1",
                                   kernel_initializer=initializer)
        pool1 = flow.nn.max_pool2d(conv1, ksize=4, strides=4, padding="SAME", name="pool1",
                                   data_format="NCHW")
        reshape = flow.reshape(pool1, [pool1.shape[0], -1])
    with flow.scope.placement("gpu", "0:1"):
        hidden = flow.layers.dense(reshape, 64, activation=flow.nn.relu, kernel_initializer=initializer,
                                   name="hidden")
        return flow.layers.dense(hidden, 10, kernel_initializer=initializer, name="outlayer")


@flow.global_function("train")
def train_job(
    images: tp.Numpy.Placeholder((BATCH_SIZE, 1, 28, 28), dtype=flow.float),
    labels: tp.Numpy.Placeholder((BATCH_SIZE,), dtype=flow.int32),
) -> tp.Numpy:
    logits = lenet(images)
    with flow.scope.placement("gpu", "0:1"):
        loss = flow.nn.sparse_softmax_cross_entropy_with_logits(labels, logits, name="softmax_loss")
    flow.optimizer.SGD(flow.optimizer.PiecewiseConstantScheduler([], [0.1]), momentum=0).minimize(loss)
    return loss


if __name__ == "__main__":
    flow.config.gpu_device_num(2)
    (train_images, train_labels), (test_images, test_labels) = flow.data.load_mnist(BATCH_SIZE, BATCH_SIZE)
    losses = []
    for images, labels in zip(train_images[:60], train_labels):
        losses.append(train_job(images, labels).mean())
