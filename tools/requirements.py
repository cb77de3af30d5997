"""`requirements.py NAME...`: print requirements from pyproject.toml, one per line.

NAME is `build` (to compile), `base` (to run), or an extra (`test`, `lint`, ...). The Makefile uses this to
install an extra without building the package again, so that pyproject.toml is the only list.
"""
import sys
import tomllib
from pathlib import Path

config = tomllib.loads(Path(__file__).parents[1].joinpath("pyproject.toml").read_text(encoding="utf-8"))
known = {"build": config["build-system"]["requires"], "base": config["project"]["dependencies"],
         **config["project"]["optional-dependencies"]}
for name in sys.argv[1:]:
    if name not in known:
        sys.exit(f"no extra '{name}' in pyproject.toml; there are {', '.join(known)}")
    print(*known[name], sep="\n")
