"""Examples of the reference that need a GPU or the simulator."""
from pathlib import Path

from reference_examples import differences

EXAMPLES = Path(__file__).parents[2] / "book" / "reference" / "examples" / "cuda.txt"


def test_examples_of_the_gpu_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert not differences(EXAMPLES, monkeypatch)
