"""`choose_cuda.py`: print where `make chapter-N` runs CUDA kernels: "gpu" if the machine has one, else "sim".

A note on stderr reports the simulator. FLOWEDU_CUDA overrides the choice.
"""
from __future__ import annotations

import os
import sys

from flowedu.cuda.machine import kind
from flowedu.errors import DeviceError


def main() -> None:
    try:
        where = kind()
    except DeviceError as error:
        sys.exit(str(error))
    if where == "off" and not os.environ.get("FLOWEDU_CUDA"):
        where = "sim"
        print("no GPU here: kernels run in the simulator", file=sys.stderr)
    print(where)


if __name__ == "__main__":
    main()
