"""The demo of chapter 7 trains, reports its accuracy, and writes the images that it promises."""
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

import flowedu as flow
from common import HANGS
from flowedu_course import exercises

CHAPTER = Path(__file__).parents[2] / "chapters" / "07_tensor_buffer"


def demo(folder, *paths):
    environment = {**os.environ, "FLOWEDU_NUM_THREADS": "1",
                   "PYTHONPATH": os.pathsep.join(map(str, (*paths, Path(flow.__file__).parents[1])))}
    return subprocess.run([sys.executable, CHAPTER / "demo.py", "--quick", "--threads", "1", "--out", folder],
                          cwd=folder, capture_output=True, encoding="utf-8", timeout=HANGS, env=environment)


def test_the_demo_learns_and_draws(tmp_path):
    import matplotlib.image
    done = demo(tmp_path)
    assert done.returncode == 0 and not done.stderr, done.stderr
    assert float(re.search(r"test accuracy ([0-9.]+)%", done.stdout)[1]) > 50
    kinds = [e.tag.rpartition("}")[2] for e in ElementTree.parse(tmp_path / "memory.svg").getroot()]
    # 6 pointers, 6 blocks, 6 list entries, the background
    assert kinds.count("rect") >= 19 and kinds.count("text") > 30
    pixels = matplotlib.image.imread(tmp_path / "seen.png")
    assert min(pixels.shape[:2]) > 300 and len(np.unique(pixels[..., :3])) > 2
    assert "memory.svg" in done.stdout and "seen.png" in done.stdout


def test_the_demo_runs_without_matplotlib(tmp_path):
    missing = tmp_path / "matplotlib"
    missing.mkdir()
    (missing / "__init__.py").write_text("raise ModuleNotFoundError('No module named matplotlib')")
    done = demo(tmp_path, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "needs matplotlib" in done.stdout and (tmp_path / "memory.svg").exists()


def test_the_image_shows_the_actual_addresses_and_offsets(tmp_path):
    pictures = exercises.load(CHAPTER / "pictures.py")
    buffer = flow.TensorBuffer([np.zeros((h, 10, 1), np.uint8) for h in (3, 30, 7)])
    text = pictures.memory(buffer, tmp_path / "m.svg").read_text(encoding="utf-8")
    assert all(hex(b.address) in text for b in buffer.memory())
    assert all(f">{n}<" in text for n in (0, 30, 330, 400)) and ">300 bytes<" in text


def test_files_differ_in_size_and_hold_the_digits():
    rng = np.random.default_rng(0)
    images = np.zeros((20, 1, 28, 28), np.float32)
    images[:, :, 8:20, 8:20] = 1
    files = exercises.load(CHAPTER / "demo.py").draw_anew(images, rng)
    decoded = flow.image.decode(flow.TensorBuffer(files), color_space="GRAY")
    assert len({a.shape for a in decoded}) > 15 and all(20 <= n <= 60 for a in decoded for n in a.shape[:2])
    back = flow.image.Resize(decoded, (28, 28), channels=1)[0].numpy()[..., 0] / 255
    # A square of 12 x 12 has 48 edge pixels. Resizing blurs these and their neighbors by at most half each.
    assert np.abs(back - images[:, 0]).mean() < 48 / 28 ** 2
