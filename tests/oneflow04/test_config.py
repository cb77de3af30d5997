"""flow.function_config(), flow.config, flow.env, flow.sysconfig, and debug mode: every setting of OneFlow 0.4
is accepted, checked, and stored. Wrong names and values are refused with the nearest valid one; late calls
change nothing.
"""
import gc
import os
import pydoc
import subprocess
import sys
import textwrap
import weakref
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowedu as flow
from common import constant_rate, f32, fresh_session, job, refused, run  # noqa: F401
from flowedu.core.job.session import default_session
from flowedu.oneflow04.job import debug
from flowedu.oneflow04.job import env as env_module
from flowedu.oneflow04.job.config import PASSES
from flowedu.oneflow04.job.setting_kinds import REFUSED, REQUIRED
from flowedu.oneflow04.job.settings import ALIASES, JOB, SESSION

# test_settings.py tests these warnings
pytestmark = pytest.mark.filterwarnings("ignore::flowedu.errors.once.OptionWarning")
x = f32(2, 3)
GOOD = {bool: False, int: 3, float: 0.5, str: "text", dict: {"a": 1}, type(flow.float): flow.double}
BAD = {bool: [1, 0, "True", None, np.bool_(True)], int: [True, 1.0, "1", None], float: ["1", None, True, 1j],
       str: [1, None, b"a"], dict: [1, None, [("a", 1)]], type(flow.float): ["float", np.float32, None]}


@pytest.fixture(autouse=True)
def fresh_environment(monkeypatch):
    """Discard the machines and ports that other tests set."""
    monkeypatch.setattr(env_module, "_env", env_module.Environment())


def reach(owner, name):
    for part in name.split("."):
        owner = getattr(owner, part)
    return owner


def good_for(setting):
    return (setting.neutral if setting.does == REFUSED else setting.choices[0] if setting.choices
            else GOOD[setting.kind])


# --- every setting of a job
# ------------------------------------------------------------------------------------------

@pytest.mark.parametrize("name", [*JOB, *ALIASES])
def test_every_job_setting_is_accepted_checked_and_stored(name, capsys):
    config, setting = flow.function_config(), JOB[ALIASES.get(name, name)]
    good = good_for(setting)
    assert reach(config, name)(good) is None
    assert config.values[setting.name] == good
    printed = capsys.readouterr().out
    assert printed.strip() == setting.notice and reach(config, name).__doc__ == setting.says
    for bad in BAD[setting.kind]:
        with refused(AssertionError, name.split(".")[-1] if name == setting.name else "", "function_config"):
            reach(config, name)(bad)
    assert config.values[setting.name] == good, "a refused value changes nothing"
    if setting.kind is bool and setting.does != REFUSED:
        reach(config, name)()
        assert config.values[setting.name] is True
    elif setting.default is REQUIRED:
        with refused(AssertionError, "needs a value"):
            reach(config, name)()


def test_documented_settings_exist():
    names = """default_data_type default_initializer_conf default_placement_scope default_logical_view
    exp_run_conf default_distribute_strategy allow_cpu_return_op enable_auto_mixed_precision
    prune_parallel_cast_ops enable_inplace prune_cast_to_static_shape_ops enable_inplace_in_reduce_struct
    enable_reused_mem enable_reuse_mem enable_cudnn enable_fuse_add_to_output enable_fuse_cast_scale
    enable_fuse_model_update_ops cudnn_buf_limit_mbyte concurrency_width cudnn_conv_force_fwd_algo
    cudnn_conv_heuristic_search_algo enable_cudnn_fused_normalization_add_relu use_tensorrt
    enable_keep_header_only static_mem_alloc_policy_white_list.add optimizer_placement_optimization_mode
    enable_ssp optimizer_placement_optimization_threshold enable_non_distributed_optimizer
    train.num_gradient_accumulation_steps train.primary_lr train.secondary_lr train.model_update_conf
    train.loss_scale_factor indexed_slices_optimizer_conf qat.symmetric use_xla_jit tensorrt.use_fp16
    tensorrt.use_int8 enable_quantization_aware_training enable_nccl use_boxing_v2 all_reduce_group_num
    all_reduce_group_min_mbyte all_reduce_group_size_warmup all_reduce_lazy_ratio enable_all_reduce_group
    disable_all_reduce_sequence non_distributed_optimizer_group_size_mbyte
    use_nccl_inter_node_communication""".split()
    for name in names:
        assert callable(reach(flow.function_config(), name)), name


