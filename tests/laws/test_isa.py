"""Law: kernels are right in every instruction set they are compiled for and this processor has, not only in the best one.

The others run in child processes: FLOWEDU_ISA=base python -m pytest tests/laws -k ... does the same by hand.
"""
import os
import subprocess
import sys
from pathlib import Path

import pytest

import flowedu._kernels as kernels

ROOT = Path(__file__).parents[2]
LAWS = [*(f"tests/laws/test_{name}.py" for name in ("boundaries", "cast", "large_logits", "special_values", "updates")),
        "tests/fast/test_few_rows.py", "tests/fast/test_functions.py", "tests/fast/test_packed.py",
        "tests/fast/test_winograd_range.py"]


def others() -> list[str]:
    """The instruction sets that are compiled, that this processor has, and that are not in use here."""
    flags = kernels.cpu_flags()
    return [isa for isa in kernels.ORDER if isa != kernels.ISA and kernels.compiled(isa) and kernels.NEEDS[isa] <= flags]


def child(isa: str, *command: str) -> subprocess.CompletedProcess:
    env = {**os.environ, "FLOWEDU_ISA": isa, "HYPOTHESIS_PROFILE": "debug"}
    return subprocess.run([sys.executable, *command], cwd=ROOT, env=env, capture_output=True, encoding="utf-8")


@pytest.mark.slow
def test_kernels_are_right_in_every_instruction_set():
    if os.environ.get("FLOWEDU_ISA"):
        return                                        # whoever chose one wants that one
    for isa in others():
        done = child(isa, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist",
                     *LAWS, "-k", "edges or halves or every or bfloat16 or softmax or entropy or optimizers or rows or odd "
                     "or packed or special")
        assert done.returncode == 0, f"{isa}: {done.stdout[-3000:]}{done.stderr[-1000:]}"


def test_the_setting_is_followed():
    for isa in others():
        assert child(isa, "-c", "import flowedu._kernels as k; print(k.ISA)").stdout.strip() == isa


@pytest.mark.parametrize("isa", ["v5", "", None])
def test_one_that_is_not_here_is_refused(isa, monkeypatch):
    monkeypatch.setattr(kernels, "cpu_flags", set)
    if isa is None:                                   # compiled, but the processor lacks it: no illegal instruction
        isa = next((i for i in kernels.ORDER if kernels.NEEDS[i] and kernels.compiled(i)), "v5")
    monkeypatch.setenv("FLOWEDU_ISA", isa)
    if not isa:
        assert kernels.choose_isa() == "base"         # empty: no wish
        return
    with pytest.raises(ImportError, match=f"FLOWEDU_ISA='{isa}'"):
        kernels.choose_isa()
