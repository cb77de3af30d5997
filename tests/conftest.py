"""Settings for all tests: hypothesis profiles, no network, and no files of the user.

Profiles (HYPOTHESIS_PROFILE=name; `ci` when CI is set, else `dev`):
    dev    8 examples, new ones in every run: quick, and finds new bugs over time
    ci     25 examples, the same in every run: reproducible
    mutant 50 examples, the same in every run: `make mutants`
    debug  10 examples, the same in every run: for the sanitizer build (make test-debug)
    deep   1,000 examples: before a release
"""
import functools
import gc
import importlib.util
import os
import signal
import socket
import sys
import zlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from frontier import chapter_of, first_chapter
from markers import repeated_combinations, torch_tests

# FLOWEDU_WITHOUT="torch mpi4py" hides these packages, as on a machine without them.
for absent in os.environ.get("FLOWEDU_WITHOUT", "").split():
    sys.modules[absent] = None

# Background jobs of a shell ignore Ctrl-C, and so would the processes that tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Tests compare the English texts for students in any locale.
os.environ["FLOWEDU_LANG"] = "en"

# Tests run in parallel with one thread each. Tests of threads set their own number.
os.environ.setdefault("FLOWEDU_NUM_THREADS", "1")

# Check every graph and plan that a test compiles.
os.environ.setdefault("FLOWEDU_CHECK_GRAPH", "1")

# A deadline would fail on a busy machine, not because of a wrong result.
COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large]}
settings.register_profile("dev", max_examples=8, **COMMON)
for name, examples in {"ci": 25, "mutant": 50, "debug": 10}.items():
    settings.register_profile(name, max_examples=examples, derandomize=True, database=None, print_blob=True,
                              **COMMON)
settings.register_profile("deep", max_examples=1000, **COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "dev"))


pytest_plugins = ["skips"]
TURNS = 16  # parts of the slow parametrized tests; CI runs one of them


def pytest_addoption(parser):
    parser.addoption("--upto", type=int, default=0,
                     help="run only tests that need exercises of chapters 1 to this one")


def pytest_configure(config):
    config.addinivalue_line("markers",
                            "chapter(n): needs the exercises of chapters 1 to n (else: tests/frontier.py)")
    config.addinivalue_line("markers", "slow: long, or one of many alike: in `make test-all` only")
    config.addinivalue_line("markers", "simulator: needs the simulator of a GPU, which `make test-all` "
                            "sets up")
    config.addinivalue_line("markers",
                            "peer: compares with another library where it is installed (PyTorch, ...)")
    if os.environ.get("FLOWEDU_DEBUG") == "1":
        import flowedu

        if "debug" not in Path(flowedu.__file__).parts:
            pytest.exit(f"FLOWEDU_DEBUG=1, but the tests import {flowedu.__file__}: use `make test-debug`", 3)
        from flowedu.fast.memory import set_cache

        set_cache(False)        # allocate every array separately, so that the sanitizer finds its bounds


@pytest.hookimpl(tryfirst=True)                     # before -m deselects
def pytest_collection_modifyitems(config, items):
    """Mark every test that needs PyTorch as `torch`, and deselect tests by chapter for --upto."""
    for item in items:
        if getattr(item, "originalname", None) in torch_tests(item.path):
            item.add_marker("torch")
    if os.environ.get("CI"):
        _keep(config, items, _its_turn)
    # CI runs every case of a law, but under the sanitizers only the cases of `make test`. `make mutants` runs
    # every case, so that its result does not depend on the commit.
    samples = not os.environ.get("CI") or os.environ.get("FLOWEDU_DEBUG") == "1"
    if config.option.markexpr and samples and os.environ.get("HYPOTHESIS_PROFILE") != "mutant":
        turn = _turn() if importlib.util.find_spec("flowedu_course") else 0
        for item in repeated_combinations(items, turn):
            item.add_marker("slow")
    if upto := config.getoption("--upto"):
        _keep(config, items, lambda item: _chapter(item) <= upto)


def _keep(config, items, wanted):
    kept = [item for item in items if wanted(item)]
    if left_out := [item for item in items if not wanted(item)]:
        config.hook.pytest_deselected(items=left_out)
        items[:] = kept


def pytest_runtest_setup(item):
    if item.get_closest_marker("simulator") and (lacks := without_simulator()):
        pytest.skip(lacks)


@functools.cache
def without_simulator() -> str:
    from flowedu_course import course, kernels
    return kernels.missing(next(h for h in course.holes() if h.language == "cuda"))


@functools.cache
def _turn() -> int:
    from flowedu_course.teach.frontier import commit
    return int(commit()[:12] or "0", 16) % TURNS


def _its_turn(item) -> bool:
    """Return True if CI runs this test. Slow tests that repeat a law over many parameters are split into
    TURNS parts, and the commit chooses the part. `make test-all` outside CI runs all of them.
    """
    repeats = hasattr(item, "callspec") and item.get_closest_marker("slow")
    return not repeats or zlib.crc32(item.nodeid.encode()) % TURNS == _turn()


def pytest_collection_finish(session):
    """Freeze the objects of 40,000 collected tests, so that garbage collections do not traverse them
    again.
    """
    gc.collect()
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item, nextitem):
    """Freeze the cached objects that the tests of a finished file left behind."""
    if nextitem is not None and nextitem.path != item.path:
        pytest_collection_finish(item.session)


def pytest_ignore_collect(collection_path, config):
    """Do not import files of later chapters, unless they contain a test of an earlier one."""
    upto = config.getoption("--upto")
    if upto and collection_path.suffix == ".py" and collection_path.name.startswith("test_"):
        file = str(collection_path.relative_to(Path(__file__).parents[1]))
        text = collection_path.read_text(encoding="utf-8")
        if first_chapter(file) > upto and "mark.chapter(" not in text and "def test_chapter_" not in text:
            return True
    return None


def _chapter(item):
    mark = item.get_closest_marker("chapter")
    file = str(item.path.relative_to(Path(__file__).parents[1]))
    return chapter_of(file, item.originalname or item.name, mark.args[0] if mark else None)


LOOPBACK = ("127.0.0.1", "localhost", "::1", "", None)


@pytest.fixture(autouse=True, scope="session")
def no_network():
    """Make network access fail immediately with a clear error; servers on this machine are allowed."""
    connect, resolve = socket.socket.connect, socket.getaddrinfo

    def refuse(host):
        raise OSError(f"tests have no network (asked for {host!r})")

    def local_connect(self, address):
        if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in LOOPBACK:
            refuse(address[0])
        return connect(self, address)

    def local_resolve(host, *args, **kwargs):
        if (host.decode() if isinstance(host, bytes) else host) not in LOOPBACK:
            refuse(host)
        return resolve(host, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", local_connect)
        patch.setattr(socket, "getaddrinfo", local_resolve)
        # a local proxy would also allow network access
        for name in ("http_proxy", "https_proxy", "all_proxy"):
            patch.delenv(name, raising=False)
            patch.delenv(name.upper(), raising=False)
        yield


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory):
    """Use an empty cache folder, so that results do not depend on the user's downloads."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FLOWEDU_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def world():
    """Return a function world(k) that sets k virtual devices until the test ends. Under the launcher, the
    devices are its ranks.
    """
    from flowedu.core.sbp.ranks import current, set_virtual_devices

    if current().name == "mpi":
        yield lambda k: None
        return
    yield set_virtual_devices
    set_virtual_devices(1)
