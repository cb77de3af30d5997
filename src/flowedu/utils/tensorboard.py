"""flow.utils.tensorboard: numbers of a training kept for later, and the page that shows them.

    with SummaryWriter("runs/first") as writer:
        writer.add_scalar("loss", loss, step)
    dashboard("runs")                            # runs/index.html: a chart for each tag, a line for each run

Where the package tensorboard is installed, a writer's folder has the event files that TensorBoard reads. In any case it has
scalars.csv, which dashboard and everything else that knows tables reads.
"""
from __future__ import annotations

import csv
import os
import time
import warnings
from pathlib import Path

import numpy as np

from flowedu.core.eager.tensor import Tensor
from flowedu.diagnostics.lazy_imports import imported
from flowedu.errors import ArgumentError
from flowedu.errors.extras import install
from flowedu.errors.files import naming
from flowedu.errors.once import inert, say_once, told

__all__ = ["SummaryWriter", "dashboard"]
FILE, HEAD = "scalars.csv", ["tag", "step", "value", "time"]


class SummaryWriter:
    """Writes what happens in a training into a folder, as PyTorch's class of this name does. Kept are numbers, and where
    tensorboard is installed histograms and texts. Pictures, graphs and sounds are not, and a warning says so once.

    Args:
        log_dir: the folder; None: runs/<day>_<time><comment>. One that has files is continued.
        comment: the end of the folder's name, where log_dir is None.
        purge_step: TensorBoard forgets what earlier writers wrote from this step on.
        max_queue, flush_secs: after so many events, or seconds, event files are written to disk.
        filename_suffix: the end of the event file's name.
    """

    def __init__(self, log_dir: str | os.PathLike | None = None, comment: str = "", purge_step: int | None = None,
                 max_queue: int = 10, flush_secs: int = 120, filename_suffix: str = ""):
        self.log_dir = str(log_dir or Path("runs") / (time.strftime("%b%d_%H-%M-%S") + comment))
        self._path = path = Path(self.log_dir) / FILE
        path.parent.mkdir(parents=True, exist_ok=True)
        new = not path.exists()
        self._file = path.open("a", buffering=1, newline="", encoding="utf-8")
        self._rows = csv.writer(self._file)
        if new:
            self._write_row(HEAD)
        self._events = self._event_file(max_queue, flush_secs, filename_suffix)
        if self._events is not None and purge_step is not None:
            from tensorboard.compat.proto.event_pb2 import Event, SessionLog
            self._events.add_event(Event(step=purge_step, session_log=SessionLog(status=SessionLog.START)))

    def _write_row(self, row: list) -> None:
        with naming(self._path, self._path):
            self._rows.writerow(row)

    def _event_file(self, max_queue: int, flush_secs: int, suffix: str):
        try:
            from tensorboard.summary.writer.event_file_writer import EventFileWriter
        except ImportError:
            if "tensorboard" not in told:
                told.add("tensorboard")
                warnings.warn(f"SummaryWriter: tensorboard is not installed: numbers go to {self.log_dir}/{FILE} alone "
                              f"(flow.utils.tensorboard.dashboard shows them); {install('tensorboard')}", stacklevel=3)
            return None
        return EventFileWriter(self.log_dir, max_queue, flush_secs, suffix)

    def _event(self, summary, step: int | None, walltime: float | None) -> None:
        from tensorboard.compat.proto.event_pb2 import Event
        with naming(self.log_dir, self.log_dir):         # its thread wrote before, or failed to
            self._events.add_event(Event(wall_time=walltime or time.time(), step=int(step or 0), summary=summary))

    # ---- what is kept
    def add_scalar(self, tag: str, scalar_value, global_step: int | None = None, walltime: float | None = None,
                   new_style: bool = False, double_precision: bool = False) -> None:
        """One number. walltime: seconds since 1970, those of now by default. new_style, double_precision: nothing is done
        for them, and a warning says so once."""
        inert("SummaryWriter.add_scalar(new_style)", new_style, False, "TensorBoard reads the other style as well")
        inert("SummaryWriter.add_scalar(double_precision)", double_precision, False, "the table has all digits")
        value, walltime = float(scalar_value), walltime or time.time()
        self._write_row([tag, "" if global_step is None else int(global_step), value, walltime])
        if self._events is not None:
            from tensorboard.compat.proto.summary_pb2 import Summary
            self._event(Summary(value=[Summary.Value(tag=tag, simple_value=value)]), global_step, walltime)

    def add_scalars(self, main_tag: str, tag_scalar_dict: dict, global_step: int | None = None,
                    walltime: float | None = None) -> None:
        """Several numbers, main_tag/name each."""
        for name, value in tag_scalar_dict.items():
            self.add_scalar(f"{main_tag}/{name}", value, global_step, walltime)

    def add_histogram(self, tag: str, values, global_step: int | None = None, bins="tensorflow",
                      walltime: float | None = None, max_bins: int | None = None) -> None:
        """How the elements of a tensor or an array are spread, in `bins` bins where that is a number: in event files."""
        if self._events is None:
            return say_once("SummaryWriter.add_histogram", "it needs the package tensorboard")
        inert("SummaryWriter.add_histogram(max_bins)", max_bins, None, "there are as many bins as `bins` says, or 30")
        from tensorboard.plugins.histogram.summary_v2 import histogram_pb
        a = values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)
        return self._event(histogram_pb(tag, a.reshape(-1), bins if isinstance(bins, int) else None), global_step, walltime)

    def add_text(self, tag: str, text_string: str, global_step: int | None = None, walltime: float | None = None) -> None:
        """A text, in Markdown. In event files."""
        if self._events is None:
            return say_once("SummaryWriter.add_text", "it needs the package tensorboard")
        from tensorboard.plugins.text.summary_v2 import text_pb
        return self._event(text_pb(tag, text_string), global_step, walltime)

    def _not_kept(self, *args, **options) -> None:
        """Nothing: pictures, graphs and sounds are not kept."""
        say_once("SummaryWriter: what is no number, histogram or text", "it is not kept")

    add_image = add_images = add_figure = add_graph = add_embedding = add_video = add_audio = _not_kept
    add_hparams = add_custom_scalars = add_pr_curve = add_mesh = _not_kept

    # ---- the files
    def get_logdir(self) -> str:
        """The folder."""
        return self.log_dir

    def flush(self) -> None:
        """Everything is on disk."""
        with naming(self._path, self._path):
            self._file.flush()
        if self._events is not None:
            with naming(self.log_dir, self.log_dir):
                self._events.flush()

    def close(self) -> None:
        """The files are closed."""
        with naming(self._path, self._path):
            self._file.close()
        if self._events is not None:
            with naming(self.log_dir, self.log_dir):
                self._events.close()

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *error) -> None:
        self.close()


