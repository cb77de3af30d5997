"""Programs like those of OneFlow 0.9's documentation run under the mock, with the stored outputs.

Each file oneflow_pages/*.md has the name of a page, and blocks of code that use the functions of that page.
The blocks of a file share their names. Below a block is its output on rank 0, and on further ranks where it
differs. The line `ranks: n` runs the file on n ranks, which are threads.

    python tests/doors/test_oneflow_pages.py tensor      # write the outputs of rank 0 to tensor.md
"""
import re
import sys
from pathlib import Path

import pytest

from flowedu import mock
from flowedu.distributed import spawn

PAGES = sorted((Path(__file__).parent / "oneflow_pages").glob("*.md"))
BLOCK = re.compile(r"^```python\n(.*?)^```\n((?:\s*^```text (?:output|rank \d+)\n.*?^```\n)*)",
                   re.MULTILINE | re.DOTALL)
OUTPUT = re.compile(r"^```text (output|rank (\d+))\n(.*?)^```\n", re.MULTILINE | re.DOTALL)


def read_blocks(text: str) -> list[tuple[str, dict[int, str]]]:
    """Return (code, {rank: output}) of each block of a page."""
    return [(code, {int(rank or 0): output for _, rank, output in OUTPUT.findall(outputs)})
            for code, outputs in BLOCK.findall(text)]


def run(codes: list[str], ranks: int) -> list[list[str]]:
    """Run the blocks on each rank, and return their outputs: a list for each rank."""
    def run_rank() -> list[str]:
        lines: list[str] = []

        def collect(*words) -> None:
            lines.append(" ".join(map(str, words)) + "\n")

        names = {"__name__": "page", "print": collect}
        outputs = []
        for code in codes:
            exec(compile(code, "page", "exec"), names)
            outputs.append("".join(lines).replace("flowedu", "oneflow"))
            lines.clear()
        return outputs

    with mock.enable("oneflow"):
        return spawn(run_rank, ranks) if ranks > 1 else [run_rank()]


def count_ranks(text: str) -> int:
    found = re.search(r"^ranks: (\d+)$", text, re.MULTILINE)
    return int(found[1]) if found else 1


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
@pytest.mark.filterwarnings("ignore:GradScaler")
def test_the_blocks_of_a_page_print_their_output(page):
    text = page.read_text(encoding="utf-8")
    blocks = read_blocks(text)
    assert len(blocks) == text.count("```python")
    results = run([code for code, _ in blocks], count_ranks(text))
    for number, (code, outputs) in enumerate(blocks):
        assert results[0][number] == outputs.get(0, ""), code
        for rank, output in outputs.items():
            assert results[rank][number] == output, (rank, code)


def test_a_planted_difference_is_found():
    (code, outputs), = read_blocks("```python\nprint(1)\n```\n```text output\n2\n```\n"
                                   "```text rank 1\n1\n```\n")
    assert code == "print(1)\n" and outputs == {0: "2\n", 1: "1\n"}
    assert run([code], 2) == [["1\n"], ["1\n"]]


def record(page: Path) -> None:
    """Write the outputs of rank 0 into a page."""
    text = page.read_text(encoding="utf-8")
    results = iter(run([code for code, _ in read_blocks(text)], count_ranks(text))[0])

    def fill(block: re.Match) -> str:
        others = "".join(m[0] for m in OUTPUT.finditer(block[2]) if m[1] != "output")
        output = next(results)
        return f"```python\n{block[1]}```\n" + (f"```text output\n{output}```\n" if output else "") + others

    page.write_text(BLOCK.sub(fill, text), encoding="utf-8")


if __name__ == "__main__":
    for path in PAGES:
        if path.stem in sys.argv[1:]:
            record(path)
