"""Rule for the names of tests: a name states the property that the test checks."""
import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
DEFINITION = re.compile(r"^ *def (test_(?:what|who|whose|which|how|why)(?:_\w+)?)\(", re.MULTILINE)


def test_no_name_is_a_question():
    questions = [f"{file.relative_to(TESTS)}: {name}" for file in sorted(TESTS.rglob("test_*.py"))
                 for name in DEFINITION.findall(file.read_text(encoding="utf-8"))]
    assert questions == [], "state the property, such as test_broadcast_of_size_one_axes_keeps_strides"


def test_questions_are_found():
    source = "def test_who_waits():\n    def test_what(x):\ndef test_whole():\n"
    assert DEFINITION.findall(source) == ["test_who_waits", "test_what"]