def test_legacy_training_settings_have_dotted_names_and_a_notice(capsys):
    config = flow.function_config()
    config.train.primary_lr(1)
    config.train.primary_lr(np.float32(0.25))
    config.train.model_update_conf({"naive_conf": {}})
    assert config.values == {"train.primary_lr": 0.25, "train.model_update_conf": {"naive_conf": {}}}
    assert type(config.values["train.primary_lr"]) is float
    assert capsys.readouterr().out.count("func_config.train.* has been deprecated") == 3


@pytest.mark.parametrize("name, near", [("default_datatype", "default_data_type"),
                                        ("enable_in_place", "enable_inplace"),
                                        ("default_placement", "default_placement_scope"),
                                        ("zzzz", "dir(function_config)"),
                                        ("train.primary_rate", "train.primary_lr"),
                                        ("qat.symetric", "qat.symmetric"),
                                        ("default_initializer_config", "default_initializer_conf")])
def test_unknown_names_get_the_nearest(name, near):
    with refused(AssertionError, repr(name), near):
        reach(flow.function_config(), name)
    assert not hasattr(flow.function_config(), "zzzz")


def test_malformed_settings_are_refused():
    config = flow.function_config()
    with refused(AssertionError, "config.enable_inplace(False)"):
        config.enable_inplace = False
    with refused(AssertionError, "group", "train.primary_lr"):
        config.train(0.1)
    with refused(AssertionError, "'non_distributed' or 'distributed_split'"):
        config.optimizer_placement_optimization_mode("split")
    with refused(AssertionError, "1 or more"):
        config.train.num_gradient_accumulation_steps(0)
    with refused(AssertionError, "mirrored_view()"):
        config.default_logical_view(flow.scope.mirrored_view)  # the function itself, not called
    with refused(AssertionError, "placement"):
        config.default_placement_scope(3)
    assert config.values == {}


def test_views_and_placements(capsys):
    config = flow.function_config()
    assert config.default_view is None
    for view in (flow.scope.mirrored_view(), flow.scope.consistent_view()):
        config.default_logical_view(view)
        assert config.default_view is config.values["default_logical_view"] is view
    config.default_placement_scope(flow.scope.placement("gpu", "0:0"))
    assert config.values["default_placement_scope"].device_tag == "gpu" and capsys.readouterr().out == ""
    config.default_placement_scope("cpu")
    assert config.values["default_placement_scope"] == "cpu" and "deprecated" in capsys.readouterr().out
    config.default_distribute_strategy(flow.scope.mirrored_view())
    assert config.default_view.mirrored and "default_logical_view" in capsys.readouterr().out


def test_dir_help_and_repr_list_the_settings():
    config = flow.function_config()
    assert {"train", "qat", "enable_cudnn", "default_initializer_conf",
            "enable_reuse_mem"} <= set(dir(config))
    assert "primary_lr" in dir(config.train) and "enable_fusion" in dir(flow.config.collective_boxing)
    text = pydoc.plain(pydoc.render_doc(flow.FunctionConfig))
    works, rest = text.split("Kept; results do not depend on them")
    assert ("train.primary_lr(float)" in works and "enable_inplace(bool = True)" in works
            and "default_logical_view" in works)
    assert "enable_cudnn" in rest and "enable_nccl" in rest
    config.enable_cudnn(False)
    assert repr(config) == "<function_config enable_cudnn=False>"
    for name in SESSION:
        assert name in flow.config.__doc__


def test_a_copy_is_independent():
    config = flow.function_config()
    config.exp_run_conf({"a": 1})
    config.default_initializer_conf(flow.ones_initializer())
    other = config.copy()
    other.exp_run_conf({"a": 2})
    other.values["exp_run_conf"]["a"] = 3
    assert (config.values["exp_run_conf"] == {"a": 1}
            and other.default_initializer is config.default_initializer)


