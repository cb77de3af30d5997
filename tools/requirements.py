"""`requirements.py NAME...`: what pip must install, read from pyproject.toml, one for each line.

NAME is `build` (to compile), `base` (to run) or an extra (`test`, `lint`, ...). So pyproject.toml stays the only
list, and the Makefile can install an extra without building the package again.
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
