"""Train without flow.optimizer: the configuration has the optimizer, and the job marks its loss."""
import oneflow as flow
import oneflow.typing as tp

BATCH_SIZE = 100


def get_train_config():
    config = flow.function_config()
    config.default_data_type(flow.float)
    config.train.primary_lr(0.1)
    config.train.model_update_conf(dict(momentum_conf={"beta": 0.5}))
    return config


@flow.global_function("train", get_train_config())
def train_job(
    images: tp.Numpy.Placeholder((BATCH_SIZE, 1, 28, 28)),
    labels: tp.Numpy.Placeholder((BATCH_SIZE,), dtype=flow.int32),
) -> tp.Numpy:
    initializer = flow.truncated_normal(0.1)
    reshape = flow.reshape(images, [images.shape[0], -1])
    hidden = flow.layers.dense(reshape, 64, activation=flow.nn.relu, kernel_initializer=initializer,
                               name="hidden")
    logits = flow.layers.dense(hidden, 10, kernel_initializer=initializer, name="output")
    loss = flow.nn.sparse_softmax_cross_entropy_with_logits(labels, logits, name="softmax_loss")
    flow.losses.add_loss(loss)
    return loss


if __name__ == "__main__":
    check_point = flow.train.CheckPoint()
    check_point.init()
    (train_images, train_labels), _ = flow.data.load_mnist(BATCH_SIZE, BATCH_SIZE)
    losses = [train_job(images, labels).mean() for images, labels in zip(train_images, train_labels)]
    check_point.save("./mlp_models_1")