def dashboard(log_dir: str | os.PathLike, path: str | os.PathLike | None = None) -> Path:
    """Write a page (HTML, to be read without a network) with a chart for each tag and in it a line for each run.

    Args:
        log_dir: a folder of a SummaryWriter, or one with such folders somewhere below it: the runs that are compared.
        path: the page's file; None: index.html in log_dir.

    Returns: its path.

    Errors: ArgumentError where no writer has written a number.
    """
    from flowedu.show.dashboard import page

    log_dir = Path(log_dir)
    runs = {str(file.parent.relative_to(log_dir)): scalars(file) for file in sorted(log_dir.rglob(FILE))}
    if not any(runs.values()):
        raise ArgumentError("dashboard: log_dir", expected=f"a folder of a SummaryWriter, with {FILE}, or above such",
                            got=f"{log_dir}, which has none with numbers", fix="SummaryWriter(log_dir).add_scalar(...)")
    return page(str(log_dir), runs, log_dir / "index.html" if path is None else Path(path))


def scalars(file: Path) -> dict[str, dict[int, float]]:
    """{tag: {step: value}} of a scalars.csv; the last value of a step. Without steps they are counted."""
    found: dict[str, dict[int, float]] = {}
    with file.open(newline="", encoding="utf-8") as f:
        for row in csv.DictReader(f):
            line = found.setdefault(row["tag"], {})
            line[int(row["step"]) if row["step"] else len(line)] = float(row["value"])
    return found


imported(__name__)
