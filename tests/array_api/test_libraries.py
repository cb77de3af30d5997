"""Libraries for the array API standard, and einops, give the same results on tensors as on NumPy arrays."""
import json
import subprocess
import sys
from pathlib import Path

import pytest


def wrong_calls(library: str) -> dict[str, str]:
    program = Path(__file__).with_name("libraries.py")
    run = subprocess.run([sys.executable, str(program), library], capture_output=True, encoding="utf-8")
    assert run.returncode == 0, run.stderr[-3000:]
    return json.loads(run.stdout.splitlines()[-1])


@pytest.mark.parametrize("library", ["scipy", "sklearn", "einops"])
def test_library_calls_give_the_same_on_tensors_and_arrays(library):
    pytest.importorskip(library)
    assert wrong_calls(library) == {}


def test_the_backend_of_einops_is_found_in_either_order_of_imports():
    pytest.importorskip("einops")
    for order in ("import einops, flowedu as flow", "import flowedu as flow, einops"):
        code = f"{order}; print(tuple(einops.rearrange(flow.ones(2, 3), 'a b -> b a').shape))"
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8")
        assert run.stdout.strip() == "(3, 2)", run.stderr[-2000:]