def test_memory_policies():
    white = flow.function_config().static_mem_alloc_policy_white_list
    assert white.has(white.policy_mem_size_first()) and not white.has(white.policy_time_line())
    white.add(white.policy_time_line()), white.remove(white.policy_mem_size_first())
    assert [white.has(p) for p in white.show()] == [False, False, True]
    with refused(AssertionError, "use_time_line_algo"):
        white.add("best")


# --- settings that do something
# --------------------------------------------------------------------------------------

@pytest.mark.parametrize("name, off", [("enable_inplace", "inplace"), ("enable_reused_mem", "reuse"),
                                       ("enable_reuse_mem", "reuse")])
def test_switches_of_the_planner(name, off):
    config = flow.function_config()
    assert off in PASSES and config.passes_off == ()
    getattr(config, name)(False)
    config.without_passes("cse")
    assert config.passes_off == ("cse", off)

    def body(a):
        return flow.math.tanh(flow.math.relu(a * 2 + 1)) + flow.math.relu(a * 2 + 1)

    np.testing.assert_array_equal(run(body, x, config=config), run(body, x))


CONFS = [({"constant_conf": {"value": 2.5}}, flow.constant_initializer(2.5)),
         ({"empty_conf": {}}, flow.empty_initializer()),
         ({"constant_int_conf": {"value": 7}}, flow.constant_initializer(7, flow.int32)),
         ({"random_uniform_conf": {"min": -1, "max": 3}}, flow.random_uniform_initializer(-1, 3)),
         ({"random_uniform_int_conf": {"min": 0, "max": 9}},
          flow.random_uniform_initializer(0, 9, flow.int32)),
         ({"random_normal_conf": {"std": 0.01}}, flow.random_normal_initializer(0.0, 0.01)),
         ({"truncated_normal_conf": {"std": 2.0}}, flow.truncated_normal(2.0)),
         ({"xavier_conf": {"variance_norm": "kAverage"}}, flow.xavier_uniform_initializer()),
         ({"msra_conf": {}}, flow.variance_scaling_initializer(2.0, "fan_in", "random_normal")),
         ({"variance_scaling_conf": {"scale": 3.0, "variance_norm": 1, "distribution": "kRandomUniform"}},
          flow.variance_scaling_initializer(3.0, "fan_out", "random_uniform"))]


@pytest.mark.parametrize("conf, same", CONFS)
def test_default_initializers_may_be_dictionaries(conf, same):
    config = flow.function_config()
    config.default_initializer_conf(conf)
    assert config.default_initializer == same
    config.default_initializer_conf(same)
    assert config.default_initializer is same


@pytest.mark.parametrize("conf", [{}, {"normal": {}}, 3, "zeros", {"msra_conf": {"mean": 1}},
                                  {"constant_conf": 3},
                                  {"msra_conf": {"variance_norm": "kFan"}},
                                  {"msra_conf": {"variance_norm": []}},
                                  {"constant_conf": {}, "empty_conf": {}}])
def test_other_initializers_are_refused(conf):
    with refused(AssertionError, "default_initializer_conf"):
        flow.function_config().default_initializer_conf(conf)


def test_default_initializer_in_a_job():
    config = flow.function_config()
    config.default_initializer_conf({"constant_conf": {"value": 3.0}})
    np.testing.assert_array_equal(run(lambda a: a * flow.get_variable("w", (3,)), x, config=config), x * 3)


# --- flow.config
# -----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("name", SESSION)
def test_every_session_setting_is_accepted_and_checked(name, capsys):
    setting = SESSION[name]
    good = good_for(setting)
    assert reach(flow.config, name)(good) is None
    assert capsys.readouterr().out.strip() == setting.notice
    assert reach(flow.current_resource(), name) == good or name == "machine_num"
    for bad in BAD[setting.kind]:
        with refused(AssertionError, "flow.config", name.split(".")[-1]):
            reach(flow.config, name)(bad)
    flow.clear_default_session()
    assert not reach(flow.current_resource(), name) or name == "machine_num"


