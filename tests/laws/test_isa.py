"""Law: kernels are correct in every compiled instruction set that this processor supports, not only in the
best one.

The other sets run in child processes. To run one by hand: FLOWEDU_ISA=base python -m pytest tests/laws -k ...
"""
import os
import subprocess
import sys
from pathlib import Path

import pytest

import flowedu._kernels as kernels

ROOT = Path(__file__).parents[2]
LAWS = [*(f"tests/laws/test_{name}.py" for name in ("boundaries", "cast", "large_logits", "special_values",
                                                    "updates")),
        "tests/fast/test_few_rows.py", "tests/fast/test_functions.py", "tests/fast/test_packed.py",
        "tests/fast/test_winograd_range.py"]


def other_instruction_sets() -> list[str]:
    """Return the instruction sets that are compiled and supported by this processor, but not in use."""
    flags = kernels.cpu_flags()
    return [isa for isa in kernels.ORDER if isa != kernels.ISA and kernels.compiled(
        isa) and kernels.NEEDS[isa] <= flags]


def child(isa: str, *command: str) -> subprocess.CompletedProcess:
    env = {**os.environ, "FLOWEDU_ISA": isa, "HYPOTHESIS_PROFILE": "debug"}
    return subprocess.run([sys.executable, *command], cwd=ROOT, env=env, capture_output=True,
                          encoding="utf-8")


@pytest.mark.slow
def test_kernels_are_correct_in_every_instruction_set():
    if os.environ.get("FLOWEDU_ISA"):
        return                                        # the user chose this set
    for isa in other_instruction_sets():
        done = child(isa, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist",
                     *LAWS, "-k", "edges or halves or every or bfloat16 or softmax or entropy or optimizers "
                     "or rows or odd or packed or special")
        assert done.returncode == 0, f"{isa}: {done.stdout[-3000:]}{done.stderr[-1000:]}"


def test_the_setting_is_followed():
    for isa in other_instruction_sets():
        assert child(isa, "-c", "import flowedu._kernels as k; print(k.ISA)").stdout.strip() == isa


@pytest.mark.parametrize("isa", ["v5", "", None])
def test_an_unavailable_instruction_set_is_refused(isa, monkeypatch):
    monkeypatch.setattr(kernels, "cpu_flags", set)
    if isa is None:  # compiled, but unsupported by the processor: no illegal instruction is executed
        isa = next((i for i in kernels.ORDER if kernels.NEEDS[i] and kernels.compiled(i)), "v5")
    monkeypatch.setenv("FLOWEDU_ISA", isa)
    if not isa:
        assert kernels.choose_isa() == "base"         # empty means unset
        return
    with pytest.raises(ImportError, match=f"FLOWEDU_ISA='{isa}'"):
        kernels.choose_isa()
