"""flow.data: MNIST in batches, the three places that are searched for it, and a downloader that leaves no
partial files.
"""
import hashlib
import http.client
import http.server
import os
import pickle
import socketserver
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import numpy as np
import pytest

from common import load_tool
from flowedu.data import __main__ as cli
from flowedu.data import load_mnist, mnist
from flowedu.errors import ArgumentError, DataError
from flowedu.utils import download

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def empty_places(tmp_path, monkeypatch):
    """Set up an empty working folder and an empty cache in `tmp_path/cache`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FLOWEDU_CACHE", str(tmp_path / "cache"))


def small(n=20, m=10, seed=0):
    """Arrays in MNIST's layout."""
    r = np.random.default_rng(seed)
    return {"x_train": r.integers(0, 256, (n, 28, 28), np.uint8),
            "y_train": np.arange(n, dtype=np.uint8) % 10,
            "x_test": r.integers(0, 256, (m, 28, 28), np.uint8), "y_test": np.arange(m, dtype=np.uint8) % 10}


def write_npz(path, **arrays):
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, **(arrays or small()))
    return path


def sha(path):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def files(folder):
    return sorted(p.name for p in Path(folder).rglob("*") if p.is_file())


# ---- the subset
# ------------------------------------------------------------------------------------------------

def test_the_subset_is_used_without_files_with_a_one_line_notice(capsys, monkeypatch):
    monkeypatch.setattr(mnist, "fetch", lambda *a: pytest.fail("nothing may be downloaded"))
    (x, y), (xt, yt) = load_mnist()
    out = capsys.readouterr().out
    assert out.count("\n") == 1 and "subset" in out and "python -m flowedu.data mnist" in out
    assert x.shape == (60, 100, 1, 28, 28) and y.shape == (60, 100)
    assert xt.shape == (10, 100, 1, 28, 28) and yt.shape == (10, 100)
    assert (x.dtype, y.dtype, xt.dtype, yt.dtype) == (np.float32, np.int32, np.float32, np.int32)
    assert x.flags.c_contiguous and x[3].flags.c_contiguous
    assert x.min() == 0 and x.max() == 1
    for labels, per_digit in ((y, 600), (yt, 100)):
        assert np.bincount(labels.ravel()).tolist() == [per_digit] * 10
    assert all(len(np.unique(batch)) >= 8 for batch in y), "every batch mixes the digits"


def test_the_subset_has_the_expected_samples():
    digest = hashlib.sha256()
    for array in mnist.read(mnist.SUBSET):
        digest.update(np.ascontiguousarray(array))
    assert digest.hexdigest() == "e84fdfb500702bbbe384e7e9d7bb1f0f703e5ce52c5001ab43455dacb4ba6647"
    assert mnist.SUBSET.stat().st_size < 1.6e6
    note = mnist.SUBSET.with_suffix(".md").read_text(encoding="utf-8")
    assert "Yann LeCun" in note and "Corinna Cortes" in note and "Share Alike 3.0" in note


def test_the_subset_is_cut_deterministically(tmp_path):
    tool = load_tool("make_mnist_subset")
    source = small(9000, 2000)
    source["y_train"] = np.random.default_rng(1).permutation(np.arange(9000, dtype=np.uint8) % 10)
    path = write_npz(tmp_path / "full.npz", **source)
    one, two = tool.cut(path), tool.cut(path)
    assert tool.content_hash(one) == tool.content_hash(two)
    assert (np.bincount(one["y_train"]).tolist() == [600] * 10
            and np.bincount(one["y_test"]).tolist() == [100] * 10)
    rows = tool.choose(source["y_train"], 600)
    assert (np.diff(rows) > 0).all() and (source["x_train"][rows] == one["x_train"]).all()


# ---- shapes
# ----------------------------------------------------------------------------------------------------

def test_values_are_pixels_over_255_in_both_layouts(tmp_path):
    arrays = small()
    write_npz(tmp_path / "mnist.npz", **arrays)
    (x, y), (xt, yt) = load_mnist(5, 2, hash_check=None)
    assert x.shape == (4, 5, 1, 28, 28) and xt.shape == (5, 2, 1, 28, 28)
    np.testing.assert_array_equal(x.reshape(20, 28, 28), arrays["x_train"].astype(np.float32) / 255.0)
    np.testing.assert_array_equal(yt.ravel(), arrays["y_test"])
    (xc, _), _ = load_mnist(5, 2, data_format="NHWC", hash_check=None)
    assert xc.shape == (4, 5, 28, 28, 1)
    np.testing.assert_array_equal(xc.ravel(), x.ravel())


