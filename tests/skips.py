"""Pytest plugin for CI: a skipped test is a failure, unless tests/skips.toml has a reason for it."""
import os
import tomllib
from pathlib import Path

import pytest

ALLOWED = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))["skip"]


def excused(nodeid: str, reason: str) -> bool:
    return any(nodeid.startswith(row["test"]) and reason.startswith(row["when"]) for row in ALLOWED)


def reason_of(report) -> str:
    words = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return words.removeprefix("Skipped: ")


class Skips:
    """Plugin that collects skipped tests from all processes of pytest-xdist and checks them at the end."""

    def __init__(self, config):
        self.config, self.seen = config, {}

    def pytest_runtest_logreport(self, report):
        if report.skipped and not hasattr(report, "wasxfail"):
            self.seen[report.nodeid] = reason_of(report)

    pytest_collectreport = pytest_runtest_logreport

    @pytest.hookimpl(optionalhook=True)              # a hook of pytest-xdist
    def pytest_testnodedown(self, node):
        self.seen.update(getattr(node, "workeroutput", {}).get("skips", {}))

    def pytest_sessionfinish(self, session):
        if hasattr(self.config, "workeroutput"):
            self.config.workeroutput["skips"] = self.seen
        elif self.unexcused() and session.exitstatus == 0:
            session.exitstatus = 1

    def pytest_terminal_summary(self, terminalreporter):
        rows = self.unexcused()
        if rows:
            terminalreporter.section("skipped, and not on the list of tests/skips.toml", red=True)
            for nodeid, reason in sorted(rows.items()):
                terminalreporter.line(f"{nodeid}: {reason}")

    def unexcused(self) -> dict[str, str]:
        return {nodeid: reason for nodeid, reason in self.seen.items() if not excused(nodeid, reason)}


def pytest_configure(config):
    if os.environ.get("CI"):
        config.pluginmanager.register(Skips(config), "flowedu-skips")
