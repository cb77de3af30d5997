"""The image of chapter 5 shows the values that the code computes."""
import re
from pathlib import Path
from xml.etree import ElementTree

from flowedu_course import exercises

CHAPTER = Path(__file__).parents[2] / "chapters" / "05_nn_graph"


def shares(path: Path) -> tuple[list[str], list[int]]:
    """Return (the texts without the shares, the shares in %)."""
    texts = [e.text for e in ElementTree.parse(path).iter() if e.tag.endswith("text")]
    return [re.sub(r"\d+%", "%", t) for t in texts], [int(n) for t in texts for n in re.findall(r"(\d+)%", t)]


def test_the_histogram_of_gradients_is_the_one_of_the_lesson(tmp_path):
    """Most gradients are 0 in float16 before the loss is scaled, and almost none afterwards."""
    code = vars(exercises.load(CHAPTER / "pictures.py"))
    words, now = shares(code["draw"](tmp_path / "halves.svg"))
    there, said = shares(CHAPTER / "pictures" / "halves.svg")
    assert words == there and all(abs(a - b) <= 2 for a, b in zip(now, said, strict=True))
    before, after = now
    assert before > 50 and after <= 1
