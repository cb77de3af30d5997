"""Plans in separate processes: synchronization after every step, two devices, and no GPU."""
from cuda_common import alone, in_simulator

BLOCKING = """
import flowedu as flow
class G(flow.nn.Graph):
    def __init__(self):
        super().__init__()
        self.emb = flow.nn.Embedding(4, 2).cuda()
    def build(self, x):
        return self.emb(x) + 1
g = G()
try:
    g(flow.tensor([1, 9]).cuda())
except flow.errors.KernelError as e:
    print(e.problem, "|", e.at)
print(g(flow.tensor([1, 3]).cuda()).shape)
"""


def test_a_failing_step_is_named_with_blocking():
    # the line before is the graph's [ERROR]
    _, first, second = alone(BLOCKING, FLOWEDU_CUDA_BLOCKING="1").splitlines()
    assert (first.startswith("G_0: emb-gather") and " 9" in first and "|" in first
            and second == "flowedu.Size([2, 2])")


DEVICES = """
import numpy as np
import flowedu as flow
import flowedu.typing as tp

class G(flow.nn.Graph):
    def __init__(self, model):
        super().__init__()
        self.model = model
    def build(self, x):
        return self.model(x).relu()

flow.manual_seed(0)
model = flow.nn.Linear(3, 2)
x = flow.ones(4, 3)
want = model(x).relu().numpy()
g = G(model.to("cuda:1"))
for _ in range(3):
    y = g(x.to("cuda:1"))
    assert y.device == flow.device("cuda:1") and flow.cuda.current_device() == 0
    np.testing.assert_allclose(y.cpu().numpy(), want, rtol=1e-5)
try:
    g(x.to("cuda:0"))
except RuntimeError as e:
    print(e.expected, e.got)
try:
    G(model)(x.to("cuda:0"))
except RuntimeError as e:
    print(e.got)

flow.config.gpu_device_num(2)

@flow.global_function()
def job(x: tp.Numpy.Placeholder((4, 3))) -> tp.Numpy:
    with flow.scope.placement("gpu", "0:1"):
        return x * flow.get_variable("w", (3,), initializer=flow.ones_initializer())

np.testing.assert_array_equal(job(x.numpy()), x.numpy())
print(flow.get_all_variables()["w"].tensor.device)
"""


@in_simulator
def test_two_devices():
    said = alone(DEVICES, FLOWEDU_CUDA_DEVICES="2").splitlines()
    said = [line for line in said if not line.startswith(("INFO", "[ERROR]"))]
    assert said == ["cuda:1 cuda:0", "_G_1_input.0.0_2 is on cuda:0, model.weight on cuda:1", "cuda:1"]


OFF = """
import numpy as np
import flowedu as flow
import flowedu.typing as tp

@flow.global_function()
def job(x: tp.Numpy.Placeholder((3,))) -> tp.Numpy:
    with flow.scope.placement("gpu", "0:0"):
        return x + 1

print(job(np.zeros(3, np.float32)), type(job.executor).__name__)
"""


def test_without_a_gpu_the_placement_gpu_is_the_cpu():
    assert alone(OFF, FLOWEDU_CUDA="off") == "[1. 1. 1.] Executor\n"
