"""Installation of CUDA's headers, the simulator, and PyCUDA into .venv.

`make test-cuda` needs them. This requires no GPU, driver, or toolkit, and skips finished steps. PyCUDA is
built from source with CUDA's headers and a libcuda to link with. The headers come from an installed toolkit
(CUDA_HOME, /usr/local/cuda, nvcc on the PATH) or else from NVIDIA's wheels, and the libcuda is the
simulator's. The resulting wheel also works with a real driver and is stored in the cache, from which another
.venv installs it in a second.
"""
from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]


def say(text: str) -> None:
    print(text, flush=True)


def run(command: list[str], what: str, remedy: str, **more) -> None:
    """Run a command. If it fails, exit with its output and a remedy."""
    done = subprocess.run(command, capture_output=True, text=True, **more)
    if done.returncode:
        said = done.stdout + done.stderr
        lines = [line for line in said.splitlines() if "is ignored: it is neither" not in line]
        if any(word in said for word in ("Temporary failure in name resolution", "NewConnectionError",
                                         "ConnectTimeout",
                                         "No matching distribution", "Network is unreachable")):
            remedy = (f"pip could not fetch it: is there a network, or a package index (PIP_INDEX_URL)? "
                      f"{remedy}")
        sys.exit("\n".join(["", f"This failed: {what}", *lines[-25:], remedy]))


def check_compiler() -> None:
    compiler = (os.environ.get("CXX") or "g++").split()[0]
    if not shutil.which(compiler):
        sys.exit(f"There is no C++ compiler ('{compiler}' not found). Install one: on Debian or Ubuntu "
                 "`apt-get install g++`, on Fedora `dnf install gcc-c++`; or say which one to use: "
                 "CXX=/path/to/g++")
    header = Path(sysconfig.get_path("include"), "Python.h")
    if not header.exists():
        sys.exit(f"Python's C headers are missing ({header}). Install them: on Debian or Ubuntu "
                 "`apt-get install python3-dev`.")


def find_toolkit():
    """Return the CUDA toolkit. Without an installed one, install NVIDIA's wheels."""
    from flowedu.cuda.toolkit import WHEELS, toolkit

    if toolkit() is None:
        say("no CUDA toolkit here: installing NVIDIA's compiler and headers into .venv (241 MB) ...")
        run([*PIP, "install", "-q", *WHEELS], "the wheels of nvcc",
            "Or install CUDA's toolkit and set CUDA_HOME.")
    found = toolkit()
    if found is None:
        sys.exit("NVIDIA's wheels are installed, but CUDA's headers are not found: set CUDA_HOME to a "
                 "toolkit's folder.")
    say(f"CUDA's headers: {found.headers}")
    return found


def has_pycuda(version: str) -> bool:
    from importlib import metadata

    return importlib.util.find_spec("pycuda") is not None and metadata.version("pycuda") == version


def wheel_of_pycuda(version: str, headers: Path, libcuda: Path) -> Path:
    """Return the PyCUDA wheel from the cache, or build it, which takes one or two minutes."""
    from flowedu.cuda.folders import cache_folder

    tag = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    folder = cache_folder() / "wheels"
    kept = sorted(folder.glob(f"pycuda-{version}-{tag}-*.whl"))
    if kept:
        return kept[-1]
    say(f"building PyCUDA {version} (about 90 seconds, once) ...")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as made, tempfile.TemporaryDirectory() as home:
        # Without this file, PyCUDA derives paths from the nvcc on the PATH, which may be a wrapper.
        Path(home, ".aksetup-defaults.py").write_text(
            f"CUDA_ROOT = {str(headers.parent)!r}\nCUDA_INC_DIR = [{str(headers)!r}]\nCUDA_ENABLE_CURAND = "
            f"False\nCUDADRV_LIB_DIR = [{str(libcuda)!r}]\nCUDADRV_LIBNAME = ['cuda']\n", encoding="utf-8")
        cache = subprocess.run([*PIP, "cache", "dir"], capture_output=True, encoding="utf-8").stdout.strip()
        run([*PIP, "wheel", "-q", "--no-deps", "-w", made, f"pycuda=={version}"],
            f"building PyCUDA {version}", "Its source needs a C++ compiler, Python's and CUDA's headers.",
            env={**os.environ, "HOME": home, **({"PIP_CACHE_DIR": cache} if cache else {})})
        file = next(Path(made).glob("*.whl"))
        os.replace(file, folder / file.name)
        return folder / file.name


def main() -> None:
    begin = time.monotonic()
    check_compiler()
    import tomllib

    from flowedu.cuda.sim.build import build, library
    from flowedu.errors import DeviceError

    extra = tomllib.loads((ROOT / "pyproject.toml").read_text(
        encoding="utf-8"))["project"]["optional-dependencies"]["cuda"]
    version = next(r.partition("==")[2] for r in extra if r.startswith("pycuda=="))
    found = find_toolkit()
    if not library().exists():
        say("compiling the CUDA simulator ...")
    try:
        made = build(found.headers)
    except DeviceError as e:
        sys.exit(str(e))
    if not has_pycuda(version):
        wheel = wheel_of_pycuda(version, found.headers, made.parent)
        say(f"installing {wheel.name}")
        run([*PIP, "install", "-q", str(wheel)], f"installing {wheel.name}", "")
    probe = "import flowedu as flow; print(flow.cuda.get_device_name())"
    run([sys.executable, "-c", probe], "starting the simulator", "", env={**os.environ,
                                                                          "FLOWEDU_CUDA": "sim"})
    say(f"CUDA is set up ({time.monotonic() - begin:.0f} s): FLOWEDU_CUDA=sim runs kernels in the simulator, "
        f"gpu on a GPU")


if __name__ == "__main__":
    main()
