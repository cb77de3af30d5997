"""The GPU part of chapter 8: its images match the code and the counters (test_chapter8.py runs the
lesson).
"""
import io
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from cuda_common import in_simulator

import flowedu as flow
from flowedu.cuda.lessons import LADDERS
from flowedu_course import exercises

CHAPTER = Path(__file__).parents[2] / "chapters" / "08_kernels"
pytestmark = in_simulator


@pytest.fixture(scope="module")
def pictures():
    return exercises.load(CHAPTER / "gpu_pictures.py")


def test_the_images_are_drawn_by_the_code(pictures, tmp_path):
    drawn = [*pictures.draw(tmp_path), *pictures.draw_counted(tmp_path)]
    for path in drawn:
        kept = CHAPTER / "pictures" / path.name
        assert kept.read_text(encoding="utf-8") == path.read_text(encoding="utf-8"), path.name
        parts = list(ElementTree.parse(path).getroot())
        assert sum(e.tag.endswith("text") for e in parts) >= 4, path.name
        assert sum(e.tag.endswith("rect") and "stroke" in e.attrib for e in parts) <= 60, path.name


def test_the_bars_show_the_counters(pictures, tmp_path):
    counts = {"a": dict.fromkeys(("global_bytes", "global_loads", "global_stores", "shared_loads",
                                  "shared_stores"), 640)
              | {"barriers": 7}}
    text = pictures.ladder(counts, 64, tmp_path / "l.svg").read_text(encoding="utf-8")
    assert all(f">{n}<" in text for n in ("10", "640", "7"))  # bytes, accesses for 32 results, barriers


def test_the_roofline_is_the_lower_of_memory_and_arithmetic(pictures, tmp_path):
    text = pictures.roofline({"copy": 0.1, "deep": 100.0}, tmp_path / "r.svg").read_text(encoding="utf-8")
    assert ">copy: 0.48 TFLOP/s<" in text and ">deep: 67 TFLOP/s<" in text
    for name, tile in (("product, naive", 1), ("product, tiles of 16", 16), ("product, tiles of 128", 128)):
        assert pictures.intensities()[name] == tile / 4  # 2 n^3 operations, 8 n^3 / tile bytes


def test_the_sectors_in_the_image_match_the_counters():
    source = ("__global__ void read(const float* x, float* y, int step) { y[threadIdx.x] = x[threadIdx.x * "
              "step]; }")
    for step, sectors in ((1, 4), (2, 8), (32, 32)):
        with flow.cuda.profile(io.StringIO()) as p:
            flow.cuda.kernel(source)("read", 1, 32)(np.zeros(1024, np.float32), np.zeros(32, np.float32),
                                                    step)
        assert p["read"]["sectors"] == sectors + 4


def test_every_step_of_a_ladder_is_described():
    text = (CHAPTER / "ladders.md").read_text(encoding="utf-8") + (CHAPTER
                                                                   / "gpu.md").read_text(encoding="utf-8")
    for ladder in LADDERS.values():
        assert all(f"\n{step.name:10}" in text for step in ladder.steps), ladder.name
