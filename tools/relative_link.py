"""`relative_link.py`: make pip's link from .venv to src/ relative.

pip writes the full path of src/ into a .pth file. Python before 3.13 decodes that file by the locale, so under the C locale
it would not start in a checkout whose path is not ASCII. A relative path is ASCII, whatever the folders above are called.
"""
import os
import sys
import sysconfig
from pathlib import Path

SRC = Path(__file__).parents[1] / "src"
site = Path(sysconfig.get_path("purelib"))
links = sorted(site.glob("__editable__.flowedu-*.pth"))
if len(links) != 1:
    sys.exit(f"{site} has {len(links)} links to a checkout of flowedu, expected 1: run `make build` again")
links[0].write_text(os.path.relpath(SRC, site) + "\n", encoding="ascii")
