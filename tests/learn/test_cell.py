"""The tree of a worker process has every file of the course that the files in it import."""
import ast

from flowedu_course import course
from flowedu_course.teach import cell


def imported_modules(file):
    """Yield the paths in flowedu_course of what a file imports when it is imported itself."""
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "flowedu_course":
            for name in node.names:
                yield f"{node.module}.{name.name}".split(".")[1:]


def test_modules_that_the_cell_imports_are_in_its_tree(tmp_path):
    tree = cell.closed_package(tmp_path / "tree", course.holes()[:1]) / "flowedu_course"
    files = [*tree.glob("*.py"), *tree.glob("laws/*.py")]
    assert len(files) > 20
    missing = [(file.name, ".".join(path)) for file in files for path in imported_modules(file)
               if path[0] != "teach" and (cell.PACKAGE / f"{path[0]}.py").exists()
               and not (tree / f"{path[0]}.py").exists()]
    assert missing == []
