"""Train two dense layers and fetch the results synchronously."""
# ruff: noqa: UP032  (as scripts of the time are written)
import oneflow as flow
import oneflow.typing as tp

BATCH_SIZE = 100


def mlp(images):
    initializer = flow.truncated_normal(0.1)
    reshape = flow.reshape(images, [images.shape[0], -1])
    hidden = flow.layers.dense(reshape, 128, activation=flow.nn.relu, kernel_initializer=initializer,
                               name="hidden")
    return flow.layers.dense(hidden, 10, kernel_initializer=initializer, name="output")


@flow.global_function(type="train")
def train_job(
    images: tp.Numpy.Placeholder((BATCH_SIZE, 1, 28, 28), dtype=flow.float),
    labels: tp.Numpy.Placeholder((BATCH_SIZE,), dtype=flow.int32),
) -> tp.Numpy:
    with flow.scope.placement("cpu", "0:0"):
        loss = flow.nn.sparse_softmax_cross_entropy_with_logits(labels, mlp(images))
    lr_scheduler = flow.optimizer.PiecewiseConstantScheduler([], [0.1])
    flow.optimizer.SGD(lr_scheduler, momentum=0).minimize(loss)
    return loss


@flow.global_function(type="predict")
def eval_job(images: tp.Numpy.Placeholder((BATCH_SIZE, 1, 28, 28), dtype=flow.float)) -> tp.Numpy:
    with flow.scope.placement("cpu", "0:0"):
        return mlp(images)


if __name__ == "__main__":
    (train_images, train_labels), (test_images, test_labels) = flow.data.load_mnist(BATCH_SIZE, BATCH_SIZE)
    losses = []
    for epoch in range(2):
        for i, (images, labels) in enumerate(zip(train_images, train_labels)):
            loss = train_job(images, labels)
            losses.append(loss.mean())
            if i % 20 == 0:
                print("Epoch [{}/2], Loss: {:.4f}".format(epoch + 1, loss.mean()))
    right = sum((eval_job(images).argmax(1) == labels).sum()
                for images, labels in zip(test_images, test_labels))
    accuracy = right / test_labels.size
