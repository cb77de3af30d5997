"""Functions of flow.linalg and flow.fft on every rank from 0 to 3 and sizes 0 to 2 return a result or raise a
flowedu error.
"""
import inspect
import itertools

import pytest

import flowedu as flow
from flowedu import nn
from flowedu.errors import FlowError

SHAPES = [shape for rank in range(4) for shape in itertools.product((0, 1, 2), repeat=rank)]
# With two inputs, use fewer shapes: each rank with one size, and empty ones.
PAIRED = [(), (0,), (1,), (2,), (0, 0), (2, 2), (1, 2), (2, 0), (2, 2, 2), (0, 2, 2)]
SMALL = 1


def public_functions(module):
    return [name for name in module.__all__ if callable(f := getattr(module,
                                                                     name)) and not isinstance(f, type)]


CASES = [(module, name) for module in ("linalg", "fft") for name in public_functions(getattr(flow, module))]


def count_required(f):
    parameters = inspect.signature(f).parameters.values()
    return sum(p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
               for p in parameters)


@pytest.mark.parametrize("module, name", CASES)
def test_small_ranks_return_a_result_or_raise_a_flowedu_error(module, name):
    f = getattr(getattr(flow, module), name)
    needed = max(1, count_required(f))
    shapes = [(s,) for s in SHAPES] if needed == 1 else itertools.product(PAIRED, repeat=min(needed, 2))
    for chosen in shapes:
        arguments = [flow.ones(*s) if s else flow.tensor(1.) for s in chosen]
        for extra in [()] if needed <= 2 else [(arguments[-1],) * (needed - 2), (SMALL,) * (needed - 2)]:
            try:
                f(*arguments, *extra)
            except (FlowError, MemoryError):
                pass
            except Exception as error:
                raise AssertionError(
                    f"{module}.{name} of shapes {chosen}: {type(error).__name__}: {error}") from error


@pytest.mark.parametrize("module", ["linalg", "fft"])
def test_dir_lists_public_names_only(module):
    names = {name for name in dir(getattr(flow, module)) if not name.startswith("_")}
    assert not names & {"on_cpu", "ArgumentError", "DTypeError", "ShapeError", "Tensor", "np", "operator"}
    assert names == set(getattr(flow, module).__all__)


def functional_names():
    functions = {name: getattr(nn.functional, name) for name in dir(nn.functional) if name[0].islower()}
    return [name for name, f in functions.items() if callable(f) and not isinstance(f, type)]


SIBLINGS = {
    "vander": flow.vander, "diag_embed": flow.diag_embed, "cholesky_inverse": flow.cholesky_inverse,
    "cross": flow.cross, "xavier_normal_": nn.init.xavier_normal_, "xavier_uniform_": nn.init.xavier_uniform_,
    "kaiming_normal_": nn.init.kaiming_normal_, "kaiming_uniform_": nn.init.kaiming_uniform_,
    "instance_norm": lambda x: nn.functional.instance_norm(x, flow.zeros(2), flow.ones(2)),
    **{name: getattr(nn.functional, name) for name in functional_names()},
}


@pytest.mark.parametrize("name", SIBLINGS)
def test_layers_and_other_functions_on_small_ranks(name):
    """Called with one and with two inputs. A missing argument must raise a flowedu error as well."""
    for chosen in [*((s,) for s in SHAPES), *itertools.product(PAIRED, repeat=2)]:
        try:
            SIBLINGS[name](*(flow.ones(*s) if s else flow.tensor(1.) for s in chosen))
        except (FlowError, MemoryError, TypeError):
            pass
        except Exception as error:
            raise AssertionError(f"{name} of shapes {chosen}: {type(error).__name__}: {error}") from error


@pytest.mark.parametrize("layer", [nn.LSTM, nn.GRU, nn.RNN])
def test_a_packed_sequence_without_time_steps(layer):
    packed = nn.utils.rnn.PackedSequence(flow.ones(7, 3), flow.tensor([], dtype=flow.int64))
    with pytest.raises(FlowError, match="no time steps"):
        layer(3, 4)(packed)
