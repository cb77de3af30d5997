"""Rules for names in tests: a test states its property, and few files share the name of a helper."""
import ast
import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
# Questions, and single nouns that state no property.
DEFINITION = re.compile(
    r"^ *def (test_(?:(?:what|who|whose|which|how|why)(?:_\w+)?"
    r"|values?|gradients?|errors?|messages?|misuse|refusals?|wrong_calls|functions?|layers?|methods?|models?"
    r"|networks?|outputs?|inputs?|rules?|laws|mixed|vectors?|in_a_graph))\(", re.MULTILINE)
FILES = 4                  # at most so many files define a helper of the same name
IN_FOUR_FILES = 36         # helper names that four files define; lower it, never raise it


def helper_names(file: Path) -> set[str]:
    """Return the names of the functions and classes of a file, without tests, hooks, and fixtures."""
    return {node.name for node in ast.parse(file.read_text(encoding="utf-8")).body
            if isinstance(node, (ast.FunctionDef, ast.ClassDef))
            and not node.name.startswith(("test_", "Test", "pytest_"))
            and not any("fixture" in ast.unparse(decorator) for decorator in node.decorator_list)}


def test_each_name_states_a_property():
    vague = [f"{file.relative_to(TESTS)}: {name}" for file in sorted(TESTS.rglob("test_*.py"))
             for name in DEFINITION.findall(file.read_text(encoding="utf-8"))]
    assert vague == [], "state the property, such as test_broadcast_of_size_one_axes_keeps_strides"


def test_questions_and_single_nouns_are_found():
    source = "def test_who_waits():\n    def test_what(x):\ndef test_whole():\ndef test_errors():\n"
    assert DEFINITION.findall(source) == ["test_who_waits", "test_what", "test_errors"]


def test_few_files_share_the_name_of_a_helper():
    """Helpers with equal bodies belong in common.py. Programs of others (tests/programs) do not count."""
    files: dict[str, list[str]] = {}
    for file in sorted(TESTS.rglob("*.py")):
        if file.relative_to(TESTS).parts[0] != "programs":
            for name in helper_names(file):
                files.setdefault(name, []).append(str(file.relative_to(TESTS)))
    shared = {name: found for name, found in files.items() if len(found) >= FILES}
    assert max(map(len, shared.values())) <= FILES, "state what each of these helpers does"
    assert len(shared) <= IN_FOUR_FILES, f"state what these helpers do: {sorted(shared)}"


def test_helpers_are_found(tmp_path):
    file = tmp_path / "test_a.py"
    file.write_text("def check():\n    def inner(): 0\nclass Net: 0\ndef test_a(): 0\n"
                    "@pytest.fixture\ndef made(): 0\n", encoding="utf-8")
    assert helper_names(file) == {"check", "Net"}