def test_late_settings_warn_and_change_nothing(capsys):
    run(lambda a: a, x)
    before = dict(flow.current_resource().__dict__)
    late = [lambda: flow.config.gpu_device_num(2), lambda: flow.config.cpu_device_num(2),
            lambda: flow.config.use_rdma(),
            lambda: flow.config.enable_debug_mode(True),
            lambda: flow.config.collective_boxing.num_callback_threads(2),
            lambda: flow.config.enable_legacy_model_io(False), lambda: flow.config.load_library("x.so"),
            lambda: flow.config.load_library_now("x.so"), lambda: flow.config.machine_num(2)]
    for call in late:
        capsys.readouterr()
        assert call() is False
        assert "Nothing happened because the session is running" in capsys.readouterr().out
    assert flow.current_resource().__dict__ == before
    flow.clear_default_session()
    assert flow.config.cpu_device_num(2) is None


@pytest.mark.parametrize("n", [0, -1, 1.0, "2", True, None])
def test_numbers_of_devices_are_checked(n):
    with refused(AssertionError, "cpu_device_num"):
        flow.config.cpu_device_num(n)
    if n != 0 or n is False:
        with refused(AssertionError, "gpu_device_num"):
            flow.config.gpu_device_num(n)


def test_gpus_are_replaced_by_cpus_with_one_notice(capsys):
    flow.config.gpu_device_num(3)
    flow.config.gpu_device_num(0)                              # zero GPUs is valid
    assert flow.current_resource().cpu_device_num == 3 and flow.current_resource().gpu_device_num == 0
    flow.config.gpu_device_num(2)
    assert capsys.readouterr().out.count("INFO") == 1
    flow.clear_default_session()
    assert flow.current_resource().cpu_device_num == 1


def test_unknown_session_settings_get_the_nearest():
    for name, near in (("gpu_device_number", "gpu_device_num"), ("enable_debug", "enable_debug_mode"),
                       ("collective_boxing.nccl_streams", "nccl_num_streams")):
        with refused(AssertionError, name, near):
            reach(flow.config, name)


def test_legacy_model_io():
    assert flow.config.legacy_model_io_enabled() is False
    flow.config.enable_legacy_model_io()
    assert flow.config.legacy_model_io_enabled() is True
    flow.config.enable_legacy_model_io(False)
    assert flow.config.legacy_model_io_enabled() is False


def test_load_library_takes_paths():
    with refused(AssertionError, "not a path"):
        flow.config.load_library(3)


# --- flow.env
# --------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("arguments", [("a", "b"), (["a", "b"],), (("a", {"addr": "b"}),),
                                       ({"addr": "a"}, {"addr": "b"})])
def test_ways_to_name_machines(arguments):
    assert flow.env.machine(*arguments) is None
    assert flow.env.machine_num() == 2 and flow.current_resource().machine_num == 2
    assert [(m.id, m.addr) for m in env_module._env.machines] == [(0, "a"), (1, "b")]
    assert flow.current_machine_id() == 0


@pytest.mark.parametrize("error, arguments", [(AssertionError, ("a", "a")), (AssertionError, ()),
                                              (AssertionError, ([],)),
                                              (AssertionError, ({"ip": "a"},)), (AssertionError, ("",)),
                                              (NotImplementedError, (3,)), (NotImplementedError,
                                                                            ("a", None))])
def test_other_machines_are_refused(error, arguments):
    with refused(error, "flow.env.machine"):
        flow.env.machine(*arguments)
    assert flow.env.machine_num() == 1


@pytest.mark.parametrize("name, value, bad", [("ctrl_port", 50051, [0, "1", True, 70000, None]),
                                              ("data_port", 1, [1.0]),
                                              ("log_dir", "d", [1]), ("logtostderr", 1, [True]),
                                              ("logbuflevel", -1, ["0"]), ("grpc_use_no_signal", True, [1])])
def test_settings_of_the_environment(name, value, bad):
    assert getattr(flow.env, name)(value) is None and flow.env.value(name) == value
    for b in bad:
        with refused(AssertionError, name):
            getattr(flow.env, name)(b)
    assert flow.env.value(name) == value


