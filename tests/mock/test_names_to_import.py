"""Internal names of torch that programs import, and what a call does."""
import importlib

import pytest

import flowedu as flow

NAMES = ["hub.urlparse", "_C._log_api_usage_once", "trapz", "_foreach_copy_", "_inductor.config"]


@pytest.fixture
def torch():
    with flow.mock.enable("torch"):
        yield importlib.import_module("torch")


@pytest.mark.parametrize("path", NAMES)
def test_a_program_can_import_the_name(path, torch):
    owner, _, name = f"torch.{path}".rpartition(".")
    namespace: dict = {}
    exec(f"from {owner} import {name}", namespace)
    assert namespace[name] is not None


def test_the_functions_compute_as_pytorchs(torch):
    assert torch.hub.urlparse("https://host/a.pth").path == "/a.pth"
    assert torch._C._log_api_usage_once("library.event") is None
    assert torch.trapz(torch.tensor([1.0, 2.0, 3.0])).item() == 4.0
    targets = [torch.zeros(2), torch.zeros(1)]
    torch._foreach_copy_(targets, [torch.ones(2), torch.full((1,), 5.0)])
    assert [t.tolist() for t in targets] == [[1.0, 1.0], [5.0]]
    torch._inductor.config.coordinate_descent_tuning = True
    importlib.import_module("torch._inductor.config")
