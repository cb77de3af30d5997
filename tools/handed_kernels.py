"""Compiled kernels that were handed out with a student tree.

    python tools/handed_kernels.py native     exit with 0 if the kernels for this processor can be used
    python tools/handed_kernels.py all        the same for the kernels for all instruction sets

`make student-tree` copies the compiled files into the tree and calls `seal`. While no source has changed,
and flowedu starts with these files, `make` and setup.py compile nothing and need no compiler. Otherwise they
compile as usual. The module imports only the standard library, because setup.py and the exporter load it by
its path.
"""
from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Collection
from pathlib import Path

SEAL = Path("build", "kernels", "handed.json")
SOURCES = {".pyx", ".pxd", ".pxi", ".h"}


def _digest(root: Path) -> str:
    """Return the digest of the sources, setup.py, the compiled files, and the ending of their names."""
    files = [p for p in sorted((root / "src").rglob("*")) if p.suffix in SOURCES | {".so"}]
    lines = [f"{p.relative_to(root).as_posix()} {hashlib.sha256(p.read_bytes()).hexdigest()}"
             for p in (root / "setup.py", *files)]
    lines.append(str(sysconfig.get_config_var("EXT_SUFFIX")))
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def seal(root: Path) -> None:
    """Write the digest of a tree that contains compiled files."""
    there = sorted(p.parent.name for p in (root / "src/flowedu/_kernels").glob("*/matmul.*.so"))
    file = root / SEAL
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"isas": there, "digest": _digest(root)}), encoding="utf-8")


def fits(root: Path, isas: Collection[str]) -> bool:
    """Return True if the sealed files of a tree are unchanged, have these instruction sets, and start."""
    try:
        sealed = json.loads((root / SEAL).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    if not {*isas} <= {*sealed["isas"]} or sealed["digest"] != _digest(root):
        return False
    there = {**os.environ, "PYTHONPATH": str((root / "src").resolve())}
    for name in ("FLOWEDU_HOLES", "FLOWEDU_ISA"):
        there.pop(name, None)
    done = subprocess.run([sys.executable, "-c", "import flowedu"], env=there, capture_output=True)
    return done.returncode == 0


def main(which: str) -> int:
    spec = importlib.util.spec_from_file_location("processor", "src/flowedu/_kernels/processor.py")
    processor = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(processor)
    x86 = os.uname().machine.lower() in ("x86_64", "amd64")
    every = {*processor.ORDER} if x86 else {"base"}
    wanted = every if which == "all" else {processor.best(every, processor.cpu_flags())}
    if not fits(Path(), wanted):
        return 1
    print("using the kernels that came with this tree")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
