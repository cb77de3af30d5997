"""`relative_link.py`: link .venv to src/ and course/ by relative paths.

pip writes the full path of src/ into a .pth file. Python before 3.13 decodes this file with the locale's
encoding, so it would not start under the C locale in a checkout whose path is not ASCII. A relative path is
always ASCII.
"""
import os
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).parents[1]
site = Path(sysconfig.get_path("purelib"))
links = sorted(site.glob("__editable__.flowedu-*.pth"))
if len(links) != 1:
    sys.exit(f"{site} has {len(links)} links to a checkout of flowedu, expected 1: run `make build` again")
links[0].write_text("".join(os.path.relpath(ROOT / part, site) + "\n" for part in ("src", "course")),
                    encoding="ascii")
