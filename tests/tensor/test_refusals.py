"""Law: invalid calls raise the listed class of error, and the message names the place and a fix."""
import builtins

import pytest

import flowedu as flow

from .inputs import INPUTS
from .lines import evaluate_line, variables
from .refusals import ASSIGNMENTS, REFUSED, rows


@pytest.mark.parametrize("text, kind", rows(REFUSED))
def test_invalid_lines_are_refused(text, kind):
    with pytest.raises(getattr(builtins, kind)) as ours:
        evaluate_line(text, flow, variables(text, flow, False))
    message = str(ours.value)
    if isinstance(ours.value, flow.errors.FlowError):
        assert "test_refusals.py" in message or "lines.py" in message or "<string>" in message
        assert (ours.value.expected or ours.value.got
                or ours.value.fix), "a message says what was expected and what came"


@pytest.mark.parametrize("text, kind", rows(ASSIGNMENTS))
def test_refused_assignments_change_nothing(text, kind):
    tensors = {n: flow.tensor(v) for n, v in INPUTS.items()}
    with pytest.raises(getattr(builtins, kind)):
        exec(text, tensors)
    assert (tensors["a"].numpy() == INPUTS["a"]).all()
