"""Law: out-of-memory errors name op, shape, bytes, the user's line, and a fix, and the session continues."""
from flowedu.errors import OutOfMemoryError

from .children import run_child

# name: (texts that the message contains, code). The code runs in a child process with 1 GiB.
CASES = {
    "an op": (["float32[40000, 40000]", "6,400,000,000 bytes"], "x = flow.ones(40000, 1) + flow.ones(40000)"),
    "a creation": (["empty: out of memory", "float64[30000, 30000]"],
                   "flow.empty(30000, 30000, dtype=flow.float64)"),
    "a copy": (["contiguous"], "flow.ones(1).expand(2 ** 31).contiguous()"),
    "no machine": (["constant: no memory", "float32[4611686018427387904]"], "flow.zeros(2 ** 62)"),
    "NumPy in a kernel": (["out of memory", "bytes"], "flow.histc(flow.ones(4), 2 ** 31)"),
    "a graph": (["arena", "float32[40000, 40000]", "add"], "Large()(flow.ones(40000))"),
    "a job": (["arena", "float32[40000, 40000]"], "large(np.ones(40000, np.float32))"),
    "backward": (["float32[1, 300000000]", "1,200,000,000 bytes"],
                 "flow.ones(1, 1, requires_grad=True).expand(1, 300000000).sum().backward()"),
}
CODE = """
import numpy as np
import flowedu as flow, flowedu.typing as tp
from children import limit_memory
from flowedu.errors import FlowError, OutOfMemoryError
class Large(flow.nn.Graph):
    def build(self, x):
        return (x.reshape(-1, 1) + x).sum()
@flow.global_function()
def large(x: tp.Numpy.Placeholder((40000,))) -> tp.Numpy:
    return flow.math.reduce_sum(flow.reshape(x, (40000, 1)) + x)
limit_memory()
for name, (words, code) in CASES.items():
    try:
        exec(compile(code, "user.py", "exec"))
    except OutOfMemoryError as e:
        assert isinstance(e, (MemoryError, RuntimeError)) and e.expected and e.got and e.fix, (name, e)
        assert all(w in str(e) for w in words), (name, str(e))
        assert e.at, (name, str(e))
    else:
        raise AssertionError(f"{name}: no error")
    kept = flow.memory_stats()["live"]
    assert float((flow.ones(1000) * 2).sum()) == 2000 and kept < 1 << 22, (name, kept)
print("all")
"""


def test_out_of_memory_errors_are_complete_and_the_session_continues():
    assert run_child(f"CASES = {CASES!r}\n{CODE}", 100, FLOWEDU_NUM_THREADS="1").endswith("all\n")


def test_out_of_memory_error_is_a_memory_error_and_a_runtime_error():
    assert issubclass(OutOfMemoryError, MemoryError) and issubclass(OutOfMemoryError, RuntimeError)