def test_a_batch_size_that_does_not_divide_lists_sizes_that_do():
    with pytest.raises(ArgumentError, match="train_batch_size=64") as e:
        load_mnist(64, 100)
    assert "6,000" in str(e.value) and "train_batch_size=60 or 75" in e.value.fix
    works = [int(w) for w in e.value.expected.removeprefix("one of ").split(", ")]
    assert works == [d for d in range(1, 6001) if 6000 % d == 0]
    assert isinstance(e.value, ValueError), "OneFlow raises NumPy's ValueError here"
    with pytest.raises(ArgumentError, match="test_batch_size=16") as e:
        load_mnist(100, 16)
    assert "full set" in e.value.fix, "16 divides the 10,000 of the full set"


@pytest.mark.parametrize("size", [0, -100, 6001, 2.5, "100", True, None])
def test_senseless_batch_sizes(size):
    with pytest.raises(ArgumentError, match="train_batch_size"):
        load_mnist(size, 100)


# ---- search order
# ----------------------------------------------------------------------------------------------

def test_out_dir_comes_before_the_cache(tmp_path, capsys):
    write_npz(tmp_path / "cache" / "mnist.npz", **small(40, 10))
    (x, _), _ = load_mnist(10, 10, hash_check=None)
    assert (x.shape[0] == 4
            and f"File mnist.npz already exist, path: {tmp_path / 'cache'}" in capsys.readouterr().out)
    write_npz(tmp_path / "mnist.npz", **small(20, 10))
    (x, _), _ = load_mnist(10, 10, hash_check=None)
    assert x.shape[0] == 2 and capsys.readouterr().out == "File mnist.npz already exist, path: ./mnist.npz\n"
    (x, _), _ = load_mnist(10, 10, hash_check=None, out_dir="elsewhere")
    assert x.shape[0] == 4, "no file there: the cache again"


