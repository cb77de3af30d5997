"""Every kernel compiles with nvcc for three GPU architectures without warnings and without register
spills.
"""
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from flowedu.cuda.folders import build_once
from flowedu.cuda.launches import update
from flowedu.cuda.launches.layout import cast_source
from flowedu.cuda.modules import HOME, for_type
from flowedu.cuda.programs import group_source
from flowedu.cuda.source import _version
from flowedu.cuda.table import TABLE
from flowedu.cuda.toolkit import toolkit

found = toolkit()
NVCC = found.nvcc if found else shutil.which("nvcc")
pytestmark = pytest.mark.skipif(not NVCC,
                                reason="there is no nvcc: `make test-cuda` installs one where there is no "
                                "toolkit")

FILES = sorted(p.relative_to(HOME / "cuda").as_posix() for p in (HOME / "cuda").rglob("*.cu"))
OWN = {"cast.cu", "update.cu"}                                        # these have parameters other than T


def sources() -> dict[str, str]:
    """Return all sources by name: one dtype of each file, and a second one of files that depend most on the
    dtype.
    """
    made = {}
    for file in (f for f in FILES if f not in OWN):
        types = sorted({(row.t, row.wide) for row in TABLE.values() if row.file == file}
                       or {("float", "double")})
        for t, wide in [x for x in types if x[0] in ("float", "uint32_t")] or types[:1]:
            made[f"{file}-{t}"] = for_type(file, t, wide)
    return made | {
        "product of doubles": for_type("matmul.cu", "double", "double"),
        "sums of int64": for_type("reduce.cu", "int64_t", "int64_t"),
        "update.cu-float": update.source(0), "cast.cu-half": cast_source(7),
        **{f"elementwise like {name}": group_source(name, 0) for name in ("add", "exp2", "less")},
        "elementwise of int64": group_source("less", 3)}


SOURCES = sources()


OPTIONS = ("-cubin", "-std=c++17", "-Xptxas", "-v,-warn-spills")


def compiled(name: str, arch: str) -> str:
    """Return nvcc's messages for a source, cached by its text, because compiling all sources takes
    minutes.
    """
    def ask(folder):
        file = folder / f"{re.sub(r'[^A-Za-z0-9]', '_', name)}.cu"
        file.write_text(SOURCES[name], encoding="utf-8")
        done = subprocess.run([str(NVCC), *OPTIONS, f"-arch={arch}", str(file), "-o",
                               str(file.with_suffix(".cubin"))],
                              capture_output=True, encoding="utf-8")
        assert done.returncode == 0, done.stderr
        (folder / "said.txt").write_text(done.stderr, encoding="utf-8")
        return folder / "said.txt"

    return build_once("nvcc-said", ".txt", (SOURCES[name], arch, *OPTIONS, _version(str(NVCC))), ask).decode()


@pytest.mark.parametrize("name", SOURCES)
def test_compiles_without_a_warning_and_without_spills(name):
    with ThreadPoolExecutor(2) as pool:
        for said in pool.map(lambda arch: compiled(name, arch), ("sm_75", "sm_90", "sm_100")):
            assert "warning" not in said, said
            assert set(re.findall(r"(\d+) bytes spill", said)) <= {"0"}, said


def test_every_file_is_compiled():
    assert {name.partition("-")[0] for name in SOURCES} >= set(FILES)
