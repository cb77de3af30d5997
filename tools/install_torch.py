"""`install_torch.py torch==VERSION`: install PyTorch for the benchmarks, but without CUDA libraries.

The extra `bench` requires torch. On Linux, the default wheel depends on the CUDA libraries, several GB that a
CPU benchmark does not use. So this script first runs pip with --dry-run. If CUDA is in the list, it leaves
torch out and prints how to install the small wheel. The benchmarks then compare with NumPy only.
"""
import hashlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

REFUSED = Path(sys.prefix, "stamps", "torch-refused")    # hash of the last request that left torch out
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "-q"]


def resolve(requirement: str) -> list[str] | None:
    """Return the names of the packages that pip would install, or None if it does not find this torch."""
    with tempfile.TemporaryDirectory() as d:
        report = Path(d, "report.json")
        run = subprocess.run([*PIP, "--dry-run", "--report", str(report), requirement], capture_output=True)
        if run.returncode != 0:
            return None
        return [item["metadata"]["name"].lower() for item in json.loads(report.read_text(
            encoding="utf-8"))["install"]]


def main(requirement: str) -> None:
    if importlib.util.find_spec("torch"):
        return
    # pip takes seconds, so run it again only if the requirement or the package index changed.
    places = [f"{k}={v}" for k, v in sorted(os.environ.items()) if k.startswith("PIP_")]
    question = hashlib.sha256(" ".join([requirement, *places]).encode()).hexdigest()    # hides a password
    if REFUSED.exists() and REFUSED.read_text(encoding="utf-8") == question:
        print(f"{requirement} was left out (remove {REFUSED} to ask pip again): comparing with NumPy only")
        return
    print(f"installing {requirement} into .venv ...")
    names = resolve(requirement)
    if names is None:
        print(f"  pip finds no {requirement} here: comparing with NumPy only (another version: make bench "
              f"TORCH=...)")
        return
    cuda = [n for n in names if n.startswith(("nvidia-", "cuda-")) or n == "triton"]
    if cuda:
        REFUSED.parent.mkdir(exist_ok=True)
        REFUSED.write_text(question, encoding="utf-8")
        print(f"  left out: with it come {len(cuda)} CUDA packages, several GB. Comparing with NumPy only.\n"
              "  For PyTorch's CPU wheel set PIP_EXTRA_INDEX_URL to the CPU index that PyTorch's 'Get "
              "Started' page\n  names, and run again; or install it as it is: .venv/bin/python -m pip "
              f"install {requirement}")
        return
    run = subprocess.run([*PIP, requirement], capture_output=True, encoding="utf-8")
    if run.returncode != 0:
        print(run.stderr.strip()[-2000:] + "\n  comparing with NumPy only")


if __name__ == "__main__":
    main(sys.argv[1])
