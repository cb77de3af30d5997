"""The nn.Graph tests with all tensors and modules on cuda: training, schedules, states, watching,
micro-batches, inputs and outputs, and the life cycle of a graph.
"""
import pytest
from all_on_cuda import everything_on_cuda

from flowedu.core.graph.program import Program
from flowedu.cuda.plan import DeviceExecutor
from graph import making, test_inputs, test_life, test_repeat, test_state, test_training, test_watching

MODULES = (making, test_inputs, test_life, test_repeat, test_state, test_training, test_watching)
OTHERWISE = {"test_attributes_of_lazy_tensors",              # it also prints the device
             # slow, and the same as on the CPU
             "test_checkpointing_needs_less_memory", "test_accumulation_needs_less_memory"}
for module in MODULES[1:]:
    globals().update({n: f for n, f in vars(module).items() if n.startswith("test_") and n not in OTHERWISE})


@pytest.fixture(autouse=True)
def on_cuda(monkeypatch):
    made, lay_out = [], Program.lay_out
    monkeypatch.setattr(Program, "lay_out", lambda self: (lay_out(self), made.append(self))[0])
    with everything_on_cuda(MODULES):
        yield
    assert all(isinstance(p.executor, DeviceExecutor) for p in made if p.graph.inputs or p.graph.variables)
