"""Numbers of nodes and devices for OneFlow's own tests, from environment variables: flow.unittest.env."""
from __future__ import annotations

import os


def device_num() -> int:
    """Return the number of devices per node: ONEFLOW_TEST_DEVICE_NUM, default 1."""
    return int(os.environ.get("ONEFLOW_TEST_DEVICE_NUM") or 1)


def has_node_list() -> bool:
    """Return True if ONEFLOW_TEST_NODE_LIST is set."""
    return bool(os.environ.get("ONEFLOW_TEST_NODE_LIST"))


def node_list() -> list[str]:
    """Return the nodes of ONEFLOW_TEST_NODE_LIST, which is separated by commas."""
    return [node for node in os.environ.get("ONEFLOW_TEST_NODE_LIST", "").split(",") if node]


def node_size() -> int:
    """Return the number of nodes: ONEFLOW_TEST_NODE_NUM, else the length of node_list, else 1."""
    return int(os.environ.get("ONEFLOW_TEST_NODE_NUM") or len(node_list()) or 1)


def has_world_size() -> bool:
    """Return True if ONEFLOW_TEST_WORLD_SIZE is set."""
    return bool(os.environ.get("ONEFLOW_TEST_WORLD_SIZE"))


def world_size() -> int:
    """Return ONEFLOW_TEST_WORLD_SIZE; default: the number of all devices of all nodes."""
    return int(os.environ.get("ONEFLOW_TEST_WORLD_SIZE") or node_size() * device_num())


def eager_execution_enabled() -> bool:
    """Return True if ONEFLOW_TEST_ENABLE_EAGER is 1."""
    return os.environ.get("ONEFLOW_TEST_ENABLE_EAGER") == "1"


def typing_check_enabled() -> bool:
    """Return True if ONEFLOW_TEST_ENABLE_TYPING_CHECK is 1."""
    return os.environ.get("ONEFLOW_TEST_ENABLE_TYPING_CHECK") == "1"
