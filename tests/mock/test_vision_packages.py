"""A pure-Python torchvision or flowvision on the path precedes flowedu.vision under the mock."""
import importlib
import importlib.machinery
import sys

import pytest

import flowedu as flow

PACKAGES = {"torch": "torchvision", "oneflow": "flowvision"}


@pytest.fixture(params=PACKAGES)
def base(request, monkeypatch):
    """Name of a package that flowedu replaces, without another vision package on the path."""
    vision = PACKAGES[request.param]
    for name in [n for n in sys.modules if n.partition(".")[0] == vision]:
        monkeypatch.delitem(sys.modules, name)
    return request.param


def write_package(folder, base: str) -> str:
    """Write a vision package with one layer, and return its name."""
    name = PACKAGES[base]
    (folder / name / "layers").mkdir(parents=True)
    (folder / name / "__init__.py").write_text("origin = 'a file'\n", encoding="utf-8")
    (folder / name / "layers" / "__init__.py").write_text(
        f"import {base}\n\n\nclass Double({base}.nn.Module):\n"
        "    def forward(self, x):\n        return x * 2\n",
        encoding="utf-8")
    return name


@pytest.mark.parametrize("path_first", [True, False])
def test_a_package_on_the_path_precedes_the_substitute(tmp_path, base, path_first, monkeypatch):
    name = write_package(tmp_path, base)
    if path_first:
        monkeypatch.syspath_prepend(tmp_path)
    with flow.mock.enable(base):
        if not path_first:
            monkeypatch.syspath_prepend(tmp_path)
        package = importlib.import_module(name)
        layers = importlib.import_module(f"{name}.layers")
        assert package.origin == "a file"
        assert layers.Double()(flow.ones(2)).tolist() == [2.0, 2.0]
        assert issubclass(layers.Double, flow.nn.Module)
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module(f"{name}.transforms")
    assert name not in sys.modules and f"{name}.layers" not in sys.modules


def test_the_substitute_is_used_without_a_package(base):
    name = PACKAGES[base]
    with flow.mock.enable(base):
        models = importlib.import_module(f"{name}.models")
        assert models.resnet18 is flow.vision.models.resnet18


@pytest.mark.parametrize("content", ["folder", "compiled"])
def test_folders_and_compiled_packages_do_not_precede_the_substitute(tmp_path, base, content, monkeypatch):
    name = write_package(tmp_path, base)
    if content == "folder":                               # data of a program, not a package
        (tmp_path / name / "__init__.py").unlink()
    else:
        (tmp_path / name / f"_C{importlib.machinery.EXTENSION_SUFFIXES[0]}").write_bytes(b"")
    monkeypatch.syspath_prepend(tmp_path)
    with flow.mock.enable(base):
        assert importlib.import_module(f"{name}.models").resnet18 is flow.vision.models.resnet18


def test_a_part_imported_from_the_substitute_stays_there(tmp_path, base, monkeypatch):
    with flow.mock.enable(base):
        importlib.import_module(PACKAGES[base])
        name = write_package(tmp_path, base)
        monkeypatch.syspath_prepend(tmp_path)
        assert importlib.import_module(f"{name}.models").resnet18 is flow.vision.models.resnet18
