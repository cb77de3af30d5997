"""Rule: every setting of function_config, flow.config, and nn.Graph.config has a known kind.

It has an effect that a test checks, is refused with a reason, or warns once. A setting without a row fails
here.
"""
import inspect
import warnings

import numpy as np
import pytest

import flowedu as flow
from common import constant, f32, fresh_session, job, refused, run  # noqa: F401
from flowedu import nn
from flowedu.core.graph.passes import NAMES
from flowedu.errors import once
from flowedu.nn.graph.config import GraphConfig
from flowedu.oneflow04.job.setting_kinds import ACTS, GONE, REFUSED, WARNS
from flowedu.oneflow04.job.settings import JOB, SESSION, SWITCHES

x = f32(4, 6)


@pytest.fixture(autouse=True)
def nothing_said(monkeypatch):
    monkeypatch.setattr(once, "told", set())


def collect_option_warnings(call):
    """Return the warnings about options that a call emits."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    return [w for w in found if issubclass(w.category, once.OptionWarning)]


def reach(owner, name):
    for part in name.split("."):
        owner = getattr(owner, part)
    return owner


# --- jobs
# ------------------------------------------------------------------------------------------------------------

def body(a):
    """Define a training job in which every pass changes something."""
    w = flow.get_variable("w", (6, 6), initializer=constant(np.linspace(-1, 1, 36).reshape(6, 6)))
    y = flow.layers.batch_normalization(flow.matmul(a, w), axis=-1, name="norm")
    y = flow.math.tanh(flow.nn.relu(y) * 0.5 + a) + a * a
    flow.optimizer.SGD(flow.optimizer.PiecewiseConstantScheduler([], [0.1]), momentum=0).minimize(y)
    return y


def compiled(config):
    """Return (report of the passes, ops of the plan, the plan, results of three steps)."""
    flow.clear_default_session()
    step = job(body, x, type="train", config=config)
    results = [step(x) for _ in range(3)]
    program = step.program.only.program
    return program.report, [s.node.op.name for s in program.plan.steps], program.plan, results


@pytest.mark.parametrize("name", SWITCHES.values())
def test_a_switch_changes_the_plan_but_not_the_results(name):
    config = flow.function_config()
    getattr(config, name)(False)
    (_, calls, plan, results), (_, others, without, same) = compiled(None), compiled(config)
    if name == "enable_reused_mem":
        assert without.arena > plan.arena
    elif name == "enable_inplace":
        assert without.arena != plan.arena
    else:
        assert len(others) >= len(calls) and sorted(others) != sorted(calls)
    for a, b in zip(results, same):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


PROBED = {*SWITCHES.values(),
          "enable_auto_mixed_precision", "auto_mixed_precision_data_type",          # amp/test_modes.py
          "prefetch",                                        # test_prefetch.py
          "default_initialize_with_snapshot_path",           # test_checkpoints.py
          "train.num_gradient_accumulation_steps",           # test_accumulation.py
          # test_legacy_optimizers.py
          "train.primary_lr", "train.secondary_lr", "train.model_update_conf",
          "train.loss_scale_factor",                         # test_loss_scale.py
          "enable_debug_mode"}                               # test_config.py


def test_every_setting_has_a_kind():
    acting = {n for table in (JOB, SESSION) for n, s in table.items() if s.does == ACTS}
    assert acting == PROBED, "a setting that acts needs a probe here"
    for setting in (*JOB.values(), *SESSION.values()):
        assert setting.does in (ACTS, REFUSED, WARNS, GONE) and setting.says
        assert bool(setting.fix) == (setting.does == REFUSED) and (setting.does != GONE or setting.notice)


OTHER = {bool: True, int: 3, float: 0.5, str: "text", dict: {"a": 1}, flow.dtype: flow.double}


def value(setting):
    return setting.choices[0] if setting.choices else OTHER[setting.kind]


@pytest.mark.parametrize("name", [n for n, s in JOB.items() if s.does == REFUSED])
def test_a_setting_that_would_change_results_is_refused(name):
    config, setting = flow.function_config(), JOB[name]
    with refused(NotImplementedError, name, setting.says, setting.fix):
        reach(config, name)(value(setting))
    assert name not in config.values
    assert not collect_option_warnings(
        lambda: reach(config, name)(setting.neutral)), "what happens anyway may be asked for"


@pytest.mark.parametrize("table, name", [(t, n) for t, settings in (("job", JOB), ("session", SESSION))
                                         for n, s in settings.items() if s.does == WARNS])
def test_a_setting_without_effect_warns_once(table, name):
    owner, setting = (flow.function_config(), JOB[name]) if table == "job" else (flow.config, SESSION[name])
    warned = collect_option_warnings(lambda: (reach(owner, name)(value(setting)),
                                              reach(owner, name)(value(setting))))
    assert len(warned) == 1 and name in str(warned[0].message) and setting.says in str(warned[0].message)
    assert warned[0].filename == __file__, "it points at the user's line"


def test_settings_of_another_training_mode_warn():
    config = flow.function_config()
    config.train.primary_lr(0.5)
    assert len(collect_option_warnings(lambda: compiled(config))) == 1
    policies = flow.function_config().static_mem_alloc_policy_white_list
    assert len(collect_option_warnings(lambda: policies.add(policies.policy_time_line()))) == 1


# --- nn.Graph
# ---------------------------------------------------------------------------------------------------------

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        flow.manual_seed(0)
        self.a, self.b, self.norm = (nn.Linear(6, 6, bias=False), nn.Linear(6, 6, bias=False),
                                     nn.BatchNorm1d(6))

    def forward(self, x):
        y = self.norm(self.a(x)).relu()
        return ((y * 0.5 + x).tanh() + self.b(y)).exp()


def train_with_settings(**calls):
    """Return (ops of the plan, arena in bytes, losses of three steps) of a graph with calls on its config."""
    net = Net()

    class Train(nn.Graph):
        def __init__(self):
            super().__init__()
            self.net = net
            self.add_optimizer(flow.optim.SGD(net.parameters(), lr=0.1))
            for name, arguments in calls.items():
                getattr(self.config, name)(*arguments)

        def build(self, x):
            loss = self.net(x).mean()
            loss.backward()
            return loss

    step, data = Train(), flow.tensor(x)
    results = [step(data).item() for _ in range(3)]
    plan = step._compiled.program.plan
    return sorted(s.node.op.name for s in plan.steps), plan.arena, results


GRAPH_SWITCHES = {"allow_fuse_model_update_ops": "calls", "allow_fuse_add_to_output": "calls",
                  "allow_fuse_cast_scale": "calls", "enable_multi_tensor_update": "calls",
                  "enable_compress_memory": "memory"}
GRAPH_WARNS = {"enable_fused_model_update_cast": (True,),
               "enable_cudnn_conv_heuristic_search_algo": (True,),
               "enable_straighten_algorithm": ("MemoryFirst",),
               "set_outputs_buffer_size": (3,), "set_auto_parallel_wait_time": (1.0,),
               "enable_auto_parallel_trunk_algo": (True,), "enable_auto_parallel_sbp_collector": (True,)}
GRAPH_PROBED = {"set_gradient_accumulation_steps",           # graph/test_training.py
                "enable_amp", "computing",                   # amp/test_autocast.py
                "disable_pass", "enable_pass",               # below
                "enable_zero", "enable_auto_parallel", "enable_auto_parallel_ignore_user_sbp_config",
                "set_auto_parallel_computation_cost_ratio",  # dist/test_graph_zero.py, dist/test_auto.py
                "set_zero_redundancy_optimizer_mode"}        # refused: graph/test_state.py


def test_every_graph_setting_has_a_kind():
    public = {n for n, f in inspect.getmembers(GraphConfig, callable) if not n.startswith("_")}
    assert public == {*GRAPH_SWITCHES, *GRAPH_WARNS, *GRAPH_PROBED}


@pytest.mark.parametrize("name", GRAPH_SWITCHES)
def test_a_graph_switch_changes_the_plan_but_not_the_results(name):
    calls, memory, results = train_with_settings(**({"disable_pass": ("update",)}
                                                    if name == "enable_multi_tensor_update" else {}))
    fewer = {name: (False,)} | ({"disable_pass": ("update",)} if name == "enable_multi_tensor_update" else {})
    others, more, same = train_with_settings(**fewer)
    assert len(others) >= len(calls) and others != calls if GRAPH_SWITCHES[name] == "calls" else more > memory
    np.testing.assert_allclose(results, same, rtol=1e-5)
    assert train_with_settings(**{name: (True,)})[:2] == train_with_settings()[:2]


@pytest.mark.parametrize("name", GRAPH_WARNS)
def test_a_graph_setting_without_effect_warns_once(name):
    config = nn.Graph().config
    warned = collect_option_warnings(lambda: (getattr(config, name)(*GRAPH_WARNS[name]),
                                              getattr(config, name)(*GRAPH_WARNS[name])))
    assert len(warned) == 1 and name in str(warned[0].message) and warned[0].filename == __file__


def test_graphs_and_jobs_have_the_same_passes():
    from flowedu.nn.graph.config import PASSES as GRAPH_PASSES
    from flowedu.oneflow04.job.config import PASSES
    assert PASSES is GRAPH_PASSES is NAMES
    results = train_with_settings()[2]
    for name in NAMES:
        np.testing.assert_allclose(train_with_settings(disable_pass=(name,))[2], results, rtol=1e-5)
        config = flow.function_config()
        config.without_passes(name)
        assert config.passes_off == (name,)