def test_several_machines_need_a_port():
    flow.env.machine("a", "b")
    with refused(ValueError, "ctrl_port", at=False):
        flow.env.init()
    flow.config.ctrl_port(50051)                               # the alias of ctrl_port
    assert flow.env.value("ctrl_port") == 50051 and flow.env.init() is True


def test_jobs_on_several_machines():
    """A job declared for several machines runs in one process."""
    flow.env.machine("a", "b")
    double = job(lambda a: a * 2, f32(4, 3))
    with refused(ValueError, "ctrl_port", at=False):
        double(f32(4, 3))
    flow.env.ctrl_port(50051)
    np.testing.assert_array_equal(double(f32(4, 3)), f32(4, 3) * 2)


@pytest.mark.parametrize("how", ["init", "run"])
def test_the_environment_is_fixed_once(how, capsys):
    flow.env.init() if how == "init" else run(lambda a: a, x)
    for call in (flow.env.init, lambda: flow.env.machine("a"), lambda: flow.env.ctrl_port(1),
                 lambda: flow.env.log_dir("x")):
        capsys.readouterr()
        assert call() is False and "has been initialized" in capsys.readouterr().out
    flow.clear_default_session()
    assert flow.env.log_dir("x") is None and flow.env.init() is True


def test_the_environment_does_not_keep_a_session_alive():
    flow.env.init()
    session = weakref.ref(default_session())
    flow.clear_default_session()
    gc.collect()
    assert session() is None


def test_sysconfig_reports_the_build():
    assert os.path.isfile(os.path.join(flow.sysconfig.get_include(), "abi.h"))
    assert os.path.isfile(os.path.join(flow.sysconfig.get_lib(), "__init__.py"))
    assert f"-I{flow.sysconfig.get_include()}" in flow.sysconfig.get_compile_flags()
    assert flow.sysconfig.get_link_flags()[0] == "-shared"
    assert not (flow.sysconfig.with_cuda() or flow.sysconfig.with_xla()
                or flow.sysconfig.has_rpc_backend_grpc())
    assert flow.sysconfig.with_openmp() == flow.has_threads() and flow.sysconfig.has_rpc_backend_local()


# --- the debug mode
# --------------------------------------------------------------------------------------------------

class FakeJob:
    """Stand-in with the members of a job that debug mode reads."""

    def __init__(self, name="train_job", type="train"):
        self.name, self.type = name, type

    def show(self):
        return f"plan of {self.name}"


@pytest.fixture
def logs(tmp_path, capsys):
    flow.env.log_dir(str(tmp_path / "log"))
    return tmp_path / "log"


def test_debug_mode_is_off_by_default():
    assert not debug.enabled()
    flow.config.enable_debug_mode(True)
    assert debug.enabled()
    flow.clear_default_session()
    assert not debug.enabled()


