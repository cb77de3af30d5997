"""utils.tensorboard: a SummaryWriter whose scalars are lines of a CSV file. Pictures and graphs are not kept."""
from __future__ import annotations

import csv
import time
from pathlib import Path


class SummaryWriter:
    """SummaryWriter(log_dir): writes log_dir/scalars.csv, a line (tag, step, value, seconds since 1970)
    for each number."""

    def __init__(self, log_dir: str | Path | None = None, comment: str = "", **options):
        self.log_dir = str(log_dir or Path("runs") / (time.strftime("%b%d_%H-%M-%S") + comment))
        Path(self.log_dir).mkdir(parents=True, exist_ok=True)
        path = Path(self.log_dir) / "scalars.csv"
        new = not path.exists()
        self._file = path.open("a", newline="")
        self._rows = csv.writer(self._file)
        if new:
            self._rows.writerow(["tag", "step", "value", "time"])

    def add_scalar(self, tag: str, scalar_value, global_step: int | None = None, walltime: float | None = None,
                   **options) -> None:
        """One number."""
        self._rows.writerow([tag, "" if global_step is None else int(global_step), float(scalar_value),
                             walltime or time.time()])

    def add_scalars(self, main_tag: str, tag_scalar_dict: dict, global_step: int | None = None,
                    walltime: float | None = None) -> None:
        """Several numbers, main_tag/name each."""
        for name, value in tag_scalar_dict.items():
            self.add_scalar(f"{main_tag}/{name}", value, global_step, walltime)

    def _not_kept(self, *args, **options) -> None:
        """Nothing: only numbers are kept."""

    add_image = add_images = add_figure = add_histogram = add_graph = add_text = add_embedding = add_video = _not_kept
    add_hparams = add_audio = add_custom_scalars = add_pr_curve = add_mesh = _not_kept

    def flush(self) -> None:
        """Everything is on disk."""
        self._file.flush()

    def close(self) -> None:
        """The file is closed."""
        self._file.close()

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *error) -> None:
        self.close()