def test_the_cache_folder(monkeypatch, tmp_path):
    assert download.cache_dir() == tmp_path / "cache"
    monkeypatch.delenv("FLOWEDU_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert download.cache_dir() == tmp_path / "xdg" / "flowedu"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert download.cache_dir() == tmp_path / ".cache" / "flowedu"


# ---- damaged files
# ---------------------------------------------------------------------------------------------

def test_a_wrong_hash_is_an_error_and_none_skips_it(tmp_path):
    path = write_npz(tmp_path / "mnist.npz")
    with pytest.raises(DataError, match="sha256 verification failed, remove ./mnist.npz and try again") as e:
        load_mnist(10, 10)
    assert sha(path) in str(e.value) and "hash_check=None" in e.value.fix
    with pytest.raises(DataError, match="sha256"):
        load_mnist(10, 10, hash_check="0" * 64)
    load_mnist(10, 10, hash_check=sha(path))
    load_mnist(10, 10, hash_check=sha(path).upper())
    load_mnist(10, 10, hash_check=None)


def test_the_default_hash_accepts_any_compression_of_the_same_digits(tmp_path, monkeypatch):
    arrays = small()
    digest = hashlib.sha256()
    for key in mnist.KEYS:
        digest.update(arrays[key])
    np.savez(tmp_path / "mnist.npz", **arrays)              # not compressed: other bytes, the same content
    monkeypatch.setattr(mnist, "CONTENT", digest.hexdigest())
    load_mnist(10, 10)
    np.savez(tmp_path / "mnist.npz", **small(seed=1))
    with pytest.raises(DataError, match="sha256"):
        load_mnist(10, 10)


class Evil:
    def __reduce__(self):
        return (pytest.fail, ("a pickle in a data file was executed",))


def damage(path, how):
    data = path.read_bytes()
    if how == "empty":
        path.write_bytes(b"")
    elif how == "truncated":
        path.write_bytes(data[:len(data) // 2])
    elif how == "text":
        path.write_text("<html>Please log in</html>")
    elif how == "a pickle":
        path.write_bytes(pickle.dumps(Evil()))
    elif how == "an array":
        with path.open("wb") as f:
            np.save(f, np.zeros(3))
    elif how == "a zip of text":
        with zipfile.ZipFile(path, "w") as z:
            for key in mnist.KEYS:
                z.writestr(f"{key}.npy", "hello")
    elif how == "a flipped bit":                            # in the middle of the compressed pixels
        path.write_bytes(data[:5000] + bytes([data[5000] ^ 4]) + data[5001:])
    elif how == "a missing array":
        write_npz(path, **{k: v for k, v in small().items() if k != "y_test"})
    elif how == "pickled objects":
        np.savez(path, **{**small(), "y_test": np.array([Evil()] * 10, object)})
    elif how == "floats":
        write_npz(path, **{**small(), "x_test": np.zeros((10, 28, 28), np.float32)})
    elif how == "a label short":
        write_npz(path, **{**small(), "y_test": np.zeros(9, np.uint8)})
    elif how == "a folder":
        path.unlink()
        path.mkdir()


@pytest.mark.parametrize("how", ["empty", "truncated", "text", "a pickle", "an array", "a zip of text",
                                 "a flipped bit",
                                 "a missing array", "pickled objects", "floats", "a label short", "a folder"])
@pytest.mark.parametrize("hash_check", [None, mnist.SHA256])
def test_a_damaged_file_is_a_data_error_that_names_it(tmp_path, how, hash_check):
    damage(write_npz(tmp_path / "mnist.npz"), how)
    with pytest.raises(DataError, match="mnist.npz") as e:
        load_mnist(10, 10, hash_check=hash_check)
    assert e.value.fix


# ---- the downloader
# --------------------------------------------------------------------------------------------

class Handler(http.server.BaseHTTPRequestHandler):
    body = b""

    def do_GET(self):
        if self.path == "/missing":
            self.send_error(404)
            return
        self.send_response(200)
        if self.path != "/no-length":
            self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body if self.path != "/short" else self.body[:len(self.body) // 2])

    def log_message(self, *args):
        pass


@pytest.fixture
def server(tmp_path):
    """Start a local web server with a small mnist.npz at every path; /short sends only half of it."""
    Handler.body = write_npz(tmp_path / "served" / "source.npz").read_bytes()

    class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
        daemon_threads = True

    with Server(("127.0.0.1", 0), Handler) as s:
        threading.Thread(target=s.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{s.server_address[1]}"
        s.shutdown()


@pytest.mark.parametrize("page", ["/mnist.npz", "/no-length"])
def test_fetch_writes_the_file_and_nothing_else(server, tmp_path, page):
    good = hashlib.sha256(Handler.body).hexdigest()
    path = download.fetch(server + page, tmp_path / "new" / "mnist.npz", good)
    assert path.read_bytes() == Handler.body and files(tmp_path / "new") == ["mnist.npz"]


def test_fetch_accepts_file_urls(tmp_path):
    source = write_npz(tmp_path / "source.npz")
    assert download.fetch(source.as_uri(), tmp_path / "new" / "a.npz").read_bytes() == source.read_bytes()


@pytest.mark.parametrize("page, sha256, problem", [
    ("/short", None, "stopped early"), ("/missing", None, "could not fetch"),
    ("/x", "0" * 64, "verification failed")])
def test_a_failed_fetch_leaves_no_file_and_reports_a_fix(server, tmp_path, page, sha256, problem):
    with pytest.raises(DataError, match=problem) as e:
        download.fetch(server + page, tmp_path / "new" / "mnist.npz", sha256)
    assert files(tmp_path / "new") == []
    assert server + page in e.value.fix and str(tmp_path / "new" / "mnist.npz") in e.value.fix


def test_a_failed_fetch_keeps_the_old_file(server, tmp_path):
    old = write_npz(tmp_path / "new" / "mnist.npz", **small(seed=5))
    before = old.read_bytes()
    with pytest.raises(DataError):
        download.fetch(server + "/short", old)
    assert old.read_bytes() == before and files(tmp_path / "new") == ["mnist.npz"]


def test_ctrl_c_leaves_no_files(server, tmp_path, monkeypatch):
    read, calls = http.client.HTTPResponse.read, []

    def interrupt(self, n):
        calls.append(n)
        if len(calls) == 3:                 # two chunks are already written
            raise KeyboardInterrupt
        return read(self, n)

    monkeypatch.setattr(download, "CHUNK", 1000)
    monkeypatch.setattr(http.client.HTTPResponse, "read", interrupt)
    with pytest.raises(KeyboardInterrupt):
        download.fetch(server + "/mnist.npz", tmp_path / "new" / "mnist.npz")
    assert files(tmp_path / "new") == []


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/mnist.npz", "https://mnist.invalid/mnist.npz",
                                 "no-such://x/y", "mnist.npz", "file:///no/such/file"])
def test_no_network(tmp_path, url):
    with pytest.raises(DataError, match="could not fetch") as e:
        download.fetch(url, tmp_path / "new" / "mnist.npz")
    assert "put it at" in e.value.fix and files(tmp_path / "new") == []


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="cannot create the folder"):
        download.fetch("file:///x", tmp_path / "file" / "mnist.npz")


def test_many_at_once_leave_one_good_file(server, tmp_path):
    path = tmp_path / "new" / "mnist.npz"
    good = hashlib.sha256(Handler.body).hexdigest()
    errors, stop = [], threading.Event()

    def get():
        try:
            for _ in range(5):
                download.fetch(server + "/mnist.npz", path, good)
        except BaseException as e:      # noqa: B036  re-raised in the main thread
            errors.append(e)

    def watch():
        while not stop.is_set():
            if path.exists() and sha(path) != good:
                errors.append("a reader saw half a file")

    threads = [threading.Thread(target=get) for _ in range(4)]
    reader = threading.Thread(target=watch)
    for t in (*threads, reader):
        t.start()
    for t in threads:
        t.join()
    stop.set()
    reader.join()
    assert not errors and files(tmp_path / "new") == ["mnist.npz"]


def test_a_custom_url_is_downloaded(server, tmp_path, capsys):
    (x, _), _ = load_mnist(10, 10, url=server + "/mnist.npz", hash_check=None, out_dir="here")
    assert x.shape == (2, 10, 1, 28, 28) and files(tmp_path / "here") == ["mnist.npz"]
    assert "path: here/mnist.npz" in capsys.readouterr().out
    with pytest.raises(DataError, match="verification failed"):
        load_mnist(10, 10, url=server + "/mnist.npz", out_dir="there")
    assert files(tmp_path / "there") == []


# ---- the command
# -----------------------------------------------------------------------------------------------

def test_the_command_lists(capsys, tmp_path):
    assert cli.main([]) == 0
    assert "mnist" in (out := capsys.readouterr().out) and "subset" in out
    write_npz(tmp_path / "cache" / "mnist.npz")
    assert cli.main([]) == 0
    assert str(tmp_path / "cache" / "mnist.npz") in capsys.readouterr().out


def test_the_command_fetches_into_the_cache_and_keeps_a_good_file(server, tmp_path, capsys):
    good = hashlib.sha256(Handler.body).hexdigest()
    assert cli.main(["mnist", "--url", server + "/a", "--sha256", good]) == 0
    assert "20 training and 10 test" in capsys.readouterr().out and files(tmp_path / "cache") == ["mnist.npz"]
    (x, _), _ = load_mnist(10, 10, hash_check=good)
    assert len(x) == 2
    assert cli.main(["mnist", "--sha256", good]) == 0
    assert "already there" in capsys.readouterr().out


def test_the_command_tries_the_next_server(server, tmp_path, capsys, monkeypatch):
    good = hashlib.sha256(Handler.body).hexdigest()
    monkeypatch.setattr(mnist, "MIRRORS", ((server + "/missing", good), (server + "/good", good)))
    assert cli.main(["mnist", "--out-dir", "d"]) == 0
    assert "trying the next server" in capsys.readouterr().err and files(tmp_path / "d") == ["mnist.npz"]


def test_the_command_without_network_reports_a_fix(tmp_path, capsys):
    assert cli.main(["mnist"]) == 1
    err = capsys.readouterr().err
    assert "by hand" not in err and "put it at" in err and "Traceback" not in err
    assert not any("npz" in f for f in files(tmp_path / "cache"))


def test_the_command_refuses_a_wrong_file(tmp_path, capsys):
    write_npz(tmp_path / "d" / "mnist.npz")
    assert cli.main(["mnist", "--out-dir", "d"]) == 1
    assert "sha256 verification failed" in capsys.readouterr().err


def test_help_runs_as_a_module():
    env = {**os.environ, "COLUMNS": "120"}
    command = [sys.executable, "-m", "flowedu.data", "mnist", "--help"]
    run = subprocess.run(command, capture_output=True, encoding="utf-8", env=env)
    assert run.returncode == 0 and "--out-dir" in run.stdout and "cache" in run.stdout
