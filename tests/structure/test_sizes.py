"""Rule: ARCHITECTURE.md states the number of lines of every folder, as counted by tools/sizes.py."""
import pytest

from common import load_tool


@pytest.fixture(scope="module")
def sizes():
    return load_tool("sizes")


def test_the_table_matches_the_counts(sizes):
    stated, = sizes.TABLE.findall(sizes.PAGE.read_text(encoding="utf-8"))
    assert not sizes.differences(stated, sizes.make_table()), "run `python tools/sizes.py`"


def test_every_folder_has_a_group(sizes):
    grouped = [folder for folders in sizes.GROUPS.values() for folder in folders]
    folders = {p.name for p in sizes.PACKAGE.iterdir() if p.is_dir() and any(p.glob("*.py"))} - {"_kernels"}
    kernels = {f"_kernels/{p.parent.name}" for p in (sizes.PACKAGE / "_kernels").glob("*/*")
               if p.suffix in (".pyx", ".cu")}
    assert sorted(grouped) == sorted(folders | kernels)


def test_a_wrong_number_is_found(sizes):
    row = "| a | `core/` 12,000, `nn/` 900 | 1 |\n"
    assert sizes.differences(row, row.replace("12,000", "12,900")) == []
    assert sizes.differences(row, row.replace("12,000", "14,000")) == ["core: stated 12000, counted 14000"]
    assert sizes.differences(row, row.replace("nn", "cuda"))[0] == "cuda: stated None, counted 900"
