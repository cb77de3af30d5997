"""Train eagerly: jobs may be defined repeatedly, and blobs hold data."""
import oneflow as flow
import oneflow.typing as tp

BATCH_SIZE = 100
flow.enable_eager_execution(True)


def main(images, labels):
    @flow.global_function(type="train")
    def train_job(
        images: tp.Numpy.Placeholder((BATCH_SIZE, 1, 28, 28), dtype=flow.float),
        labels: tp.Numpy.Placeholder((BATCH_SIZE,), dtype=flow.int32),
    ) -> tp.Numpy:
        initializer = flow.truncated_normal(0.1)
        with flow.scope.placement("cpu", "0:0"):
            reshape = flow.reshape(images, [images.shape[0], -1])
            hidden = flow.layers.dense(reshape, 64, activation=flow.nn.relu, kernel_initializer=initializer,
                                       name="hidden")
            logits = flow.layers.dense(hidden, 10, kernel_initializer=initializer, name="output")
            loss = flow.nn.sparse_softmax_cross_entropy_with_logits(labels, logits, name="softmax_loss")
        shown.append(loss.numpy().shape)
        flow.optimizer.SGD(flow.optimizer.PiecewiseConstantScheduler([], [0.1]), momentum=0).minimize(loss)
        return loss

    return train_job(images, labels)


if __name__ == "__main__":
    (train_images, train_labels), _ = flow.data.load_mnist(BATCH_SIZE, BATCH_SIZE)
    shown = []
    losses = [main(images, labels).mean() for images, labels in zip(train_images, train_labels)]