def test_plans_and_rates_are_written(logs, capsys):
    train, predict = FakeJob(), FakeJob("predict_job", "predict")
    folders = [debug.start(j) for j in (train, predict, train)]
    printed = capsys.readouterr().out
    assert len(set(folders)) == 3 and all(f in printed for f in folders)
    for folder, j in zip(folders, (train, predict, train)):
        assert folder.startswith(str(logs)) and j.name in os.path.basename(folder)
        assert Path(folder, "plan.txt").read_text(encoding="utf-8") == f"plan of {j.name}\n"
    for i in range(2500):
        debug.step(train, i, 0.1 / (i + 1))
    debug.flush()
    lines = Path(folders[2], "train_step2lr.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "train_step, lr" and len(lines) == 2501
    for i, line in enumerate(lines[1:]):
        step, rate = line.split(", ")
        assert int(step) == i and np.float32(rate) == np.float32(0.1 / (i + 1))
    assert sorted(os.listdir(folders[1])) == ["plan.txt"]


def test_a_step_before_the_start_is_kept(logs):
    train = FakeJob()
    debug.step(train, 0, 0.5)
    debug.flush()
    folder = debug.start(train)
    debug.step(train, 1, 0.25)
    debug.flush()
    assert Path(folder,
                "train_step2lr.csv").read_text(encoding="utf-8") == "train_step, lr\n0, 0.5\n1, 0.25\n"


@pytest.mark.parametrize("on", [True, False])
def test_a_session_in_debug_mode(logs, capsys, on):
    """Debug mode writes log/*/train_step2lr.csv, as OneFlow does."""
    def train(a):
        loss = a * flow.get_variable("w", (2, 3), initializer=flow.ones_initializer())
        flow.optimizer.SGD(flow.optimizer.CosineScheduler(0.1, 8)).minimize(loss)
        return loss

    flow.config.enable_debug_mode(on)
    step, show = job(train, x, type="train", name="learn"), job(lambda a: a + 1, x, name="look")
    for _ in range(5):
        step(x), show(x)
    debug.flush()
    if not on:
        assert not logs.exists() and capsys.readouterr().out == ""
        return
    assert sorted(f.name.split("-")[-1] for f in logs.iterdir()) == ["learn", "look"]
    [plan] = logs.glob("*-look/plan.txt")
    assert plan.read_text(encoding="utf-8") == show.show() + "\n"
    [rates] = logs.glob("*/train_step2lr.csv")
    lines = rates.read_text(encoding="utf-8").splitlines()
    schedule = flow.optimizer.CosineScheduler(0.1, 8)
    assert lines[0] == "train_step, lr" and len(lines) == 6
    for i, line in enumerate(lines[1:]):
        assert line.split(", ")[0] == str(i) and np.float32(line.split(", ")[1]) == np.float32(schedule(i))


def test_lines_of_a_deleted_job_are_written(logs):
    train = FakeJob()
    folder = debug.start(train)
    debug.step(train, 0, [0.1, 0.5])
    assert not os.path.exists(os.path.join(folder, "train_step2lr.csv"))
    del train
    gc.collect()
    assert Path(folder,
                "train_step2lr.csv").read_text(encoding="utf-8") == "train_step, lr, lr1\n0, 0.1, 0.5\n"


def test_training_continues_when_the_log_cannot_be_written(logs, capsys):
    train = FakeJob()
    folder = debug.start(train)
    os.mkdir(os.path.join(folder, "train_step2lr.csv"))        # a folder occupies the file's path
    debug.step(train, 0, 0.1)
    debug.flush()
    assert "2 lines were not written" in capsys.readouterr().out


def test_lines_are_written_at_exit(tmp_path):
    script = textwrap.dedent(f"""
        import sys
        import flowedu as flow
        from flowedu.oneflow04.job import debug
        sys.path[:0] = {[str(p) for p in Path(__file__).parents[:2]]!r}
        from test_config import FakeJob
        flow.env.log_dir({str(tmp_path)!r})
        job = FakeJob()
        print(debug.start(job).splitlines()[-1])
        debug.step(job, 0, 0.5)
        """)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    [folder] = os.listdir(tmp_path)
    assert (tmp_path / folder / "train_step2lr.csv").read_text(encoding="utf-8") == "train_step, lr\n0, 0.5\n"


# --- dtypes (the helpers a configuration names)
# ----------------------------------------------------------------------

def test_names_of_element_types():
    assert flow.float is flow.float32 and flow.double is flow.float64 and flow.half is flow.float16
    assert flow.int is flow.int32 and flow.long is flow.int64 and flow.float == flow.float32
    for d in flow.dtypes():
        assert isinstance(d, flow.dtype)
    assert {flow.char, flow.record, flow.tensor_buffer, flow.uint8, flow.int8} <= set(flow.dtypes())
    assert flow.convert_oneflow_dtype_to_numpy_dtype(flow.char) == np.byte
    for d in (flow.record, flow.tensor_buffer):
        with pytest.raises(NotImplementedError):
            flow.convert_oneflow_dtype_to_numpy_dtype(d)


@given(st.text(st.characters(codec="ascii", categories=["Ll", "Nd"], include_characters="_."), min_size=1,
               max_size=12))
def test_unknown_dtype_names_raise(name):
    config = flow.function_config()
    try:
        reach(config, name)
    except AttributeError as e:
        assert "has no" in str(e) or name.startswith("_") or not name.isidentifier()
    assert config.values == {}
