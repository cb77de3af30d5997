"""flow.utils.tensorboard: a log of training metrics, and an HTML page that displays them.

    with SummaryWriter("runs/first") as writer:
        writer.add_scalar("loss", loss, step)
    dashboard("runs")                            # runs/index.html: one chart per tag, one line per run

A writer's folder contains scalars.csv, which `dashboard` and spreadsheet programs read, and event files for
TensorBoard if the package tensorboard is installed.
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
    """Writer of training metrics with the interface of PyTorch's class.

    It stores scalars and, if tensorboard is installed, histograms and texts. Images, graphs, and audio are
    not stored; the first call of their methods warns.

    Args:
        log_dir: folder; default: runs/<day>_<time><comment>. Data is appended to an existing folder.
        comment: suffix of the default folder name; default: "".
        purge_step: step from which TensorBoard discards earlier events; default: None.
        max_queue: number of events after which event files are written; default: 10.
        flush_secs: seconds after which event files are written; default: 120.
        filename_suffix: suffix of the event file's name; default: "".
    """

    def __init__(self, log_dir: str | os.PathLike | None = None, comment: str = "",
                 purge_step: int | None = None,
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
                warnings.warn(f"SummaryWriter: tensorboard is not installed: numbers go to "
                              f"{self.log_dir}/{FILE} alone (flow.utils.tensorboard.dashboard shows them); "
                              f"{install('tensorboard')}", stacklevel=3)
            return None
        return EventFileWriter(self.log_dir, max_queue, flush_secs, suffix)

    def _event(self, summary, step: int | None, walltime: float | None) -> None:
        from tensorboard.compat.proto.event_pb2 import Event
        with naming(self.log_dir, self.log_dir):         # reports an earlier error of the writer thread
            self._events.add_event(Event(wall_time=walltime or time.time(), step=int(step or 0),
                                         summary=summary))

    # ---- stored values
    def add_scalar(self, tag: str, scalar_value, global_step: int | None = None,
                   walltime: float | None = None,
                   new_style: bool = False, double_precision: bool = False) -> None:
        """Store one number.

        Args:
            tag: name of the metric.
            scalar_value: number or tensor of one element.
            global_step: step; default: none.
            walltime: seconds since 1970; default: now.
            new_style, double_precision: accepted without effect; a warning is issued once.
        """
        inert("SummaryWriter.add_scalar(new_style)", new_style, False,
              "TensorBoard reads the other style as well")
        inert("SummaryWriter.add_scalar(double_precision)", double_precision, False,
              "the table has all digits")
        value, walltime = float(scalar_value), walltime or time.time()
        self._write_row([tag, "" if global_step is None else int(global_step), value, walltime])
        if self._events is not None:
            from tensorboard.compat.proto.summary_pb2 import Summary
            self._event(Summary(value=[Summary.Value(tag=tag, simple_value=value)]), global_step, walltime)

    def add_scalars(self, main_tag: str, tag_scalar_dict: dict, global_step: int | None = None,
                    walltime: float | None = None) -> None:
        """Store several numbers under the tags main_tag/name."""
        for name, value in tag_scalar_dict.items():
            self.add_scalar(f"{main_tag}/{name}", value, global_step, walltime)

    def add_histogram(self, tag: str, values, global_step: int | None = None, bins="tensorflow",
                      walltime: float | None = None, max_bins: int | None = None) -> None:
        """Store the distribution of the elements of a tensor or array in event files.

        Args:
            tag: name of the histogram.
            values: tensor or array.
            global_step: step; default: none.
            bins: number of bins; names of binning rules are accepted and give 30 bins.
            walltime: seconds since 1970; default: now.
            max_bins: accepted for compatibility; default: None.
        """
        if self._events is None:
            return say_once("SummaryWriter.add_histogram", "it needs the package tensorboard")
        inert("SummaryWriter.add_histogram(max_bins)", max_bins, None,
              "there are as many bins as `bins` says, or 30")
        from tensorboard.plugins.histogram.summary_v2 import histogram_pb
        a = values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)
        return self._event(histogram_pb(tag, a.reshape(-1), bins if isinstance(bins, int) else None),
                           global_step, walltime)

    def add_text(self, tag: str, text_string: str, global_step: int | None = None,
                 walltime: float | None = None) -> None:
        """Store a Markdown text in event files."""
        if self._events is None:
            return say_once("SummaryWriter.add_text", "it needs the package tensorboard")
        from tensorboard.plugins.text.summary_v2 import text_pb
        return self._event(text_pb(tag, text_string), global_step, walltime)

    def _ignore(self, *args, **options) -> None:
        """Do nothing: images, graphs, and audio are not stored."""
        say_once("SummaryWriter: what is no number, histogram or text", "it is not kept")

    add_image = add_images = add_figure = add_graph = add_embedding = add_video = add_audio = _ignore
    add_hparams = add_custom_scalars = add_pr_curve = add_mesh = _ignore

    # ---- files
    def get_logdir(self) -> str:
        """Return the path of the log folder."""
        return self.log_dir

    def flush(self) -> None:
        """Write everything to disk."""
        with naming(self._path, self._path):
            self._file.flush()
        if self._events is not None:
            with naming(self.log_dir, self.log_dir):
                self._events.flush()

    def close(self) -> None:
        """Close the files."""
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
    """Write a self-contained HTML page with one chart per tag and one line per run.

    Args:
        log_dir: folder of a SummaryWriter, or a folder that contains several such folders (runs).
        path: file of the page; default: index.html in log_dir.

    Returns:
        The path of the page.

    Raises:
        ArgumentError: the folders contain no scalars.
    """
    from flowedu.show.dashboard import page

    log_dir = Path(log_dir)
    runs = {str(file.parent.relative_to(log_dir)): scalars(file) for file in sorted(log_dir.rglob(FILE))}
    if not any(runs.values()):
        raise ArgumentError("dashboard: log_dir",
                            expected=f"a folder of a SummaryWriter, with {FILE}, or above such",
                            got=f"{log_dir}, which has none with numbers",
                            fix="SummaryWriter(log_dir).add_scalar(...)")
    return page(str(log_dir), runs, log_dir / "index.html" if path is None else Path(path))


def scalars(file: Path) -> dict[str, dict[int, float]]:
    """Return {tag: {step: value}} of a scalars.csv file. Rows without a step are numbered from 0."""
    result: dict[str, dict[int, float]] = {}
    with file.open(newline="", encoding="utf-8") as f:
        for row in csv.DictReader(f):
            line = result.setdefault(row["tag"], {})
            line[int(row["step"]) if row["step"] else len(line)] = float(row["value"])
    return result


imported(__name__)
