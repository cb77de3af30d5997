"""flow.unittest.env: how many nodes and devices OneFlow's own tests may use, by the variables that say so."""
from __future__ import annotations

import os


def device_num() -> int:
    """Devices of each node: ONEFLOW_TEST_DEVICE_NUM, 1 where it is not set."""
    return int(os.environ.get("ONEFLOW_TEST_DEVICE_NUM") or 1)


def has_node_list() -> bool:
    """Whether ONEFLOW_TEST_NODE_LIST is set."""
    return bool(os.environ.get("ONEFLOW_TEST_NODE_LIST"))


def node_list() -> list[str]:
    """The nodes of ONEFLOW_TEST_NODE_LIST, which has commas between them; none where it is not set."""
    return [node for node in os.environ.get("ONEFLOW_TEST_NODE_LIST", "").split(",") if node]


def node_size() -> int:
    """How many nodes there are: ONEFLOW_TEST_NODE_NUM, else those of node_list, else 1."""
    return int(os.environ.get("ONEFLOW_TEST_NODE_NUM") or len(node_list()) or 1)


def has_world_size() -> bool:
    """Whether ONEFLOW_TEST_WORLD_SIZE is set."""
    return bool(os.environ.get("ONEFLOW_TEST_WORLD_SIZE"))


def world_size() -> int:
    """ONEFLOW_TEST_WORLD_SIZE; all devices of all nodes where it is not set."""
    return int(os.environ.get("ONEFLOW_TEST_WORLD_SIZE") or node_size() * device_num())


def eager_execution_enabled() -> bool:
    """Whether ONEFLOW_TEST_ENABLE_EAGER is 1."""
    return os.environ.get("ONEFLOW_TEST_ENABLE_EAGER") == "1"


def typing_check_enabled() -> bool:
    """Whether ONEFLOW_TEST_ENABLE_TYPING_CHECK is 1."""
    return os.environ.get("ONEFLOW_TEST_ENABLE_TYPING_CHECK") == "1"
