"""Load and evaluate LeNet."""
# ruff: noqa: UP030, UP032, F841  (as scripts of the time are written)
import numpy as np
import oneflow as flow
import oneflow.typing as tp
from lenet_model import BATCH_SIZE, lenet


@flow.global_function(type="predict")
def eval_job(
    images: tp.Numpy.Placeholder((BATCH_SIZE, 1, 28, 28), dtype=flow.float),
    labels: tp.Numpy.Placeholder((BATCH_SIZE,), dtype=flow.int32),
) -> tp.Numpy:
    with flow.scope.placement("gpu", "0:0"):
        logits = lenet(images, train=False)
        loss = flow.nn.sparse_softmax_cross_entropy_with_logits(labels, logits, name="softmax_loss")
    return logits


g_total = 0
g_correct = 0


def acc(labels, logits):
    global g_total, g_correct
    predictions = np.argmax(logits, 1)
    g_total += len(labels)
    g_correct += np.sum(predictions == labels)


if __name__ == "__main__":
    flow.load_variables(flow.checkpoint.get("./lenet_models_1"))
    _, (test_images, test_labels) = flow.data.load_mnist(BATCH_SIZE, BATCH_SIZE)
    for images, labels in zip(test_images, test_labels):
        acc(labels, eval_job(images, labels))
    accuracy = g_correct / g_total
    print("accuracy: {0:.1f}%".format(accuracy * 100))
